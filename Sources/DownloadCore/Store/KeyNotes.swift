// What past answers showed about keys and their origins: counted, remembered for a while, and reported to the operator.

package import CacheStore
import EventLoop
import HTTPCaching
package import Logging
package import Policies
import Synchronization

/// Notes about keys. They are lost at a restart, and each table is limited.
///
/// Sendable: all members are.
final class KeyNotes: Sendable {
    /// Keys whose last response could not be shared, so that requests do not wait for the next one (hit-for-miss).
    let hitForMiss = ExpiringKeySet()
    /// Keys whose last response to a request with Cookie could not be shared; requests without Cookie are not affected.
    let cookieBound = ExpiringKeySet()
    /// Keys whose last response was storable, but no tier stored it.
    let recentlyNotKept = ExpiringKeySet()
    /// Keys whose last response may have been truncated (no close_notify).
    let unproven = ExpiringKeySet()
    /// Keys whose last requested part could not be stored.
    let recentlyUnstoredParts = ExpiringKeySet()
    /// The reasons why the last answers were not stored.
    let refusals = LastRefusals()
    let failedChecks = FailedChecks()
    let capabilities = OriginCapabilityTable()
    private let clock: WallClock
    private let counters = Mutex(CoreCounts())
    /// The last reports of responses that were not stored although their Cache-Status said so.
    private let toldUnstored = ToldUnstored()
    /// Keys whose bodies were reported as unexpected a short time ago.
    private let recentlyReported = ExpiringKeySet()
    private let report: @Sendable (CoreEvent) -> Void

    /// Makes notes.
    /// - Parameter report: called with events for the operator's log, on any thread.
    init(_ clock: WallClock, report: @escaping @Sendable (CoreEvent) -> Void) {
        self.clock = clock
        self.report = report
    }

    /// The counts of events since the start.
    var counts: CoreCounts { counters.withLock { $0 } }

    func count(_ change: (inout CoreCounts) -> Void) { counters.withLock { change(&$0) } }

    // MARK: - Whether the next answer will be stored

    /// Whether the last response to such a request could not be shared, so that requests should not wait for the next
    /// one.
    func isUncacheable(_ ask: CacheRequest) -> Bool {
        let now = clock.now()
        if hitForMiss.contains(ask.key, now: now) { return true }
        return ask.isCookieBound && (ask.policy.cookies == .never || cookieBound.contains(ask.key, now: now))
    }

    /// Remembers the reason why a response is not stored, if the next one will probably not be stored either.
    func noteRefusal(_ refusal: StoreRefusal, _ ask: CacheRequest, status: Int, now: Int64) {
        refusals.note(ask.key, refusal.rawValue, refusal.section, now: now)
        if refusal.isLasting(status: status) { hitForMiss.note(ask.key, now: now) }
        if refusal == .requestCookie, status < 500 { cookieBound.note(ask.key, now: now) }
    }

    /// Forgets the refusals of a key, because a response to the request may be stored.
    func noteCacheable(_ ask: CacheRequest) {
        hitForMiss.forget(ask.key)
        refusals.forget(ask.key)
        if ask.isCookieBound { cookieBound.forget(ask.key) }
    }

    /// Remembers that no tier stores the response, although the rules allow it.
    func noteUnkept(_ ask: CacheRequest, _ reason: UnstoredReason, now: Int64) {
        recentlyNotKept.note(ask.key, now: now)
        refusals.note(ask.key, reason, now: now)
    }

    /// Remembers that a part of this key may not be stored: the next range requests for the key are forwarded
    /// unchanged.
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
    /// - Parameter reason: the reason why no tier has the response; nil if one has it.
    func noteStoring(_ ask: CacheRequest, _ reason: UnstoredReason?) {
        guard let reason else { return refusals.forget(ask.key) }
        let now = clock.now()
        refusals.note(ask.key, reason, now: now)
        count { $0.unstored += 1 }
        // Failures of the disk and of the body are reported elsewhere, and being overtaken by a newer response is no
        // failure.
        guard ![.diskFails, .unexpectedContent, .unprovenEnd, .overtaken].contains(reason),
            toldUnstored.isNews(ask.key, reason, now: now)
        else { return }
        report(.unstored(ask.key, reason))
    }

    func noteUnexpected(_ ask: CacheRequest, _ found: String) {
        guard let expect = ask.phases?.expect else { return }
        count { $0.unexpected += 1 }
        // At most one line in two minutes for each key, so that frequent requests do not fill the log.
        let now = clock.now()
        guard !recentlyReported.contains(ask.key, now: now) else { return }
        recentlyReported.note(ask.key, now: now)
        report(.unexpected(ask.key, expect, found: found))
    }

