// Purge rules: what each of them concerns, how many there may be, and the bytes in which they outlive the process.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import StoreSupport
import Testing

@testable import CacheStore

private func subject(
    _ url: String,
    service: String = "s",
    tags: [String] = [],
    arrivedAt: Int64 = 1000,
    isPinned: Bool = false
) -> RuleSubject {
    RuleSubject(
        key: CacheKey(service: service, url: url),
        names: tags.map { .tag($0) },
        arrivedAt: arrivedAt,
        isPinned: { isPinned }
    )
}

private struct Case: Sendable, CustomTestStringConvertible {
    var rule: PurgeRule
    var subject: RuleSubject
    var isConcerned: Bool

    init(_ target: PurgeRule.Target, service: String? = nil, _ subject: RuleSubject, _ isConcerned: Bool) {
        rule = PurgeRule(target, service: service)
        self.subject = subject
        self.isConcerned = isConcerned
    }

    var testDescription: String { "\(rule): \(subject.key)" }
}

@Suite struct PurgeRuleTests {
    private static let page = subject("http://a.test/x/y?q=1", tags: ["red", "blue"])

    @Test(arguments: [
        Case(.url("http://a.test/x/y?q=1"), page, true),
        Case(.url("HTTP://A.test:80/x/y?q=1"), page, true),
        Case(.url("http://a.test/x/y"), page, false),
        Case(.url("http://a.test/x/y?q=11"), page, false),
        Case(.url("http://a.test/X/y?q=1"), page, false),
        Case(.url("http://a.test"), subject("http://a.test/"), true),
        Case(.url("http://a.test/x/y?q=1"), service: "s", page, true),
        Case(.url("http://a.test/x/y?q=1"), service: "t", page, false),
        Case(.url("http://a.test/x/y?q=1"), service: "", page, false),
        Case(.prefix("http://a.test/x"), page, true),
        Case(.prefix("http://A.TEST"), page, true),
        Case(.prefix("http://a.t"), page, true),
        Case(.prefix("http://a.test/x/y?q=12"), page, false),
        Case(.prefix("http://b.test/"), page, false),
        Case(.prefix(""), page, true),
        Case(.glob("http://a.test/*"), page, true),
        Case(.glob("*://*.TEST/x/*"), page, true),
        Case(.glob("*?q=*"), page, true),
        Case(.glob("*/x/?*"), page, false),
        Case(.glob("http://a.test/x"), page, false),
        Case(.glob("*x*y*q*1"), page, true),
        Case(.glob("*x*y*q*2*"), page, false),
        Case(.tag("red"), page, true),
        Case(.tag("Red"), page, false),
        Case(.tag("re"), page, false),
        Case(.tag("blue"), service: "s", page, true),
        Case(.tag("blue"), service: "other", page, false),
        Case(.olderThan(1000), page, false),
        Case(.olderThan(1001), page, true),
        Case(.olderThan(1001), subject("http://a.test/", isPinned: true), false),
        Case(.all, page, true),
        Case(.all, subject("http://a.test/", isPinned: true), true),
        Case(.all, service: "", page, false),
        Case(.all, service: "", subject("http://a.test/", service: ""), true),
        Case(.all, service: "se", subject("http://a.test/", service: "s"), false),
    ])
    private func concerns(_ test: Case) {
        #expect(test.rule.concerns(test.subject) == test.isConcerned)
        // Where it is one name for all, the name says the same.
        guard let name = test.rule.name else { return }
        var rules = RuleSet()
        rules.add(test.rule, RuleSet.Mark(number: 5, time: 0))
        #expect((rules.verdict(test.subject, 4) == .gone) == test.isConcerned)
        #expect(name.purge == test.rule && !name.needsLook)
    }

    @Test(arguments: [
        ("", "", true), ("", "a", false), ("*", "", true), ("*", "abc", true), ("a*", "abc", true), ("*c", "abc", true),
        ("a*c", "abc", true), ("a*b*c", "axxbyyc", true), ("a*b*c", "axxcyyb", false), ("**", "", true),
        ("a**c", "ac", true), ("*ab", "aab", true), ("*aab", "aaab", true), ("a", "A", false), ("[a]", "a", false),
        ("?", "a", false), ("?", "?", true),
    ])
    func stars(pattern: String, text: String, matches: Bool) {
        #expect(StarPattern.matches(Array(pattern.utf8)[...], Array(text.utf8)[...]) == matches)
    }

