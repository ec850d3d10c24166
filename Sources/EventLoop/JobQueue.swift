// The queue through which other threads, and Swift's tasks, reach a loop: one lock, and at most one wake-up per drain.
// Other threads wake the loop by an eventfd; on the loop itself the event is activated without a system call.

import CLinux
import Glibc
package import Synchronization

/// One job of a loop.
enum LoopJob: Sendable {
    /// A job of the actor.
    case serial(UnownedJob)
    /// A job of a task that prefers this loop.
    case task(UnownedJob)
    /// A submitted closure.
    case work(@Sendable (isolated EventLoop) -> Void)
}

/// The jobs for a loop.
///
/// Sendable: `pending` is under its mutex, each `nonisolated(unsafe)` member tells what protects it, the other members
/// are constant.
final class JobQueue: Sendable {
    struct Pending {
        var jobs: [LoopJob] = []
        /// Whether a wake-up is pending, so that no other one is needed.
        var isWaking = false
    }

    let pending = Mutex(Pending())
    /// The eventfd, readable when there are jobs; written by any thread, read by the loop.
    let wakeDescriptor: Int32
    private let thread: LoopThread
    /// Makes the loop drain the queue after the callbacks that are due already. Set before the loop's thread begins and
    /// called on that thread only.
    nonisolated(unsafe) var wakeHere: (() -> Void)?
    /// Whether the next job that comes on the loop's own thread is held back for `takeHeld()`. Accessed on the loop's
    /// thread only.
    nonisolated(unsafe) var holdsNext = false
    // Accessed on the loop's thread only.
    private nonisolated(unsafe) var held: UnownedJob?

    init(thread: LoopThread) throws(SystemError) {
        self.thread = thread
        wakeDescriptor = c_linux_eventfd()
        if wakeDescriptor < 0 { throw SystemError("eventfd") }
    }

    deinit { close(wakeDescriptor) }

    /// Adds a job; any thread.
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

    /// Takes the job that came since `holdsNext` was set; the loop's thread.
    func takeHeld() -> UnownedJob? {
        holdsNext = false
        defer { held = nil }
        return held
    }

    /// Swaps the pending jobs with `drained`, whose capacity is kept; the loop's thread.
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

/// The serial executor of the actor `EventLoop`, which adds jobs to the loop's queue.
///
/// Sendable: the queue and the thread are.
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
/// It is a separate type: one type that is both kinds of executor makes the runtime enqueue jobs again.
package final class LoopTaskExecutor: TaskExecutor {
    let queue: JobQueue

    init(queue: JobQueue) { self.queue = queue }

    package func enqueue(_ job: UnownedJob) { queue.append(.task(job)) }
}

/// The thread of a loop.
///
/// Sendable: it has only atomics, which the loop's thread writes when it begins and when it ends.
final class LoopThread: Sendable {
    private let identifier = Atomic<UInt>(0)
    private let kernelNumber = Atomic<Int32>(0)

    func adoptCurrent() {
        kernelNumber.store(c_linux_thread_number(), ordering: .relaxed)
        identifier.store(UInt(pthread_self()), ordering: .releasing)
    }

    /// The kernel's number of the thread; zero before it runs.
    var number: Int32 { kernelNumber.load(ordering: .relaxed) }

    /// Forgets the thread when it ends, since another one may get its number.
    func leave() { identifier.store(0, ordering: .releasing) }

    var isCurrent: Bool { identifier.load(ordering: .acquiring) == UInt(pthread_self()) }
}

// MARK: - Exchange under a mutex

// Replaces a value under a mutex without releasing the old one there.
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
