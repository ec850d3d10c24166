// Cache-Status and the eight outcomes: each value of the field is one of them, and none is left out.

import Drydock
import HTTPCaching
import Testing

@Suite struct OutcomeTests {
    private typealias Row = (CacheStatus, DownloadOutcome)

    private static func status(
        hit: Bool = false,
        _ forward: CacheStatus.Forward? = nil,
        _ code: Int? = nil,
        ttl: Int64? = nil,
        stored: Bool = false,
        detail: String? = nil
    ) -> CacheStatus {
        CacheStatus(
            cacheName: "drydock",
            hit: hit,
            forward: forward,
            forwardStatus: code,
            ttl: ttl,
            stored: stored,
            detail: detail
        )
    }

    @Test func ofTheCacheStatus() {
        let rows: [Row] = [
            (Self.status(hit: true, detail: "seed"), .seeded),
            (Self.status(hit: true, ttl: 118, detail: "memory"), .stillValid),
            (Self.status(hit: true, ttl: 118, detail: "disk"), .stillValid),
            (Self.status(hit: true, ttl: -5, detail: "refreshing"), .beingChecked),
            (Self.status(.stale, 200, ttl: 0, detail: "revalidated"), .confirmed),
            (Self.status(.stale, 304, ttl: 0, detail: "revalidated"), .confirmed),
            (Self.status(.stale, 503, ttl: -5, detail: "stale-if-error"), .checkFailed),
            (Self.status(.stale, ttl: -5, detail: "stale-if-error"), .checkFailed),
            (Self.status(hit: true, ttl: -5, detail: "check-pause"), .checkFailed),
            (Self.status(hit: true, ttl: -5, detail: "offline"), .checkFailed),
            (Self.status(hit: true, ttl: -5, detail: "unrefreshed"), .checkFailed),
            (Self.status(.uriMiss, 200, stored: true), .downloaded),
            (Self.status(.varyMiss, 200, stored: true), .downloaded),
            (Self.status(.stale, 200, stored: true, detail: "replaced"), .downloaded),
            (Self.status(.request, 200, detail: "no-store"), .downloaded),
            (Self.status(.bypass, 200, detail: "cache-off"), .downloaded),
            (Self.status(.uriMiss, detail: "fallback"), .downloadFailed),
        ]
        for (status, outcome) in rows { #expect(DownloadOutcome(status) == outcome, "\(status.value)") }
        // Every answer that is none of these has come just now.
        #expect(DownloadOutcome(nil) == .downloaded)
        let reached = Set(rows.map(\.1)).union([DownloadError.closed.outcome])
        #expect(reached == Set(DownloadOutcome.allCases))
    }
}
