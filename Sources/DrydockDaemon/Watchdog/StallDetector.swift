// Finds the loops and pools of a daemon that are stalled, by their heartbeats.

import EventLoop
import Synchronization

/// Asks every heartbeat for a sign of life. One thread calls ``look(now:)``; any thread may ask for the findings.
///
/// A loop or pool is stalled if its question was not answered within its bound, nothing else of it was done meanwhile,
/// and it neither waited for a disk nor computed at any look. So a disk that takes a minute for an fsync is slow, and
/// threads that wait for one another are stalled.
///
/// Sendable: the mutable state is under a mutex or atomic; heartbeats are called without the mutex.
final class StallDetector: Sendable {
    /// A finding of one look; `seconds` is the time without a sign of life.
    enum Finding: Sendable, Equatable {
        case still(String, seconds: Int)
        /// The loop or pool waits for a disk, or computes, and does nothing else.
        case slow(String, seconds: Int)
        /// The loop or pool was stalled or slow, and goes on.
        case goesOn(String)
    }

    private struct Subject {
        /// True while a question waits for its turn.
        var isAsked = false
        var isOver = false
        var progress = 0
        /// Nanoseconds of silence for which there is no reason.
        var silence: UInt64 = 0
        /// Nanoseconds of silence for which a disk or a long computation is the reason.
        var slowness: UInt64 = 0
        var isStill = false
        var isSlow = false
    }

    private struct State {
        var subjects: [Subject]
        var lastLook: UInt64?
        var leavesOutLoops = false
        var stalls = 0
    }

    /// The answer to a question: set when its turn has come, taken back by the next look.
    private final class Answer: Sendable {
        private let isThere = Atomic<Bool>(false)
        func give() { isThere.store(true, ordering: .relaxed) }
        func take() -> Bool { isThere.exchange(false, ordering: .relaxed) }
    }

    private let heartbeats: [Heartbeat]
    private let answers: [Answer]
    private let state: Mutex<State>
    /// The most nanoseconds that one look counts: a process that was stopped for a while finds nothing stalled for
    /// that.
    private let maximumPerLook: UInt64

    /// - Parameter interval: nanoseconds from look to look.
    init(_ heartbeats: [Heartbeat], interval: UInt64) {
        self.heartbeats = heartbeats
        answers = heartbeats.map { _ in Answer() }
        maximumPerLook = 2 * interval
        state = Mutex(State(subjects: heartbeats.map { _ in Subject() }))
    }

    /// The names of the loops and pools that are stalled now.
    var standing: [String] { state.withLock { state in names(of: state) { $1.isStill } } }

    /// True while a loop is stalled.
    var hasStillLoop: Bool {
        state.withLock { state in heartbeats.indices.contains { heartbeats[$0].isLoop && state.subjects[$0].isStill } }
    }

    /// The number of times that a loop or pool was found stalled.
    var stalls: Int { state.withLock { $0.stalls } }

    /// The names of the heartbeats that hold up the end of the daemon, and were silent for `nanoseconds`, whatever
    /// their bound.
    func silent(for nanoseconds: UInt64) -> [String] {
        state.withLock { state in names(of: state) { $0.holdsUpEnd && $1.isAsked && $1.silence >= nanoseconds } }
    }

    private func names(of state: borrowing State, where isMeant: (Heartbeat, Subject) -> Bool) -> [String] {
        var names: [String] = []
        for (heartbeat, subject) in zip(heartbeats, state.subjects) {
            if heartbeat.isLoop, state.leavesOutLoops { continue }
            if isMeant(heartbeat, subject) { names.append(heartbeat.name) }
        }
        return names
    }

    /// Leaves the loops out of all later looks: they are about to end, and would seem stalled.
    func leaveOutLoops() { state.withLock { $0.leavesOutLoops = true } }

    /// Looks at every heartbeat once.
    /// - Parameter now: monotonic nanoseconds.
    func look(now: UInt64) -> [Finding] {
        let (elapsed, leavesOutLoops) = state.withLock { state in
            defer { state.lastLook = now }
            return (min(now &- (state.lastLook ?? now), maximumPerLook), state.leavesOutLoops)
        }
        var findings: [Finding] = []
        for index in heartbeats.indices where !(leavesOutLoops && heartbeats[index].isLoop) {
            let (wasAsked, isOver) = state.withLock { ($0.subjects[index].isAsked, $0.subjects[index].isOver) }
            if isOver { continue }
            if wasAsked, !answers[index].take() {
                findings += note(index, elapsed, heartbeats[index].progress(), isSlow: heartbeats[index].isSlow())
            } else {
                findings += answered(index)
                ask(index)
            }
        }
        return findings
    }

