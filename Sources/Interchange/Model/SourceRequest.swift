// A request of a source in the form in which a rule can ask for it: its content, and tests of single texts.

import Content
import HTTPWire
import Matching
import Trees

/// The content of a request.
enum SentBody: Equatable {
    case none
    /// The content can be asked for by these members of `when.body`.
    case known([ContentTree.Member])
    /// The content cannot be distinguished from others.
    case other

    /// The longest content, in bytes, that is written into a configuration.
    static let longest = 16384

    /// Reads the content from a text, which may be JSON.
    init(text: String, keepsSecrets: Bool) {
        if text.isEmpty {
            self = .none
        } else if text.utf8.count > Self.longest || text.contains("{{") {
            self = .other
        } else if let tree = try? JSONReader.read(Array(text.utf8)) {
            self = keepsSecrets || !tree.hasSecretNames ? .known([.init("is", tree)]) : .other
        } else {
            self = .known([.init("text", .string(text))])
        }
    }

    /// Reads the decoded items of a form; of several with one name the first one is asked for.
    init(form items: [(name: String, value: String)], keepsSecrets: Bool) {
        var members: [ContentTree.Member] = []
        for item in items where !item.name.isEmpty && members.firstIndex(named: item.name) == nil {
            guard keepsSecrets || !Secrets.isIn(item.value, of: item.name), !item.value.contains("{{") else {
                self = .other
                return
            }
            members.append(.init(item.name, .string(item.value)))
        }
        self = members.isEmpty ? .none : .known([.init("form", .object(members))])
    }

    /// The members of `when.body`; empty if the content is not asked for.
    var condition: [ContentTree.Member] {
        if case .known(let members) = self { members } else { [] }
    }

    /// Whether rules cannot distinguish the two contents.
    func isSame(_ other: SentBody) -> Bool { condition == other.condition }
}

// MARK: - Tests of a text

/// A test of a text.
indirect enum ValueTest: Equatable {
    case equals(String)
    case contains(String)
    /// A regular expression that matches a part of the text.
    case matches(String)
    case oneOf([String])
    case present(Bool)
    case not(ValueTest)

    /// A test for a regular expression that matches the whole text.
    static func matchesWhole(_ pattern: String) -> ValueTest { .matches(#"\A(?:"# + pattern + #")\z"#) }

    /// The test of an exact path, also of one that looks like a pattern.
    static func path(_ path: String) -> ContentTree {
        PathShape.looksLikePattern(path) ? [.matches(#"\A"# + quoted(path) + #"\z"#)].tree : .string(path)
    }

    /// The expression that ``matchesWhole(_:)`` was made from.
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

    /// A lookahead from the beginning of the text that has the same meaning as the test; nil for a test that is not
    /// about the text itself.
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

    /// A regular expression that matches exactly this text.
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
    /// The tests in the form of a configuration: a plain text if the value must be equal to it.
    var tree: ContentTree {
        if count == 1, case .equals(let text) = self[0] { return .string(text) }
        var members: [ContentTree.Member] = []
        var further: [String] = []
        for test in self {
            if members.firstIndex(named: test.key) != nil {
                if let pattern = test.lookahead { further.append(pattern) }
            } else {
                members.append(.init(test.key, test.value))
            }
        }
        guard !further.isEmpty else { return .object(members) }
        if let index = members.firstIndex(named: "matches"), let pattern = members[index].value.text {
            further.insert(ValueTest.matches(pattern).lookahead ?? "", at: 0)
            members.remove(at: index)
        }
        return .object(members + [.init("matches", .string(#"\A"# + further.joined()))])
    }
}
