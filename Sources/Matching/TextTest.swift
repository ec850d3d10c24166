// Tests of what a request says under a name: in a query, a field, a cookie, a form or a part of the path.

/// A test of the values under one name.
package indirect enum TextTest: Sendable, Equatable {
    /// One of the values is this text.
    case equals(String)
    /// One of the values is one of these texts.
    case oneOf([String])
    /// One of the values has this text in it.
    case contains(String)
    /// The pattern is found in one of the values.
    case matches(Pattern)
    /// Whether there is any value.
    case present(Bool)
    /// The other test fails; it does so where there is no value, too.
    case not(TextTest)
    /// All of the tests hold.
    case all([TextTest])

    /// - Parameter time: of which a pattern that it looks for takes its part.
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
    /// What a value has to be: `'admin'`, `one of 'a', 'b'`, `missing`.
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
