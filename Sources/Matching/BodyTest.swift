// Tests of a request: of its body as JSON, as a form or as text, and of the texts under a name.

import Content
package import Trees

/// A test of a body.
package enum BodyTest: Sendable, Equatable {
    /// A test of the value at a path of member names and positions; an empty path is the whole document.
    case json([String], TreeTest)
    /// A test of the values of a form's items with that name.
    case form(String, TextTest)
    /// A test of the body as text.
    case text(TextTest)

    func holds(_ body: RequestParts.Body, within time: PatternTime) -> Bool {
        guard case .whole(let body) = body else { return false }
        switch self {
        case .json(let path, let test):
            guard let tree = body.tree else { return false }
            return test.holds(tree.element(at: path), within: time)
        case .form(let name, let test): return test.holds(body.form(name), within: time)
        case .text(.matches(let pattern)): return pattern.verdict(body.bytes, within: time) == .found
        case .text(let test): return test.holds([String(decoding: body.bytes, as: UTF8.self)], within: time)
        }
    }

    func difference(_ body: RequestParts.Body) -> String {
        switch body {
        case .unread: return "\(key) needs the body"
        case .tooLong: return "\(key) needs a body that is shorter than 'body_limit'"
        case .whole(let body):
            switch self {
            case .json(let path, let test):
                let isSecret = path.contains(where: SecretNames.contains) || test.hasSecretNames
                guard let tree = body.tree else {
                    return "the body is no JSON" + (isSecret ? "" : ", and \(key) has to be \(test)")
                }
                let value = tree.element(at: path)
                if isSecret || value?.hasSecretNames ?? false {
                    return RequestClause.secret(key, isThere: value != nil, isWanted: test != .present(false))
                }
                return "\(key) is \(TreeTest.found(value)), not \(test)"
            case .form(let name, let test):
                return RequestClause.difference(key, name, body.form(name), test)
            // A text has no names; a test that mentions a password is not shown.
            case .text(let test) where SecretNames.contains(test.description):
                return RequestClause.secret(key, isThere: true, isWanted: true)
            case .text(let test): return "\(key) is not \(test)"
            }
        }
    }

    /// The name of the test in a configuration.
    private var key: String {
        switch self {
        case .json(let path, _): path.isEmpty ? "body" : "body.json.\(path.joined(separator: "."))"
        case .form(let name, _): "body.form.\(name)"
        case .text: "body.text"
        }
    }
}

/// A test of a value of JSON.
package indirect enum TreeTest: Sendable, Equatable {
    /// The value equals this one: members in any order, numbers by their value.
    case equals(ContentTree)
    case oneOf([ContentTree])
    /// The value includes this one: an object its members, an array its elements in any position, a text the text.
    case contains(ContentTree)
    /// The pattern matches a part of the text, number or truth value.
    case matches(Pattern)
    case present(Bool)
    /// The other test fails, which it also does if there is no value.
    case not(TreeTest)
    case all([TreeTest])

    /// Whether a value passes.
    /// - Parameter value: the value; nil if there is none.
    package func holds(_ value: ContentTree?, within time: PatternTime) -> Bool {
        switch self {
        case .equals(let other): value.map { $0.isSame(as: other) } ?? false
        case .oneOf(let others): value.map { value in others.contains { value.isSame(as: $0) } } ?? false
        case .contains(let part): value.map { $0.contains(part) } ?? false
        case .matches(let pattern):
            (value?.scalar).map { pattern.verdict(Array($0.utf8), within: time) == .found } ?? false
        case .present(let wanted): (value != nil) == wanted
        case .not(let test): !test.holds(value, within: time)
        case .all(let tests): tests.allSatisfy { $0.holds(value, within: time) }
        }
    }

    /// Whether a value in the test has a member whose name is one of credentials.
    var hasSecretNames: Bool {
        switch self {
        case .equals(let tree), .contains(let tree): tree.hasSecretNames
        case .oneOf(let trees): trees.contains(where: \.hasSecretNames)
        case .matches, .present: false
        case .not(let test): test.hasSecretNames
        case .all(let tests): tests.contains(where: \.hasSecretNames)
        }
    }

    static func found(_ value: ContentTree?) -> String { value.map(text) ?? "missing" }

    private static func text(_ tree: ContentTree) -> String {
        String(String(decoding: JSONWriter.bytes(tree), as: UTF8.self).prefix(64))
    }
}

