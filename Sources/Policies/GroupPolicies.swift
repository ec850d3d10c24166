// What a group of calls or a batch says of itself: how its calls follow one another, what a failure means for the rest,
// and the texts in which answers are put.

/// How the calls of a group follow one another; the raw value is what files say.
package enum GroupMode: String, Sendable, CaseIterable {
    /// One after the other, in order.
    case serial
    /// All at once.
    case concurrent
}

/// What the failure of a call means for the others of its group; the raw value is what files say.
package enum GroupFailurePolicy: String, Sendable, CaseIterable {
    /// No further call is begun; those under way end as they may.
    case stop
    case `continue`
    /// The rest is not begun, and calls under way are cancelled, too.
    case cancel
}

/// A text with places for values that earlier answers gave: `Bearer $(token)`. `$$(` is a plain `$(`.
package struct PlaceholderText: Sendable, Equatable {
    package enum Piece: Sendable, Equatable {
        case text(String)
        /// The place of the value of this name.
        case value(String)
    }

    package var pieces: [Piece]

    package init(_ pieces: [Piece]) { self.pieces = pieces }

    /// What does not have the form `$(NAME)`, with a name of letters, digits, `_` and `-`, is text.
    package init(_ text: String) {
        pieces = []
        var rest = text[...]
        var plain = ""
        while let dollar = rest.firstIndex(of: "$") {
            plain += rest[..<dollar]
            rest = rest[dollar...].dropFirst()
            if rest.hasPrefix("$(") {
                plain += "$("
                rest = rest.dropFirst(2)
            } else if let name = Self.name(rest) {
                if !plain.isEmpty { pieces.append(.text(plain)) }
                plain = ""
                pieces.append(.value(name))
                rest = rest.dropFirst(name.count + 2)
            } else {
                plain += "$"
            }
        }
        plain += rest
        if !plain.isEmpty { pieces.append(.text(plain)) }
    }

    /// The name in `(NAME)…`; nil where the text does not begin so.
    private static func name(_ text: Substring) -> String? {
        guard text.first == "(", let end = text.firstIndex(of: ")") else { return nil }
        let name = String(text[..<end].dropFirst())
        return isName(name) ? name : nil
    }

    /// Whether a value may have this name.
    package static func isName(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 95
                    || byte == 45
            }
    }

    /// The names of the values that it has places for, in order.
    package var names: [String] {
        pieces.compactMap { piece in
            guard case .value(let name) = piece else { return nil }
            return name
        }
    }

    /// The text with a value in each place.
    package func filled<Failure: Error>(_ value: (String) throws(Failure) -> String) throws(Failure) -> String {
        var result = ""
        for piece in pieces {
            switch piece {
            case .text(let text): result += text
            case .value(let name): result += try value(name)
            }
        }
        return result
    }

    /// All but unreserved characters becomes `%` and two digits (RFC 3986 section 2.3).
    package static func percentEncoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch Unicode.Scalar(byte) {
            case "a"..."z", "A"..."Z", "0"..."9", "-", ".", "_", "~":
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default: result += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    /// The text as it is shown: with the names of the places and no values.
    package var shown: String { filled { "$(\($0))" } }
}

/// Where in an answer a value is: `status`, `header.NAME` or `body.KEY.KEY`.
package enum TakenPath: Sendable, Equatable {
    case status
    /// The first line of a field.
    case field(String)
    /// A value within a JSON body, by keys of objects and positions in arrays; empty for the whole.
    case body([String])

    /// - Returns: nil where the words name no place.
    package init?(words: String) {
        if words == "status" {
            self = .status
        } else if words.hasPrefix("header."), words.count > 7 {
            self = .field(String(words.dropFirst(7)))
        } else if words == "body" {
            self = .body([])
        } else if words.hasPrefix("body.") {
            let keys = words.dropFirst(5).split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            guard !keys.contains("") else { return nil }
            self = .body(keys)
        } else {
            return nil
        }
    }
}

/// Whether a call is made, by a value that an earlier answer gave.
package struct ValueCondition: Sendable, Equatable {
    package var name: String
    /// The text that the value is compared with; a value that was not taken is an empty text.
    package var text: String
    /// The call is made if the two are the same; else if they differ.
    package var wantsEqual: Bool

    package init(name: String, text: String, wantsEqual: Bool) {
        self.name = name
        self.text = text
        self.wantsEqual = wantsEqual
    }
}

// MARK: - Failures in a batch

/// What the failure of an item means for the others; the raw value is what options and documents say.
package enum BatchFailurePolicy: String, Sendable, Codable, CaseIterable {
    case `continue`
    /// No further item is begun; those under way end as they may, and the rest stays queued.
    case stop
    /// The rest is not begun, and items under way are cancelled, too.
    case cancelRest = "cancel-rest"
}
