// Every transition of a connection: what happens in which phase, and what it does then.

import Testing

@testable import ProxyServer

@Suite struct ConnectionStateTests {
    typealias Phase = ConnectionState.Phase
    typealias Action = ConnectionState.Action

    /// A state in a phase, by the events that lead there.
    private static func state(_ phase: Phase, keepAlive: Bool = true, sawEnd: Bool = false) -> ConnectionState {
        var state = ConnectionState()
        switch phase {
        case .waiting: break
        case .answering: _ = state.requestBegan()
        case .flushing: _ = state.answered(.queued)
        case .draining:
            _ = state.answered(.queued)
            _ = state.answerWritten(unread: .little, hasInput: false, isDraining: false)
        case .lingering: _ = state.linger()
        case .taken, .closed: _ = state.end(phase)
        }
        state.keepAlive = keepAlive
        if sawEnd { _ = state.clientEnded(hasInput: false, isQueued: false, endsWithClient: false) }
        return state
    }

    @Test(arguments: Phase.allCases) func `every phase can be reached`(phase: Phase) {
        #expect(Self.state(phase).phase == phase)
        #expect(Self.state(phase).isOver == (phase == .taken || phase == .closed))
        #expect(Self.state(phase).mayWrite == ![.taken, .closed, .lingering].contains(phase))
    }

    @Test(arguments: [
        (HotAnswer.notMine, true, Action.none, Phase.waiting), (.notMine, false, .none, .waiting),
        (.refused, true, .close, .waiting), (.broken, true, .leave, .waiting), (.sent, true, .none, .waiting),
        (.sent, false, .linger, .waiting), (.queued, true, .none, .flushing), (.queued, false, .none, .flushing),
    ])
    func `a request is answered at once`(answer: HotAnswer, keepAlive: Bool, action: Action, phase: Phase) {
        var state = Self.state(.waiting, keepAlive: keepAlive)
        #expect(state.answered(answer) == action)
        #expect(state.phase == phase)
    }

    @Test func `a request waits for its answer`() {
        var state = ConnectionState()
        #expect(state.requestBegan() == .none && state.phase == .answering)
        var ended = Self.state(.flushing, sawEnd: true)
        #expect(ended.requestBegan() == .watchOver && ended.phase == .answering)
    }

    @Test func `nothing follows a refusal`() {
        for phase in [Phase.waiting, .answering, .draining] {
            var state = Self.state(phase)
            state.refused()
            #expect(state.phase == .flushing && !state.keepAlive)
            #expect(state.answerWritten(unread: .nothing, hasInput: true, isDraining: false) == .linger)
        }
    }

    /// Phase, whether the client has ended its side, output, queued, ends with client; then what follows.
    @Test(arguments: [
        (Phase.waiting, false, false, false, false, Action.none, Phase.waiting),
        (.waiting, false, true, false, false, .none, .flushing),
        (.answering, false, false, false, true, .offerInput, .answering),
        (.answering, true, false, false, false, .offerInput, .answering),
        (.answering, true, false, false, true, .leave, .answering),
        (.draining, false, false, false, false, .drain, .draining),
        (.flushing, true, true, false, false, .none, .flushing),
        (.lingering, false, false, false, false, .none, .lingering),
        (.taken, false, true, false, false, .none, .taken), (.closed, false, true, false, false, .none, .closed),
    ])
    func `what was read has been used`(
        phase: Phase,
        sawEnd: Bool,
        hasOutput: Bool,
        isQueued: Bool,
        endsWithClient: Bool,
        action: Action,
        next: Phase
    ) {
        var state = Self.state(phase, sawEnd: sawEnd)
        let found = state.processed(hasOutput: hasOutput, isQueued: isQueued, endsWithClient: endsWithClient)
        #expect(found == action && state.phase == next)
    }

    @Test func `behind the end of the client only what came before it is served`() {
        var state = Self.state(.waiting)
        #expect(state.clientEnded(hasInput: true, isQueued: true, endsWithClient: true) == .none)
        #expect(state.processed(hasOutput: false, isQueued: true, endsWithClient: true) == .none)
        #expect(state.processed(hasOutput: false, isQueued: false, endsWithClient: true) == .close)
    }

    @Test func `an answer ends once`() {
        for phase in Phase.allCases {
            var state = Self.state(phase)
            let ends = state.answerEnded()
            #expect(ends == (phase == .answering))
            #expect(state.phase == (ends ? .flushing : phase))
        }
    }

    /// Keep-alive, the client's end, what is unread, input, draining; then what follows.
    @Test(arguments: [
        (true, false, ConnectionState.Unread.nothing, false, false, Action.serve, Phase.waiting),
        (true, false, .nothing, true, false, .serve, .waiting), (true, true, .nothing, true, false, .serve, .waiting),
        (true, true, .nothing, false, false, .linger, .flushing),
        (false, false, .nothing, true, false, .linger, .flushing),
        (true, false, .nothing, true, true, .linger, .flushing), (true, false, .much, true, false, .linger, .flushing),
        (true, false, .little, true, false, .drain, .draining), (true, false, .little, true, true, .drain, .draining),
        (false, false, .little, true, false, .linger, .flushing),
        (true, true, .little, false, false, .linger, .flushing),
    ])
    func `an answer has been written`(
        keepAlive: Bool,
        sawEnd: Bool,
        unread: ConnectionState.Unread,
        hasInput: Bool,
        isDraining: Bool,
        action: Action,
        next: Phase
    ) {
        var state = Self.state(.flushing, keepAlive: keepAlive, sawEnd: sawEnd)
        #expect(state.answerWritten(unread: unread, hasInput: hasInput, isDraining: isDraining) == action)
        #expect(state.phase == next)
    }

