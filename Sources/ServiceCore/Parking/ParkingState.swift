// The calls of one service that wait for its origin, as a value: which of them are parked, and which are replayed now.

package import Policies

/// A call that waits for its origin.
package struct ParkedCall: Sendable, Equatable {
    package enum Phase: String, Sendable {
        /// It is held.
        case parked
        /// It is on its way to the origin again.
        case replaying
    }

    /// Of no other call of this process.
    package let id: UInt64
    package let method: String
    /// Without a query, which may hold secrets.
    package let path: String
    /// Bytes that it takes: head, content, and what every waiting request takes.
    package let size: Int
    /// When it was parked first, monotonic nanoseconds.
    package let since: UInt64
    /// When it gets its 504, monotonic nanoseconds.
    package let until: UInt64
    /// Why it could not be answered the last time.
    package internal(set) var reason: String
    /// How often it was replayed.
    package internal(set) var replays = 0
    package internal(set) var phase = Phase.parked
    /// Replays after an answer of the origin that came to nothing.
    var failures: UInt64 = 0
    /// It is not replayed before, whatever others hear of the origin; monotonic nanoseconds.
    var notBefore: UInt64 = 0
    /// Why it is not held again, if it comes back from its replay; nil: it is.
    var end: String?
}

/// Why a call is not parked.
package enum ParkRefusal: Error, Sendable, Equatable {
    /// As many calls are parked as may be.
    case calls(Int)
    /// Together they would have more bytes than they may have.
    case size(Int)
    /// No call of this origin is parked any more: the daemon ends, or the service has changed.
    case ended

    /// For logs, behind "since".
    package var text: String {
        switch self {
        case .calls(let most): "\(most) calls wait already; raise park.calls"
        case .size(let most): "calls that wait would have more than \(most) bytes; raise park.size"
        case .ended: "the daemon ends, or the service has changed"
        }
    }
}

