// What is verified by the journal: which requests are meant, how many are expected, and what cannot be known.

import ProxyServer
import Testing

@testable import DrydockDaemon

@Suite struct JournalCheckTests {
    private static func entry(
        _ method: String = "POST",
        _ target: String = "/shop/orders?page=2&q=a%20b",
        body: String = #"{"sku": "A-1", "lines": [{"n": 1, "x": null}], "total": 2.0}"#,
        time: UInt64 = 1000,
        isCut: Bool = false
    ) -> JournalEntry {
        var entry = JournalEntry(time: time, method: method, target: target, status: 201)
        (entry.service, entry.endpoint) = ("shop", "order")
        entry.fields = [.init(name: "Accept", value: "a"), .init(name: "accept", value: "b")]
        entry.body = Array(body.utf8)
        entry.isBodyCut = isCut
        return entry
    }

    private static func wanted(_ change: (inout AdminVerification) -> Void) -> AdminVerification {
        var wanted = AdminVerification()
        change(&wanted)
        return wanted
    }

    private static func compare(
        _ entry: JournalEntry = entry(),
        _ change: (inout AdminVerification) -> Void
    ) throws -> JournalPattern.Match {
        try JournalPattern(wanted(change), redacted: ["cookie"]).compare(entry)
    }

    @Test func whatIsMeant() throws {
        #expect(try Self.compare { $0.path = "/shop/orders" } == .same)
        #expect(try Self.compare { ($0.method, $0.path) = ("post", "/*/orders") } == .same)
        #expect(try Self.compare { $0.path = "/shop/orders?q=a+b" } == .same)
        #expect(try Self.compare { $0.path = "/shop/orders?q=b" } == .differs(["the query item q is 'a b'"]))
        #expect(try Self.compare { $0.query = [.init(name: "z", value: "")] } == .differs(["it has no query item z"]))
        #expect(try Self.compare { $0.fields = [.init(name: "ACCEPT", value: "b")] } == .same)
        #expect(
            try Self.compare { $0.fields = [.init(name: "ACCEPT", value: "c")] }
                == .differs(["the field ACCEPT is 'a' and 'b'"])
        )
        #expect(try Self.compare { ($0.service, $0.endpoint) = ("shop", "order") } == .same)
        #expect(
            try Self.compare { ($0.method, $0.path, $0.service) = ("GET", "/shop", "api") }
                == .differs(["the method is POST", "the path is /shop/orders", "the service is shop"])
        )
        #expect(throws: Problem.self) { try Self.compare { $0.fields = [.init(name: "Cookie", value: "a")] } }
        #expect(throws: Problem.self) { try Self.compare { $0.bodyJson = "{" } }
    }

    @Test(
        arguments: [
            (#"{"sku": "A-1"}"#, nil), (#"{}"#, nil), (#"{"total": 2}"#, nil), (#"{"lines": [{"n": 1}]}"#, nil),
            (#"{"sku": "B"}"#, #"the body's .sku is "A-1""#),
            (#"{"lines": []}"#, #"the body's .lines is [{"n":1,"x":null}]"#),
            (#"{"lines": [{"y": 1}]}"#, "the body has no .lines[0].y"), (#"[]"#, nil as String?),
        ]
    )
    func json(_ text: String, _ difference: String?) throws {
        let match = try Self.compare { $0.bodyJson = text }
        if text == "[]" {
            guard case .differs(let found) = match else { throw Problem.badQuery("the same") }
            #expect(found.count == 1 && found[0].hasPrefix("the body's value is {"))
        } else {
            #expect(match == (difference.map { .differs([$0]) } ?? .same))
        }
    }

    @Test func whatIsNotKnownOfABody() throws {
        #expect(try Self.compare { $0.bodyContains = "A-1" } == .same)
        #expect(try Self.compare { $0.bodyContains = "A-2" } == .differs(["the body does not contain the text"]))
        let cut = Self.entry(body: "A-1", isCut: true)
        #expect(try Self.compare(cut) { $0.bodyContains = "A-1" } == .same)
        #expect(try Self.compare(cut) { $0.bodyContains = "A-2" } == .unknown)
        #expect(try Self.compare(cut) { $0.bodyJson = "{}" } == .unknown)
        #expect(try Self.compare(cut) { ($0.bodyJson, $0.method) = ("{}", "GET") } == .differs(["the method is POST"]))
        #expect(try Self.compare(Self.entry(body: "")) { $0.bodyJson = "{}" } == .differs(["it has no body"]))
        #expect(
            try Self.compare(Self.entry(body: "{")) { $0.bodyJson = "{}" } == .differs(["the body is no JSON text"])
        )
    }

    @Test(
        arguments: [
            ("", "", true), ("*", "", true), ("a*c", "abc", true), ("a*c", "ac", true), ("a*c", "acb", false),
            ("*b*b", "abbab", true), ("**", "x", true), ("a", "ab", false), ("ab", "a", false), ("*a", "b", false),
        ]
    )
    func glob(_ pattern: String, _ text: String, _ isMeant: Bool) {
        #expect(JournalPattern.glob(Array(pattern.utf8), Array(text.utf8)) == isMeant)
    }

    private func verdict(_ journal: Journal, _ change: (inout AdminVerification) -> Void) throws -> AdminVerdict {
        let wanted = Self.wanted { wanted in
            wanted.path = "/shop/orders"
            change(&wanted)
        }
        return try JournalCheck(wanted, redacted: [], now: 10_000_000_000).run(journal)
    }

    @Test func howMany() throws {
        let journal = Journal(JournalSettings(size: 256 << 10))
        for _ in 0..<2 { journal.record(Self.entry()) }
        journal.record(Self.entry("GET", "/shop/items"))
        func met(_ text: String, _ change: (inout AdminVerification) -> Void) throws -> Bool {
            let verdict = try verdict(journal, change)
            #expect(verdict.expected == text && verdict.count == 2 && verdict.isMet == (verdict.reason == nil))
            return verdict.isMet
        }
        #expect(try met("at least 1") { _ in })
        #expect(try met("exactly 2") { $0.times = 2 })
        #expect(try !met("exactly 1") { $0.times = 1 })
        #expect(try !met("exactly 3") { $0.times = 3 })
        #expect(try met("at least 2") { $0.atLeast = 2 })
        #expect(try !met("at least 3") { $0.atLeast = 3 })
        #expect(try met("at most 2") { $0.atMost = 2 })
        #expect(try !met("none") { $0.times = 0 })
        #expect(try met("1 to 3") { ($0.atLeast, $0.atMost) = (1, 3) })
        for change: (inout AdminVerification) -> Void in [
            { $0.times = -1 }, { ($0.times, $0.atMost) = (1, 1) }, { ($0.atLeast, $0.atMost) = (2, 1) },
            { $0.since = "5" },
        ] {
            #expect(throws: Problem.self) { try verdict(journal, change) }
        }
    }

    /// Of a time in which it was off, a journal knows nothing.
    @Test func nothingIsSureOfATimeInWhichItWasOff() throws {
        let journal = Journal()
        journal.update(JournalSettings(size: 256 << 10), now: 5_000_000_000)
        #expect(try verdict(journal) { $0.times = 0 }.reason?.contains("was off") == true)
        #expect(
            try verdict(journal) {
                $0.since = "9s"; $0.times = 0
            }.isMet == false
        )
        #expect(
            try verdict(journal) {
                $0.since = "3s"; $0.times = 0
            }.isMet
        )
        journal.record(Self.entry())
        #expect(try verdict(journal) { _ in }.isMet)
    }

    /// Numbers of 64 bits, which a Double takes for one.
    @Test func numbersAreComparedExactly() throws {
        let entry = Self.entry(body: #"{"id":9007199254740993}"#)
        #expect(try Self.compare(entry) { $0.bodyJson = #"{"id":9007199254740993.0}"# } == .same)
        #expect(try Self.compare(entry) { $0.bodyJson = #"{"id":9007199254740992}"# } != .same)
    }

    /// The text is found in one pass, and not where something else differs.
    @Test func aTextThatRepeatsItselfIsFoundInOnePass() throws {
        let body = String(repeating: "a", count: 200_000) + "b"
        let entry = Self.entry(body: body)
        for (text, isMeant) in [(body, true), (String(repeating: "a", count: 100_000) + "c", false), ("ab", true)] {
            let found = try Self.compare(entry) { $0.bodyContains = text }
            #expect((found == .same) == isMeant)
        }
    }

    @Test func whatCameClosest() throws {
        let journal = Journal(JournalSettings(size: 256 << 10))
        journal.record(Self.entry("GET", "/other"))
        for number in 0..<4 { journal.record(Self.entry("POST", "/shop/order\(number)")) }
        let missing = try verdict(journal) { $0.method = "POST" }
        #expect(missing.reason == "0 came, at least 1 expected")
        #expect(missing.closest.map(\.entry.target) == ["/shop/order1", "/shop/order2", "/shop/order3"])
        #expect(missing.closest.last?.differences == ["the path is /shop/order3"])
        // Of too many, those are told that came.
        journal.record(Self.entry())
        let never = try verdict(journal) { $0.times = 0 }
        #expect(never.closest.map(\.entry.number) == [6] && never.closest[0].differences.isEmpty)
    }

    @Test func whatIsDroppedProvesNothing() throws {
        let journal = Journal(JournalSettings(size: 256 << 10))
        for number in 1...1000 {
            let time = UInt64(number) * 10_000_000
            journal.record(Self.entry("GET", "/x", body: String(repeating: "x", count: 1000), time: time))
        }
        journal.record(Self.entry(time: 10_000_000_000))
        #expect(journal.extent.dropped > 0)
        #expect(try verdict(journal) { $0.atLeast = 1 }.isMet)
        for change: (inout AdminVerification) -> Void in [{ $0.times = 1 }, { $0.atMost = 1 }, { $0.atLeast = 2 }] {
            let verdict = try verdict(journal, change)
            #expect(!verdict.isMet && verdict.reason?.contains("dropped") == true, "\(verdict)")
        }
        // Too many are too many, whatever came before.
        #expect(try verdict(journal) { $0.times = 0 }.reason == "1 came, none expected")
        // The journal has all of the last second.
        #expect(try verdict(journal) { ($0.times, $0.since) = (1, "1s") }.isMet)
        let cut = Journal(JournalSettings(size: 256 << 10))
        cut.record(Self.entry(body: "A", isCut: true))
        let unknown = try verdict(cut) { ($0.times, $0.bodyContains) = (0, "B") }
        #expect(!unknown.isMet && unknown.reason?.contains("beginning of the body") == true)
    }
}
