// Explanations: the same decisions as without, the arithmetic behind them, and a section for every reason.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Explanation")
struct ExplanationTests {
    @Test("Every reason names its section, or the key of the configuration that decided")
    func sections() {
        let sections =
            StoreRefusal.allCases.map(\.section) + StoreReason.allCases.map(\.section)
            + StaleReason.allCases.map(\.section) + StaleAllowance.allCases.map(\.section)
            + MismatchReason.allCases.map(\.section) + StaleRefusal.allCases.map(\.section)
            + HeadChange.allCases.map(\.section) + FreshnessSource.allCases.map(\.section)
        for section in sections {
            let words = section.split(separator: " ")
            let isSpecified =
                words.count >= 4 && ["RFC", "HTML"].contains(words[0]) && words[2].hasPrefix("section")
                && words[3].first?.isNumber == true
            #expect(isSpecified || section.hasPrefix("configuration, "), "\(section)")
        }
        #expect(StaleRefusal.sMaxAge.section == "RFC 9111 section 5.2.2.10")
        #expect(FreshnessSource.targeted.section == "RFC 9213 section 2.2")
    }

    @Test("RFC 9111 4.2.3: the terms of the age, named as in the RFC")
    func arithmetic() throws {
        let head = Caching.makeStoredHead(
            request: request(),
            response: response(200, [("Date", date(-20)), ("Age", "30"), ("Cache-Control", "max-age=60")]),
            times: ResponseTimes(requestTime: arrival - 2, responseTime: arrival)
        )
        let explained = Caching.explain(
            request: request(),
            variants: [head],
            policy: CachePolicy(),
            now: arrival + 5
        )
        let variant = try #require(explained.variant)
        #expect(
            variant.age
                == Explanation.AgeArithmetic(
                    dateValue: arrival - 20,
                    requestTime: arrival - 2,
                    responseTime: arrival,
                    apparentAge: 20,
                    ageValue: 30,
                    responseDelay: 2,
                    correctedInitialAge: 32,
                    residentTime: 5,
                    currentAge: 37
                )
        )
        #expect(variant.lifetime == Lifetime(seconds: 60, source: .maxAge))
        #expect(explained.decision == .fresh(age: 37, ttl: 23))
        #expect(explained.reason == "fresh" && explained.section == "RFC 9111 section 4.2")
        #expect(explained.check == nil && variant.isChosen)
    }

    @Test("Each variant says which fields selected it, and why it is not chosen")
    func variants() throws {
        func variant(_ language: String?) -> StoredHead {
            stored(
                [("Vary", "X-Plan, X-Tenant"), ("Cache-Control", "max-age=9"), ("ETag", "\"\(language ?? "-")\"")],
                for: request(.get, (language.map { [("X-Plan", $0)] } ?? []) + [("X-Tenant", "7")])
            )
        }
        let asked = request(.get, [("X-Plan", "b"), ("X-Tenant", "7")])
        let explained = Caching.explain(
            request: asked,
            variants: [variant("a"), variant("b"), variant(nil)],
            policy: CachePolicy(),
            now: arrival + 9
        )
        #expect(explained.chosen == 1)
        #expect(explained.variants.map(\.isChosen) == [false, true, false])
        #expect(explained.variants[0].decision == .mismatch(.vary))
        #expect(
            explained.variants.map { $0.selecting.map(\.matches) } == [[false, true], [true, true], [false, true]]
        )
        #expect(
            explained.variants[2].selecting[0]
                == Explanation.SelectingField(name: "x-plan", stored: nil, asked: "b", matches: false)
        )
        #expect(explained.decision == .stale(age: 9, by: 0, reason: .expired))
        #expect(explained.variant?.ifError == .allowed(limit: 86400))
        // The check names them all: a 304 may pick any.
        #expect(explained.check?.conditions.first(.ifNoneMatch) == "\"b\", \"a\", \"-\"")
        let missed = Caching.explain(
            request: request(),
            variants: [variant("a")],
            policy: CachePolicy(),
            now: arrival
        )
        #expect(missed.chosen == nil && missed.reason == "vary-miss" && missed.section == "RFC 9111 section 4.1")
    }

    @Test(
        "Nothing stored, nothing selected, offline, only-if-cached",
        arguments: [
            (nil, false, false, "uri-miss", "RFC 9111 section 4"),
            (nil, true, false, "uri-miss", "RFC 9111 section 5.2.1.7"),
            (nil, false, true, "uri-miss", "RFC 9111 section 4.2.4"),
            (61, false, true, "offline", "RFC 9111 section 4.2.4"),
            (61, true, false, "expired", "RFC 9111 section 5.2.1.7"),
            (59, true, true, "fresh", "RFC 9111 section 4.2"),
        ] as [(Int64?, Bool, Bool, String, String)]
    )
    func others(after: Int64?, onlyIfCached: Bool, isOffline: Bool, reason: String, section: String) {
        let head = stored([("Cache-Control", "max-age=60"), ("ETag", "\"a\"")])
        let explained = Caching.explain(
            request: request(.get, onlyIfCached ? [("Cache-Control", "only-if-cached")] : []),
            variants: after == nil ? [] : [head],
            policy: CachePolicy(),
            now: arrival + (after ?? 0),
            isOffline: isOffline
        )
        #expect(explained.reason == reason)
        #expect(explained.section == section)
        #expect(explained.check == nil)
    }

    @Test(
        "A request with If-Match or If-Unmodified-Since that the store does not answer goes on as it is",
        arguments: [("If-Match", "\"b\"", 0), ("If-Match", "\"a\"", 70), ("If-Unmodified-Since", date(-2000), 0)]
    )
    func preconditions(name: String, value: String, after: Int64) throws {
        let head = stored([
            ("Cache-Control", "max-age=60, stale-if-error=600"), ("ETag", "\"a\""), ("Last-Modified", date(-1000)),
        ])
        let asked = request(.get, [(name, value), ("Range", "bytes=0-1"), ("X-A", "1")])
        let explained = Caching.explain(request: asked, variants: [head], policy: CachePolicy(), now: arrival + after)
        #expect(explained.check == nil)
        #expect(explained.passedOn?.lines.map(\.name).sorted() == [name, "Range"])
        #expect(try #require(explained.variant).ifError == .refused(.requestPrecondition))
        // Answered from the store, nothing goes on.
        let fresh = request(.get, [("If-Match", "\"a\"")])
        let answered = Caching.explain(request: fresh, variants: [head], policy: CachePolicy(), now: arrival)
        #expect(answered.passedOn == nil && answered.check == nil)
        // Nor does it where nobody is asked.
        let offline = Caching.explain(
            request: asked,
            variants: [],
            policy: CachePolicy(),
            now: arrival,
            isOffline: true
        )
        #expect(offline.passedOn == nil)
    }
}
