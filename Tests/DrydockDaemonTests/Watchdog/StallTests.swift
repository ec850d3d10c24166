// The watch over loops and pools: what counts as standing still, what is told of it, and how a
// daemon that hangs is ended.

import EventLoop
import Glibc
import Logging
import ProxyServer
import Synchronization
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5)))
struct StallTests {
    /// A heartbeat that a test plays.
    private final class Played: Sendable {
        struct State {
            var beats: [@Sendable () -> Void] = []
            var progress = 0
            var isSlow = false
            var hasEnded = false
        }
        let state = Mutex(State())

        func heartbeat(_ name: String, bound: UInt64 = 10, isLoop: Bool = false) -> Heartbeat {
            Heartbeat(name: name, bound: bound, isLoop: isLoop) { beat in
                self.state.withLock { state in
                    if !state.hasEnded { state.beats.append(beat) }
                    return !state.hasEnded
                }
            } progress: {
                self.state.withLock { $0.progress }
            } isSlow: {
                self.state.withLock { $0.isSlow }
            }
        }

        func answer() {
            let beats = state.withLock { state in
                defer { state.beats = [] }
                return state.beats
            }
            for beat in beats { beat() }
        }

        func change(_ body: (inout sending State) -> Void) { state.withLock { body(&$0) } }
    }

    /// The look of every unit of time from `times` on.
    private static func look(_ watch: StallDetector, _ times: ClosedRange<UInt64>) -> [StallDetector.Finding] {
        times.flatMap { watch.look(now: $0) }
    }

    @Test("what gives no sign of life for its bound stands still, once, until it goes on")
    func standsStill() {
        let played = Played()
        let watch = StallDetector([played.heartbeat("a")], interval: 1)
        for now in UInt64(0)...50 {
            #expect(watch.look(now: now) == [])
            played.answer()
        }
        // Answered at 50, asked at 51.
        #expect(Self.look(watch, 51...60) == [])
        #expect(watch.look(now: 61) == [.still("a", seconds: 0)])
        #expect(watch.standing == ["a"])
        #expect(watch.silent(for: 10) == ["a"])
        #expect(Self.look(watch, 62...90) == [])
        #expect(watch.stalls == 1)
        played.answer()
        #expect(watch.look(now: 91) == [.goesOn("a")])
        #expect(watch.standing == [])
    }

    @Test("what does something else meanwhile does not stand still, however long the question waits")
    func progress() {
        let played = Played()
        let watch = StallDetector([played.heartbeat("a")], interval: 1)
        for now in UInt64(0)...100 {
            #expect(watch.look(now: now) == [])
            if now % 9 == 0 { played.change { $0.progress += 1 } }
        }
    }

    @Test("what waits for a disk is slow, and is told of once; a disk that is seen now and then is enough")
    func slow() {
        let played = Played()
        played.change { $0.isSlow = true }
        let watch = StallDetector([played.heartbeat("a")], interval: 1)
        #expect(Self.look(watch, 0...9) == [])
        #expect(watch.look(now: 10) == [.slow("a", seconds: 0)])
        #expect(Self.look(watch, 11...100) == [])
        #expect(watch.standing == [] && watch.stalls == 0)
        for now in UInt64(101)...200 {
            played.change { $0.isSlow = now % 9 == 0 }
            #expect(watch.look(now: now) == [])
        }
        played.answer()
        #expect(watch.look(now: 201) == [.goesOn("a")])
    }

    @Test("a process that was stopped for a while finds nothing still for that")
    func stopped() {
        let played = Played()
        let watch = StallDetector([played.heartbeat("a")], interval: 1)
        #expect(watch.look(now: 0) == [])
        #expect(watch.look(now: 1_000_000) == [])
        #expect(watch.silent(for: 3) == [])
    }

    @Test("what has ended is not asked any more, and loops are left out once they are to end")
    func ended() {
        let (pool, loop) = (Played(), Played())
        let watch = StallDetector([pool.heartbeat("pool"), loop.heartbeat("loop", isLoop: true)], interval: 1)
        pool.change { $0.hasEnded = true }
        #expect(Self.look(watch, 0...10) == [.still("loop", seconds: 0)])
        #expect(watch.hasStillLoop)
        watch.leaveOutLoops()
        #expect(watch.standing == [])
        #expect(Self.look(watch, 11...40) == [])
    }

    // MARK: - The watchdog

    private final class Record: Sendable {
        let notices = Mutex(0)
        let exits = Mutex<[Int32]>([])
        let loopsStand = Mutex<[Bool]>([])
        let lines = Mutex<[String]>([])

        var actions: Watchdog.Actions {
            Watchdog.Actions(
                notify: { self.notices.withLock { $0 += 1 } },
                loopsStand: { isSo in self.loopsStand.withLock { $0.append(isSo) } },
                exit: { code in self.exits.withLock { $0.append(code) } }
            )
        }

        var logger: Logger { Logger(label: "test") { _ in Lines(record: self) } }

