// Made-up data: the same start gives the same values, each of its form and within its range.

import Testing

@testable import DemoMode

@Suite struct FakeValueTests {
    static func draws(_ text: String, count: UInt64 = 300) throws -> [String] {
        let template = try DemoTemplate(text, escaping: .none)
        return try (0..<count).map { start in
            let values = TemplateValues(method: "GET", target: "/", start: start)
            return String(decoding: try template.render(values), as: UTF8.self)
        }
    }

    @Test(
        arguments: [
            ("name", "[A-Z][a-z]+ [A-Z][a-z]+"), ("first_name", "[A-Z][a-z]+"), ("last_name", "[A-Z][a-z]+"),
            ("email", "[a-z]+\\.[a-z]+@example\\.(com|net|org)"), ("street", "[0-9]{1,3} [A-Z][a-z]+ [A-Z][a-z]+"),
            ("city", "[A-Z][a-z]+"), ("country", "[A-Z][a-z]+"), ("company", "[A-Z][a-z]+ [A-Z][a-z]+"),
            ("uuid", "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"), ("id", "[1-9][0-9]{0,5}"),
            ("integer", "[0-9]{1,4}"), ("boolean", "true|false"), ("word", "[a-z]+"),
            ("sentence", "[A-Z][a-z]*( [a-z]+){4,11}\\."), ("paragraph", "([A-Z][a-z ]+\\. ?){3,6}"),
            ("date", "20[0-2][0-9]-[01][0-9]-[0-3][0-9]"), ("integer(-5, 5)", "-?[0-5]"),
            ("date(2026-02-28, 2026-03-01)", "2026-0(2-28|3-01)"), ("one_of('a b', c)", "a b|c"),
        ]
    )
    func hasItsForm(name: String, pattern: String) throws {
        let form = try Regex(pattern)
        let values = try Self.draws("{{fake.\(name)}}")
        #expect(values.allSatisfy { $0.wholeMatch(of: form) != nil }, "\(Set(values).sorted().prefix(5))")
        #expect(Set(values).count > 1)
        #expect(try Self.draws("{{fake.\(name)}}") == values)
    }

    @Test("the ends of a range come, and nothing beyond them")
    func ranges() throws {
        #expect(Set(try Self.draws("{{fake.integer(-2, 2)}}")) == ["-2", "-1", "0", "1", "2"])
        #expect(Set(try Self.draws("{{fake.integer(7, 7)}}")) == ["7"])
        let whole = "{{fake.integer(-9223372036854775808, 9223372036854775807)}}"
        #expect(Set(try Self.draws(whole)).count == 300)
    }

    @Test("two tags of one text have values of their own")
    func tagsDiffer() throws {
        let pairs = try Self.draws("{{fake.uuid}} {{fake.uuid}}").map { $0.split(separator: " ") }
        #expect(pairs.allSatisfy { $0[0] != $0[1] })
    }

    /// What a seed means never changes: these are part of the contract.
    @Test func numbersStay() throws {
        let text = "{{fake.name}}|{{fake.city}}|{{fake.integer(1, 100)}}|{{fake.uuid}}|{{fake.date}}"
        let values = TemplateValues(method: "GET", target: "/", start: 42)
        let made = String(decoding: try DemoTemplate(text, escaping: .none).render(values), as: UTF8.self)
        #expect(made == "Olga Conti|Dakar|35|09bc585a-2448-43f2-9e44-31fa3c80db06|2006-07-21")
    }
}
