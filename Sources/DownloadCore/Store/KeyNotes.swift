// What past answers showed about keys and their origins; it counts these facts and reports them to the operator.

import CacheStore
import EventLoop
import HTTPCaching
import Synchronization

/// Lost at a restart; each table is bounded.
///
/// Sendable: everything it holds is.
final class KeyNotes: Sendable {
    /// Keys whose last response could not be shared, so that requests do not wait for the next one (hit-for-miss).
    let hitForMiss = ExpiringKeySet()
    /// The same for requests with Cookie only: their refusals say nothing about requests without it.
    let cookieBound = ExpiringKeySet()
    /// Keys whose last response was storable, but no tier stored it.
    let recentlyNotKept = ExpiringKeySet()
    /// Keys whose last response may have been truncated (no close_notify).
    let unproven = ExpiringKeySet()
    /// Keys whose last requested part could not be stored.
    let recentlyUnstoredParts = ExpiringKeySet()
    /// Why the last answers were not stored.
    let refusals = LastRefusals()
    let failedChecks = FailedChecks()
    let capabilities = OriginCapabilityTable()
    private let clock: WallClock
    private let counters = Mutex(CoreCounts())
    /// The last reports of responses that were not stored although their Cache-Status said so.
    private let toldUnstored = ToldUnstored()
    /// Keys whose bodies were reported as unexpected a while ago.
    private let recentlyReported = ExpiringKeySet()
    private let report: @Sendable (CoreEvent) -> Void

    /// - Parameter report: called with events for the operator's log; any thread.
    init(_ clock: WallClock, report: @escaping @Sendable (CoreEvent) -> Void) {
        self.clock = clock
        self.report = report
    }

    /// What has happened since the start.
    var counts: CoreCounts { counters.withLock { $0 } }

    func count(_ change: (inout CoreCounts) -> Void) { counters.withLock { change(&$0) } }

    // MARK: - Whether the next answer will be stored

    /// Whether the last response to such a request could not be shared, so that requests should
    /// not wait for the next one.
    func isUncacheable(_ ask: CacheRequest) -> Bool {
        let now = clock.now()
        if hitForMiss.contains(ask.key, now: now) { return true }
        return ask.isCookieBound && (ask.policy.cookies == .never || cookieBound.contains(ask.key, now: now))
    }

    /// Remembers why a response is not stored, if the next one will probably not be stored either.
    func noteRefusal(_ refusal: StoreRefusal, _ ask: CacheRequest, status: Int, now: Int64) {
        refusals.note(ask.key, refusal.rawValue, refusal.section, now: now)
        if refusal.isLasting(status: status) { hitForMiss.note(ask.key, now: now) }
        if refusal == .requestCookie, status < 500 { cookieBound.note(ask.key, now: now) }
    }

    /// The response to the request may be stored: forgets the refusals of its key.
    func noteCacheable(_ ask: CacheRequest) {
        hitForMiss.forget(ask.key)
        refusals.forget(ask.key)
        if ask.isCookieBound { cookieBound.forget(ask.key) }
    }

    /// No tier stores the response, although the rules allow it.
    func noteUnkept(_ ask: CacheRequest, _ reason: UnstoredReason, now: Int64) {
        recentlyNotKept.note(ask.key, now: now)
        refusals.note(ask.key, reason, now: now)
    }

    /// A part of this key may not be stored: the next range requests for the key are forwarded unchanged.
    func noteUnstoredPart(_ key: CacheKey) { recentlyUnstoredParts.note(key, now: clock.now()) }

    // MARK: - What came of a fetch

    /// Notes the outcome of a validation: a failure delays the next one, and a success ends the delay.
    func noteCheck(_ ask: CacheRequest, _ outcome: FillOutcome) {
        switch outcome {
        case .stale(_, let cause), .stalePart(_, let cause):
            let check = FailedCheck(errorStatus: cause.errorStatus)
            failedChecks.note(ask.key, check, now: clock.now(), pause: ask.policy.checkPause)
        case .refreshed, .part: failedChecks.forget(ask.key)
        case .failed(let error) where error.isOriginFailure:
            refusals.note(ask.key, "fetch-failed", "RFC 9110 section 15.6.3", now: clock.now())
        case .streaming, .again, .alone, .failed: break
        }
    }

    /// Notes how storing ended, for a response whose Cache-Status said `stored`.
    /// - Parameter reason: nil where a tier has the response.
    func noteStoring(_ ask: CacheRequest, _ reason: UnstoredReason?) {
        guard let reason else { return refusals.forget(ask.key) }
        let now = clock.now()
        refusals.note(ask.key, reason, now: now)
        count { $0.unstored += 1 }
        // Failures of the disk and of the body are reported elsewhere, and being overtaken by a
        // newer response is no failure.
        guard ![.diskFails, .unexpectedContent, .unprovenEnd, .overtaken].contains(reason),
            toldUnstored.isNews(ask.key, reason, now: now)
        else { return }
        report(.unstored(ask.key, reason))
    }

    func noteUnexpected(_ ask: CacheRequest, _ found: String) {
        guard let expect = ask.phases?.expect else { return }
        count { $0.unexpected += 1 }
        // One line in two minutes for each key, so that frequent requests do not fill the log.
        let now = clock.now()
        guard !recentlyReported.contains(ask.key, now: now) else { return }
        recentlyReported.note(ask.key, now: now)
        report(.unexpected(ask.key, expect, found: found))
    }

    func noteUnproven(_ ask: CacheRequest) {
        let now = clock.now()
        // One line in two minutes, as above.
        let isTold = unproven.contains(ask.key, now: now)
        unproven.note(ask.key, now: now)
        recentlyNotKept.note(ask.key, now: now)
        if !isTold { report(.unproven(ask.key)) }
    }

    func noteAbandoned(_ ask: CacheRequest, received: Int64) {
        count { $0.abandoned += 1 }
        report(.abandoned(ask.key, received: received))
    }
}
