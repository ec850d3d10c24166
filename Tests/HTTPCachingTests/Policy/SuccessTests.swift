// Statuses that count as success, and responses that were stored when less was expected.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Success and expectations")
struct SuccessTests {
    @Test(
        "the words of statuses",
        arguments: [
            ("200", 200...200), ("2xx", 200...299), ("5xx", 500...599), ("200..206", 200...206),
            ("404..404", 404...404),
            ("1xx", nil), ("6xx", nil), ("xxx", nil), ("20", nil), ("600", nil), ("199", nil), ("206..200", nil),
            ("200-206", nil), ("200..", nil), ("200...206", nil), ("2XX", nil), ("", nil), ("+20", nil),
            ("200..2xx", nil),
        ] as [(String, ClosedRange<Int>?)]
    )
    func words(_ word: String, _ range: ClosedRange<Int>?) { #expect(StatusSet.range(word) == range) }

    private static func policy(_ words: String..., gone: MissingRule = .fail) -> CachePolicy {
        var policy = CachePolicy(ttl: 60, ttlByStatus: [404: 60], gone: gone)
        if !words.isEmpty { policy.success = StatusSet(words.compactMap(StatusSet.range)) }
        return policy
    }

    @Test("by default what is below 400 is a success; a 304 is one always, and a part where the whole is")
    func isSuccess() {
        let usual = Self.policy()
        for status in 200...599 { #expect(usual.isSuccess(status) == (status < 400)) }
        let some = Self.policy("200", "404")
        #expect([200, 206, 304, 404].allSatisfy(some.isSuccess))
        #expect([201, 204, 302, 403, 500].allSatisfy { !some.isSuccess($0) })
        #expect(!Self.policy("204").isSuccess(206) && Self.policy("206").isSuccess(206))
    }

    @Test(
        "which answers a stale response may stand in for",
        arguments: [
            ([], 500, true), ([], 404, false), ([], 202, false), ([], 403, false), (["200"], 202, true),
            (["200"], 302, true), (["200"], 409, true), (["200"], 206, false), (["2xx", "500"], 500, false),
            // A check that finds nothing is a matter of `gone`.
            (["200"], 404, false),
            // About one client or one request, and not about what is stored.
            (["200"], 401, false), (["200"], 403, false), (["200"], 407, false), (["200"], 412, false),
            (["200"], 416, false),
        ] as [([String], Int, Bool)]
    )
    func failure(_ words: [String], _ status: Int, _ isFailure: Bool) {
        var policy = CachePolicy()
        if !words.isEmpty { policy.success = StatusSet(words.compactMap(StatusSet.range)) }
        #expect(policy.countsAsFailure(status) == isFailure)
        let old = stored([("Cache-Control", "max-age=1"), ("ETag", "\"a\"")])
        let verdict = Caching.mayServeStale(stored: old, policy: policy, staleness: 5, errorStatus: status)
        #expect(verdict.isAllowed == isFailure)
    }

    @Test("what is no success is not stored, and not answered with where it was stored before")
    func unstored() {
        for (status, isStored) in [(200, true), (203, false), (404, false), (301, false)] {
            let policy = Self.policy("200")
            let decision = Caching.decideStore(
                request: request(),
                response: response(status, [("Cache-Control", "max-age=60")]),
                policy: policy,
                times: ResponseTimes(at: arrival)
            )
            #expect(decision == (isStored ? .store(.explicit) : .refuse(.statusNotSuccessful)), "\(status)")
            let old = stored([("Cache-Control", "max-age=60")], status: status)
            let found = Caching.lookup(request: request(), stored: old, policy: policy, now: arrival)
            #expect(found == (isStored ? .fresh(age: 0, ttl: 60) : .mismatch(.expect)), "\(status)")
            #expect((Caching.hotPath(stored: old, policy: policy) != nil) == isStored)
        }
    }

    @Test("what was stored under another expectation is a miss; without an expectation anything will do")
    func expectation() {
        var json = CachePolicy()
        json.expectation = "json */*"
        let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"a\"")]
        let (old, new) = (stored(fields), stored(fields, policy: json))
        #expect(old.expectation == nil && new.expectation == "json */*")
        for (head, policy, isFound) in [
            (old, CachePolicy(), true), (new, CachePolicy(), true), (new, json, true), (old, json, false),
        ] {
            let decision = Caching.lookup(request: request(), stored: head, policy: policy, now: arrival + 1)
            #expect(decision == (isFound ? .fresh(age: 1, ttl: 59) : .mismatch(.expect)))
            #expect((Caching.hotPath(stored: head, policy: policy) != nil) == isFound)
        }
        let miss = Caching.lookup(request: request(), stored: old, policy: json, now: arrival)
        #expect(miss.forward == .miss && miss.reason == "expect")
        let fresh = Caching.freshened(
            stored: new,
            by: response(304, [("ETag", "\"a\"")]),
            times: ResponseTimes(at: arrival + 5),
            request: request(),
            policy: json
        )
        #expect(fresh.expectation == "json */*")
    }

    @Test("an expectation is part of the encoded head, and a head without one is as it was")
    func encoding() throws {
        var head = stored([("Cache-Control", "max-age=60")])
        var before: [UInt8] = []
        head.encode(into: &before)
        for expectation in ["json */*", "", "any application/json or text/*", nil] {
            head.expectation = expectation
            for mapped in [nil, MappedOrigin(digest: "d", fields: Fields([("ETag", "\"o\"")]), length: 3)] {
                head.mapped = mapped
                var bytes: [UInt8] = []
                head.encode(into: &bytes)
                #expect(try bytes.withUnsafeBytes { try StoredHead(decoding: $0) } == head)
                #expect((bytes == before) == (expectation == nil && mapped == nil))
                for count in bytes.indices {
                    #expect(throws: StoredHeadError.self) {
                        try bytes[..<count].withUnsafeBytes { try StoredHead(decoding: $0) }
                    }
                }
            }
        }
    }

    @Test("errors that clients get in another form are never ready to be sent")
    func errors() {
        var policy = Self.policy()
        let fields = [("Cache-Control", "max-age=60")]
        for isMapped in [false, true] {
            policy.mapsErrors = isMapped
            #expect(Caching.hotPath(stored: stored(fields, policy: policy), policy: policy) != nil)
            let gone = stored(fields, status: 404, policy: policy)
            #expect((Caching.hotPath(stored: gone, policy: policy) == nil) == isMapped)
            #expect(
                Caching.lookup(request: request(), stored: gone, policy: policy, now: arrival)
                    == .fresh(age: 0, ttl: 60)
            )
        }
    }
}
