// Looks again and again whether the loops and the pools of a daemon go on, and finds those that stand still.

import EventLoop
import Synchronization

/// Asks every pulse for a sign of life. One thread calls ``look(now:)``, any thread may ask what was found.
///
/// Something stands still when what it was asked has not had its turn for as long as its bound, nothing else of it has
/// been done meanwhile, and whenever it was looked at it neither waited for a disk nor computed. So a disk that takes a
/// minute for an fsync is slow, and threads that wait for one another stand still.
///
/// Sendable: what changes is under a mutex or atomic; pulses are called without the mutex.
final class StandstillWatch: Sendable {
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
        var standstills = 0
    }

    /// A flag that the turn of a question has come.
    private final class Answer: Sendable {
        private let isThere = Atomic<Bool>(false)
        func give() { isThere.store(true, ordering: .relaxed) }
        func take() -> Bool { isThere.exchange(false, ordering: .relaxed) }
    }

    private let pulses: [Pulse]
    private let answers: [Answer]
    private let state: Mutex<State>
    /// Nanoseconds that one look counts at most: a process that was stopped for a while finds nothing still for that.
    private let maximumPerLook: UInt64

    /// - Parameter interval: nanoseconds from look to look.
    init(_ pulses: [Pulse], interval: UInt64) {
        self.pulses = pulses
        answers = pulses.map { _ in Answer() }
        maximumPerLook = 2 * interval
        state = Mutex(State(subjects: pulses.map { _ in Subject() }))
    }

    /// What stands still now.
    var standing: [String] { state.withLock { state in names(of: state) { $1.isStill } } }

    /// A loop stands still now.
    var hasStillLoop: Bool {
        state.withLock { state in pulses.indices.contains { pulses[$0].isLoop && state.subjects[$0].isStill } }
    }

    /// How often something was found to stand still.
    var standstills: Int { state.withLock { $0.standstills } }

    /// What holds up the end of the daemon, and has given no sign of life for `nanoseconds`, whatever its bound.
    func silent(for nanoseconds: UInt64) -> [String] {
        state.withLock { state in names(of: state) { $0.holdsUpEnd && $1.isAsked && $1.silence >= nanoseconds } }
    }

    private func names(of state: borrowing State, where isMeant: (Pulse, Subject) -> Bool) -> [String] {
        var names: [String] = []
        for (pulse, subject) in zip(pulses, state.subjects) {
            if pulse.isLoop, state.leavesOutLoops { continue }
            if isMeant(pulse, subject) { names.append(pulse.name) }
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
        for index in pulses.indices where !(leavesOutLoops && pulses[index].isLoop) {
            let (wasAsked, isOver) = state.withLock { ($0.subjects[index].isAsked, $0.subjects[index].isOver) }
            if isOver { continue }
            if wasAsked, !answers[index].take() {
                findings += note(index, elapsed, pulses[index].progress(), isSlow: pulses[index].isSlow())
            } else {
                findings += answered(index)
                ask(index)
            }
        }
        return findings
    }

    private func ask(_ index: Int) {
        let progress = pulses[index].progress()
        let isTaken = pulses[index].ask { [answer = answers[index]] in answer.give() }
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
            return before.isStill || before.isSlow ? [.goesOn(pulses[index].name)] : []
        }
    }

    /// The question of the last look has not had its turn.
    private func note(_ index: Int, _ elapsed: UInt64, _ progress: Int, isSlow: Bool) -> [Finding] {
        let pulse = pulses[index]
        return state.withLock { state in
            let hasGoneOn = state.subjects[index].progress != progress
            state.subjects[index].progress = progress
            if hasGoneOn {
                (state.subjects[index].silence, state.subjects[index].slowness) = (0, 0)
                guard state.subjects[index].isStill else { return [] }
                state.subjects[index].isStill = false
                return [.goesOn(pulse.name)]
            }
            if isSlow {
                state.subjects[index].silence = 0
                state.subjects[index].slowness += elapsed
                guard state.subjects[index].slowness >= pulse.bound, !state.subjects[index].isSlow else { return [] }
                state.subjects[index].isSlow = true
                return [.slow(pulse.name, seconds: Self.seconds(state.subjects[index].slowness))]
            }
            state.subjects[index].silence += elapsed
            guard state.subjects[index].silence >= pulse.bound, !state.subjects[index].isStill else { return [] }
            state.subjects[index].isStill = true
            state.standstills += 1
            return [.still(pulse.name, seconds: Self.seconds(state.subjects[index].silence))]
        }
    }

    private static func seconds(_ nanoseconds: UInt64) -> Int { Int(nanoseconds / 1_000_000_000) }
}
