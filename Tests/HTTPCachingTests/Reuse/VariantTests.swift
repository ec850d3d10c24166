// Several stored responses under one URL: listing their tags, and what a 304 updates (RFC 9111
// sections 4.3.1 and 4.3.4).

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Variants")
struct VariantTests {
    /// A stored response with these validators, `age` seconds old.
    static func variant(_ tag: String?, _ modified: Int64? = nil, age: Int64 = 0) -> StoredHead {
        var fields: [(String, String)] = [("Date", date(-age))]
        if let tag { fields.append(("ETag", tag)) }
        if let modified { fields.append(("Last-Modified", date(modified))) }
        return stored(fields)
    }

    private func conditions(_ head: StoredHead?, _ variants: [StoredHead]) -> [String]? {
        Caching.revalidation(request: request(), stored: head, variants: variants, policy: CachePolicy())?
            .conditions.lines.map { "\($0.name): \($0.value)" }
    }

    @Test("RFC 9111 4.3.1: If-None-Match lists the tags of all, each once; a date goes only where one is validated")
    func lists() {
        let first = Self.variant("\"a\"", -9)
        #expect(conditions(first, []) == ["If-None-Match: \"a\"", "If-Modified-Since: " + date(-9)])
        #expect(conditions(first, [first]) == ["If-None-Match: \"a\"", "If-Modified-Since: " + date(-9)])
        #expect(conditions(first, [Self.variant("W/\"b\"")]) == ["If-None-Match: \"a\", W/\"b\""])
        #expect(conditions(nil, [first, Self.variant("\"b\"")]) == ["If-None-Match: \"a\", \"b\""])
        #expect(conditions(nil, [first]) == ["If-None-Match: \"a\""])
        #expect(conditions(nil, [Self.variant(nil, -9)]) == nil)
        // A tag in the list would hide the only validator that this one has.
        #expect(conditions(Self.variant(nil, -9), [first]) == ["If-Modified-Since: " + date(-9)])
        // Without quotes a comma would make two of one.
        #expect(conditions(first, [Self.variant("x,y")])?.first == "If-None-Match: \"a\"")
        #expect(conditions(first, [Self.variant("\"x\"y\"")])?.first == "If-None-Match: \"a\"")
    }

    @Test("RFC 9111 3.5: the tag of what only authorized users may see is not named for others")
    func authorized() {
        func head(_ control: String) -> StoredHead {
            stored(
                [("ETag", "\"s\""), ("Cache-Control", control)],
                for: request(.get, [("Authorization", "Basic eA==")])
            )
        }
        #expect(conditions(nil, [head("max-age=9")]) == nil)
        #expect(conditions(nil, [head("max-age=9, public")]) == ["If-None-Match: \"s\""])
    }

    @Test("The list is bounded in bytes")
    func bound() throws {
        let many = (0..<500).map { Self.variant("\"\(String(repeating: "x", count: 20))\($0)\"") }
        let list = try #require(conditions(many.first, many)?.first)
        #expect(list.utf8.count < Caching.tagListLimit + 32 && list.utf8.count > Caching.tagListLimit - 64)
    }

    @Test("A Vary miss is checked by a conditional GET, whatever the policy prefers")
    func varyMiss() {
        let check = Caching.revalidation(
            request: request(),
            stored: nil,
            variants: [Self.variant("\"a\"")],
            policy: CachePolicy(revalidate: .head)
        )
        #expect(check?.kind == .conditional)
        let never = Caching.revalidation(
            request: request(),
            stored: nil,
            variants: [Self.variant("\"a\"")],
            policy: CachePolicy(revalidate: .never)
        )
        #expect(never == nil)
    }

    struct Update: Sendable, CustomTestStringConvertible {
        var variants: [StoredHead]
        var answer: [(String, String)]
        var updated: [Int]
        var testDescription: String { "\(variants.map(\.fields.description)) 304 \(answer) \(updated)" }

