// The loop as an executor: order, isolation, timers, sleeping, the pool, and an end without leaks.

import EventLoop
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite struct EventLoopTests {
    @Test func `submitted work runs on the loop's thread, in order`() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let seen = Mutex<[Int]>([])
        for number in 0..<1000 {
            loop.submit { _ in
                seen.withLock { $0.append(loop.isCurrent ? number : -1) }
            }
        }
        await loop.touch()
        #expect(seen.withLock { $0 } == Array(0..<1000))
    }

    @Test func `a task on the loop stays on its thread through every suspension`() async throws {
        let loop = try EventLoop.start()
        let pool = try IOPool(threads: 2)
        defer {
            loop.stop()
            pool.stop()
        }
        let threads = ThreadRecord()
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.submit { loop in
                threads.note()
                Task.immediate(executorPreference: loop.taskExecutor) {
                    for _ in 0..<100 {
                        _ = try? await pool.run { 1 }
                        threads.note()
                        try? await loop.sleep(nanoseconds: 1000)
                        threads.note()
                    }
                    done.resume()
                }
            }
        }
        #expect(threads.count == 1)
    }

    @Test func `a timer and an event are made without isolation on the loop's thread, too`() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let heard = await withCheckedContinuation { (done: CheckedContinuation<[String], Never>) in
            loop.submit { loop in _ = Unisolated(on: loop) { done.resume(returning: $0) } }
        }
        #expect(heard == ["event", "timer"])
    }

    @Test func `a held task runs to its first wait at once, and goes on by itself`() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let steps = Mutex<[Int]>([])
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.submit { loop in
                loop.holdNextTask()
                Task.immediate(executorPreference: loop.taskExecutor) {
                    _ = loop
                    steps.withLock { $0.append(1) }
                    try? await loop.sleep(nanoseconds: 1000)
                    steps.withLock { $0.append(3) }
                    done.resume()
                }
                loop.runHeldTask()
                steps.withLock { $0.append(2) }
            }
        }
        #expect(steps.withLock { $0 } == [1, 2, 3])
    }

    @Test func `a timer that is started in a turn fires in that turn, behind what is due already`() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let steps = Mutex<[Int]>([])
        let kept = Mutex<LoopBox<LoopTimer>?>(nil)
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.submit { loop in
                steps.withLock { $0.append(1) }
                let timer = LoopTimer(on: loop) {
                    steps.withLock { $0.append(3) }
                    done.resume()
                }
                kept.withLock { $0 = LoopBox(timer, on: loop) }
                timer.startInThisTurn()
                steps.withLock { $0.append(2) }
            }
        }
        loop.submit { loop in _ = kept.withLock { $0 }?.take(on: loop) }
        await loop.touch()
        #expect(steps.withLock { $0 } == [1, 2, 3])
    }

    @Test(arguments: [0, 1_000, 999_999, 20_000_000] as [UInt64])
    func `a sleep is never early`(nanoseconds: UInt64) async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let start = Monotonic.now()
        try await loop.sleep(nanoseconds: nanoseconds)
        #expect(Monotonic.now() - start >= nanoseconds)
    }

    @Test func `a cancelled sleep ends with CancellationError, before its time`() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let task = Task { try await loop.sleep(nanoseconds: 3_600_000_000_000) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `a thousand sleepers need one thread`() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<1000 { group.addTask { try await loop.sleep(nanoseconds: 50_000_000) } }
            try await group.waitForAll()
        }
    }

    @Test func `a repeating timer fires until it is cancelled`() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let count = await loop.countTicks(5)
        #expect(count == 5)
    }

    @Test func `a stopped loop closes its descriptors and ends its thread`() async throws {
        let before = try openDescriptors()
        for _ in 0..<200 { try EventLoop.start().stop() }
        // Each leaked loop would leave three for good; other tests of the process hold theirs only for a while.
        #expect(await eventually { ((try? openDescriptors()) ?? .max) < before + 100 })
    }

    @Test func `a pool may be stopped on a thread of its own`() async throws {
        let pool = try IOPool(threads: 2)
        // Under ThreadSanitizer, a thread that nobody waits for and that is not let go is a leak, too.
        try await pool.run { pool.stop() }
    }

    @Test func `the pool finishes what was submitted before it stops`() throws {
        let pool = try IOPool(threads: 3)
        let count = Mutex(0)
        for _ in 0..<500 { pool.submit { count.withLock { $0 += 1 } } }
        pool.stop()
        #expect(count.withLock { $0 } == 500)
    }
}

extension EventLoop {
    fileprivate func touch() {}

    fileprivate func countTicks(_ wanted: Int) async -> Int {
        let counter = TickCounter()
        return await withCheckedContinuation { continuation in
            counter.start(on: self, wanted, continuation)
        }
    }
}

private final class TickCounter {
    private var count = 0
    private var timer: LoopTimer?

    func start(on loop: isolated EventLoop, _ wanted: Int, _ done: CheckedContinuation<Int, Never>) {
        let timer = LoopTimer(on: loop) { [self] in
            count += 1
            if count == wanted {
                self.timer?.cancel()
                self.timer = nil
                done.resume(returning: count)
            }
        }
        self.timer = timer
        timer.start(every: 1_000_000)
    }
}

/// The threads that called ``note()``.
private final class ThreadRecord: Sendable {
    private let seen = Mutex<Set<UInt>>([])
    func note() { seen.withLock { _ = $0.insert(UInt(pthread_self())) } }
    var count: Int { seen.withLock { $0.count } }
}

/// How many descriptors this process has open.
func openDescriptors() throws -> Int {
    guard let folder = opendir("/proc/self/fd") else { throw SystemError("opendir /proc/self/fd") }
    defer { closedir(folder) }
    var count = 0
    while readdir(folder) != nil { count += 1 }
    return count
}

/// Bound to a loop and not isolated to it, as what libevent calls is: a timer, and a socket that can be written to. It
/// holds itself until both have been heard of.
private final class Unisolated: IOHandler {
    private let heard: ([String]) -> Void
    private var names: [String] = []
    private var timer: LoopTimer?
    private var event: IOEvent?
    private var ends: [Int32] = [-1, -1]

    init(on loop: EventLoop, _ heard: @escaping ([String]) -> Void) {
        self.heard = heard
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0, &ends)
        let timer = LoopTimer(onThreadOf: loop) { self.note("timer") }
        self.timer = timer
        timer.start(after: 1_000_000)
        let event = IOEvent(onThreadOf: loop, descriptor: ends[0], handler: self)
        self.event = event
        event.watch(.write)
    }

    func ready(_ readiness: IOReadiness) {
        event?.cancel()
        note("event")
    }

    private func note(_ name: String) {
        names.append(name)
        guard names.count == 2 else { return }
        for end in ends { Socket.close(end) }
        (timer, event) = (nil, nil)
        heard(names.sorted())
    }
}

@available(*, unavailable) extension Unisolated: Sendable {}
