// The calls of one service that wait for its origin: who is parked, who is told when, and what is counted.

import EventLoop
import Policies
import Synchronization

/// What becomes of a call that was parked.
package enum ParkVerdict: Sendable, Equatable {
    /// It is to be tried again.
    case replay
    /// It has waited as long as it may.
    case expired
    /// An operator has ended it.
    case cancelled
    /// Calls of its service are not held any more, for this reason.
    case ended(String)
    /// Its client has left.
    case left
}

/// One service's.
///
/// Sendable: state and waiters are under one mutex, and nobody is resumed or told under it; the counters are atomic.
package final class ParkedCalls: Sendable {
    private typealias Waiter = UnsafeContinuation<ParkVerdict, Never>

    private struct Guarded {
        var state = ParkingState()
        var waiters: [UInt64: Waiter] = [:]
        /// Of calls whose task does not wait yet.
        var verdicts: [UInt64: ParkVerdict] = [:]
        /// The origin whose calls are parked; nil: none are.
        var origin: String?
        var hasProber = false
        /// A refusal was reported since a call was parked last: more of them say nothing new.
        var hasToldRefusal = false
    }

    package struct Counts: Sendable, Equatable {
        package var parked = 0
        package var replayed = 0
        package var expired = 0
        package var dropped = 0
        package var refused = 0
    }

    /// How many are replayed at the same time where `max_concurrent` sets no limit.
    package static let widest = 64
    private static let lastID = Atomic<UInt64>(0)

    private let guarded = Mutex(Guarded())
    private let counted = Mutex(Counts())
    /// Calls in the state, so that a fetch of a service that has none pays for one look.
    private let count = Atomic<Int>(0)
    private let admission: Admission
    private let now: @Sendable () -> UInt64
    private let onReport: @Sendable (ServiceReport) -> Void

    /// - Parameters:
    ///   - admission: of the service, which says how many are replayed at the same time.
    ///   - now: monotonic nanoseconds.
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
    /// Calls that wait or are replayed. Any thread.
    package var callCount: Int { count.load(ordering: .relaxed) }
    /// Its prober runs, on the loop of the call that was parked first: until the last call has left, and for one pause more.
    var hasProber: Bool { guarded.withLock { $0.hasProber } }
    /// Bytes that they take.
    package var size: Int { guarded.withLock { $0.state.size } }
    /// In the order in which they came.
    package var all: [ParkedCall] { guarded.withLock { Array($0.state.calls.values) }.sorted { $0.id < $1.id } }

    // MARK: - A call

    /// Why a call of so many bytes would not be held now; nil where it would.
    func refusal(of size: Int, to origin: String, _ policy: ParkPolicy) -> ParkRefusal? {
        guarded.withLock { $0.origin == origin ? $0.state.refusal(of: size, policy) : .ended }
    }

    /// Holds a call, whose task then waits by ``wait(_:until:on:)``.
    /// - Parameters:
    ///   - origin: the one that is away.
    ///   - size: bytes that it takes.
    ///   - reason: why it could not be answered.
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
        // Of a refusal, whether it is to be reported; of a parked call, whether the prober is to be started.
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

    /// Waits until the call is to be replayed or is over; a cancelled task ends the call.
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
            // The origin came back as the client left: nobody waits for the answer.
            giveUp(call)
            return .left
        }
        return verdict
    }

    /// A replay came to nothing.
    /// - Parameter isAway: the origin was asked in vain; otherwise the call was not admitted to it.
    /// - Returns: what follows instead of another wait; nil where the call waits again.
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

    /// A replay has brought the call's answer.
    func answered(_ call: ParkedCall) {
        leave(call.id, nil)
        counted.withLock { $0.replayed += 1 }
        let waited = now() &- call.since
        onReport(.replayed(method: call.method, path: call.path, id: call.id, waited: waited))
    }

    /// The call ends without an answer of the origin, and nobody is told of that.
    @inline(never) func giveUp(_ call: ParkedCall) {
        leave(call.id, nil)
        counted.withLock { $0.dropped += 1 }
    }

    // MARK: - The origin

    /// A fetch of the origin got an answer. Any loop.
    func originAnswered() {
        guard count.load(ordering: .relaxed) > 0 else { return }
        let (width, now) = (width, now())
        tell(.replay) { $0.state.originAnswered(width: width, now: now) }
    }

    /// Lets one call at a time probe an origin that is away, and those go whose own waits are over, for as long as any
    /// are parked.
    private func probe(on loop: isolated EventLoop) async {
        while !Task.isCancelled {
            let now = now()
            let wait: UInt64? = guarded.withLock { guarded in
                guard !guarded.state.calls.isEmpty else {
                    guarded.hasProber = false
                    return nil
                }
                let probeAt = guarded.state.isAway ? guarded.state.probeAt : 0
                // What is to be probed may change meanwhile.
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

    /// Sets whose calls are parked, with a plan that is in force from now on. Calls of another origin end. Any thread.
    /// - Parameters:
    ///   - origin: nil: no calls are parked.
    ///   - why: told to those that end.
    package func serve(_ origin: String?, why: String) {
        tell(.ended(why)) { guarded in
            guard guarded.origin != origin else { return [] }
            guarded.origin = origin
            let ended = guarded.state.endAll(why)
            if origin != nil { guarded.state.begin() }
            return ended
        }
    }

    /// Tries calls again now: all of them within the service's limit, or one. Any thread.
    /// - Returns: how many calls were held.
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

    /// Ends calls that are held: all of them, or one. Any thread.
    /// - Returns: how many.
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

    /// Changes the state, and gives a verdict to the calls for which something follows.
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

    /// The client of a call has left; one that has its verdict already hears that.
    private func drop(_ id: UInt64) { tell(.left) { $0.state.expire(id) ? [id] : [] } }

    /// A call leaves the state, and others may follow it to the origin.
    private func leave(_ id: UInt64, _ verdict: ParkVerdict?) {
        let (width, now) = (width, now())
        tell(.replay) { guarded in
            guarded.verdicts[id] = nil
            return guarded.state.leave(id, width: width, now: now) ?? []
        }
    }

    /// Counts and reports the end of a call that got no answer of the origin.
    @inline(never) private func over(_ call: ParkedCall, _ verdict: ParkVerdict) {
        counted.withLock {
            if verdict == .expired { $0.expired += 1 } else { $0.dropped += 1 }
        }
        guard verdict == .expired else { return }
        onReport(.parkExpired(method: call.method, path: call.path, id: call.id, waited: now() &- call.since))
    }
}
