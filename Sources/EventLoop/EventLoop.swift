// One libevent base on one thread, as a Swift actor: objects that live on a loop are isolated to this actor, and others
// send them work.

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
    /// The executor for tasks: those that prefer it are resumed on the loop's thread, without a hop through the pool.
    package nonisolated let taskExecutor: LoopTaskExecutor
    /// The number of connections on this loop: the accepting loop reads it to find the least busy one.
    package nonisolated let connections = LoadCounter()
    /// The libevent base; valid from `start` until the thread has left the loop.
    let base: LoopBase
    private let sleepers = Sleepers()

    package nonisolated var unownedExecutor: UnownedSerialExecutor { serialExecutor.asUnownedSerialExecutor() }

    /// Starts a loop on a thread of its own.
    /// - Throws: `SystemError` if the kernel refuses a descriptor or a thread.
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

    /// Checks the thread: ends the process on any but the loop's own.
    nonisolated func checkThread() { serialExecutor.checkIsolated() }

    /// Whether the loop's thread waits for a disk; any thread.
    package nonisolated var waitsForDisk: Bool { ThreadState.of(thread.number) == .disk }

    /// Runs `work` on the loop, in order of submission; any thread.
    package nonisolated func submit(_ work: @escaping @Sendable (isolated EventLoop) -> Void) {
        queue.append(.work(work))
    }

    /// Asks the loop to end after the jobs that are queued now, and waits for its thread. Must not be called on the
    /// loop itself.
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

    /// Holds back the next task that is started on the loop's thread, until ``runHeldTask()``.
    package func holdNextTask() { queue.holdsNext = true }

    /// Runs the held task up to its first wait before this returns; for callbacks of the loop, outside any task.
    /// Without it a task that prefers the loop's executor would wait for a turn of the loop, even one that could run at
    /// once.
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

// MARK: - Objects that others send work to

/// A loop-bound object that other threads may send work to.
///
/// `@unchecked Sendable`: `value` is accessed on `loop` only, by `run`, `submit` and `take`.
package final class LoopBox<Value>: @unchecked Sendable {  // protected as the comment above says
    package nonisolated let loop: EventLoop
    private var value: Value?

    /// Makes the object on its loop.
    package init(on loop: isolated EventLoop, _ make: (isolated EventLoop) throws -> Value) rethrows {
        self.loop = loop
        value = try make(loop)
    }

    /// Holds an object that belongs to the loop.
    package init(_ value: Value, on loop: isolated EventLoop) {
        self.loop = loop
        self.value = value
    }

    /// Runs `body` on the loop, unless the object has been taken out.
    package func submit(_ body: @escaping @Sendable (Value, isolated EventLoop) -> Void) {
        loop.submit { loop in
            if let value = self.value { body(value, loop) }
        }
    }

    /// Runs `body` on the loop and waits for it; nil when the object has been taken out.
    package func run<Result: Sendable>(
        _ body: @escaping @Sendable (Value, isolated EventLoop) async -> Result
    ) async -> Result? {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Result?, Never>) in
            loop.submit { loop in
                guard let value = self.value else { return continuation.resume(returning: nil) }
                Task.immediate(executorPreference: loop.taskExecutor) {
                    continuation.resume(returning: await body(value, loop))
                }
            }
        }
    }

    /// The object, for code on its loop; nil if it has been taken out.
    package func value(on loop: isolated EventLoop) -> Value? {
        precondition(loop === self.loop, "a loop-bound object was asked for on another loop")
        return value
    }

    /// Takes the object out, so that it ends on its loop.
    package func take(on loop: isolated EventLoop) -> Value? {
        defer { value = nil }
        return value
    }
}

// MARK: - The loops of a daemon

/// The loops of a daemon: started together, chosen by load, stopped together.
package struct LoopGroup: Sendable {
    package let loops: [EventLoop]

    /// - Parameter count: the number of loops; nil for one per processor.
    /// - Throws: `SystemError` if a loop cannot be started; those before it are stopped.
    package static func start(count: Int?) throws(SystemError) -> LoopGroup {
        var loops: [EventLoop] = []
        for index in 0..<max(1, count ?? sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
            do {
                loops.append(try EventLoop.start(index: index))
            } catch {
                for loop in loops { loop.stop() }
                throw error
            }
        }
        return LoopGroup(loops: loops)
    }

    /// The loop with the fewest connections; the first of equals.
    package var leastBusy: EventLoop {
        var best = loops[0]
        for loop in loops.dropFirst() where loop.connections.current < best.connections.current { best = loop }
        return best
    }

    package func stop() { for loop in loops { loop.stop() } }
}
