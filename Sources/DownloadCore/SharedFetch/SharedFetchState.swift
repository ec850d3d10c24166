// The state machine of a shared fetch, as requests come, wait, read and leave: a value that turns events into actions.

/// The state of one shared fetch. ``SharedFetch`` holds it under its mutex; the actions are done outside of it.
///
///     asking ── headCame ──▶ flowing ── bodyCame ──▶ storing
///       │                       │                       │
///       │ nobody waits          │ nobody reads          │
///       ▼                       ▼                       ▼
///     stopping ◀── operator ────┘        ── ended ──▶ ended
///
/// The event `ended` leads to the phase of that name from every other phase.
struct SharedFetchState: Equatable {
    enum Phase: Equatable {
        /// Nothing is known of the answer, and requests wait for it.
        case asking
        /// The head is known and the body is arriving; requests read it.
        case flowing(isStored: Bool)
        /// All of the body has arrived and is being stored.
        case storing
        /// No request gets anything of the fetch any more, and the runner ends it.
        case stopping
        /// The response is stored, or will never be.
        case ended
    }

    enum Event: Equatable {
        /// A request has come that may use the answer; it may wait if fewer than `limit` requests do.
        case joined(limit: Int)
        /// A request does not wait any more; if it reads the body, ``readerOpened`` came before.
        case waiterLeft(isReading: Bool)
        /// The leader, the request that began the fetch, has its answer, or looks for another one.
        case leaderAnswered
        /// The client of the leader has left.
        case leaderGone
        /// A request got an answer without reading all of the body: the fetch goes on even if all clients leave.
        case wanted
        /// A waiting request has a reader of the body.
        case readerOpened
        /// The final head has arrived. The leader's reader is opened with the body.
        case headCame(isStored: Bool)
        /// The body had no reader when it was checked.
        ///
        /// `opened` is the number of readers opened before that check. A reader opened since then has not left: without
        /// this number, the fetch of a request that has just become a reader would be cut off.
        ///
        /// `mayEnd` says whether the route lets a fetch end here that no request needs. `isKept` says whether a tier
        /// takes the body.
        case unread(opened: Int, mayEnd: Bool, isKept: Bool)
        /// The body is complete, and the store takes it.
        case bodyCame
        /// An operator ends the fetch.
        case stopped
        /// An operator drops the waiting requests: the fetch goes on for the store even if all clients leave.
        case waitersDropped
        /// The stored responses of the key were invalidated: later requests must not get anything older.
        case forgotten
        /// The fetch brought no body, or its body is stored, or will never be.
        case ended
    }

    /// The actions for an event.
    struct Actions: OptionSet, Sendable {
        let rawValue: UInt16

        /// The request waits for the outcome.
        static let wait = Actions(rawValue: 1 << 0)
        /// The request fetches for itself, because the largest number of requests waits.
        static let turnAway = Actions(rawValue: 1 << 1)
        /// The waiting requests get the head.
        static let publish = Actions(rawValue: 1 << 2)
        /// The fetch leaves the table, so that later requests do not find it.
        static let unlist = Actions(rawValue: 1 << 3)
        /// The runner ends the fetch.
        static let cancel = Actions(rawValue: 1 << 4)
        /// The end of the fetch is reported and counted, because all clients have left.
        static let reportAbandoned = Actions(rawValue: 1 << 5)
        /// The runner checks whether the body has readers.
        static let checkReaders = Actions(rawValue: 1 << 6)
        /// No tier takes the body, so that requests of the near future do not wait for one another.
        static let noteUnkept = Actions(rawValue: 1 << 7)
        /// The stored response that this one would have replaced is removed as outdated, although nothing replaces it.
        static let removeOutdated = Actions(rawValue: 1 << 8)
        /// The fetch does not count as under way any more.
        static let endUnderWay = Actions(rawValue: 1 << 9)
        /// The requests that wait for the outcome are answered now.
        static let dropWaiters = Actions(rawValue: 1 << 10)
    }

    private(set) var phase = Phase.asking
    /// The number of requests besides the leader that wait for the outcome.
    private(set) var waiters = 0
    /// Whether the leader waits for the outcome.
    private(set) var isLed: Bool
    /// Whether the fetch continues even if all clients leave.
    private(set) var isWanted: Bool
    /// Whether later requests find the fetch in the table.
    private(set) var isListed: Bool
    /// The number of readers of the body that were ever opened. Only the body knows how many of them have left.
    private(set) var readersOpened = 0
    /// Whether the fetch counts as under way.
    private(set) var isUnderWay = true
    /// Whether the route lets the fetch end when no request waits for its head any more.
    let endsUnawaited: Bool

