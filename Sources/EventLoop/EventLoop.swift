// One libevent base on one thread, as a Swift actor: objects that live on a loop are isolated to this actor.

import CLibevent
import CLinux
import Glibc
import Synchronization

/// An event loop.
///
/// Loop-bound objects (connections, transfers, timers) are created in its isolation and die there; they are not
/// Sendable. libevent's callbacks recover such an object and call its synchronous methods directly; work that has to
/// wait becomes a task that prefers `taskExecutor` and whose closure names the loop, which becomes its isolation.
package actor EventLoop {
    package nonisolated let index: Int
    nonisolated let queue: JobQueue
    nonisolated let thread: LoopThread
    private nonisolated let serialExecutor: LoopSerialExecutor
    /// Tasks that are started with this preference are resumed on the loop's thread, without a hop through the pool.
    package nonisolated let taskExecutor: LoopTaskExecutor
    /// Connections that live on this loop: the accepting loop reads it to find the least busy one.
    package nonisolated let connections = LoadCounter()
    /// The base; valid from `start` until the thread has left the loop.
    let base: LoopBase
    private let sleepers = Sleepers()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { serialExecutor.asUnownedSerialExecutor() }

    /// Starts a loop on a thread of its own.
    /// - Throws: `SystemError` where the kernel refuses a descriptor or a thread.
    package static func start(index: Int = 0) throws(SystemError) -> EventLoop {
        let loop = try EventLoop(index: index)
        try loop.launch()
        return loop
    }

    private init(index: Int) throws(SystemError) {
        self.index = index
        let thread = LoopThread()
        let queue = try JobQueue(thread: thread)
        self.queue = queue
        self.thread = thread
        serialExecutor = LoopSerialExecutor(queue: queue, thread: thread)
        taskExecutor = LoopTaskExecutor(queue: queue)
        base = try LoopBase(queue: queue)
    }

    /// True on the loop's own thread.
    package nonisolated var isCurrent: Bool { thread.isCurrent }

    /// Ends the process on any thread but the loop's own.
    nonisolated func checkThread() { serialExecutor.checkIsolated() }

    /// Whether the loop's thread waits for a disk; any thread.
    package nonisolated var waitsForDisk: Bool { ThreadState.of(thread.number) == .disk }

    /// Runs `work` on the loop, in order of submission; any thread.
    package nonisolated func submit(_ work: @escaping @Sendable (isolated EventLoop) -> Void) {
        queue.append(.work(work))
    }

    /// Asks the loop to end after the jobs that are queued now, and waits for its thread. Not on the loop itself.
    package nonisolated func stop() {
        precondition(!isCurrent, "a loop cannot wait for itself")
        base.stop(queue: queue)
    }

    // MARK: - Waiting

    /// Suspends the calling task for at least `nanoseconds`.
    /// - Throws: `CancellationError` when the task is cancelled while it waits.
    package func sleep(nanoseconds: UInt64) async throws {
        let id = sleepers.nextIdentifier()
        try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { continuation in
                addSleeper(id, nanoseconds, continuation)
            }
        } onCancel: {
            submit { $0.sleepers.wake(id, result: .failure(CancellationError())) }
        }
    }

    private func addSleeper(_ id: UInt64, _ nanoseconds: UInt64, _ waiter: UnsafeContinuation<Void, any Error>) {
        if Task.isCancelled { return waiter.resume(throwing: CancellationError()) }
        sleepers.add(id, timer: LoopTimer(on: self) { [sleepers] in sleepers.wake(id, result: .success(())) }, waiter)
        sleepers.start(id, after: nanoseconds)
    }

    // MARK: - The thread

    private nonisolated func launch() throws(SystemError) {
        try base.launch(loop: self, name: "loop-\(index)") { loop in loop.thread.adoptCurrent() }
    }

    /// Runs at most one batch of queued jobs, so that sockets are not starved; on the loop's thread, from libevent.
    nonisolated func drain(_ batch: inout [LoopJob]) {
        queue.take(into: &batch)
        for job in batch {
            switch job {
            case .serial(let job), .task(let job): run(job)
            case .work(let work): assumeIsolated { loop in work(loop) }
            }
        }
        batch.removeAll(keepingCapacity: true)
    }

    private nonisolated func run(_ job: UnownedJob) {
        job.runSynchronously(
            isolatedTo: serialExecutor.asUnownedSerialExecutor(),
            taskExecutor: taskExecutor.asUnownedTaskExecutor()
        )
    }

    /// The next task that is started on the loop's thread waits for ``runHeldTask()``.
    package func holdNextTask() { queue.holdsNext = true }

    /// Runs the held task up to its first wait before this returns; for callbacks of the loop, outside any task. A task
    /// that prefers the loop's executor would have to wait for a turn of the loop otherwise, even an immediate one.
    package func runHeldTask() {
        if let job = queue.takeHeld() { run(job) }
    }
}

/// A count that one loop changes and others read.
package final class LoadCounter: Sendable {
    private let value = Atomic<Int>(0)

    package var current: Int { value.load(ordering: .relaxed) }
    package func add(_ change: Int) { value.wrappingAdd(change, ordering: .relaxed) }
}
