// Where a connection is between its requests and their answers: what happens to it, and what it is to do then.

/// A value: events go in, and each says what the connection does next. It reads nothing, writes
/// nothing and asks no clock.
///
/// Phases: waiting → answering (a task or a relay answers) or flushing (answered at once, bytes left) → flushing →
/// draining (an unread body) or waiting; from flushing to lingering where the connection ends after an answer;
/// answering → taken where a tunnel takes the transport; from any to closed. Taken and closed are final.
struct ConnectionState: Equatable {
    enum Phase: CaseIterable { case waiting, answering, flushing, draining, lingering, taken, closed }

    /// What a connection does next. At most one of these follows from an event.
    enum Action: Equatable {
        case none
        /// Close it: nobody waits for anything.
        case close
        /// Close it: the client has left before its answer was complete.
        case leave
        /// Say no more and read away what comes, until the client ends its side.
        case linger
        /// Go on, and have the client asked from time to time whether it is there.
        case watchOver
        /// The next request may be served.
        case serve
        /// What was read is for the body of the request under way.
        case offerInput
        /// Read away the body that an early answer left.
        case drain
    }

    /// What an answer leaves of the body of its request.
    enum Unread { case nothing, little, much }

    private(set) var phase = Phase.waiting
    /// The connection may serve another request after this one.
    var keepAlive = true
    /// The client has ended its side.
    private(set) var sawEnd = false
    /// The first bytes of a head have come, and not all of it.
    var hasHeadBegun = false
    /// The last write found that the client takes nothing more.
    var isBlocked = false

    /// Nothing happens any more.
    var isOver: Bool { phase == .closed || phase == .taken }
    /// Answers may be written.
    var mayWrite: Bool { !isOver && phase != .lingering }

    // MARK: - Requests

    /// A request was answered at once, or left to another way.
    mutating func answered(_ answer: HotAnswer) -> Action {
        switch answer {
        case .notMine: return .none
        case .refused: return .close
        case .broken: return .leave
        case .sent: return keepAlive ? .none : .linger
        case .queued:
            phase = .flushing
            return .none
        }
    }

    /// A request was read that a task or a relay answers.
    mutating func requestBegan() -> Action {
        phase = .answering
        // Its end came while another answer was written.
        return sawEnd ? .watchOver : .none
    }

    /// A refusal was queued, after which nothing is read any more.
    mutating func refused() {
        keepAlive = false
        phase = .flushing
    }

    /// What was read has been used, as far as it goes.
    /// - Parameters:
    ///   - hasOutput: answers wait to be written.
    ///   - isQueued: more of it is used in a later turn.
    ///   - endsWithClient: the client's end counts as leaving; asked only where it has come.
    mutating func processed(hasOutput: Bool, isQueued: Bool, endsWithClient: @autoclosure () -> Bool) -> Action {
        switch phase {
        case .waiting where hasOutput:
            phase = .flushing
            return .none
        case .waiting: return sawEnd && !isQueued ? .close : .none
        case .answering: return sawEnd && endsWithClient() ? .leave : .offerInput
        case .draining: return .drain
        case .flushing, .lingering, .taken, .closed: return .none
        }
    }

    // MARK: - The end of an answer

    /// The last byte of an answer was queued; false where there is none under way.
    mutating func answerEnded() -> Bool {
        guard phase == .answering else { return false }
        phase = .flushing
        return true
    }

    /// The last byte of an answer was written.
    mutating func answerWritten(unread: Unread, hasInput: Bool, isDraining: Bool) -> Action {
        guard keepAlive, !sawEnd || hasInput else { return .linger }
        switch unread {
        case .nothing: return next(hasInput: hasInput, isDraining: isDraining)
        case .much: return .linger
        case .little:
            phase = .draining
            return .drain
        }
    }

    /// Some of the body was read away that an early answer left.
    /// - Parameter isTooLong: as much was read as may be.
    mutating func drained(isComplete: Bool, isTooLong: Bool, hasInput: Bool, isDraining: Bool) -> Action {
        if isComplete { return next(hasInput: hasInput, isDraining: isDraining) }
        return isTooLong || sawEnd ? .linger : .none
    }

    private mutating func next(hasInput: Bool, isDraining: Bool) -> Action {
        guard !isDraining, !sawEnd || hasInput else { return .linger }
        phase = .waiting
        return .serve
    }

    // MARK: - The end of the connection

    /// The client has ended its side.
    /// - Parameters:
    ///   - isQueued: whole requests wait for their turn, which came before the end.
    ///   - endsWithClient: its end counts as leaving; asked only while it is answered.
    mutating func clientEnded(
        hasInput: Bool,
        isQueued: Bool,
        endsWithClient: @autoclosure () -> Bool
    ) -> Action {
        sawEnd = true
        switch phase {
        case .flushing: return .none
        case .waiting where hasInput && isQueued: return .none
        // The client ended its side after a complete request. It may still read, or may have left: that shows only when
        // it refuses the answer. If the route's fetch ends with its client, this counts as leaving.
        case .answering: return endsWithClient() ? .leave : .watchOver
        case .waiting, .draining, .lingering, .taken, .closed: return .close
        }
    }

    /// The answers are over; false where the client has ended its side already, and nothing is left to wait for.
    mutating func linger() -> Bool {
        guard !sawEnd else { return false }
        phase = .lingering
        return true
    }

    /// The connection is closed, or a tunnel takes its transport; false where it was over before.
    mutating func end(_ last: Phase) -> Bool {
        guard !isOver else { return false }
        phase = last
        return true
    }

    /// The daemon wants to end.
    func drainBegan(hasInput: Bool) -> Action { phase == .waiting && !hasInput ? .close : .none }

    /// Somebody would miss what is under way.
    func isAwaited(hasInput: Bool) -> Bool {
        switch phase {
        case .draining, .lingering, .taken, .closed: false
        case .waiting: hasInput
        case .answering, .flushing: true
        }
    }

    // MARK: - Deadlines

    /// What came too late.
    enum Late: Equatable { case nothing, head, request, client, reading, body, drain, end }

    /// Nanoseconds.
    struct Deadlines {
        var head: UInt64
        var idle: UInt64
        /// The deadline of a body that is read away.
        var drain: UInt64
        var linger: UInt64
    }

    /// - Parameters:
    ///   - waited: since the present wait began, in nanoseconds.
    ///   - hasHeadBytes: more was read than a lone empty line, which some clients send after a body,
    ///     and which begins no head.
    ///   - isHungUp: nobody is at the other end; asked only where nothing is watched that would tell.
    ///   - isBodyLate: the body of the request comes too slowly.
    func late(
        waited: UInt64,
        _ deadlines: Deadlines,
        hasHeadBytes: Bool,
        isHungUp: @autoclosure () -> Bool,
        isBodyLate: @autoclosure () -> Bool
    ) -> Late {
        switch phase {
        case .waiting where hasHeadBytes && hasHeadBegun: return waited > deadlines.head ? .head : .nothing
        case .waiting: return waited > deadlines.idle ? .request : .nothing
        case .answering:
            if sawEnd, isHungUp() { return .client }
            if isBlocked, waited > deadlines.idle { return .reading }
            return isBodyLate() ? .body : .nothing
        case .flushing: return waited > deadlines.idle ? .reading : .nothing
        case .draining: return waited > deadlines.drain ? .drain : .nothing
        case .lingering: return waited > deadlines.linger ? .end : .nothing
        case .taken, .closed: return .nothing
        }
    }
}