    @Test func `a pattern made to be slow is not`() {
        let text = [UInt8](repeating: UInt8(ascii: "a"), count: 8000)
        let pattern = Array(String(repeating: "a*", count: 40).utf8) + [UInt8(ascii: "b")]
        #expect(!StarPattern.matches(pattern[...], text[...]))
    }
}

@Suite struct RuleSetTests {
    private func mark(_ number: UInt64) -> RuleSet.Mark { RuleSet.Mark(number: number, time: Int64(number) * 10) }

    @Test func `soft rules make stale from their moment on, hard ones win`() {
        var rules = RuleSet()
        let page = subject("http://a.test/x", tags: ["t"])
        rules.add(PurgeRule(.prefix("http://a.test/"), isSoft: true), mark(10))
        rules.add(PurgeRule(.tag("t"), isSoft: true), mark(20))
        #expect(rules.verdict(page, 5) == .stale(since: 100))
        #expect(rules.verdict(page, 15) == .stale(since: 200))
        #expect(rules.verdict(page, 25) == .valid)
        #expect(rules.verdict(subject("http://b.test/"), 5) == .valid)
        rules.add(PurgeRule(.url("http://a.test/x")), mark(30))
        #expect(rules.verdict(page, 25) == .gone && rules.verdict(page, 31) == .valid)
    }

    @Test func `what is under way is held against every rule that is made meanwhile, swept or not`() {
        var rules = RuleSet()
        let page = subject("http://a.test/x")
        for rule in [PurgeRule(.all), PurgeRule(.url("http://a.test/x"))] {
            rules.add(rule, mark(rules.newest + 10))
            let number = rules.newest
            #expect(rules.unswept().map(\.rule) == [rule])
            #expect(rules.verdict(page, number - 1) == .gone && !rules.admits(page, number - 1))
            rules.markSwept(rule, number - 1)
            #expect(rules.unswept().count == 1, "another purge was meant")
            rules.markSwept(rule, number)
            #expect(rules.unswept().isEmpty && rules.records.isEmpty)
            #expect(rules.verdict(page, number - 1) == .gone, "it may have been found before it was removed")
            #expect(!rules.admits(page, number - 1))
            #expect(rules.admits(page, number + 1))
        }
        rules.add(PurgeRule(.all, isSoft: true), mark(100))
        #expect(!rules.admits(page, 99) && rules.admits(page, 101))
    }

    @Test func `the same purge again takes the place of the one before`() {
        var rules = RuleSet()
        for number in 1...50 as ClosedRange<UInt64> {
            rules.add(PurgeRule(.prefix("http://a.test/"), isSoft: true), mark(number * 10))
            rules.add(PurgeRule(.olderThan(Int64(number)), isSoft: true), mark(number * 10 + 1))
            rules.add(PurgeRule(.olderThan(Int64(number))), mark(number * 10 + 2))
        }
        #expect(rules.patterns.count == 3)
        #expect(rules.verdict(subject("http://a.test/x", arrivedAt: 40), 495) == .gone)
        #expect(rules.verdict(subject("http://a.test/x", arrivedAt: 50), 495) == .stale(since: 5000))
    }

    @Test func `past the bound swept patterns only refuse what is under way`() {
        var rules = RuleSet()
        for number in 1...UInt64(RuleSet.maximumPatterns) + 1 {
            let rule = PurgeRule(.prefix("http://\(number).test/"))
            rules.add(rule, mark(number))
            if number % 2 == 0 { rules.markSwept(rule, number) }
        }
        #expect(rules.patterns.count == RuleSet.maximumPatterns * 3 / 4 + 1)
        #expect(rules.fetchFloor == UInt64(RuleSet.maximumPatterns / 2))
        #expect(!rules.admits(subject("http://new.test/"), 3) && rules.admits(subject("http://new.test/"), 2000))
        #expect(rules.verdict(subject("http://new.test/"), 3) == .valid)
        #expect(rules.verdict(subject("http://7.test/"), 3) == .gone, "not removed yet: it stays")
    }

