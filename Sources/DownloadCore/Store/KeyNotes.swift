// What was learnt of keys and their origins from the answers that came, and what of it an operator is told and can count.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import Synchronization

/// Forgotten at a restart; each table in it is bounded.
///
/// Sendable: what it holds is.
final class KeyNotes: Sendable {
    /// Keys whose last answer could not be shared, so that nobody should wait for the next one.
    let uncacheable = UncacheableKeys()
    /// The same for requests with Cookie alone: what they are refused says nothing about others.
    let cookieBound = UncacheableKeys()
    /// Keys whose last response could have been stored, and was kept by no tier.
    let unkept = UncacheableKeys()
    /// Keys whose last response ended as if it had been cut.
    let unproven = UncacheableKeys()
    /// Keys whose parts could not be stored when one was last asked for.
    let unstoredParts = UncacheableKeys()
    /// Why the last answers were not stored.
    let refusals = LastRefusals()
    let failedChecks = FailedChecks()
    let habits = HabitTable()
    private let clock: WallClock
    private let counters = Mutex(CoreCounts())
    /// What was told last of responses that were not stored, though their heads said so.
    private let toldUnstored = ToldUnstored()
    /// Keys whose bodies were reported as unexpected a while ago.
    private let reported = UncacheableKeys()
    private let report: @Sendable (CoreReport) -> Void

    /// - Parameter report: told what an operator may want to read of; any thread.
    init(_ clock: WallClock, report: @escaping @Sendable (CoreReport) -> Void) {
        self.clock = clock
        self.report = report
    }

    /// What has happened since the start.
    var counts: CoreCounts { counters.withLock { $0 } }

    func count(_ change: (inout CoreCounts) -> Void) { counters.withLock { change(&$0) } }

    // MARK: - Whether the next answer will be stored

    /// Whether what comes for the request could not be stored of late, so that nobody should wait for it.
    func isUncacheable(_ ask: CacheAsk) -> Bool {
        let now = clock.now()
        if uncacheable.contains(ask.key, now: now) { return true }
        return ask.isCookieBound && (ask.policy.cookies == .never || cookieBound.contains(ask.key, now: now))
    }

    /// Remembers why the answer to a request is not stored, where the next one will probably not be, either.
    func noteRefusal(_ refusal: StoreRefusal, _ ask: CacheAsk, status: Int, now: Int64) {
        refusals.note(ask.key, refusal.rawValue, refusal.section, now: now)
        if refusal.isLasting(status: status) { uncacheable.note(ask.key, now: now) }
        if refusal == .requestCookie, status < 500 { cookieBound.note(ask.key, now: now) }
    }

    /// What came for the request may be stored.
    func noteCacheable(_ ask: CacheAsk) {
        uncacheable.forget(ask.key)
        refusals.forget(ask.key)
        if ask.isCookieBound { cookieBound.forget(ask.key) }
    }

    /// No tier takes what came, although it may be stored.
    func noteUnkept(_ ask: CacheAsk, _ reason: UnstoredReason, now: Int64) {
        unkept.note(ask.key, now: now)
        refusals.note(ask.key, reason, now: now)
    }

    /// A part of this key may not be stored: the next requests for ranges of it are passed on as they are.
    func noteUnstoredPart(_ key: CacheKey) { unstoredParts.note(key, now: clock.now()) }

    // MARK: - What came of a fetch

    /// What an outcome says about the next check: after a failure it waits, and a success ends the waiting.
    func noteCheck(_ ask: CacheAsk, _ outcome: FillOutcome) {
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

    /// Something became of a response whose head said `stored`.
    /// - Parameter reason: nil where a tier has it.
    func noteStoring(_ ask: CacheAsk, _ reason: UnstoredReason?) {
        guard let reason else { return refusals.forget(ask.key) }
        let now = clock.now()
        refusals.note(ask.key, reason, now: now)
        count { $0.unstored += 1 }
        // What the disk and the body were found to be is told already; what overtakes is no trouble.
        guard ![.diskFails, .unexpectedContent, .unprovenEnd, .overtaken].contains(reason),
            toldUnstored.isNews(ask.key, reason, now: now)
        else { return }
        report(.unstored(ask.key, reason))
    }

    func noteUnexpected(_ ask: CacheAsk, _ found: String) {
        guard let expect = ask.phases?.expect else { return }
        count { $0.unexpected += 1 }
        // One line in two minutes for each key: who asks often need not fill the log.
        let now = clock.now()
        guard !reported.contains(ask.key, now: now) else { return }
        reported.note(ask.key, now: now)
        report(.unexpected(ask.key, expect, found: found))
    }

    func noteUnproven(_ ask: CacheAsk) {
        let now = clock.now()
        // One line in two minutes, as above.
        let isTold = unproven.contains(ask.key, now: now)
        unproven.note(ask.key, now: now)
        unkept.note(ask.key, now: now)
        if !isTold { report(.unproven(ask.key)) }
    }

    func noteAbandoned(_ ask: CacheAsk, received: Int64) {
        count { $0.abandoned += 1 }
        report(.abandoned(ask.key, received: received))
    }
}