    func noteUnproven(_ ask: CacheRequest) {
        let now = clock.now()
        // At most one line in two minutes for each key, as for unexpected bodies.
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

// MARK: - Keys that expire

/// Keys that are remembered for a while. Sendable: its state is under its own mutex.
final class ExpiringKeySet: Sendable {
    /// How long a key is remembered, in seconds.
    static let lifetime: Int64 = 120
    private static let limit = 10_000

    private let until = Mutex<[UInt64: Int64]>([:])

    /// Remembers a key by its hash: a collision costs a shared fetch, never an answer.
    func note(_ key: CacheKey, now: Int64) {
        until.withLock { until in
            if until.count >= Self.limit { until = until.filter { $0.value > now } }
            if until.count >= Self.limit { until.removeAll(keepingCapacity: true) }
            until[key.hash] = now + Self.lifetime
        }
    }

    func forget(_ key: CacheKey) { until.withLock { _ = $0.removeValue(forKey: key.hash) } }

    /// Whether a key was remembered and its time is not up; false if the clock was set back since.
    func contains(_ key: CacheKey, now: Int64) -> Bool {
        until.withLock { until in
            until[key.hash].map { (1...Self.lifetime).contains($0 &- now) } ?? false
        }
    }
}

extension StoreRefusal {
    /// Whether the next answer will probably be refused, too: a refusal because of one request, or of a short failure
    /// of the origin, says nothing about the next one.
    func isLasting(status: Int) -> Bool {
        switch self {
        case .requestNoStore, .authorization, .requestCookie, .status206, .statusConditional, .statusNeverStored,
            .varyUnderscore:
            false
        default: status < 500
        }
    }
}

// MARK: - Reports that are not repeated

/// The last report for each key with its time, so that the log gets at most one line in two minutes for a key.
/// Sendable: its state is under its own mutex.
final class ToldUnstored: Sendable {
    private static let limit = 10_000
    /// The seconds between two lines about the same key.
    private static let pause: Int64 = 120
    private let last = Mutex<[UInt64: (reason: UnstoredReason, time: Int64)]>([:])

    /// Whether this report is due; if so, it is remembered.
    /// - Parameter now: Unix seconds.
    func isNews(_ key: CacheKey, _ reason: UnstoredReason, now: Int64) -> Bool {
        last.withLock { last in
            if let told = last[key.hash], told.reason == reason, (0..<Self.pause).contains(now &- told.time) {
                return false
            }
            if last.count >= Self.limit, let oldest = last.values.map(\.time).min() {
                last = last.filter { $0.value.time > oldest }
            }
            last[key.hash] = (reason, now)
            return true
        }
    }
}

// MARK: - Files of `store_as` that could not be written

/// Reports failures to write stored responses as plain files. Sendable: the state is under a mutex.
package final class StoredFileTroubles: Sendable {
    private struct State {
        var listener: (@Sendable (String) -> Void)?
        var told: Set<String> = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Sets the listener for failures. Any thread.
    package func listen(_ listener: @escaping @Sendable (String) -> Void) {
        let before = state.withLock { state in
            defer { state.listener = listener }
            return state.listener
        }
        withExtendedLifetime(before) {}
    }

    package func tell(_ name: String, _ error: any Error) {
        let listener = state.withLock { $0.told.insert(name).inserted ? $0.listener : nil }
        listener?("the file \(name) (store_as) is not written, and stays as it is: \(error)")
    }

    func clear(_ name: String) { state.withLock { _ = $0.told.remove(name) } }
}

/// The response has a content coding, so that it cannot be written as a plain file.
struct CodedContent: Error, CustomStringConvertible {
    var description: String {
        "the response has a Content-Encoding; ask for none with headers: { set: { Accept-Encoding: identity } }"
    }
}

// MARK: - Events and counts

/// An event that may concern an operator.
package enum CoreEvent: Sendable, Equatable {
    /// A body was not what its route expects, so that it was forwarded and not stored.
    /// - `found`: the actual content, such as `begins with "<!do"`.
    case unexpected(CacheKey, ContentExpectation, found: String)
    /// A fetch was ended because all requests that waited for it had left.
    /// - `received`: the bytes of the body until then.
    case abandoned(CacheKey, received: Int64)
    /// A response was delimited by the end of its TLS connection, which came without close_notify: it may be truncated,
    /// so it was forwarded and not stored.
    case unproven(CacheKey)
    /// A response was not stored although the `stored` of its Cache-Status said that it would be.
    case unstored(CacheKey, UnstoredReason)

    /// The event in one line.
    package var text: String {
        switch self {
        case .unexpected(let key, let expected, let found):
            "\(Self.name(key)) should be \(expected.noun) and \(found): passed on, not stored; "
                + "correct the origin, or what its route expects"
        case .abandoned(let key, let received):
            "\(Self.name(key)): the fetch was ended after \(received) bytes, since nobody waits for it any more"
        case .unproven(let key):
            "\(Self.name(key)) ended with its TLS connection, which ended without close_notify, so that it may have been cut: "
                + "passed on, not stored; let the origin send Content-Length or chunks"
        case .unstored(let key, let reason):
            "\(Self.name(key)) was answered and not stored (\(reason.rawValue)), though its head said that it would be: \(reason.text)"
        }
    }

    /// The level of the event in the logs of the daemon and of the library.
    package var level: Logger.Level {
        switch self {
        case .unexpected, .unproven: .warning
        case .unstored: .notice
        // The route's `on_client_abort` demands this, so it is no problem for the operator.
        case .abandoned: .debug
        }
    }

    private static func name(_ key: CacheKey) -> String {
        key.service.isEmpty ? "\(key)" : "\(key) of service \(key.service)"
    }
}

/// The counts of events since the start.
package struct CoreCounts: Sendable, Equatable {
    /// The number of answers with a placeholder.
    package var placeholders = 0
    /// The number of answers with a fallback.
    package var fallbacks = 0
    /// The number of bodies that were not what their routes expect.
    package var unexpected = 0
    /// The number of fetches that ended because all requests had left.
    package var abandoned = 0
    /// The number of fetches that an operator has ended.
    package var cancelled = 0
    /// The number of responses that were not stored although the `stored` of their Cache-Status said that they would
    /// be.
    package var unstored = 0
}
