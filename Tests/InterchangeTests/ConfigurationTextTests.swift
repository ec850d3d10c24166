// The text of a configuration means exactly the tree that it was written from.

import Interchange
import Testing
import Trees
import YAML

@Suite struct ConfigurationTextTests {
    /// A document as YAML reads it.
    private static func read(_ text: String) throws -> ContentTree {
        try tree(#require(try Node.read(Array(text.utf8), limits: Limits(levels: 100, values: 100_000))))
    }

    private static func tree(_ node: Node) -> ContentTree {
        switch node.content {
        case .scalar(let text, .plain):
            text == "null"
                ? .null
                : text == "true" || text == "false"
                    ? .bool(text == "true") : Double(text) == nil ? .string(text) : .number(text)
        case .scalar(let text, _): .string(text.replacing("$${", with: "${"))
        case .sequence(let nodes): .array(nodes.map(tree))
        case .mapping(let pairs):
            .object(
                pairs.map { pair in
                    if case .scalar(let name, _) = pair.key.content {
                        .init(name, tree(pair.value))
                    } else {
                        .init("?", .null)
                    }
                }
            )
        case .alias(of: let node): tree(node)
        }
    }

    @Test(arguments: [
        "", " ", "a", "true", "No", "~", "null", "1", "1e3", "0x1F", "1:30", "- a", "a: b", "a #b", "#", "&a", "*a",
        "!t", "%", "@", "`",
        "{", "}", "[", "]", ",", "?", "|", ">", "'", "\"", "\\", "a\nb", "\r\n", "\t", "\0", "\u{7F}", "\u{85}",
        "\u{A0}", "\u{2028}",
        "\u{FEFF}", "\u{FFFE}", "😀", "${HOME}", "$${x}", "$$${", "250ms", "20ms..80ms", "1.5e3", "/a/b", "../x", "---",
        "=", "<<",
        "2026-01-01", "0o17", "1_000", ".inf", "+1", "-", "é",
    ]) func everyTextIsReadAsItWas(_ text: String) throws {
        let tree = ContentTree.object([
            .init(
                "services",
                .array([
                    .object([.init("name", .string(text)), .init("k", .object([.init("v", .array([.string(text)]))]))])
                ])
            )
        ])
        #expect(try Self.read(ConfigurationText.text(tree)) == tree)
    }

    @Test func everyTreeIsReadAsItWas() throws {
        var random = SeededGenerator(11)
        func text() -> String {
            String(
                String.UnicodeScalarView(
                    (0..<Int.random(in: 0...12, using: &random)).map { _ in
                        let pool: [ClosedRange<UInt32>] = [
                            0...0x7F, 0x20...0x7E, 0x80...0x2FF, 0x2020...0x2030, 0xFFF0...0xFFFF, 0x1F600...0x1F610,
                        ]
                        return Unicode.Scalar(UInt32.random(in: pool.randomElement(using: &random)!, using: &random))
                            ?? "x"
                    }
                )
            )
        }
        func tree(_ depth: Int) -> ContentTree {
            switch Int.random(in: 0...(depth > 5 ? 4 : 8), using: &random) {
            case 0: .null
            case 1: .bool(Bool.random(using: &random))
            case 2: .number(String(Int.random(in: -1000...1000, using: &random)))
            case 3, 4: .string(text())
            case 5, 6: .array((0..<Int.random(in: 0...4, using: &random)).map { _ in tree(depth + 1) })
            default:
                .object((0..<Int.random(in: 0...4, using: &random)).map { .init("k\($0)" + text(), tree(depth + 1)) })
            }
        }
        for _ in 0..<2000 {
            let whole = ContentTree.object([.init("a", tree(0)), .init("b", tree(0))])
            let written = ConfigurationText.text(whole)
            #expect(try Self.read(written) == whole, "\(written)")
        }
    }
}
