// What a shared fetch does as requests come, wait, read and leave: a value, with events in and actions out.

/// The state of one shared fetch. ``SharedFetch`` holds it under its mutex; what the actions say is done outside of it.
///
///     asking ── headCame ──▶ flowing ── bodyCame ──▶ storing
///       │                       │                       │
///       │ nobody waits          │ nobody reads          │
///       ▼                       ▼                       ▼
///     stopping ◀── operator ────┘        ── ended ──▶ ended
///
/// `ended` leads to the phase of that name from every other.
struct SharedFetchState: Equatable {
    enum Phase: Equatable {
        /// Nothing is known of the answer: requests wait for it.
        case asking
        /// Its head is known and its body arrives: requests read it.
        case flowing(isStored: Bool)
        /// All of the body has come and is on its way into the store.
        case storing
        /// Nobody is to get anything of it any more: the runner winds it up.
        case stopping
        /// What it brought is stored, or will never be.
        case ended
    }

    enum Event: Equatable {
        /// A request that may use the answer came, and may wait if fewer than `limit` do.
        case joined(limit: Int)
        /// A request that waited does so no longer; if it reads the body, ``readerOpened`` came before.
        case waiterLeft(isReading: Bool)
        /// The request that began it has its answer, or looks for another.
        case leaderAnswered
        /// The client of the request that began it has left.
        case leaderGone
        /// Somebody got an answer without reading all of the body: the fetch goes on, whoever leaves.
        case wanted
        /// A request that waits has a reader of the body.
        case readerOpened
        /// The final head came. Of the leader, the reader is opened with the body.
        case headCame(isStored: Bool)
        /// Nobody read the body when it was looked at.
        ///
        /// `opened` is the number of readers opened before that look. A reader opened since is not among those that
        /// have left: without this number, the fetch of a waiter that has just become a reader would be cut off.
        ///
        /// `mayEnd`: the route lets a fetch end here that nobody needs. `isKept`: a tier takes the body.
        case unread(opened: Int, mayEnd: Bool, isKept: Bool)
        /// The body has come as a whole, and the store takes it.
        case bodyCame
        /// An operator ends it.
        case stopped
        /// An operator drops those who wait for it: it goes on for the store, whoever leaves.
        case waitersDropped
        /// What is stored of its key was invalidated: requests from now on must not get what is older.
        case forgotten
        /// It brought no body, or its body is stored, or will never be.
        case ended
    }

    /// What is to be done for an event.
    struct Actions: OptionSet, Sendable {
        let rawValue: UInt16

        /// The request waits for the outcome.
        static let wait = Actions(rawValue: 1 << 0)
        /// The request fetches for itself: as many wait as may.
        static let turnAway = Actions(rawValue: 1 << 1)
        /// Who waits gets the head.
        static let publish = Actions(rawValue: 1 << 2)
        /// Later requests must not find the fetch: it leaves the table.
        static let unlist = Actions(rawValue: 1 << 3)
        /// The runner ends the fetch.
        static let cancel = Actions(rawValue: 1 << 4)
        /// The fetch ends since everybody has left: that is reported and counted.
        static let reportAbandoned = Actions(rawValue: 1 << 5)
        /// The runner looks whether anybody reads the body.
        static let checkReaders = Actions(rawValue: 1 << 6)
        /// No tier takes the body: requests of the next time do not wait for it.
        static let noteUnkept = Actions(rawValue: 1 << 7)
        /// What the response would have replaced is outdated, although nothing takes its place.
        static let removeOutdated = Actions(rawValue: 1 << 8)
        /// It is no longer among the fetches that are waited for at the end of a core.
        static let endUnderWay = Actions(rawValue: 1 << 9)
        /// Who waits for the outcome is answered now.
        static let dropWaiters = Actions(rawValue: 1 << 10)
    }

    private(set) var phase = Phase.asking
    /// Requests besides the leader that wait for the outcome.
    private(set) var waiters = 0
    /// The request that began it waits for the outcome.
    private(set) var isLed: Bool
    /// Lets the fetch continue even when all clients leave.
    private(set) var isWanted: Bool
    /// Later requests find it in the table.
    private(set) var isListed: Bool
    /// Readers of the body that were ever opened. How many of them have left, only the body knows.
    private(set) var readersOpened = 0
    /// It is counted among the fetches that are under way.
    private(set) var isUnderWay = true
    /// The route lets the fetch end when nobody waits for its head any more.
    let endsUnawaited: Bool

    /// - Parameters:
    ///   - isLed: a request waits that began it; else it is a refresh behind an answer, which goes on by itself.
    ///   - isListed: others may join.
    ///   - endsUnawaited: the route lets the fetch end when nobody waits for its head any more.
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
            // All that is to be had has come: only new requests begin anew.
            case .storing: return unlist()
            case .stopping, .ended: break
            }
        case .waitersDropped:
            // Later there is an outcome, so that nobody waits any more.
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
        // Who reads tells the body when it leaves. Who does not might have been the only one to keep the fetch going.
        case .flowing: return isReading ? [] : .checkReaders
        case .storing, .stopping, .ended: return []
        }
    }

    private mutating func leaderGone() -> Actions {
        guard isLed else { return [] }
        isLed = false
        // The body tells when the leader's reader goes.
        guard phase == .asking else { return [] }
        // Nobody can join: it is for this client alone.
        if !isListed, waiters == 0 { return stop() }
        return stopIfUnawaited()
    }

    private mutating func stopIfUnawaited() -> Actions {
        endsUnawaited && isUnneeded ? stop().union(.reportAbandoned) : []
    }

    /// Nobody waits for it, and nobody wants it to go on.
    private var isUnneeded: Bool { waiters == 0 && !isLed && !isWanted }

    // MARK: - The response

    private mutating func headCame(isStored: Bool) -> Actions {
        guard phase == .asking else { return .cancel }
        // Only the leader may read what is not stored: who waits besides fetches for itself.
        guard isStored || isLed else { return stop().union(.removeOutdated) }
        phase = .flowing(isStored: isStored)
        if isLed { readersOpened += 1 }
        return isStored ? .publish : unlist().union(endUnderWay()).union(.publish)
    }

    private mutating func unread(opened: Int, mayEnd: Bool, isKept: Bool) -> Actions {
        guard case .flowing(let isStored) = phase else { return [] }
        if !isStored { return stop() }
        // Somebody has become a reader since the look.
        guard opened == readersOpened else { return [] }
        if mayEnd, isUnneeded { return stop().union(.reportAbandoned) }
        if isKept { return [] }
        // Who waits is about to read, and asks again if it does not.
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