    /// Makes the state of a new fetch.
    /// - Parameters:
    ///   - isLed: whether the request that begins it waits; if not, it is a refresh behind an answer, which goes on by
    ///     itself.
    ///   - isListed: whether others may join.
    ///   - endsUnawaited: whether the route lets the fetch end when no request waits for its head any more.
    init(isLed: Bool, isListed: Bool, endsUnawaited: Bool) {
        self.isLed = isLed
        isWanted = !isLed
        self.isListed = isListed
        self.endsUnawaited = endsUnawaited
    }

    mutating func handle(_ event: Event) -> Actions {
        switch event {
        case .joined(let limit):
            guard isListed else { return [] }
            guard waiters < limit else { return .turnAway }
            waiters += 1
            return .wait
        case .waiterLeft(let isReading): return waiterLeft(isReading: isReading)
        case .leaderAnswered: isLed = false
        case .leaderGone: return leaderGone()
        case .wanted: isWanted = true
        case .readerOpened: readersOpened += 1
        case .headCame(let isStored): return headCame(isStored: isStored)
        case .unread(let opened, let mayEnd, let isKept):
            return unread(opened: opened, mayEnd: mayEnd, isKept: isKept)
        case .bodyCame:
            if phase == .flowing(isStored: true) { phase = .storing }
        case .stopped:
            switch phase {
            case .asking, .flowing: return stop()
            // All of the body has arrived, so that only later requests begin anew.
            case .storing: return unlist()
            case .stopping, .ended: break
            }
        case .waitersDropped:
            // In later phases there is an outcome, so that no request waits any more.
            guard phase == .asking else { return [] }
            isWanted = true
            return .dropWaiters
        case .forgotten: return unlist()
        case .ended:
            phase = .ended
            return unlist().union(endUnderWay())
        }
        return []
    }

    // MARK: - Leaving

    private mutating func waiterLeft(isReading: Bool) -> Actions {
        guard waiters > 0 else { return [] }
        waiters -= 1
        guard waiters == 0 else { return [] }
        switch phase {
        case .asking: return stopIfUnawaited()
        // A reader tells the body when it leaves. A request without a reader may have been the only one to keep the
        // fetch going.
        case .flowing: return isReading ? [] : .checkReaders
        case .storing, .stopping, .ended: return []
        }
    }

    private mutating func leaderGone() -> Actions {
        guard isLed else { return [] }
        isLed = false
        // The body notices when the leader's reader is closed.
        guard phase == .asking else { return [] }
        // No request can join, because the fetch is for this client alone.
        if !isListed, waiters == 0 { return stop() }
        return stopIfUnawaited()
    }

    private mutating func stopIfUnawaited() -> Actions {
        endsUnawaited && isUnneeded ? stop().union(.reportAbandoned) : []
    }

    /// Whether no request waits for the fetch or wants it to go on.
    private var isUnneeded: Bool { waiters == 0 && !isLed && !isWanted }

    // MARK: - The response

    private mutating func headCame(isStored: Bool) -> Actions {
        guard phase == .asking else { return .cancel }
        // Only the leader may read a response that is not stored: other waiting requests fetch for themselves.
        guard isStored || isLed else { return stop().union(.removeOutdated) }
        phase = .flowing(isStored: isStored)
        if isLed { readersOpened += 1 }
        return isStored ? .publish : unlist().union(endUnderWay()).union(.publish)
    }

    private mutating func unread(opened: Int, mayEnd: Bool, isKept: Bool) -> Actions {
        guard case .flowing(let isStored) = phase else { return [] }
        if !isStored { return stop() }
        // A request has become a reader since the check.
        guard opened == readersOpened else { return [] }
        if mayEnd, isUnneeded { return stop().union(.reportAbandoned) }
        if isKept { return [] }
        // A waiting request is about to read, and causes another check if it does not.
        return waiters > 0 ? .noteUnkept : stop().union([.noteUnkept, .removeOutdated])
    }

    // MARK: - Ends

    private mutating func stop() -> Actions {
        phase = .stopping
        return unlist().union(.cancel)
    }

    private mutating func unlist() -> Actions {
        defer { isListed = false }
        return isListed ? .unlist : []
    }

    private mutating func endUnderWay() -> Actions {
        defer { isUnderWay = false }
        return isUnderWay ? .endUnderWay : []
    }
}
