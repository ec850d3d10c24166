// The calls of one service that wait for its origin: who waits, who is resumed when, and counters.

import EventLoop
import Policies
import Synchronization

/// The further treatment of a parked call.
package enum ParkVerdict: Sendable, Equatable {
    /// The call is tried again.
    case replay
    /// The call has waited for its longest time.
    case expired
    /// An operator has ended the call.
    case cancelled
    /// The calls of its service no longer wait, for this reason.
    case ended(String)
    /// The client of the call has left.
    case left
}

/// The parked calls of one service.
///
/// Sendable: state and waiters are under one mutex, under which nothing is resumed or reported; the counters are
/// atomic.
package final class ParkedCalls: Sendable {
    private typealias Waiter = UnsafeContinuation<ParkVerdict, Never>

    private struct Guarded {
        var state = ParkingState()
        var waiters: [UInt64: Waiter] = [:]
        /// The verdicts on calls whose task does not wait yet.
        var verdicts: [UInt64: ParkVerdict] = [:]
        /// The origin whose calls may be parked; nil for none.
        var origin: String?
        var hasProber = false
        /// Whether a refusal was reported since the last call was parked, so that further ones are not reported.
        var hasToldRefusal = false
    }

    package struct Counts: Sendable, Equatable {
        package var parked = 0
        package var replayed = 0
        package var expired = 0
        package var dropped = 0
        package var refused = 0
    }

    /// The most calls that are replayed at the same time, unless `max_concurrent` limits them.
    package static let widest = 64
    private static let lastID = Atomic<UInt64>(0)

    private let guarded = Mutex(Guarded())
    private let counted = Mutex(Counts())
    /// The number of parked calls; while it is zero, a fetch looks no further.
    private let count = Atomic<Int>(0)
    private let admission: Admission
    private let now: @Sendable () -> UInt64
    private let onReport: @Sendable (ServiceReport) -> Void

    /// Makes the parked calls of a service.
    /// - Parameters:
    ///   - admission: the admission of the service, which limits the calls that are replayed at the same time.
    ///   - now: the monotonic time in nanoseconds.
    ///   - onReport: called on any loop.
    init(
        _ admission: Admission,
        now: @escaping @Sendable () -> UInt64,
        onReport: @escaping @Sendable (ServiceReport) -> Void
    ) {
        self.admission = admission
        self.now = now
        self.onReport = onReport
    }

    private var width: Int { max(1, admission.limits.concurrent ?? Self.widest) }

    // MARK: - What is known

    package var counts: Counts { counted.withLock { $0 } }
    /// The number of calls that wait or are replayed. Any thread.
    package var callCount: Int { count.load(ordering: .relaxed) }
    /// Whether the prober runs, on the loop of the call that was parked first: until the last call has left, and for
    /// one more pause.
    var hasProber: Bool { guarded.withLock { $0.hasProber } }
    /// The bytes of all parked calls.
    package var size: Int { guarded.withLock { $0.state.size } }
    /// The calls in the order in which they came.
    package var all: [ParkedCall] { guarded.withLock { Array($0.state.calls.values) }.sorted { $0.id < $1.id } }

    // MARK: - A call

    /// The reason why a call of this size cannot be parked at present; nil if it can.
    func refusal(of size: Int, to origin: String, _ policy: ParkPolicy) -> ParkRefusal? {
        guarded.withLock { $0.origin == origin ? $0.state.refusal(of: size, policy) : .ended }
    }

    /// Parks a call, whose task then waits in ``wait(for:on:)``.
    /// - Parameters:
    ///   - origin: the origin that is away.
    ///   - size: the bytes of the call.
    ///   - reason: the reason why it could not be answered.
    func park(
        method: String,
        path: String,
        origin: String,
        size: Int,
        reason: String,
        _ policy: ParkPolicy,
        on loop: isolated EventLoop
    ) -> Result<ParkedCall, ParkRefusal> {
        let now = now()
        let call = ParkedCall(
            id: Self.lastID.wrappingAdd(1, ordering: .relaxed).newValue,
            method: method,
            path: path,
            size: size,
            since: now,
            until: now &+ policy.time,
            reason: reason
        )
        // The result for a refused call is whether to report it, and for a parked call whether to start the prober.
        let (refusal, isFirst): (ParkRefusal?, Bool) = guarded.withLock { guarded in
            let refusal = guarded.origin == origin ? guarded.state.park(call, policy, now: now) : .ended
            if refusal != nil {
                defer { guarded.hasToldRefusal = true }
                return (refusal, !guarded.hasToldRefusal)
            }
            guarded.hasToldRefusal = false
            count.store(guarded.state.calls.count, ordering: .relaxed)
            defer { guarded.hasProber = true }
            return (nil, !guarded.hasProber)
        }
        if let refusal {
            counted.withLock { $0.refused += 1 }
            if isFirst { onReport(.notParked(method: method, path: path, why: refusal)) }
            return .failure(refusal)
        }
        counted.withLock { $0.parked += 1 }
        onReport(.parked(method: method, path: path, id: call.id, time: policy.time, why: reason))
        if isFirst {
            Task.immediate(executorPreference: loop.taskExecutor) { await self.probe(on: loop) }
        }
        return .success(call)
    }

    /// Waits until the call is to be replayed, or is over; a cancelled task ends the call.
    func wait(for call: ParkedCall, on loop: isolated EventLoop) async -> ParkVerdict {
        let timer = LoopTimer(on: loop) { [self] in expire(call.id) }
        defer { timer.cancel() }
        let now = now()
        timer.start(after: call.until > now ? call.until - now : 0)
        let verdict = await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter in add(call.id, waiter) }
        } onCancel: {
            drop(call.id)
        }
        if verdict != .replay {
            over(call, verdict)
        } else if Task.isCancelled {
            // The origin returned at the moment when the client left, so that the answer is not needed.
            giveUp(call)
            return .left
        }
        return verdict
    }

    /// Handles a replay without an answer.
    /// - Parameter isAway: whether the origin was asked in vain; otherwise the call was not admitted.
    /// - Returns: the verdict instead of another wait; nil if the call waits again.
    func returned(_ call: ParkedCall, isAway: Bool, reason: String) -> ParkVerdict? {
        let now = now()
        let result = guarded.withLock { guarded in
            defer { count.store(guarded.state.calls.count, ordering: .relaxed) }
            return guarded.state.returned(call.id, isAway: isAway, reason: reason, now: now)
        }
        let verdict: ParkVerdict? =
            switch result {
            case .parked: nil
            case .expired: .expired
            case .ended(let reason): .ended(reason)
            }
        if let verdict { over(call, verdict) }
        return verdict
    }

    /// Handles a replay that has brought the call's answer.
    func answered(_ call: ParkedCall) {
        leave(call.id, nil)
        counted.withLock { $0.replayed += 1 }
        let waited = now() &- call.since
        onReport(.replayed(method: call.method, path: call.path, id: call.id, waited: waited))
    }

    /// Ends the call without an answer of the origin, and without a report.
    @inline(never) func giveUp(_ call: ParkedCall) {
        leave(call.id, nil)
        counted.withLock { $0.dropped += 1 }
    }

    // MARK: - The origin

    /// Handles an answer of the origin to any fetch. Any loop.
    func originAnswered() {
        guard count.load(ordering: .relaxed) > 0 else { return }
        let (width, now) = (width, now())
        tell(.replay) { $0.state.originAnswered(width: width, now: now) }
    }

    /// As long as calls are parked, lets one call at a time probe an origin that is away, and releases calls whose own
    /// waits are over.
    private func probe(on loop: isolated EventLoop) async {
        while !Task.isCancelled {
            let now = now()
            let wait: UInt64? = guarded.withLock { guarded in
                guard !guarded.state.calls.isEmpty else {
                    guarded.hasProber = false
                    return nil
                }
                let probeAt = guarded.state.isAway ? guarded.state.probeAt : 0
                // The next probe may change meanwhile, so that the wait is short.
                return probeAt > now ? min(probeAt - now, ParkingState.shortestWait) : ParkingState.shortestWait / 4
            }
            guard let wait else { return }
            do { try await loop.sleep(nanoseconds: wait) } catch { break }
            let (width, later) = (width, self.now())
            tell(.replay) { $0.state.replayDue(width: width, now: later) }
        }
        guarded.withLock { $0.hasProber = false }
    }

    // MARK: - Orders

    /// Sets the origin whose calls may be parked, for a plan that is in force from now on. Calls of another origin end.
    /// Any thread.
    /// - Parameters:
    ///   - origin: the origin; nil to park no calls.
    ///   - why: the reason that ended calls get.
    package func serve(_ origin: String?, why: String) {
        tell(.ended(why)) { guarded in
            guard guarded.origin != origin else { return [] }
            guarded.origin = origin
            let ended = guarded.state.endAll(why)
            if origin != nil { guarded.state.begin() }
            return ended
        }
    }

    /// Replays all calls within the service's limit, or one. Any thread.
    /// - Returns: the number of calls that were parked.
    package func replay(_ id: UInt64? = nil) -> Int {
        let (width, now) = (width, now())
        var number = 0
        tell(.replay) { guarded in
            guard let id else {
                number = guarded.state.heldCount
                return guarded.state.replayAll(width: width, now: now)
            }
            guard guarded.state.replay(id) else { return [] }
            number = 1
            return [id]
        }
        return number
    }

    /// Ends all parked calls, or one. Any thread.
    /// - Returns: the number of calls.
    package func cancel(_ id: UInt64? = nil) -> Int {
        var number = 0
        tell(.cancelled) { guarded in
            let all = guarded.state.calls.values.filter { $0.phase == .parked && (id == nil || $0.id == id) }
            let ended = all.map(\.id).filter { guarded.state.expire($0) }
            number = ended.count
            return ended
        }
        return number
    }

    // MARK: - Telling

    /// Changes the state, and gives a verdict to the calls that follow.
    private func tell(_ verdict: ParkVerdict, _ change: (inout Guarded) -> [UInt64]) {
        let waiters = guarded.withLock { guarded in
            var waiters: [Waiter] = []
            for id in change(&guarded) {
                if let waiter = guarded.waiters.removeValue(forKey: id) {
                    waiters.append(waiter)
                } else {
                    guarded.verdicts[id] = verdict
                }
            }
            count.store(guarded.state.calls.count, ordering: .relaxed)
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: verdict) }
    }

    private func add(_ id: UInt64, _ waiter: Waiter) {
        let verdict: ParkVerdict? = guarded.withLock { guarded in
            if let verdict = guarded.verdicts.removeValue(forKey: id) { return verdict }
            guarded.waiters[id] = waiter
            return nil
        }
        if let verdict { return waiter.resume(returning: verdict) }
        if Task.isCancelled { drop(id) }
    }

    private func expire(_ id: UInt64) { tell(.expired) { $0.state.expire(id) ? [id] : [] } }

    /// Handles the leaving of a call's client; a call with a verdict is told that instead.
    private func drop(_ id: UInt64) { tell(.left) { $0.state.expire(id) ? [id] : [] } }

    /// Removes a call from the state; others may follow it to the origin.
    private func leave(_ id: UInt64, _ verdict: ParkVerdict?) {
        let (width, now) = (width, now())
        tell(.replay) { guarded in
            guarded.verdicts[id] = nil
            return guarded.state.leave(id, width: width, now: now) ?? []
        }
    }

    /// Counts and reports the end of a call without an answer of the origin.
    @inline(never) private func over(_ call: ParkedCall, _ verdict: ParkVerdict) {
        counted.withLock {
            if verdict == .expired { $0.expired += 1 } else { $0.dropped += 1 }
        }
        guard verdict == .expired else { return }
        onReport(.parkExpired(method: call.method, path: call.path, id: call.id, waited: now() &- call.since))
    }
}