    @Test func `past the bound old soft patterns become one that makes everything before them stale`() {
        var rules = RuleSet()
        for number in 1...UInt64(RuleSet.maximumPatterns) + 1 {
            rules.add(PurgeRule(.prefix("http://\(number).test/"), isSoft: true), mark(number * 10))
        }
        #expect(rules.patterns.count == RuleSet.maximumPatterns / 2 + 1)
        let last = UInt64(RuleSet.maximumPatterns / 2) * 10
        #expect(rules.softFloor == mark(last))
        #expect(rules.verdict(subject("http://1.test/"), 5) == .stale(since: Int64(last * 10)))
        #expect(rules.verdict(subject("http://other.test/"), last - 1) == .stale(since: Int64(last * 10)))
        #expect(rules.verdict(subject("http://other.test/"), last + 1) == .valid)
    }

    @Test func `past the bound purges of names keep their word, too`() {
        var rules = RuleSet()
        rules.add(PurgeRule(.tag("kept")), mark(1))
        for number in 2...UInt64(RuleSet.maximumNames) + 1 {
            rules.add(PurgeRule(.tag("\(number)"), isSoft: number % 2 == 0), mark(number))
            if number % 2 == 1 { rules.markSwept(PurgeRule(.tag("\(number)")), number) }
        }
        #expect(rules.named.count <= RuleSet.maximumNames / 2 + 1)
        #expect(rules.unswept().map(\.rule) == [PurgeRule(.tag("kept"))])
        #expect(rules.verdict(subject("http://a.test/", tags: ["kept"]), 0) == .gone)
        for number in stride(from: UInt64(2), to: UInt64(RuleSet.maximumNames), by: 98) {
            guard case .stale = rules.verdict(subject("http://a.test/", tags: ["\(number)"]), number - 1) else {
                Issue.record("\(number) is not stale")
                return
            }
        }
        #expect(!rules.admits(subject("http://a.test/"), 5))
    }

    @Test func `past the bound the URLs of one origin become one rule for it, and no other origin is touched`() {
        var rules = RuleSet()
        let key = { (host: String, path: Int) in CacheKey(service: "s", url: "http://\(host)/\(path)", lines: ["a: 1"])
        }
        let about = { (key: CacheKey) in
            RuleSubject(key: key, names: [.keyed(key)], arrivedAt: 0, isPinned: { false })
        }
        rules.invalidate([.url(of: key("few.test", 1))], 1)
        for number in 2...RuleSet.maximumNames + 1 {
            rules.invalidate([.url(of: key("many.test", number))], UInt64(number))
        }
        #expect(rules.named.count < 10 && rules.unsweptNames == rules.unswept(hasGroups: true).count)
        for number in stride(from: 2, through: RuleSet.maximumNames, by: 997) {
            #expect(rules.verdict(about(key("many.test", number)), UInt64(number) - 1) == .gone)
        }
        #expect(rules.verdict(about(key("many.test", 0)), 1) == .gone, "it costs a fetch")
        #expect(rules.verdict(about(key("many.test", 0)), UInt64(RuleSet.maximumNames) + 1) == .valid)
        for other in [
            key("few.test", 2), key("many.test.example", 2), CacheKey(service: "s", url: "https://many.test/2"),
        ] {
            #expect(rules.verdict(about(other), 0) == .valid, "\(other)")
        }
        #expect(rules.verdict(about(key("few.test", 1)), 0) == .gone)
        // What finds the files of an origin, and what outlives the process.
        #expect(rules.unswept().map(\.rule).contains(PurgeRule(.prefix("http://many.test/"))))
        var again = RuleSet()
        again.restore(rules.records)
        #expect(again.verdict(about(key("many.test", 5)), 4) == .gone)
        #expect(again.verdict(about(key("few.test", 2)), 0) == .valid)
    }

