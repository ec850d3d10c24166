// The policies of a group of calls or a batch: the order of its calls, the effect of a failure on the others, and texts
// that contain values of earlier answers.

/// The order of the calls of a group; the raw value is the word in files.
package enum GroupMode: String, Sendable, CaseIterable {
    /// The calls are made one after the other, in order.
    case serial
    /// All calls are made at once.
    case concurrent
}

/// The effect of a call's failure on the others of its group; the raw value is the word in files.
package enum GroupFailurePolicy: String, Sendable, CaseIterable {
    /// No further call is begun; those in progress continue to their end.
    case stop
    case `continue`
    /// No further call is begun, and those in progress are cancelled.
    case cancel
}

/// A text with placeholders for values of earlier answers: `Bearer $(token)`. `$$(` stands for a plain `$(`.
package struct PlaceholderText: Sendable, Equatable {
    package enum Piece: Sendable, Equatable {
        case text(String)
        /// A placeholder for the value of this name.
        case value(String)
    }

    package var pieces: [Piece]

    package init(_ pieces: [Piece]) { self.pieces = pieces }

    /// Reads a text. A part is text unless it has the form `$(NAME)`, with a name of letters, digits, `_` and `-`.
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

    /// The name in `(NAME)…`; nil if the text does not begin so.
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

    /// The names of the placeholders, in order.
    package var names: [String] {
        pieces.compactMap { piece in
            guard case .value(let name) = piece else { return nil }
            return name
        }
    }

    /// The text with a value for each placeholder.
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

    /// The text with all but unreserved characters as `%` and two digits (RFC 3986 section 2.3).
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

    /// The text for display, with the names of the placeholders and no values.
    package var shown: String { filled { "$(\($0))" } }
}

/// The source of a value in an answer: `status`, `header.NAME` or `body.KEY.KEY`.
package enum TakenPath: Sendable, Equatable {
    case status
    /// The first line of a field with this name.
    case field(String)
    /// A value within a JSON body, by keys of objects and positions in arrays; empty for the whole body.
    case body([String])

    /// Reads a path.
    /// - Returns: nil if the words do not name a source.
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

/// The condition for a call, on a value that an earlier answer gave.
package struct ValueCondition: Sendable, Equatable {
    package var name: String
    /// The text to compare with the value; a missing value is an empty text.
    package var text: String
    /// Whether the call is made if the two are equal, or if they differ.
    package var wantsEqual: Bool

    package init(name: String, text: String, wantsEqual: Bool) {
        self.name = name
        self.text = text
        self.wantsEqual = wantsEqual
    }
}

// MARK: - Failures in a batch

/// The effect of an item's failure on the others of its batch; the raw value is the word in options and documents.
public enum BatchFailurePolicy: String, Sendable, Codable, CaseIterable {
    /// The others are downloaded all the same.
    case `continue`
    /// No further item is begun; those in progress continue to their end, and the rest stays queued.
    case stop
    /// No further item is begun, and those in progress are cancelled.
    case cancelRest = "cancel-rest"
}
