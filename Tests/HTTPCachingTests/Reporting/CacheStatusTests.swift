// Cache-Status as RFC 9211 spells it, in full and on the path that allocates nothing.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Cache-Status")
struct CacheStatusTests {
    @Test(
        "RFC 9211 2: each result of the download manager",
        arguments: [
            (CacheStatus(cacheName: "drydock", hit: true, detail: "seed"), "drydock; hit; detail=seed"),
            (
                CacheStatus(cacheName: "drydock", hit: true, ttl: 118, detail: "memory"),
                "drydock; hit; ttl=118; detail=memory"
            ),
            (
                CacheStatus(cacheName: "drydock", hit: true, ttl: -7, detail: "refreshing"),
                "drydock; hit; ttl=-7; detail=refreshing"
            ),
            (
                CacheStatus(cacheName: "drydock", forward: .stale, forwardStatus: 304, detail: "revalidated"),
                "drydock; fwd=stale; fwd-status=304; detail=revalidated"
            ),
            (
                CacheStatus(cacheName: "drydock", forward: .stale, detail: "stale-if-error"),
                "drydock; fwd=stale; detail=stale-if-error"
            ),
            (CacheStatus(cacheName: "drydock", forward: .uriMiss, stored: true), "drydock; fwd=uri-miss; stored"),
            (
                CacheStatus(
                    cacheName: "drydock",
                    forward: .stale,
                    forwardStatus: 200,
                    stored: true,
                    detail: "replaced"
                ),
                "drydock; fwd=stale; fwd-status=200; stored; detail=replaced"
            ),
            (
                CacheStatus(
                    cacheName: "drydock",
                    forward: .varyMiss,
                    forwardStatus: 200,
                    ttl: 9,
                    collapsed: true,
                    detail: StoreRefusal.private.rawValue
                ),
                "drydock; fwd=vary-miss; fwd-status=200; ttl=9; collapsed; detail=private"
            ),
            (CacheStatus(cacheName: "drydock", detail: "only-if-cached"), "drydock; detail=only-if-cached"),
            (CacheStatus(cacheName: "drydock", hit: true, forward: .miss, stored: true), "drydock; hit"),
        ]
    )
    func members(status: CacheStatus, value: String) { #expect(status.value == value) }

    @Test(
        "RFC 9651 3.3: names and details that are no token are strings",
        arguments: [
            ("drydock", "drydock"), ("dry/dock:1", "dry/dock:1"), ("my cache", "\"my cache\""),
            ("1cache", "\"1cache\""),
            ("", "\"\""), ("a\"b\\c", "\"a\\\"b\\\\c\""), ("caf\u{E9}\u{0}\n", "\"caf???\""), ("*x", "*x"),
        ]
    )
    func spelling(text: String, spelled: String) {
        #expect(CacheStatus(cacheName: text, detail: text).value == "\(spelled); detail=\(spelled)")
    }

    @Test("RFC 9211 2: the member goes behind those of the caches nearer to the origin")
    func appending() {
        var fields = Fields([("Cache-Status", "far; hit")])
        CacheStatus(cacheName: "near", forward: .miss).append(to: &fields)
        #expect(fields.combined(.cacheStatus) == "far; hit, near; fwd=miss")
    }

    @Test("Every reason is a token, so that detail never needs quotes")
    func reasonsAreTokens() {
        let reasons =
            StoreRefusal.allCases.map(\.rawValue) + StoreReason.allCases.map(\.rawValue)
            + StaleReason.allCases.map(\.rawValue) + StaleAllowance.allCases.map(\.rawValue)
            + MismatchReason.allCases.map(\.rawValue) + StaleRefusal.allCases.map(\.rawValue)
            + HeadChange.allCases.map(\.rawValue) + FreshnessSource.allCases.map(\.rawValue)
            + CacheStatus.Detail.allCases.map(\.rawValue)
        for reason in reasons { #expect(CacheStatus.tokenOrString(reason) == reason) }
    }

    @Test("The fast form writes what the full form says", arguments: [0, 1, 118, -1, -86400, .max, .min] as [Int64])
    func fastForm(ttl: Int64) {
        let age = ttl &* 7
        for (name, detail) in [("drydock", CacheStatus.Detail.memory), ("my cache", .disk)] {
            let writer = HitStatus(cacheName: name, detail: detail)
            var buffer = [UInt8](repeating: 0, count: writer.maximumLength + 5)
            let (count, value) = buffer.withUnsafeMutableBytes { writer.write(age: age, ttl: ttl, into: $0) }
            let full = CacheStatus(cacheName: name, hit: true, ttl: ttl, detail: detail.rawValue).value
            let lines = "Age: \(age)\r\nCache-Status: \(full)\r\n"
            #expect(String(decoding: buffer.prefix(count), as: UTF8.self) == lines)
            #expect(String(decoding: buffer[value], as: UTF8.self) == full)
            #expect(buffer[count...].allSatisfy { $0 == 0 })
        }
    }

    @Test("The fast form writes nothing into a buffer that might be too small")
    func shortBuffer() {
        let writer = HitStatus(cacheName: "drydock", detail: .memory)
        var buffer = [UInt8](repeating: 7, count: writer.maximumLength - 1)
        #expect(buffer.withUnsafeMutableBytes { writer.write(age: 1, ttl: 1, into: $0).count } == 0)
        #expect(buffer.allSatisfy { $0 == 7 })
    }
}
