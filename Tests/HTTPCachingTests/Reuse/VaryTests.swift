// Selecting stored responses by Vary (RFC 9111 section 4.1).

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Vary")
struct VaryTests {
    struct Selection: Sendable, CustomTestStringConvertible {
        var vary: [String]
        var before: [(String, String)]
        var after: [(String, String)]
        var matches: Bool

        init(_ vary: String..., stored: [(String, String)], asked: [(String, String)], _ matches: Bool) {
            self.vary = vary
            before = stored
            after = asked
            self.matches = matches
        }

        var testDescription: String { "\(vary) \(before) \(after)" }
    }

    @Test(
        "RFC 9111 4.1: the listed fields are the same after whitespace is normalised; * never matches",
        arguments: [
            Selection("Foo", stored: [("Foo", "1")], asked: [("foo", "1")], true),
            Selection("foo", stored: [("Foo", "1")], asked: [("Foo", "2")], false),
            Selection("Foo", stored: [], asked: [], true),
            Selection("Foo", stored: [("Foo", "1")], asked: [], false),
            Selection("Foo", stored: [], asked: [("Foo", "1")], false),
            Selection("Foo", stored: [], asked: [("Foo", "")], false),
            Selection("Foo", stored: [("Foo", "1"), ("Bar", "1")], asked: [("Foo", "1"), ("Bar", "2")], true),
            Selection("Foo, Bar", stored: [("Foo", "1"), ("Bar", "1")], asked: [("Foo", "1"), ("Bar", "2")], false),
            Selection("Foo", "Bar", stored: [("Bar", "1")], asked: [("Bar", "2")], false),
            Selection("Foo", stored: [("Foo", "1, 2")], asked: [("Foo", "1"), ("Foo", "2")], true),
            Selection("Prefer", stored: [("Prefer", "1,2")], asked: [("Prefer", " 1 ,\t2 ,")], true),
            Selection("Foo", stored: [("Foo", "1,2")], asked: [("Foo", "1, 2")], false),
            Selection("Foo", stored: [("Foo", "1,,2")], asked: [("Foo", "1,2")], false),
            Selection("Foo", stored: [("Foo", "1, 2")], asked: [("Foo", "2, 1")], false),
            Selection("Foo", stored: [("Foo", "1, 2")], asked: [("Foo", "12")], false),
            Selection("Prefer", stored: [("Prefer", "a;q=1")], asked: [("prefer", "a ; q=1")], true),
            Selection("Foo", stored: [("Foo", "a;q=1")], asked: [("Foo", "a ; q=1")], false),
            Selection("Foo", stored: [("Foo", "a b")], asked: [("Foo", "a   b")], false),
            Selection("Prefer", stored: [("Prefer", "a b")], asked: [("Prefer", "a   b")], true),
            Selection("Prefer", stored: [("Prefer", "a b")], asked: [("Prefer", "ab")], false),
            Selection("TE", stored: [("TE", "\"a,  b\"")], asked: [("TE", "\"a, b\"")], false),
            Selection("Foo", stored: [("Foo", "a b")], asked: [("Foo", "ab")], false),
            Selection("Foo", stored: [("Foo", "\"a,  b\"")], asked: [("Foo", "\"a, b\"")], false),
            Selection("Foo", stored: [("Foo", "a")], asked: [("Foo", "A")], false),
            Selection("Cookie", stored: [("Cookie", "a=1,2")], asked: [("Cookie", "a=1, 2")], false),
            Selection("Cookie", stored: [("Cookie", "a=1")], asked: [("Cookie", "a=1")], true),
            Selection("Foo", stored: [("Foo", "caf\u{E9}")], asked: [("Foo", "caf\u{E9}")], true),
            Selection("Foo", stored: [("Foo", "caf\u{E9}")], asked: [("Foo", "caf\u{E8}")], false),
            Selection("*", stored: [], asked: [], false),
            Selection(", *", stored: [], asked: [], false),
            Selection("Foo, *", stored: [("Foo", "1")], asked: [("Foo", "1")], false),
            Selection("", "*", stored: [], asked: [], false),
            Selection("a b", stored: [], asked: [], false),
            Selection("", stored: [("Foo", "1")], asked: [("Foo", "2")], true),
            Selection(",,Foo,,foo", stored: [("Foo", "1")], asked: [("Foo", "1")], true),
        ]
    )
    func selection(example: Selection) {
        let head = stored(
            [("Cache-Control", "max-age=60")] + example.vary.map { ("Vary", $0) },
            for: request(.get, example.before)
        )
        let asked = request(.get, example.after)
        #expect(Caching.selects(stored: head, request: asked) == example.matches)
        let decision = Caching.lookup(request: asked, stored: head, policy: CachePolicy(), now: arrival)
        #expect(decision == (example.matches ? .fresh(age: 0, ttl: 60) : .mismatch(.vary)))
    }

    @Test("RFC 9111 4.1: of several stored responses that match, the newest")
    func newest() {
        func variant(_ value: String, at time: Int64, dated: Int64 = 0) -> StoredHead {
            var head = stored([("Vary", "Foo"), ("Date", date(dated))], for: request(.get, [("Foo", value)]))
            head.responseTime = time
            return head
        }
        let variants = [variant("1", at: 5), variant("2", at: 9), variant("1", at: 7), variant("1", at: 6)]
        #expect(Caching.select(from: variants, request: request(.get, [("Foo", "1")])) == 2)
        #expect(Caching.select(from: variants, request: request(.get, [("Foo", "2")])) == 1)
        #expect(Caching.select(from: variants, request: request(.get, [("Foo", "3")])) == nil)
        #expect(Caching.select(from: [], request: request()) == nil)
        // Section 4: the most recent by the Date field, whichever came first.
        let dated = [variant("1", at: 5, dated: 2), variant("1", at: 9, dated: 1)]
        #expect(Caching.select(from: dated, request: request(.get, [("Foo", "1")])) == 0)
    }

    @Test("RFC 9111 4.1: a response that omits Vary yields to a match that has it and was fresh when it came")
    func omittedVary() {
        func variant(_ fields: [(String, String)], at time: Int64) -> StoredHead {
            var head = stored(
                [("Cache-Control", "max-age=60"), ("Date", date(time))] + fields,
                for: request(.get, [("Foo", "1")])
            )
            head.requestTime = arrival + time
            head.responseTime = arrival + time
            head.initialAge = 0
            return head
        }
        func chosen(_ variants: [StoredHead], _ foo: String = "1") -> Int? {
            Caching.select(from: variants, request: request(.get, [("Foo", foo)]))
        }
        let varying = variant([("Vary", "Foo")], at: 0)
        #expect(chosen([varying, variant([], at: 59)]) == 0)
        // By then it had expired: this one came in its place.
        #expect(chosen([varying, variant([], at: 60)]) == 1)
        #expect(chosen([varying, variant([], at: 59)], "2") == 1)
        #expect(chosen([variant([], at: 0), variant([("Vary", "Foo")], at: 9)]) == 1)
    }
}
