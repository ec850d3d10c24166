// Tests of one text, as the conditions of a rule write them: each kind once, and further ones as one regular expression.

import Content
import Matching

/// A test of a text.
indirect enum ValueTest: Equatable {
    case equals(String)
    case contains(String)
    /// A regular expression that is found in the text.
    case matches(String)
    case oneOf([String])
    case present(Bool)
    case not(ValueTest)

    /// A regular expression that is the whole text.
    static func matchesWhole(_ pattern: String) -> ValueTest { .matches(#"\A(?:"# + pattern + #")\z"#) }

    /// The test of a path, whatever it looks like.
    static func path(_ path: String) -> ContentTree {
        PathShape.looksLikePattern(path) ? [.matches(#"\A"# + quoted(path) + #"\z"#)].tree : .string(path)
    }

    /// The expression that ``matchesWhole(_:)`` was made of.
    static func inner(ofWhole pattern: String) -> String {
        guard pattern.hasPrefix(#"\A(?:"#), pattern.hasSuffix(#")\z"#) else { return pattern }
        return String(pattern.dropFirst(5).dropLast(3))
    }

    var key: String {
        switch self {
        case .equals: "is"
        case .contains: "contains"
        case .matches: "matches"
        case .oneOf: "one_of"
        case .present: "present"
        case .not: "not"
        }
    }

    var value: ContentTree {
        switch self {
        case .equals(let text), .contains(let text), .matches(let text): .string(text)
        case .oneOf(let texts): .texts(texts)
        case .present(let wanted): .bool(wanted)
        case .not(.equals(let text)): .string(text)
        case .not(let test): .object([.init(test.key, test.value)])
        }
    }

    /// What looks ahead for it from the beginning of the text; nil for a test that is none of the text itself.
    fileprivate var lookahead: String? {
        switch self {
        case .equals(let text): #"(?=\A"# + Self.quoted(text) + #"\z)"#
        case .contains(let text): #"(?=[\s\S]*"# + Self.quoted(text) + ")"
        case .matches(let pattern): #"(?=[\s\S]*?(?:"# + pattern + "))"
        case .oneOf(let texts): #"(?=\A(?:"# + texts.map(Self.quoted).joined(separator: "|") + #")\z)"#
        case .present: nil
        case .not(let test): test.lookahead.map { "(?!" + $0 + ")" }
        }
    }

    /// A regular expression for a text as it stands.
    static func quoted(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            if #"\^$.|?*+()[]{}#- "#.unicodeScalars.contains(scalar) { result += "\\" }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}

extension [ValueTest] {
    /// The tests as a configuration has them: a text alone where it must be equal.
    var tree: ContentTree {
        if count == 1, case .equals(let text) = self[0] { return .string(text) }
        var members: [ContentTree.Member] = []
        var further: [String] = []
        for test in self {
            if members.place(of: test.key) != nil {
                if let pattern = test.lookahead { further.append(pattern) }
            } else {
                members.append(.init(test.key, test.value))
            }
        }
        guard !further.isEmpty else { return .object(members) }
        if let place = members.place(of: "matches"), let pattern = members[place].value.text {
            further.insert(ValueTest.matches(pattern).lookahead ?? "", at: 0)
            members.remove(at: place)
        }
        return .object(members + [.init("matches", .string(#"\A"# + further.joined()))])
    }
}