        struct Lines: LogHandler {
            let record: Record
            var metadata: Logger.Metadata = [:]
            var logLevel = Logger.Level.trace
            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }
            func log(event: LogEvent) { record.lines.withLock { $0.append("\(event.level) \(event.message)") } }
        }
    }

    private static let second: UInt64 = 1_000_000_000

    @Test("a loop that is held is reported by name, and the service manager hears nothing until it goes on")
    func held() async throws {
        let loop = try EventLoop.start(index: 3)
        defer { loop.stop() }
        let record = Record()
        let watchdog = Watchdog(
            [Heartbeat(loop, bound: 20_000_000)],
            noticeEvery: 40_000_000,
            logger: record.logger,
            actions: record.actions
        )
        // Its own thread would take a loop that waits for a processor for one that is held: here the test has the time,
        // which passes while the loop has answered, or cannot.
        var now: UInt64 = 0
        func turn() {
            now += 10_000_000
            watchdog.turn(now: now)
        }
        for _ in 0..<20 {
            turn()
            await withCheckedContinuation { done in loop.submit { _ in done.resume() } }
        }
        #expect(record.notices.withLock { $0 } >= 3)
        #expect(record.lines.withLock { $0 } == [])
        let gate = Gate()
        loop.submit { _ in gate.wait() }
        #expect(
            await eventually {
                turn()
                return watchdog.watch.standing == ["loop 3"]
            }
        )
        #expect(record.loopsStand.withLock { $0 } == [true])
        let lines = record.lines.withLock { $0 }
        #expect(lines.contains { $0.hasPrefix("error loop 3 has stood still") }, "\(lines)")
        let before = record.notices.withLock { $0 }
        for _ in 0..<20 { turn() }
        #expect(record.notices.withLock { $0 } == before)
        #expect(watchdog.gauges.map { $0.read() } == [1, 1])
        gate.open()
        #expect(
            await eventually {
                turn()
                return record.notices.withLock { $0 } > before
            }
        )
        #expect(record.loopsStand.withLock { $0 } == [true, false])
        #expect(record.lines.withLock { $0 }.contains("notice loop 3 goes on"))
        #expect(record.exits.withLock { $0 } == [])
    }

    @Test("it looks again and again by itself, on a thread of its own, until it is stopped")
    func byItself() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let record = Record()
        let actions = record.actions
        let heartbeat = Heartbeat(loop, bound: 600_000_000_000)
        let watchdog = Watchdog([heartbeat], noticeEvery: 40_000_000, logger: record.logger, actions: actions)
        watchdog.start()
        defer { watchdog.stop() }
        #expect(await eventually { record.notices.withLock { $0 } >= 3 })
        #expect(record.exits.withLock { $0 } == [])
    }

    @Test("notices come at half of the distance that is asked for; none where nobody asks")
    func notices() {
        let record = Record()
        let watchdog = Watchdog([], noticeEvery: 10 * Self.second, logger: record.logger, actions: record.actions)
        for tenth in UInt64(0)...300 { watchdog.turn(now: tenth * Self.second / 10) }
        #expect(record.notices.withLock { $0 } == 7)
        let silent = Record()
        let other = Watchdog([], noticeEvery: nil, logger: silent.logger, actions: silent.actions)
        for second in UInt64(0)...100 { other.turn(now: second * Self.second) }
        #expect(silent.notices.withLock { $0 } == 0)
    }

    @Test("a daemon that is to end, and of which a pool stands still, is ended when its time is over")
    func lastResort() {
        let (record, played) = (Record(), Played())
        let heartbeat = played.heartbeat("the pool", bound: 30 * Self.second)
        let watchdog = Watchdog([heartbeat], noticeEvery: nil, logger: record.logger, actions: record.actions)
        watchdog.turn(now: 0)
        watchdog.expectEnd(within: 5 * Self.second, now: 0)
        for second in UInt64(1)...4 { watchdog.turn(now: second * Self.second) }
        #expect(record.exits.withLock { $0 } == [])
        watchdog.turn(now: 5 * Self.second)
        #expect(record.exits.withLock { $0 } == [1])
        #expect(record.lines.withLock { $0 }.last == "error ended without having finished: the pool stands still")
    }

    @Test("it does not wait for that time once the clients are served; and one that goes on has longer")
    func served() {
        let (record, played) = (Record(), Played())
        let heartbeat = played.heartbeat("the pool", bound: 30 * Self.second)
        let watchdog = Watchdog([heartbeat], noticeEvery: nil, logger: record.logger, actions: record.actions)
        watchdog.expectEnd(within: 20 * Self.second, now: 0)
        for second in UInt64(0)...3 { watchdog.turn(now: second * Self.second) }
        #expect(record.exits.withLock { $0 } == [])
        watchdog.clientsAreServed(now: 3 * Self.second)
        watchdog.turn(now: 4 * Self.second)
        #expect(record.exits.withLock { $0 } == [1])

        let (healthy, going) = (Record(), Played())
        let other = Watchdog([going.heartbeat("a")], noticeEvery: nil, logger: healthy.logger, actions: healthy.actions)
        other.expectEnd(within: 5 * Self.second, now: 0)
        for second in UInt64(0)...14 {
            other.turn(now: second * Self.second)
            going.answer()
        }
        #expect(healthy.exits.withLock { $0 } == [])
        other.turn(now: 15 * Self.second)
        #expect(healthy.exits.withLock { $0 } == [1])
    }

    @Test(
        "the service manager says whether this process is to send notices, and how often",
        arguments: [
            (["NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000"], UInt64(30_000_000_000)),
            (["NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "\(getpid())"], 1000),
            (["NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"], nil),
            (["NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "0"], nil), (["NOTIFY_SOCKET": "/x"], nil),
            (["WATCHDOG_USEC": "30000000"], nil), (["NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "x"], nil),
        ] as [([String: String], UInt64?)]
    )
    func asked(_ environment: [String: String], _ nanoseconds: UInt64?) {
        #expect(ServiceManagerNotifier(environment: environment).watchdog == nanoseconds)
    }
}
