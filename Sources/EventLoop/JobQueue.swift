// The queue through which other threads, and Swift's tasks, reach a loop: one lock, and at most one wake-up per drain.
// From other threads that is an eventfd; on the loop itself its event is made active, without a system call.

import CLinux
import Glibc
package import Synchronization

/// One thing for a loop to run.
enum LoopJob: Sendable {
    /// A job of the actor.
    case serial(UnownedJob)
    /// A job of a task that prefers this loop.
    case task(UnownedJob)
    /// A submitted closure.
    case work(@Sendable (isolated EventLoop) -> Void)
}

/// Sendable: `pending` is under its mutex, what is `nonisolated(unsafe)` says what protects it, the
/// other members never change.
final class JobQueue: Sendable {
    struct Pending {
        var jobs: [LoopJob] = []
        /// A wake-up is pending, so no other one is needed.
        var isWaking = false
    }

    let pending = Mutex(Pending())
    /// Readable when there are jobs; written by any thread, read by the loop.
    let wakeDescriptor: Int32
    private let thread: LoopThread
    /// Has the loop drain the queue behind the callbacks that are due already.
    // Set before the loop's thread begins and called on that thread alone.
    nonisolated(unsafe) var wakeHere: (() -> Void)?
    /// The next job that comes on the loop's own thread is held back for `takeHeld()`.
    // Touched on the loop's thread alone.
    nonisolated(unsafe) var holdsNext = false
    // Touched on the loop's thread alone.
    private nonisolated(unsafe) var held: UnownedJob?

    init(thread: LoopThread) throws(SystemError) {
        self.thread = thread
        wakeDescriptor = c_linux_eventfd()
        if wakeDescriptor < 0 { throw SystemError("eventfd") }
    }

    deinit { close(wakeDescriptor) }

    /// Any thread.
    func append(_ job: LoopJob) {
        if thread.isCurrent, holdsNext, hold(job) { return }
        let mustWake = pending.withLock { pending in
            pending.jobs.append(job)
            defer { pending.isWaking = true }
            return !pending.isWaking
        }
        guard mustWake else { return }
        if thread.isCurrent, let wakeHere { wakeHere() } else { wake() }
    }

    private func hold(_ job: LoopJob) -> Bool {
        switch job {
        case .serial(let job), .task(let job):
            holdsNext = false
            held = job
            return true
        case .work: return false
        }
    }

    /// The job that came since `holdsNext` was set; the loop's thread.
    func takeHeld() -> UnownedJob? {
        holdsNext = false
        defer { held = nil }
        return held
    }

    /// Swaps the pending jobs against `drained`, whose capacity is kept; the loop's thread.
    func take(into drained: inout [LoopJob]) {
        pending.withLock { pending in
            swap(&pending.jobs, &drained)
            pending.isWaking = false
        }
    }

    private func wake() {
        var one: UInt64 = 1
        while write(wakeDescriptor, &one, 8) < 0 && errno == EINTR {}
    }

    /// Empties the eventfd's counter; the loop's thread.
    func acknowledge() {
        var count: UInt64 = 0
        while read(wakeDescriptor, &count, 8) < 0 && errno == EINTR {}
    }
}

/// The serial executor of the actor `EventLoop`: a façade over the loop's queue.
///
/// Sendable: the queue and the thread cell are.
final class LoopSerialExecutor: SerialExecutor {
    let queue: JobQueue
    let thread: LoopThread

    init(queue: JobQueue, thread: LoopThread) {
        self.queue = queue
        self.thread = thread
    }

    func enqueue(_ job: UnownedJob) { queue.append(.serial(job)) }

    func checkIsolated() {
        precondition(thread.isCurrent, "a loop's state was touched from another thread")
    }

    func isIsolatingCurrentContext() -> Bool? { thread.isCurrent }
}

/// The task executor of a loop: keeps the resumption of continuations on the loop's thread.
///
/// A type of its own: one type that is both kinds of executor makes the runtime re-enqueue jobs.
package final class LoopTaskExecutor: TaskExecutor {
    let queue: JobQueue

    init(queue: JobQueue) { self.queue = queue }

    package func enqueue(_ job: UnownedJob) { queue.append(.task(job)) }
}

/// Which thread a loop runs on.
///
/// Sendable: atomics, which the loop's thread writes when it begins and when it ends.
final class LoopThread: Sendable {
    private let identifier = Atomic<UInt>(0)
    private let kernelNumber = Atomic<Int32>(0)

    func adoptCurrent() {
        kernelNumber.store(c_linux_thread_number(), ordering: .relaxed)
        identifier.store(UInt(pthread_self()), ordering: .releasing)
    }

    /// The kernel's number of the thread; zero before it runs.
    var number: Int32 { kernelNumber.load(ordering: .relaxed) }

    /// The thread ends: another one may get its number.
    func leave() { identifier.store(0, ordering: .releasing) }

    var isCurrent: Bool { identifier.load(ordering: .acquiring) == UInt(pthread_self()) }
}

// MARK: - Exchange under a mutex

// Puts a value into the place of another without letting go of the other under the mutex.
extension Mutex where Value: Sendable {
    /// Replaces the value and returns the old one. The caller releases it outside the mutex, because its deinit may run
    /// code that takes the same mutex.
    @discardableResult
    package func exchange(_ value: Value) -> Value {
        withLock { current in
            let before = current
            current = value
            return before
        }
    }
}
