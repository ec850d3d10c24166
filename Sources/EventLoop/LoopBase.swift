// The libevent base and its thread: creation, the run, the wake-up event, and teardown in the right order.

import CLibevent
import CLinux
import Glibc
import Synchronization

/// Owns the `event_base`.
///
/// `@unchecked Sendable`: `raw`, `timers`, `wakeEvent` and `batch` are accessed by the loop's thread only, from
/// `launch` until the thread ends; `threadHandle` is written before `launch` returns and read by `stop`, which runs
/// once.
final class LoopBase: @unchecked Sendable {  // protected as the comment above says
    /// The libevent base.
    let raw: OpaquePointer
    let timers: TimerQueue
    private let wakeEvent: UnsafeMutablePointer<event>
    private var batch: [LoopJob] = []
    private weak var loop: EventLoop?
    private var threadHandle = pthread_t()
    private let stopped = Mutex(false)

    init(queue: JobQueue) throws(SystemError) {
        guard let config = event_config_new() else { throw SystemError("event_config_new", code: ENOMEM) }
        defer { event_config_free(config) }
        // One thread owns the base, so it needs no lock.
        event_config_set_flag(config, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
        // The number of callbacks in a row is limited, so that the kernel is asked for new events in time.
        event_config_set_max_dispatch_interval(config, nil, Self.callbacksPerTurn, 0)
        guard let raw = event_base_new_with_config(config) else { throw SystemError("event_base_new") }
        self.raw = raw
        timers = try TimerQueue(base: raw)
        wakeEvent = .allocate(capacity: 1)
        wakeEvent.initialize(to: event())
        event_assign(
            wakeEvent,
            raw,
            queue.wakeDescriptor,
            Int16(EV_READ | EV_PERSIST),
            { _, what, context in
                // Unretained: the thread holds the LoopBase while the loop runs.
                guard let context else { return }
                let isFromOutside = Int32(what) & EV_READ != 0
                Unmanaged<LoopBase>.fromOpaque(context).takeUnretainedValue().wokenUp(isFromOutside: isFromOutside)
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
        event_add(wakeEvent, nil)
        // The event is valid as long as this object, which outlives its thread.
        nonisolated(unsafe) let wakeEvent = wakeEvent
        queue.wakeHere = { event_active(wakeEvent, Int32(EV_TIMEOUT), 1) }
    }

    /// The number of callbacks after which the loop polls for new events, even if others are due.
    private static let callbacksPerTurn: Int32 = 256

    deinit {
        event_del(wakeEvent)
        wakeEvent.deallocate()
        timers.close()
        event_base_free(raw)
    }

    /// Starts the thread and waits until it runs.
    func launch(loop: EventLoop, name: String, ready: @escaping @Sendable (EventLoop) -> Void) throws(SystemError) {
        self.loop = loop
        let start = ThreadStart(base: self, loop: loop, name: name, ready: ready)
        let context = Unmanaged.passRetained(start).toOpaque()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        let result = pthread_create(
            &threadHandle,
            &attributes,
            { context in
                guard let context else { return nil }
                let start = Unmanaged<ThreadStart>.fromOpaque(context).takeRetainedValue()
                start.run()
                return nil
            },
            context
        )
        guard result == 0 else {
            Unmanaged<ThreadStart>.fromOpaque(context).release()
            throw SystemError("pthread_create for \(name)", code: result)
        }
        start.waitUntilRunning()
    }

    /// Ends the loop; any thread but the loop's. Later calls do nothing.
    func stop(queue: JobQueue) {
        let isFirst = stopped.withLock { stopped in
            defer { stopped = true }
            return !stopped
        }
        guard isFirst else { return }
        queue.append(.work { loop in event_base_loopbreak(loop.base.raw) })
        pthread_join(threadHandle, nil)
    }

    fileprivate func run(loop: EventLoop) {
        event_base_loop(raw, Int32(EVLOOP_NO_EXIT_ON_EMPTY))
        // Jobs that the last jobs enqueued still run, up to a limit, so that ending tasks release their objects.
        for _ in 0..<64 { loop.drain(&batch) }
        loop.thread.leave()
    }

    /// Drains the queue.
    /// - Parameter isFromOutside: whether the eventfd was written.
    private func wokenUp(isFromOutside: Bool) {
        guard let loop else { return }
        if isFromOutside { loop.queue.acknowledge() }
        loop.drain(&batch)
    }
}

/// The parameters of a new thread, and the semaphore that its creator waits for.
///
/// Sendable: the gate is a semaphore, all else is constant.
private final class ThreadStart: Sendable {
    let base: LoopBase
    let loop: EventLoop
    let name: String
    let ready: @Sendable (EventLoop) -> Void
    // A semaphore protects itself; it is initialized before the thread exists.
    nonisolated(unsafe) private let gate: UnsafeMutablePointer<sem_t>

    init(base: LoopBase, loop: EventLoop, name: String, ready: @escaping @Sendable (EventLoop) -> Void) {
        self.base = base
        self.loop = loop
        self.name = name
        self.ready = ready
        gate = .allocate(capacity: 1)
        gate.initialize(to: sem_t())
        sem_init(gate, 0, 0)
    }

    deinit {
        sem_destroy(gate)
        gate.deallocate()
    }

    func run() {
        c_linux_name_thread(name)
        ready(loop)
        sem_post(gate)
        base.run(loop: loop)
    }

    func waitUntilRunning() { while sem_wait(gate) != 0 && errno == EINTR {} }
}
