// For every key of the table: a misspelling, a wrong type and a wrong unit are told at their exact line and column.

import KeySupport
import Matching
import Testing

@testable import Configuration

extension KeyCase {
    /// A document that holds nothing but the way to one line `NAME: VALUE`, with the positions of both.
    func document(name: String, value: String) -> (text: String, key: String, value: String) {
        var lines: [String] = ["# first line", ""]
        var indent = ""
        var dash = ""
        for step in way {
            lines.append(indent + dash + step.name + ":")
            indent += dash.isEmpty ? "  " : "    "
            dash = step.isList ? "- " : ""
        }
        lines.append(indent + dash + name + ": " + value)
        let column = indent.count + dash.count + 1
        return (
            lines.joined(separator: "\n") + "\n", "\(lines.count):\(column)",
            "\(lines.count):\(column + name.count + 2)"
        )
    }

    /// Near the key, and no key of the section itself.
    var misspelt: String {
        var letters = Array(key.name)
        letters.swapAt(0, 1)
        let swapped = String(letters)
        return section.key(swapped) == nil ? swapped : key.name + "x"
    }
}

extension ValueKind {
    /// Values of another type, as YAML in one line.
    var wrongTypes: [String] {
        switch self {
        case .boolean: ["maybe", "\"true\"", "7", "[true]", "{ a: b }"]
        case .integer: ["many", "\"5\"", "1.5", "[5]", "{ a: b }"]
        case .word(_, or: let other): other.wrongTypes
        case .weighted(let single): single.wrongTypes.filter { !$0.hasPrefix("{") }
        case .list, .map: ["text"]
        case .oneOrMore: ["{ a: b }"]
        case .section, .sections: ["text", "7"]
        // A text names a profile.
        case .rules: []
        case .shorthand(let section, let key):
            switch section.key(key)?.kind {
            case .text?, .demoFile?, .path?: ["[x, y]"]
            default: ["text"]
            }
        case .tree: []
        case .client: ["{ a: b }", "[x]"]
        case .mappingRule: ["[x, y]"]
        default: ["[x, y]", "{ a: b }"]
        }
    }

    /// Values without their unit, or with a foreign one, and the spelling that the message must offer.
    var wrongUnits: [(value: String, right: String)] {
        switch self {
        case .duration, .lifetime: [("5", "5s"), ("5sec", "5s"), ("5 min", "5m"), ("7D", "7d"), ("5MiB", "250ms")]
        case .shift: [("-5", "5s"), ("+5 min", "5m"), ("1MiB", "250ms")]
        case .size: [("65536", "64KiB"), ("100", "100B"), ("64MB", "64MiB"), ("8kb", "8KiB"), ("5s", "64KiB")]
        case .share: [("20", "20%"), ("0.2", "20%"), ("1%%", "20%")]
        case .rate: [("64KiB", "64KiB/s"), ("64KB/s", "64KiB")]
        case .latency, .distribution: [("200", "200ms"), ("200..900ms", "200ms"), ("200ms..900", "900ms")]
        case .word(_, or: let other): other.wrongUnits
        default: []
        }
    }
}

@Suite struct EveryKeyTests {
    static let cases = KeyCase.all()

    @Test func theTableIsWalkedWhole() {
        let names = Set(Self.cases.map(\.description))
        #expect(names.count == Self.cases.count)
        for name in [
            "listen", "admin.mode", "forward.cache.collapse.wait", "defaults.demo.failure.chance",
            "services[].endpoints[].cache.ttl",
        ] {
            #expect(names.contains(name), "\(name)")
        }
    }

    @Test(arguments: cases) func misspelling(_ one: KeyCase) {
        let document = one.document(name: one.misspelt, value: "1")
        expectError(document.text, document.key, ["unknown key '\(one.misspelt)'; did you mean '"])
        #expect(Suggestions.nearest(to: one.misspelt, among: [one.key.name]) == one.key.name)
    }

    @Test(arguments: cases) func wrongType(_ one: KeyCase) {
        for value in one.key.kind.wrongTypes {
            let document = one.document(name: one.key.name, value: value)
            expectError(document.text, document.value, ["'", one.key.name])
        }
    }

    @Test(arguments: cases) func noValue(_ one: KeyCase) {
        switch one.key.kind {
        case .section, .sections, .rules, .map, .list: return
        default: break
        }
        let document = one.document(name: one.key.name, value: "")
        expectError(document.text, document.key, [one.key.name, "has no value"])
    }

    @Test(arguments: cases.filter { !$0.key.kind.wrongUnits.isEmpty }) func wrongUnit(_ one: KeyCase) {
        for (value, right) in one.key.kind.wrongUnits {
            let document = one.document(name: one.key.name, value: value)
            expectError(document.text, document.value, ["write", right])
        }
    }

    @Test(arguments: cases.filter { $0.key.defaultText != nil }) func duplicate(_ one: KeyCase) {
        let document = one.document(name: one.key.name, value: one.key.defaultText ?? "")
        let lines = document.text.split(separator: "\n", omittingEmptySubsequences: false)
        // The second one stands a line below, in the same column, behind spaces where the first has its dash.
        let again = String(lines[lines.count - 2].map { $0 == "-" ? " " : $0 })
        let text = document.text + again + "\n"
        let column = document.key.split(separator: ":")[1]
        expectError(text, "\(lines.count):\(column)", ["duplicate key '\(one.key.name)'", "line \(lines.count - 1)"])
    }

    @Test(arguments: cases.filter { $0.key.defaultText != nil }) func defaultsParse(_ one: KeyCase) {
        #expect(SectionReader.defaultValue(one.key) != nil)
    }
}