extension TreeTest: CustomStringConvertible {
    /// The required value in words.
    package var description: String {
        switch self {
        case .equals(let tree): Self.text(tree)
        case .oneOf(let trees): "one of " + trees.map(Self.text).joined(separator: ", ")
        case .contains(let tree): "a value with \(Self.text(tree)) in it"
        case .matches(let pattern): "a text with a match of \(pattern)"
        case .present(let wanted): wanted ? "any value" : "missing"
        case .not(let test): "anything but \(test)"
        case .all(let tests): tests.map(\.description).joined(separator: " and ")
        }
    }
}

extension ContentTree {
    /// The value at a path of member names and of positions in arrays.
    package func element(at path: [String]) -> ContentTree? {
        var node = self
        for key in path {
            switch node {
            case .object:
                guard let member = node[key] else { return nil }
                node = member
            case .array(let values):
                guard let position = Int(key), values.indices.contains(position) else { return nil }
                node = values[position]
            default: return nil
            }
        }
        return node
    }

    /// Whether two values are equal: members in any order, numbers by their value.
    fileprivate func isSame(as other: ContentTree) -> Bool {
        switch (self, other) {
        case (.number(let a), .number(let b)): a == b || DecimalNumber(a).map { $0 == DecimalNumber(b) } ?? false
        case (.array(let a), .array(let b)): a.count == b.count && zip(a, b).allSatisfy { $0.isSame(as: $1) }
        case (.object(let a), .object(let b)):
            a.count == b.count && a.allSatisfy { member in other[member.name].map(member.value.isSame) ?? false }
        default: self == other
        }
    }

    /// Whether the value includes another one.
    fileprivate func contains(_ part: ContentTree) -> Bool {
        switch (self, part) {
        case (.object, .object(let members)):
            members.allSatisfy { member in self[member.name]?.contains(member.value) ?? false }
        case (.array(let values), .array(let parts)):
            parts.allSatisfy { part in values.contains { $0.contains(part) } }
        case (.array(let values), _): values.contains { $0.contains(part) }
        case (.string(let text), .string(let part)): text.utf8.contains(part.utf8)
        default: isSame(as: part)
        }
    }
}

// MARK: - Tests of a text

/// A test of the values under one name.
package indirect enum TextTest: Sendable, Equatable {
    /// One of the values is this text.
    case equals(String)
    /// One of the values is one of these texts.
    case oneOf([String])
    /// One of the values contains this text.
    case contains(String)
    /// The pattern matches a part of one of the values.
    case matches(Pattern)
    /// There is a value, or none if the case has false.
    case present(Bool)
    /// The other test fails, which it also does if there is no value.
    case not(TextTest)
    /// All of the tests pass.
    case all([TextTest])

    /// Whether the values pass.
    /// - Parameter time: the time that patterns may still take.
    package func holds(_ values: [String], within time: PatternTime) -> Bool {
        switch self {
        case .equals(let text): values.contains(text)
        case .oneOf(let texts): values.contains { texts.contains($0) }
        case .contains(let text): values.contains { $0.utf8.contains(text.utf8) }
        case .matches(let pattern): values.contains { pattern.verdict(Array($0.utf8), within: time) == .found }
        case .present(let wanted): values.isEmpty != wanted
        case .not(let test): !test.holds(values, within: time)
        case .all(let tests): tests.allSatisfy { $0.holds(values, within: time) }
        }
    }
}

extension TextTest: CustomStringConvertible {
    /// The required value in words: `'admin'`, `one of 'a', 'b'`, `missing`.
    package var description: String {
        switch self {
        case .equals(let text): "'\(text)'"
        case .oneOf(let texts): "one of " + texts.map { "'\($0)'" }.joined(separator: ", ")
        case .contains(let text): "a text with '\(text)' in it"
        case .matches(let pattern): "a text with a match of \(pattern)"
        case .present(let wanted): wanted ? "any value" : "missing"
        case .not(let test): "anything but \(test)"
        case .all(let tests): tests.map(\.description).joined(separator: " and ")
        }
    }
}