/// Calls come in order and leave in that order. While the origin is away, only a probe leaves, one at a time, after waits
/// that grow; its outcome, or that of any other fetch, says whether the rest may follow. A call that fails while others
/// are answered has a wait of its own, which grows: the origin is there, and what that call wants is not.
///
///     park ──▶ parked ──origin answered, probe is due, operator──▶ replaying ──answered──▶ gone
///                │  ▲                                                │
///                │  └────────────── the origin is still away ────────┘
///                └── its time is over, its client left, an operator, the end ──▶ gone
package struct ParkingState: Sendable {
    /// Nanoseconds to the first probe.
    package static let shortestWait: UInt64 = 1_000_000_000
    /// Nanoseconds between two probes, at most.
    package static let longestWait: UInt64 = 30_000_000_000

    /// What follows for a call that came back from a replay.
    package enum Return: Equatable, Sendable {
        /// It is held again.
        case parked
        /// It has waited as long as it may.
        case expired
        /// Nothing is held any more, for this reason.
        case ended(String)
    }

    package private(set) var calls: [UInt64: ParkedCall] = [:]
    /// Bytes of all calls.
    package private(set) var size = 0
    /// Identifiers of the calls that are held, in order.
    private var held: [UInt64] = []
    /// Nobody has heard of the origin since it failed last.
    package private(set) var isAway = false
    /// The call that probes the origin.
    private var probe: UInt64?
    private var probeWait = shortestWait
    /// When the next probe is due, monotonic nanoseconds.
    package private(set) var probeAt: UInt64 = 0
    /// Why nothing is held any more; nil while calls may be parked.
    private var end: String?

    package init() {}

    /// Calls that are held, without those that are replayed now.
    package var heldCount: Int { held.count }
    private var replaying: Int { calls.count - held.count }

    // MARK: - Coming

    /// Why a call of so many bytes would not be held; nil where it would.
    package func refusal(of size: Int, _ policy: ParkPolicy) -> ParkRefusal? {
        if end != nil { return .ended }
        guard calls.count < policy.calls else { return .calls(policy.calls) }
        return self.size + size <= policy.size ? nil : .size(policy.size)
    }

    /// Holds a call, since its origin is away.
    /// - Returns: why it is not held; nil where it is.
    package mutating func park(_ call: ParkedCall, _ policy: ParkPolicy, now: UInt64) -> ParkRefusal? {
        if let refusal = refusal(of: call.size, policy) { return refusal }
        calls[call.id] = call
        size += call.size
        hold(call.id)
        wentAway(now: now)
        return nil
    }

    /// A replay came to nothing.
    /// - Parameter isAway: the origin was asked in vain; otherwise the call was not admitted to it.
    package mutating func returned(_ id: UInt64, isAway: Bool, reason: String, now: UInt64) -> Return {
        guard let call = calls[id] else { return .expired }
        let wasProbe = probe == id
        if wasProbe { probe = nil }
        if isAway, wasProbe {
            probeWait = min(probeWait * 2, Self.longestWait)
            self.isAway = false
        } else if isAway {
            let wait = min(Self.shortestWait << min(call.failures, 8), Self.longestWait)
            calls[id]?.failures += 1
            calls[id]?.notBefore = now &+ wait
        }
        wentAway(now: now)
        if let end = call.end ?? end {
            forget(id)
            return .ended(end)
        }
        guard now < call.until else {
            forget(id)
            return .expired
        }
        calls[id]?.phase = .parked
        calls[id]?.reason = reason
        hold(id)
        return .parked
    }

    private mutating func wentAway(now: UInt64) {
        guard !isAway else { return }
        isAway = true
        probeAt = now &+ probeWait
    }

    /// In its place by age: who came back is older than who came since.
    private mutating func hold(_ id: UInt64) { held.insert(id, at: place(of: id)) }

    /// The first place that is not before this identifier.
    private func place(of id: UInt64) -> Int {
        var (low, high) = (0, held.count)
        while low < high {
            let middle = (low + high) / 2
            if held[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: - Leaving

    /// A fetch of the origin got an answer.
    /// - Parameter width: how many may be replayed at the same time, at least 1.
    /// - Returns: the calls that are to be replayed now.
    package mutating func originAnswered(width: Int, now: UInt64) -> [UInt64] {
        isAway = false
        probeWait = Self.shortestWait
        return release(width: width, now: now)
    }

    /// - Returns: the calls that are to be replayed now: the one that is to probe an origin that is away, or those whose
    ///   own waits are over.
    package mutating func replayDue(width: Int, now: UInt64) -> [UInt64] {
        if !isAway { return release(width: width, now: now) }
        guard probe == nil, now >= probeAt, let id = held.first else { return [] }
        replay(at: 0)
        probe = id
        return [id]
    }

    /// An operator wants all calls to be replayed, whatever is known of the origin and of them.
    /// - Returns: the calls that are to be replayed now; the others follow.
    package mutating func replayAll(width: Int, now: UInt64) -> [UInt64] {
        for id in held { calls[id]?.notBefore = 0 }
        return originAnswered(width: width, now: now)
    }

    /// An operator wants a call to be replayed, whatever is known of the origin.
    /// - Returns: whether it was held.
    package mutating func replay(_ id: UInt64) -> Bool {
        let place = place(of: id)
        guard place < held.count, held[place] == id else { return false }
        replay(at: place)
        return true
    }

    /// A call has its answer, or its client has left, or it is to end for another reason.
    /// - Returns: the calls that are to be replayed now in its place; nil where it has left already.
    package mutating func leave(_ id: UInt64, width: Int, now: UInt64) -> [UInt64]? {
        guard calls[id] != nil else { return nil }
        forget(id)
        if probe == id {
            probe = nil
            // It has proved nothing unless the origin was heard of.
            if isAway { probeAt = now &+ probeWait }
        }
        return release(width: width, now: now)
    }

    /// The time of a call is over.
    /// - Returns: whether it was held, and has left. One that is replayed now gets its answer, if there is one.
    package mutating func expire(_ id: UInt64) -> Bool {
        guard calls[id]?.phase == .parked else { return false }
        forget(id)
        return true
    }

    /// Ends all calls that are held; those that are replayed now end if they come back.
    /// - Parameter reason: for clients.
    package mutating func endAll(_ reason: String) -> [UInt64] {
        end = reason
        let ended = held
        for id in ended { forget(id) }
        for id in calls.keys { calls[id]?.end = reason }
        return ended
    }

    /// Calls may be parked again.
    package mutating func begin() { end = nil }

    private mutating func release(width: Int, now: UInt64) -> [UInt64] {
        let room = width - replaying
        guard !isAway, room > 0, !held.isEmpty else { return [] }
        var released: [UInt64] = []
        for id in held where released.count < room && (calls[id]?.notBefore ?? 0) <= now { released.append(id) }
        let leaving = Set(released)
        held.removeAll { leaving.contains($0) }
        for id in released { noteReplay(id) }
        return released
    }

    private mutating func replay(at place: Int) { noteReplay(held.remove(at: place)) }

    private mutating func noteReplay(_ id: UInt64) {
        calls[id]?.phase = .replaying
        calls[id]?.replays += 1
    }

    private mutating func forget(_ id: UInt64) {
        guard let call = calls.removeValue(forKey: id) else { return }
        size -= call.size
        let place = place(of: id)
        if place < held.count, held[place] == id { held.remove(at: place) }
    }
}
