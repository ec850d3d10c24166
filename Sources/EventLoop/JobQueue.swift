// The queue through which other threads, and Swift's tasks, reach a loop: one lock, and an eventfd that is written at most once per drain.

internal import CLinux
import Glibc
import Synchronization

/// One thing for a loop to run.
enum LoopJob: Sendable {
    /// A job of the actor.
    case serial(UnownedJob)
    /// A job of a task that prefers this loop.
    case task(UnownedJob)
    /// A submitted closure.
    case work(@Sendable (isolated EventLoop) -> Void)
}

/// Sendable: `pending` is under its mutex, the other members never change.
final class JobQueue: Sendable {
    struct Pending {
        var jobs: [LoopJob] = []
        /// A wake-up is on its way, so that nobody needs to send another.
        var isWaking = false
    }

    let pending = Mutex(Pending())
    /// Readable when there are jobs; written by any thread, read by the loop.
    let wakeDescriptor: Int32

    init() throws(SystemError) {
        wakeDescriptor = c_linux_eventfd()
        if wakeDescriptor < 0 { throw SystemError("eventfd") }
    }

    deinit { close(wakeDescriptor) }

    /// Any thread. The loop's own thread pays one write, too: it is rare there, and the kernel keeps the count.
    func append(_ job: LoopJob) {
        let mustWake = pending.withLock { pending in
            pending.jobs.append(job)
            defer { pending.isWaking = true }
            return !pending.isWaking
        }
        if mustWake { wake() }
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
/// Sendable: written once by the loop's thread before anybody is handed the loop.
final class LoopThread: Sendable {
    private let identifier = Atomic<UInt>(0)

    func adoptCurrent() { identifier.store(UInt(pthread_self()), ordering: .releasing) }

    var isCurrent: Bool { identifier.load(ordering: .acquiring) == UInt(pthread_self()) }
}
