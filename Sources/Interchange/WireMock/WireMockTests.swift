// The tests that WireMock makes of a value, and of a body.

import Content
import Contracts
import Matching
import Trees

/// Tests of a header, a query parameter, a cookie or a form parameter.
enum WireMockTests {
    /// Reads the tests of a value.
    /// - Throws: an error for a test that no rule can have.
    static func read(_ value: ContentTree, _ location: DocumentLocation) throws(Unkept) -> [ValueTest] {
        // A plain text must be equal to the value.
        if let text = value.scalar { return [.equals(text)] }
        var tests: [ValueTest] = []
        let ignoresCase = value["caseInsensitive"]?.isTrue == true
        for member in value.members ?? [] {
            let here = location.within(member.name)
            switch member.name {
            case "caseInsensitive": break
            case "equalTo":
                let text = try text(member.value, here)
                tests.append(ignoresCase ? .matches(#"\A(?i:"# + ValueTest.quoted(text) + #")\z"#) : .equals(text))
            case "contains": tests.append(.contains(try text(member.value, here)))
            case "doesNotContain": tests.append(.not(.contains(try text(member.value, here))))
            case "matches": tests.append(.matches(try checked(whole(try text(member.value, here)), here)))
            case "doesNotMatch": tests.append(.not(.matches(try checked(whole(try text(member.value, here)), here))))
            case "absent": tests.append(.present(member.value != .bool(true)))
            case "and":
                for (position, part) in (member.value.elements ?? []).enumerated() {
                    tests += try read(part, here.within(position))
                }
            case "or":
                var texts: [String] = []
                for part in member.value.elements ?? [] {
                    guard part.members?.count == 1, let text = part["equalTo"]?.scalar else {
                        throw Unkept(here, "of alternatives a rule can only have texts that are equal")
                    }
                    texts.append(text)
                }
                tests.append(.oneOf(texts))
            case "hasExactly", "includes":
                for (position, part) in (member.value.elements ?? []).enumerated() {
                    guard position == 0 else {
                        throw Unkept(here, "a rule looks for one of several values, not for all")
                    }
                    tests += try read(part, here.within(position))
                }
            default: throw Unkept(here, "a rule has no test like it")
            }
        }
        guard !tests.isEmpty else { throw Unkept(location, "it says nothing that a rule could ask for") }
        return tests
    }

    private static func text(_ value: ContentTree, _ location: DocumentLocation) throws(Unkept) -> String {
        guard let text = value.scalar else { throw Unkept(location, "it is no text") }
        return text
    }

    private static func whole(_ pattern: String) -> String { #"\A(?:"# + pattern + #")\z"# }

    /// A regular expression of Java, checked to be one of PCRE2, too.
    static func checked(_ pattern: String, _ location: DocumentLocation) throws(Unkept) -> String {
        do throws(Pattern.Malformed) {
            return try Pattern(pattern).text
        } catch {
            throw Unkept(location, "the regular expression is none of PCRE2: \(error.reason)")
        }
    }
}

/// The body patterns of a stub in the form of `when.body`.
struct WireMockBody {
    private var json: [ContentTree.Member] = []
    private var form: [ContentTree.Member] = []
    private var texts: [ValueTest] = []
    private var whole: ContentTree?
    private var part: ContentTree?

    var members: [ContentTree.Member] {
        var members: [ContentTree.Member] = []
        if let whole { members.append(.init("is", whole)) }
        if let part { members.append(.init("contains", part)) }
        if !json.isEmpty { members.append(.init("json", .object(json))) }
        if !form.isEmpty { members.append(.init("form", .object(form))) }
        if !texts.isEmpty { members.append(.init("text", texts.tree)) }
        return members
    }

    mutating func add(form name: String, _ tests: [ValueTest]) { form.append(.init(name, tests.tree)) }

    /// Adds a body pattern.
    /// - Throws: an error for a pattern that no rule can have.
    mutating func add(_ pattern: ContentTree, _ location: DocumentLocation, _ draft: inout ImportDraft) throws(Unkept) {
        if let value = pattern["equalToJson"] {
            return try equal(value, pattern, location.within("equalToJson"), &draft)
        }
        if let value = pattern["matchesJsonPath"] {
            return try path(value, pattern, location.within("matchesJsonPath"), &draft)
        }
        let tests = try WireMockTests.read(pattern, location)
        if tests.contains(where: { if case .present = $0 { true } else { false } }) {
            throw Unkept(location, "a rule cannot ask for a request without a body")
        }
        texts += tests
    }

    private mutating func equal(
        _ value: ContentTree,
        _ pattern: ContentTree,
        _ location: DocumentLocation,
        _ draft: inout ImportDraft
    ) throws(Unkept) {
        var tree = value
        if let text = value.text {
            guard let read = try? JSONReader.read(Array(text.utf8)) else { throw Unkept(location, "this is no JSON") }
            tree = read
        }
        if Self.hasPlaceholder(tree) { throw Unkept(location, "a rule compares JSON without placeholders of JsonUnit") }
        if !draft.keepsSecrets, tree.hasSecretNames {
            draft.countSecret()
            draft.change(location, "the document has secrets: the rule does not ask for it")
            return
        }
        let ignoresExtra = pattern["ignoreExtraElements"]?.isTrue == true
        // The order matters only if there is a list.
        let ignoresOrder = pattern["ignoreArrayOrder"]?.isTrue == true && Self.hasList(tree)
        if ignoresOrder, !ignoresExtra {
            draft.change(location, "the rule takes lists in any order, and more elements, too")
        }
        if ignoresExtra || ignoresOrder {
            guard part == nil else { throw Unkept(location, "a rule compares one such document") }
            part = tree
        } else {
            guard whole == nil else { throw Unkept(location, "a rule compares one such document") }
            whole = tree
        }
    }

    private static func hasList(_ tree: ContentTree) -> Bool {
        if let values = tree.elements { return values.count > 1 || values.contains(where: hasList) }
        return tree.members?.contains { hasList($0.value) } ?? false
    }

    private static func hasPlaceholder(_ tree: ContentTree) -> Bool {
        switch tree {
        case .string(let text): text.contains("${json-unit.")
        case .array(let values): values.contains(where: hasPlaceholder)
        case .object(let members): members.contains { hasPlaceholder($0.value) }
        default: false
        }
    }

    private mutating func path(
        _ value: ContentTree,
        _ pattern: ContentTree,
        _ location: DocumentLocation,
        _ draft: inout ImportDraft
    ) throws(Unkept) {
        guard let expression = value.text ?? value["expression"]?.text else {
            throw Unkept(location, "it has no expression")
        }
        guard let path = JSONPath(expression) else {
            throw Unkept(location, "'\(expression)' is more than names and positions, which a rule can ask for")
        }
        guard let last = path.names.last else { throw Unkept(location, "'\(expression)' is the whole document") }
        var tests: ContentTree
        if let filtered = path.equals {
            tests = .object([.init("is", filtered)])
        } else if value.text != nil {
            tests = .object([.init("present", .bool(true))])
        } else {
            tests = try Self.tests(value, location)
        }
        if !draft.keepsSecrets, SecretNames.contains(last), tests["present"] == nil {
            draft.countSecret()
            draft.change(location, "the value of '\(last)' may be a secret: the rule asks only that it is there")
            tests = .object([.init("present", .bool(true))])
        }
        let key = path.names.joined(separator: ".")
        guard !json.contains(where: { $0.name == key }) else {
            throw Unkept(location, "a rule has one test of '\(key)'")
        }
        json.append(.init(key, tests))
    }

    /// The tests of a JSON value; a text also matches the number that is spelled so.
    private static func tests(_ value: ContentTree, _ location: DocumentLocation) throws(Unkept) -> ContentTree {
        let members = (value.members ?? []).filter { !$0.name.isSameName(as: "expression") }
        if members.count == 1, members[0].name.isSameName(as: "equalToJson") {
            let tree = members[0].value
            guard let text = tree.text else { return .object([.init("is", tree)]) }
            guard let read = try? JSONReader.read(Array(text.utf8)) else { throw Unkept(location, "this is no JSON") }
            return .object([.init("is", read)])
        }
        let tests = try WireMockTests.read(.object(members), location)
        if tests.count == 1, case .equals(let text) = tests[0] {
            let read = try? JSONReader.read(Array(text.utf8))
            switch read {
            case .number?, .bool?: return .object([.init("one_of", .array([.string(text), read ?? .null]))])
            default: return .object([.init("is", .string(text))])
            }
        }
        if case .string(let text) = tests.tree { return .object([.init("is", .string(text))]) }
        return tests.tree
    }
}

/// A path of names and positions: `$.a.b[0]`, `$['a']`, and `$[?(@.a == 'x')]` of an object.
struct JSONPath {
    private(set) var names: [String] = []
    /// The value that a filter requires; nil without a filter.
    private(set) var equals: ContentTree?

    init?(_ text: String) {
        var rest = Substring(text.filter { $0 != "\n" })
        guard rest.first == "$" else { return nil }
        rest.removeFirst()
        while let first = rest.first {
            if first == "." {
                let name = rest.dropFirst().prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "-" }
                guard !name.isEmpty else { return nil }
                names.append(String(name))
                rest = rest.dropFirst(name.count + 1)
            } else if rest.hasPrefix("[?(@."), rest.hasSuffix(")]"), names.isEmpty {
                let parts = rest.dropFirst(5).dropLast(2).split(separator: "==", maxSplits: 1)
                guard parts.count == 2, let path = JSONPath("$." + Self.trimmed(parts[0])), path.equals == nil else {
                    return nil
                }
                let literal = Self.trimmed(parts[1])
                if literal.hasPrefix("'"), literal.hasSuffix("'"), literal.utf8.count > 1 {
                    let inner = literal.dropFirst().dropLast()
                    guard !inner.contains("'") else { return nil }
                    equals = .string(String(inner))
                } else {
                    guard let tree = try? JSONReader.read(Array(literal.utf8)), tree.scalar != nil else { return nil }
                    equals = tree
                }
                names = path.names
                rest = ""
            } else if first == "[", let end = rest.firstIndex(of: "]") {
                let inner = rest[rest.index(after: rest.startIndex)..<end]
                if inner.first == "'", inner.last == "'", inner.count > 2 {
                    let name = inner.dropFirst().dropLast()
                    guard !name.contains("."), !name.contains("'") else { return nil }
                    names.append(String(name))
                } else {
                    guard let position = Int(inner), position >= 0 else { return nil }
                    names.append(String(position))
                }
                rest = rest[rest.index(after: end)...]
            } else {
                return nil
            }
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        var text = text
        while text.first == " " { text.removeFirst() }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
