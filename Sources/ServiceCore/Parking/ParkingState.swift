// The calls of one service that wait for its origin, as a value: which are parked, and which are replayed.

package import Policies

/// A call that waits for its origin.
package struct ParkedCall: Sendable, Equatable {
    package enum Phase: String, Sendable {
        /// The call waits.
        case parked
        /// The call is on its way to the origin again.
        case replaying
    }

    /// The number of the call, unique in this process.
    package let id: UInt64
    package let method: String
    /// The path without the query, which may contain secrets.
    package let path: String
    /// The bytes of the call: its head, its content, and the memory of every waiting request.
    package let size: Int
    /// The time at which the call was parked first, in monotonic nanoseconds.
    package let since: UInt64
    /// The time at which the call gets its 504, in monotonic nanoseconds.
    package let until: UInt64
    /// The reason why the call could not be answered the last time.
    package internal(set) var reason: String
    /// The number of replays.
    package internal(set) var replays = 0
    package internal(set) var phase = Phase.parked
    /// The number of replays without an answer although the origin had answered another fetch.
    var failures: UInt64 = 0
    /// The earliest time of the next replay, even if the origin answers others, in monotonic nanoseconds.
    var notBefore: UInt64 = 0
    /// The reason why the call is not parked again after its replay; nil if it is.
    var end: String?
}

/// The reason why a call is not parked.
package enum ParkRefusal: Error, Sendable, Equatable {
    /// The limit on parked calls is reached.
    case calls(Int)
    /// The limit on the bytes of parked calls is reached.
    case size(Int)
    /// Calls of this origin are no longer parked: the daemon ends, or the service has changed.
    case ended

    /// The reason for logs, as the end of a sentence with "since".
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
    /// The nanoseconds before the first probe.
    package static let shortestWait: UInt64 = 1_000_000_000
    /// The most nanoseconds between two probes.
    package static let longestWait: UInt64 = 30_000_000_000

    /// The treatment of a call that returned from a replay.
    package enum Return: Equatable, Sendable {
        /// The call waits again.
        case parked
        /// The call has waited for its longest time.
        case expired
        /// No calls wait any more, for this reason.
        case ended(String)
    }

    package private(set) var calls: [UInt64: ParkedCall] = [:]
    /// The bytes of all calls.
    package private(set) var size = 0
    /// The identifiers of the calls that wait, in order.
    private var held: [UInt64] = []
    /// Whether the origin has not answered since its last failure.
    package private(set) var isAway = false
    /// The call that probes the origin; nil for none.
    private var probe: UInt64?
    private var probeWait = shortestWait
    /// The time of the next probe in monotonic nanoseconds.
    package private(set) var probeAt: UInt64 = 0
    /// The reason why no calls wait any more; nil while calls may be parked.
    private var end: String?

    package init() {}

    /// The number of calls that wait, without those that are replayed.
    package var heldCount: Int { held.count }
    private var replaying: Int { calls.count - held.count }

    // MARK: - Coming

    /// The reason why a call of this size cannot be parked; nil if it can.
    package func refusal(of size: Int, _ policy: ParkPolicy) -> ParkRefusal? {
        if end != nil { return .ended }
        guard calls.count < policy.calls else { return .calls(policy.calls) }
        return self.size + size <= policy.size ? nil : .size(policy.size)
    }

    /// Parks a call whose origin is away.
    /// - Returns: the reason why it is not parked; nil if it is.
    package mutating func park(_ call: ParkedCall, _ policy: ParkPolicy, now: UInt64) -> ParkRefusal? {
        if let refusal = refusal(of: call.size, policy) { return refusal }
        calls[call.id] = call
        size += call.size
        hold(call.id)
        wentAway(now: now)
        return nil
    }

    /// Handles a replay without an answer.
    /// - Parameter isAway: whether the origin was asked in vain; otherwise the call was not admitted.
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

    /// In the order of age: who came back is older than who came since.
    private mutating func hold(_ id: UInt64) { held.insert(id, at: index(of: id)) }

    /// The first index that is not before this identifier.
    private func index(of id: UInt64) -> Int {
        var (low, high) = (0, held.count)
        while low < high {
            let middle = (low + high) / 2
            if held[middle] < id { low = middle + 1 } else { high = middle }
        }
        return low
    }

    // MARK: - Leaving

    /// Handles an answer of the origin to any fetch.
    /// - Parameter width: the most calls that are replayed at the same time, at least 1.
    /// - Returns: the calls that are to be replayed now.
    package mutating func originAnswered(width: Int, now: UInt64) -> [UInt64] {
        isAway = false
        probeWait = Self.shortestWait
        return release(width: width, now: now)
    }

    /// The calls that are due.
    /// - Returns: the calls that are to be replayed now: the probe of an origin that is away, or those whose own waits
    ///   are over.
    package mutating func replayDue(width: Int, now: UInt64) -> [UInt64] {
        if !isAway { return release(width: width, now: now) }
        guard probe == nil, now >= probeAt, let id = held.first else { return [] }
        replay(at: 0)
        probe = id
        return [id]
    }

    /// Handles an operator's order to replay all calls, independently of the origin's state.
    /// - Returns: the calls that are to be replayed now; the others follow.
    package mutating func replayAll(width: Int, now: UInt64) -> [UInt64] {
        for id in held { calls[id]?.notBefore = 0 }
        return originAnswered(width: width, now: now)
    }

    /// Handles an operator's order to replay a call, independently of the origin's state.
    /// - Returns: whether the call was waiting.
    package mutating func replay(_ id: UInt64) -> Bool {
        let index = self.index(of: id)
        guard index < held.count, held[index] == id else { return false }
        replay(at: index)
        return true
    }

    /// Removes a call that has its answer, whose client has left, or that ends for another reason.
    /// - Returns: the calls that are to be replayed now in its place; nil if it had already left.
    package mutating func leave(_ id: UInt64, width: Int, now: UInt64) -> [UInt64]? {
        guard calls[id] != nil else { return nil }
        forget(id)
        if probe == id {
            probe = nil
            // The call has proved nothing, unless the origin was heard of.
            if isAway { probeAt = now &+ probeWait }
        }
        return release(width: width, now: now)
    }

    /// Handles the end of a call's longest wait.
    /// - Returns: whether the call was waiting, and has left. A call that is being replayed gets the answer, if there
    ///   is one.
    package mutating func expire(_ id: UInt64) -> Bool {
        guard calls[id]?.phase == .parked else { return false }
        forget(id)
        return true
    }

    /// Ends all calls that wait; those that are being replayed end when they return.
    /// - Parameter reason: the reason for clients.
    package mutating func endAll(_ reason: String) -> [UInt64] {
        end = reason
        let ended = held
        for id in ended { forget(id) }
        for id in calls.keys { calls[id]?.end = reason }
        return ended
    }

    /// Allows calls to be parked again.
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

    private mutating func replay(at index: Int) { noteReplay(held.remove(at: index)) }

    private mutating func noteReplay(_ id: UInt64) {
        calls[id]?.phase = .replaying
        calls[id]?.replays += 1
    }

    private mutating func forget(_ id: UInt64) {
        guard let call = calls.removeValue(forKey: id) else { return }
        size -= call.size
        let index = self.index(of: id)
        if index < held.count, held[index] == id { held.remove(at: index) }
    }
}