    private func ask(_ index: Int) {
        let progress = heartbeats[index].progress()
        let isTaken = heartbeats[index].ask { [answer = answers[index]] in answer.give() }
        state.withLock { state in
            state.subjects[index].progress = progress
            state.subjects[index].isAsked = isTaken
            state.subjects[index].isOver = !isTaken
        }
    }

    private func answered(_ index: Int) -> [Finding] {
        state.withLock { state in
            let before = state.subjects[index]
            state.subjects[index] = Subject()
            return before.isStill || before.isSlow ? [.goesOn(heartbeats[index].name)] : []
        }
    }

    /// Counts the silence of a heartbeat whose last question was not answered.
    private func note(_ index: Int, _ elapsed: UInt64, _ progress: Int, isSlow: Bool) -> [Finding] {
        let heartbeat = heartbeats[index]
        return state.withLock { state in
            let hasGoneOn = state.subjects[index].progress != progress
            state.subjects[index].progress = progress
            if hasGoneOn {
                (state.subjects[index].silence, state.subjects[index].slowness) = (0, 0)
                guard state.subjects[index].isStill else { return [] }
                state.subjects[index].isStill = false
                return [.goesOn(heartbeat.name)]
            }
            if isSlow {
                state.subjects[index].silence = 0
                state.subjects[index].slowness += elapsed
                guard state.subjects[index].slowness >= heartbeat.bound, !state.subjects[index].isSlow else {
                    return []
                }
                state.subjects[index].isSlow = true
                return [.slow(heartbeat.name, seconds: Self.seconds(state.subjects[index].slowness))]
            }
            state.subjects[index].silence += elapsed
            guard state.subjects[index].silence >= heartbeat.bound, !state.subjects[index].isStill else { return [] }
            state.subjects[index].isStill = true
            state.stalls += 1
            return [.still(heartbeat.name, seconds: Self.seconds(state.subjects[index].silence))]
        }
    }

    private static func seconds(_ nanoseconds: UInt64) -> Int { Int(nanoseconds / 1_000_000_000) }
}

/// A loop or pool that has to go on for the daemon to do its work. Any thread may call its closures.
struct Heartbeat: Sendable {
    /// The name in the log, such as `loop 1`.
    let name: String
    /// Nanoseconds without a sign of life after which it is stalled.
    let bound: UInt64
    /// True for a loop: loops end before the daemon does, and are not asked any more from then on.
    var isLoop = false
    /// True if the end of the daemon waits for it; while it is stalled, the daemon ends without it.
    var holdsUpEnd = true
    /// Submits a closure that is called when its turn comes.
    /// - Returns: false if the loop or pool has ended regularly, and does nothing any more.
    let ask: @Sendable (@escaping @Sendable () -> Void) -> Bool
    /// A number that changes if other work goes on while the question waits for its turn.
    var progress: @Sendable () -> Int = { 0 }
    /// True while it waits for a disk or does a long computation: it is slow then, and not stalled.
    var isSlow: @Sendable () -> Bool = { false }
}

extension Heartbeat {
    /// The bound of a loop in nanoseconds: nothing that a loop does takes as long, except a wait for a disk.
    static let loopBound: UInt64 = 10_000_000_000
    /// The bound of a pool in nanoseconds: its work may wait for a pipe or for another thread for a while.
    static let poolBound: UInt64 = 30_000_000_000
    /// The bound of the pool that resolves names, in nanoseconds: a lookup asks unresponsive name servers one after the
    /// other, and each several times.
    static let namesBound: UInt64 = 120_000_000_000

    /// The heartbeat of a loop, which comes to a submitted job in its next turn. It may wait for a disk if the kernel
    /// has evicted pages of a file that were in memory a moment ago.
    init(_ loop: EventLoop, bound: UInt64 = Heartbeat.loopBound) {
        name = "loop \(loop.index)"
        self.bound = bound
        isLoop = true
        ask = { beat in
            loop.submit { _ in beat() }
            return true
        }
        isSlow = { loop.waitsForDisk }
    }

    /// The heartbeat of a pool, which comes to a submitted job when all earlier ones have begun.
    init(_ pool: IOPool, bound: UInt64 = Heartbeat.poolBound) {
        name = "the I/O pool '\(pool.name)'"
        self.bound = bound
        ask = { beat in pool.submit { beat() } }
        progress = { pool.finished }
        isSlow = { pool.isAtWork }
    }
}