    /// Complete, too long, draining; then what follows.
    @Test(arguments: [
        (true, false, false, Action.serve, Phase.waiting), (true, true, false, .serve, .waiting),
        (true, false, true, .linger, .draining), (false, true, false, .linger, .draining),
        (false, false, false, .none, .draining),
    ])
    func `an unread body is read away`(
        isComplete: Bool,
        isTooLong: Bool,
        isDraining: Bool,
        action: Action,
        next: Phase
    ) {
        var state = Self.state(.draining)
        let found = state.drained(isComplete: isComplete, isTooLong: isTooLong, hasInput: false, isDraining: isDraining)
        #expect(found == action && state.phase == next)
    }

    /// Phase, input, queued, ends with client; then what follows.
    @Test(arguments: [
        (Phase.waiting, false, false, false, Action.close), (.waiting, true, false, false, .close),
        (.waiting, true, true, false, .none), (.waiting, false, true, false, .close),
        (.answering, false, false, false, .watchOver), (.answering, false, false, true, .leave),
        (.flushing, false, false, true, .none), (.draining, true, false, false, .close),
        (.lingering, false, false, false, .close),
    ])
    func `a client ends its side`(
        phase: Phase,
        hasInput: Bool,
        isQueued: Bool,
        endsWithClient: Bool,
        action: Action
    ) {
        var state = Self.state(phase)
        #expect(state.clientEnded(hasInput: hasInput, isQueued: isQueued, endsWithClient: endsWithClient) == action)
        #expect(state.sawEnd && state.phase == phase)
    }

    @Test func `a connection lingers unless its client has ended its side`() {
        var state = Self.state(.flushing)
        #expect(state.linger() && state.phase == .lingering)
        var ended = Self.state(.flushing, sawEnd: true)
        #expect(!ended.linger() && ended.phase == .flushing)
    }

    @Test(arguments: Phase.allCases) func `a connection ends once`(phase: Phase) {
        for last in [Phase.closed, .taken] {
            var state = Self.state(phase)
            let wasOver = state.isOver
            #expect(state.end(last) == !wasOver)
            #expect(state.phase == (wasOver ? phase : last))
        }
    }

    @Test(arguments: Phase.allCases) func `the daemon ends`(phase: Phase) {
        let state = Self.state(phase)
        #expect(state.drainBegan(hasInput: true) == .none)
        #expect(state.drainBegan(hasInput: false) == (phase == .waiting ? .close : .none))
        #expect(state.isAwaited(hasInput: true) == [.waiting, .answering, .flushing].contains(phase))
        #expect(state.isAwaited(hasInput: false) == [.answering, .flushing].contains(phase))
    }

    /// Phase, and after how long what is too late.
    private static let limits: [(Phase, UInt64, ConnectionState.Late)] = [
        (.waiting, 30, .request), (.flushing, 30, .reading), (.draining, 40, .drain), (.lingering, 50, .end),
    ]

    @Test(arguments: limits)
    func `what takes too long is late`(phase: Phase, limit: UInt64, late: ConnectionState.Late) {
        let state = Self.state(phase)
        #expect(Self.late(state, limit) == .nothing)
        #expect(Self.late(state, limit + 1) == late)
    }

    @Test func `a head, an answer and its body are late by their own rules`() {
        var head = Self.state(.waiting)
        head.hasHeadBegun = true
        #expect(Self.late(head, 20, hasHeadBytes: true) == .nothing)
        #expect(Self.late(head, 21, hasHeadBytes: true) == .head)
        // A lone empty line begins no head.
        #expect(Self.late(head, 21) == .nothing)
        #expect(Self.late(head, 31) == .request)
        var answer = Self.state(.answering)
        #expect(Self.late(answer, 1_000, isHungUp: true) == .nothing)
        #expect(Self.late(answer, 1, isBodyLate: true) == .body)
        answer.isBlocked = true
        #expect(Self.late(answer, 30) == .nothing)
        #expect(Self.late(answer, 31, isBodyLate: true) == .reading)
        var ended = Self.state(.answering, sawEnd: true)
        ended.isBlocked = true
        #expect(Self.late(ended, 31, isHungUp: true) == .client)
        for phase in [Phase.taken, .closed] {
            #expect(
                Self.late(Self.state(phase), .max, hasHeadBytes: true, isHungUp: true, isBodyLate: true) == .nothing
            )
        }
    }

    private static func late(
        _ state: ConnectionState,
        _ waited: UInt64,
        hasHeadBytes: Bool = false,
        isHungUp: Bool = false,
        isBodyLate: Bool = false
    ) -> ConnectionState.Late {
        state.late(
            waited: waited,
            ConnectionState.Deadlines(head: 20, idle: 30, drain: 40, linger: 50),
            hasHeadBytes: hasHeadBytes,
            isHungUp: isHungUp,
            isBodyLate: isBodyLate
        )
    }
}