        init(_ variants: [StoredHead], _ answer: [(String, String)], _ updated: [Int]) {
            self.variants = variants
            self.answer = answer
            self.updated = updated
        }
    }

    static let a = variant("\"a\"", age: 5)
    static let a2 = variant("\"a\"", age: 3)
    static let b = variant("\"b\"", age: 1)
    static let weakA = variant("W/\"a\"", age: 4)
    static let dated = variant(nil, -9, age: 2)

    @Test(
        "RFC 9111 4.3.4: a strong tag updates all that have it, a weak one the most recent, none only a single one",
        arguments: [
            Update([a], [("ETag", "\"a\"")], [0]), Update([a, b], [("ETag", "\"a\"")], [0]),
            Update([a, b, a2], [("ETag", "\"a\"")], [2, 0]), Update([a, b], [("ETag", "\"c\"")], []),
            Update([a], [("ETag", "\"c\"")], []), Update([weakA], [("ETag", "\"a\"")], []),
            Update([a, a2, b], [("ETag", "W/\"a\"")], [1]), Update([weakA, b], [("ETag", "W/\"a\"")], [0]),
            Update([a, b], [("ETag", "W/\"c\"")], []), Update([a], [], [0]), Update([a, b], [], []),
            Update([dated], [], [0]), Update([dated], [("Last-Modified", date(-9))], [0]),
            Update([dated], [("Last-Modified", date(-8))], []), Update([dated], [("ETag", "\"x\"")], []),
            Update([a], [("Last-Modified", date(-9))], [0]),
            Update([a], [("ETag", "\"a\""), ("Last-Modified", date(-1))], [0]), Update([], [("ETag", "\"a\"")], []),
        ]
    )
    func updates(example: Update) throws {
        guard let first = example.variants.first else {
            #expect(
                Caching.variantsUpdated(
                    by: Fields(example.answer),
                    among: [],
                    asked: Revalidation(kind: .conditional, conditions: Fields())
                ).isEmpty
            )
            return
        }
        let asked = try #require(
            Caching.revalidation(
                request: request(),
                stored: first,
                variants: example.variants,
                policy: CachePolicy()
            )
        )
        let updated = Caching.variantsUpdated(by: Fields(example.answer), among: example.variants, asked: asked)
        #expect(updated == example.updated)
    }

    @Test("RFC 9111 4.3.4: where a client's list also names what is not stored, a 304 has to say what it is about")
    func foreignTags() {
        func updated(_ list: String, _ answer: [(String, String)]) -> [Int] {
            let asked = Revalidation(kind: .head, conditions: Fields([("If-None-Match", list)]))
            return Caching.variantsUpdated(by: Fields(answer), among: [Self.variant("\"a\"", -9)], asked: asked)
        }
        #expect(updated("\"a\"", []) == [0])
        #expect(updated("\"a\", \"a\"", []) == [0])
        #expect(updated("\"a\", \"b\"", []).isEmpty)
        #expect(updated("\"a\", \"b\"", [("ETag", "\"a\"")]) == [0])
        #expect(updated("\"a\", \"b\"", [("ETag", "\"b\"")]).isEmpty)
        #expect(updated("\"a\", \"b\"", [("Last-Modified", date(-9))]) == [0])
        #expect(updated("\"b\"", []).isEmpty && updated("*", []).isEmpty)
    }

    @Test("RFC 9111 4.3.4: what was not asked for is not updated")
    func notAsked() throws {
        let asked = try #require(
            Caching.revalidation(request: request(), stored: Self.a, policy: CachePolicy())
        )
        #expect(Caching.variantsUpdated(by: Fields(), among: [Self.b, Self.a, Self.dated], asked: asked) == [1])
        #expect(Caching.variantsUpdated(by: Fields([("ETag", "\"b\"")]), among: [Self.b], asked: asked).isEmpty)
    }
}
