// The challenges of a 401, read from WWW-Authenticate (RFC 9110 section 11.6.1).

/// One challenge: a scheme with a token or with parameters.
package struct FieldChallenge: Sendable, Hashable {
    /// The scheme in lower case.
    package var scheme: String
    /// The text after the scheme if it is not a list of parameters.
    package var token: String?
    /// The parameters by their names in lower case; the first one of duplicates counts.
    package var parameters: [String: String]

    package init(scheme: String, token: String? = nil, parameters: [String: String] = [:]) {
        self.scheme = scheme
        self.token = token
        self.parameters = parameters
    }

    /// The challenges of all lines of WWW-Authenticate, in order. The rest of a line after a mistake is left out.
    package static func all(in fields: Fields) -> [FieldChallenge] {
        fields.all(.wwwAuthenticate).flatMap { parse($0) }
    }

    /// The challenges of one value.
    package static func parse(_ value: String) -> [FieldChallenge] {
        var reader = ChallengeReader(Array(value.utf8))
        var found: [FieldChallenge] = []
        while reader.skipToMember() {
            guard let word = reader.token() else { break }
            switch reader.value() {
            case .text(let text):
                guard let last = found.indices.last, reader.isAtEndOfMember else { return found }
                found[last].parameters.merge([word.lowercased(): text]) { first, _ in first }
            case .malformed: return found
            case .absent:
                var challenge = FieldChallenge(scheme: word.lowercased())
                // The parameters of a challenge are members of the list like the next challenge.
                if reader.skipSpaces() { challenge.token = reader.token68() }
                found.append(challenge)
            }
        }
        return found
    }
}

/// Reads the bytes of a value from its beginning to its end.
private struct ChallengeReader {
    /// The value after the name of a parameter.
    enum Value {
        case text(String)
        /// There is no `=`, so the name is not that of a parameter.
        case absent
        /// There is an `=` without a value.
        case malformed
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Skips spaces and commas; false at the end.
    mutating func skipToMember() -> Bool {
        while let byte = next, Self.isSpace(byte) || byte == UInt8(ascii: ",") { position += 1 }
        return next != nil
    }

    /// Skips spaces; false if there are none.
    mutating func skipSpaces() -> Bool {
        let start = position
        while let byte = next, Self.isSpace(byte) { position += 1 }
        return position > start
    }

    /// True if only spaces are left before a comma, or before the end.
    var isAtEndOfMember: Bool {
        let rest = bytes[position...].drop { Self.isSpace($0) }
        return rest.first == nil || rest.first == UInt8(ascii: ",")
    }

    mutating func token() -> String? {
        let start = position
        while let byte = next, ByteClass.table[Int(byte)] & ByteClass.token != 0 { position += 1 }
        return start == position ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Reads the value after a name: `=` with a token or a quoted string.
    mutating func value() -> Value {
        let start = position
        _ = skipSpaces()
        guard next == UInt8(ascii: "=") else {
            position = start
            return .absent
        }
        position += 1
        _ = skipSpaces()
        guard next == UInt8(ascii: "\"") else { return token().map { .text($0) } ?? .malformed }
        position += 1
        var text: [UInt8] = []
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return .text(String(decoding: text, as: UTF8.self))
            case UInt8(ascii: "\\"):
                guard let escaped = next else { return .malformed }
                position += 1
                text.append(escaped)
            default: text.append(byte)
            }
        }
        return .malformed
    }

    /// Reads a token68; nil if there is something else, which is not consumed.
    mutating func token68() -> String? {
        let start = position
        while let byte = next, Self.isToken68(byte) { position += 1 }
        let length = position - start
        while next == UInt8(ascii: "=") { position += 1 }
        guard length > 0, isAtEndOfMember else {
            position = start
            return nil
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private static func isToken68(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "-._~+/".utf8.contains(byte)
        }
    }
}
