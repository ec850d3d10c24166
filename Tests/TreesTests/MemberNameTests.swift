// Names that look alike and are not the same: JSON compares code points (RFC 8259 section 8.3), Swift canonical forms.

import Policies
import Testing

@testable import Trees

@Suite struct MemberNameTests {
    /// One letter with an accent, and a letter with an accent behind it.
    private static let (one, two) = ("\u{E9}", "e\u{301}")

    private static func tree(_ text: String) throws -> ContentTree { try JSONReader.read(Array(text.utf8)) }

    @Test func twoSpellingsAreTwoMembers() throws {
        let tree = try Self.tree("{\"\(Self.one)\":1,\"\(Self.two)\":2}")
        #expect(tree[Self.one] == .number("1"))
        #expect(tree[Self.two] == .number("2"))
        #expect(tree.value(at: [Self.two]) == .number("2"))
        #expect(throws: TreeError.self) { try Self.tree("{\"\(Self.one)\":1,\"\\u00e9\":2}") }
        // A sign for Kelvin is no K.
        #expect(try Self.tree("{\"\u{212A}\":1}")["K"] == nil)
    }

    @Test func aTreeDiffersInSpelling() throws {
        let (left, right) = (try Self.tree("{\"\(Self.one)\":1}"), try Self.tree("{\"\(Self.two)\":1}"))
        #expect(left != right)
        #expect(Set([left, right]).count == 2)
        #expect(TreeDifferences(from: left, to: right).texts.count == 2)
        #expect(ContentTree.string(Self.one) != .string(Self.two))
        #expect(left.filled(from: right).members?.count == 2)
        #expect(left.changing([Self.two][...]) { _ in .null } == left)
    }

    @Test func formsAndStylesKeepThemApart() throws {
        let form = try FormItems.read(Array("\(Self.one)=1&\(Self.two)=2".utf8))
        #expect(form.members?.count == 2)
        let renamed = try NameStyle.snake.renamed(try Self.tree("{\"\(Self.one)\":1,\"\(Self.two)\":2}"))
        #expect(renamed.members?.map { Array($0.name.utf8) } == [Array(Self.one.utf8), Array(Self.two.utf8)])
    }
}
