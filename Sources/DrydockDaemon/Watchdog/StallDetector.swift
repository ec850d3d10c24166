// The heartbeats of the loops and pools of a daemon, and the search for those that stand still.

import EventLoop
import Synchronization

/// Asks every heartbeat for a sign of life. One thread calls ``look(now:)``, any thread may ask what was found.
///
/// Something stands still when what it was asked has not had its turn for as long as its bound, nothing else of it has
/// been done meanwhile, and whenever it was looked at it neither waited for a disk nor computed. So a disk that takes a
/// minute for an fsync is slow, and threads that wait for one another stand still.
///
/// Sendable: what changes is under a mutex or atomic; heartbeats are called without the mutex.
final class StallDetector: Sendable {
    /// A finding of one look; seconds are those of silence.
    enum Finding: Sendable, Equatable {
        case still(String, seconds: Int)
        /// It waits for a disk, or computes, and nothing else of it is done.
        case slow(String, seconds: Int)
        /// It had stood still, or was slow, and goes on.
        case goesOn(String)
    }

    private struct Subject {
        /// The question waits for its turn.
        var isAsked = false
        var isOver = false
        var progress = 0
        /// Nanoseconds of silence in which it should have gone on.
        var silence: UInt64 = 0
        /// Nanoseconds of silence that a disk, or long work, is the reason of.
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

    /// A flag that the turn of a question has come.
    private final class Answer: Sendable {
        private let isThere = Atomic<Bool>(false)
        func give() { isThere.store(true, ordering: .relaxed) }
        func take() -> Bool { isThere.exchange(false, ordering: .relaxed) }
    }

    private let heartbeats: [Heartbeat]
    private let answers: [Answer]
    private let state: Mutex<State>
    /// Nanoseconds that one look counts at most: a process that was stopped for a while finds nothing still for that.
    private let maximumPerLook: UInt64

    /// - Parameter interval: nanoseconds from look to look.
    init(_ heartbeats: [Heartbeat], interval: UInt64) {
        self.heartbeats = heartbeats
        answers = heartbeats.map { _ in Answer() }
        maximumPerLook = 2 * interval
        state = Mutex(State(subjects: heartbeats.map { _ in Subject() }))
    }

    /// What stands still now.
    var standing: [String] { state.withLock { state in names(of: state) { $1.isStill } } }

    /// A loop stands still now.
    var hasStillLoop: Bool {
        state.withLock { state in heartbeats.indices.contains { heartbeats[$0].isLoop && state.subjects[$0].isStill } }
    }

    /// How often something was found to stand still.
    var stalls: Int { state.withLock { $0.stalls } }

    /// What holds up the end of the daemon, and has given no sign of life for `nanoseconds`, whatever its bound.
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

    /// Leaves the loops out of all later looks: they are about to end, and would seem to stand still.
    func leaveOutLoops() { state.withLock { $0.leavesOutLoops = true } }

    /// Looks at everything once.
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

    /// The question of the last look has not had its turn.
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

/// Something that has to go on for the daemon to do its work. Any thread may call its closures.
struct Heartbeat: Sendable {
    /// What the log calls it, such as `loop 1`.
    let name: String
    /// Nanoseconds without a sign of life after which it stands still.
    let bound: UInt64
    /// It ends before the daemon does, and is not asked any more when the daemon is about to end it.
    var isLoop = false
    /// A daemon that is to end does so without it where it stands still.
    var holdsUpEnd = true
    /// Has it call the closure when its turn comes.
    /// - Returns: false where it has ended in order, and does nothing any more.
    let ask: @Sendable (@escaping @Sendable () -> Void) -> Bool
    /// A number that changes where it goes on, although the turn of what it was asked has not come yet.
    var progress: @Sendable () -> Int = { 0 }
    /// It waits for a disk, or computes what takes long: it is slow, and does not stand still.
    var isSlow: @Sendable () -> Bool = { false }
}

extension Heartbeat {
    /// Nanoseconds: a loop does nothing that takes as long, short of waiting for a disk.
    static let loopBound: UInt64 = 10_000_000_000
    /// Nanoseconds: work of a pool may wait for a pipe or for another thread, and is done again soon.
    static let poolBound: UInt64 = 30_000_000_000
    /// Nanoseconds: a question for a name waits for name servers that do not answer, one after the
    /// other, each again and again.
    static let namesBound: UInt64 = 120_000_000_000

    /// A loop comes to what is submitted to it in its next turn. It may wait for a disk where the kernel has taken
    /// pages of a file that were there a moment ago.
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

    /// A pool comes to what is submitted to it when all before it has been begun.
    init(_ pool: IOPool, bound: UInt64 = Heartbeat.poolBound) {
        name = "the I/O pool '\(pool.name)'"
        self.bound = bound
        ask = { beat in pool.submit { beat() } }
        progress = { pool.finished }
        isSlow = { pool.isAtWork }
    }
}