    @Test func `a path on any host is one name within its service, and is bounded like others`() throws {
        var rules = RuleSet()
        let page = { (service: String, url: String) in
            RuleSubject(key: CacheKey(service: service, url: url), names: [], arrivedAt: 0, isPinned: { false })
        }
        let name = InvalidationRule.anyHost(of: CacheKey(service: "s", url: "http://a.test/x?y=*&z"))
        rules.invalidate([name], 5)
        for (service, url, isGone) in [
            ("s", "http://a.test/x?y=*&z", true), ("s", "http://b.test:81/x?y=*&z", true),
            ("s", "service.i://b.test/x?y=*&z", true), ("s", "http://a.test/x?y=1&z", false),
            ("s", "http://a.test/w/x?y=*&z", false), ("s", "http://a.test/x", false),
            ("t", "http://a.test/x?y=*&z", false), ("", "http://a.test/x?y=*&z", false),
        ] {
            #expect((rules.verdict(page(service, url), 4) == .gone) == isGone, "\(service) \(url)")
            #expect(rules.verdict(page(service, url), 5) == .valid)
            let key = CacheKey(service: service, url: url).bytes
            #expect(!isGone || key.withUnsafeBytes { name.mayConcern($0) })
            // What finds the files finds all that are concerned.
            if isGone { #expect(try #require(name.purge).concerns(page(service, url))) }
        }
        #expect(name.needsLook && rules.unswept().map(\.name) == [name])
        var again = RuleSet()
        again.restore(rules.records)
        #expect(again.verdict(page("s", "http://c.test/x?y=*&z"), 4) == .gone)
        for number in 6...UInt64(RuleSet.maximumNames) + 6 {
            rules.invalidate([.anyHost(of: CacheKey(service: "s", url: "http://a.test/\(number)"))], number)
        }
        #expect(rules.named.count <= RuleSet.maximumNames / 2 + 1)
        #expect(rules.verdict(page("s", "http://c.test/x?y=*&z"), 4) == .gone)
    }

    @Test func `rules that nothing stored is concerned by any more are forgotten, and no other is`() {
        var rules = RuleSet()
        let page = { (path: UInt64) in subject("http://a.test/\(path)") }
        let count = UInt64(RuleSet.maximumNames / 2 + 100)
        for number in 1...count { rules.invalidate([.url(of: page(number).key)], number) }
        #expect(rules.isCrowded && rules.unsweptNames == Int(count))
        for rule in rules.unswept() where rule.number % 2 == 0 { rules.markSwept(rule) }
        rules.forgetSpent(upTo: 0)
        #expect(rules.named.count == Int(count), "memory may still hold what they concern")
        rules.forgetSpent(upTo: count)
        #expect(rules.named.count == Int(count) - Int(count / 4) && !rules.isCrowded)
        #expect(rules.softFloor == nil && rules.groupFloor == 0 && rules.patterns.isEmpty)
        for number in 1...count where number % 2 == 1 { #expect(rules.verdict(page(number), number - 1) == .gone) }
        #expect(rules.verdict(page(count + 1), 0) == .valid)
        #expect(!rules.admits(page(2), 1), "a fetch that began before it is not stored")
        // What is invalidated again is to be swept again.
        rules.invalidate([.url(of: page(count).key)], count + 1)
        #expect(rules.unsweptNames == Int(count) - Int(count / 2) + 1)
    }

    @Test func `where there are more origins than names, the older half of what they invalidated is for everything`() {
        var rules = RuleSet()
        for number in 1...UInt64(RuleSet.maximumNames) + 1 {
            rules.invalidate([.url(of: CacheKey(service: "", url: "http://\(number).test/"))], number)
        }
        #expect(rules.named.count <= RuleSet.maximumNames / 2 + 1 && rules.patterns.map(\.rule) == [PurgeRule(.all)])
        let all = rules.patterns.first?.mark.number ?? 0
        #expect(rules.verdict(subject("http://other.test/"), all) == .valid)
        for number in stride(from: UInt64(1), to: UInt64(RuleSet.maximumNames), by: 997) {
            #expect(rules.verdict(subject("http://\(number).test/"), number - 1) == .gone)
        }
    }

    @Test func `records of every kind are read up to the first that is damaged, whatever stands there`() {
        let whats: [(RuleRecord.What, Bool)] = [
            (.name(.group("g", of: CacheKey(service: "s", url: "http://a.test/"))), false), (.name(.tag("t")), true),
            (.pattern(PurgeRule(.prefix("http://a.test/x"), service: "s")), false),
            (.pattern(PurgeRule(.glob("*a*"), service: "", isSoft: true)), true),
            (.pattern(PurgeRule(.url("http://a.test/"), service: "s")), false),
            (.pattern(PurgeRule(.tag("t"), service: "s", isSoft: true)), true),
            (.pattern(PurgeRule(.olderThan(-3))), false), (.pattern(PurgeRule(.all, isSoft: true)), true),
            (.floor, true), (.floor, false),
        ]
        let records = whats.enumerated().map { index, what in
            RuleRecord(what.0, RuleSet.Mark(number: UInt64(index) << 40, time: Int64(index) - 2), isSoft: what.1)
        }
        var bytes: [UInt8] = []
        var ends: [Int] = []
        for record in records {
            record.encode(into: &bytes)
            ends.append(bytes.count)
        }
        #expect(RuleRecord.decode(bytes).records == records && RuleRecord.decode(bytes).isWhole)
        for length in 0..<bytes.count {
            let (found, isWhole) = RuleRecord.decode(Array(bytes[..<length]))
            #expect(found == Array(records.prefix(ends.count { $0 <= length })))
            #expect(isWhole == (length == 0 || ends.contains(length)))
        }
        for position in bytes.indices {
            for bit in [0, 3, 7] {
                var damaged = bytes
                damaged[position] ^= 1 << bit
                // All others are found.
                let (found, isWhole) = RuleRecord.decode(damaged)
                let lost = ends.count { $0 <= position }
                #expect(found == records.enumerated().filter { $0.offset != lost }.map(\.element) && !isWhole)
            }
        }
    }

    @Test func `what is written and read again says the same`() {
        var rules = RuleSet()
        for number in 1...UInt64(RuleSet.maximumPatterns) + 10 {
            rules.add(PurgeRule(.prefix("http://\(number).test/"), isSoft: number % 3 != 0), mark(number))
            rules.add(PurgeRule(.tag("\(number)"), isSoft: number % 2 == 0), mark(number))
        }
        rules.invalidate([.group("g", of: CacheKey(service: "s", url: "http://a.test/"))], 2000)
        var again = RuleSet()
        again.restore(rules.records.shuffled())
        #expect(again.newest == rules.newest && again.patterns == rules.patterns)
        let inForce = { (rules: RuleSet) in rules.named.mapValues { [$0.hard, $0.soft?.number ?? 0] } }
        #expect(inForce(again) == inForce(rules) && again.recordCount == rules.records.count)
        #expect(again.softFloor == rules.softFloor && again.groupFloor == rules.groupFloor)
        for number in 1...UInt64(RuleSet.maximumPatterns) {
            let page = subject("http://\(number).test/", tags: ["\(number)"])
            #expect(again.verdict(page, number - 1) == rules.verdict(page, number - 1))
        }
    }
}

@Suite struct PinTests {
    @Test func `pins are kept in a file`() throws {
        let folder = Folder()
        let path = "\(folder.path)/pins"
        let pins = Pins(path: path)
        #expect(try pins.add("http://a.test/"))
        #expect(try !pins.add("http://a.test/"))
        #expect(try pins.add("http://a.test/?x"))
        #expect(pins.contains(CacheKey(service: "s", url: "http://a.test")))
        #expect(!pins.contains(CacheKey(service: "s", url: "http://a.test/x")))
        let again = Pins(path: path)
        #expect(again.all == ["http://a.test/", "http://a.test/?x"])
        #expect(try again.remove("http://a.test/"))
        #expect(try !again.remove("http://a.test/"))
        #expect(Pins(path: path).all == ["http://a.test/?x"])
    }

    @Test func `there is a bound on pins`() throws {
        let pins = Pins()
        for number in 0..<Pins.most { #expect(try pins.add("http://a.test/\(number)")) }
        #expect(throws: PinError.tooMany) { try pins.add("http://b.test/") }
        #expect(try !pins.add("http://a.test/7"))
        let long = "http://a.test/\(String(repeating: "x", count: Pins.longest))"
        #expect(throws: PinError.tooLong(long.utf8.count)) { try pins.add(long) }
        #expect(pins.count == Pins.most)
    }

    @Test func `a pin that cannot be written says so, and holds while the process lives`() {
        let folder = Folder()
        let pins = Pins(path: "\(folder.path)/absent/pins")
        #expect(throws: PinError.self) { try pins.add("http://a.test/") }
        #expect(pins.contains(CacheKey(service: "", url: "http://a.test/")))
    }
}
