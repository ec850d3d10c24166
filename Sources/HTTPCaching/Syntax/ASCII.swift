// Byte-level helpers for field values and patterns: the caching rules read bytes, so that what is stored survives
// unchanged.

import HTTPWire

enum ASCII {
    static let comma = UInt8(ascii: ",")
    static let equals = UInt8(ascii: "=")
    static let quote = UInt8(ascii: "\"")
    static let backslash = UInt8(ascii: "\\")
    static let semicolon = UInt8(ascii: ";")

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
    static func isUpper(_ byte: UInt8) -> Bool { byte >= 0x41 && byte <= 0x5A }
    static func isLower(_ byte: UInt8) -> Bool { byte >= 0x61 && byte <= 0x7A }
    static func isAlpha(_ byte: UInt8) -> Bool { isUpper(byte) || isLower(byte) }
    static func lower(_ byte: UInt8) -> UInt8 { isUpper(byte) ? byte | 0x20 : byte }

    /// Whether the byte may be in a token (RFC 9110 section 5.6.2).
    static func isTokenByte(_ byte: UInt8) -> Bool {
        if isAlpha(byte) || isDigit(byte) { return true }
        switch byte {
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            return true
        default:
            return false
        }
    }

    static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(isTokenByte)
    }

    static func trim(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var slice = bytes
        while let first = slice.first, isSpace(first) { slice.removeFirst() }
        while let last = slice.last, isSpace(last) { slice.removeLast() }
        return slice
    }

    /// Whether two names differ only in case and in `_` for `-`, which CGI, WSGI and Rack treat as the same, and at
    /// least one underscore is in one of them.
    /// - Parameter known: the first name in lower case.
    static func isTwin(_ known: some Collection<UInt8>, _ name: UnsafeRawBufferPointer) -> Bool {
        guard known.count == name.count else { return false }
        var differs = false
        for (one, other) in zip(known, name) where one != lower(other) {
            let pair = (one, other)
            guard pair == (0x2D, 0x5F) || pair == (0x5F, 0x2D) else { return false }
            differs = true
        }
        return differs
    }

    static func lowercased(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.map(lower), as: UTF8.self)
    }

    static func equalIgnoringCase(_ bytes: some Collection<UInt8>, _ other: some Collection<UInt8>) -> Bool {
        bytes.count == other.count && zip(bytes, other).allSatisfy { lower($0) == lower($1) }
    }

    /// The members of a comma-separated list, trimmed, empty ones dropped (RFC 9110 section 5.6.1). Commas inside a
    /// quoted string do not separate; a quote that never closes does not hide what follows it.
    static func listMembers(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var members: [ArraySlice<UInt8>] = []
        var start = 0
        var index = 0
        func close(at end: Int) {
            let member = trim(bytes[start..<end])
            if !member.isEmpty { members.append(member) }
        }
        while index < bytes.count {
            if bytes[index] == quote, let end = endOfQuotedString(bytes, from: index) {
                index = end
            } else {
                if bytes[index] == comma {
                    close(at: index)
                    start = index + 1
                }
                index += 1
            }
        }
        close(at: bytes.count)
        return members
    }

    /// The offset after the closing quote of the quoted string that opens at `from`, or nil if it never closes.
    static func endOfQuotedString(_ bytes: [UInt8], from: Int) -> Int? {
        var index = from + 1
        while index < bytes.count {
            if bytes[index] == backslash {
                index += 2
            } else if bytes[index] == quote {
                return index + 1
            } else {
                index += 1
            }
        }
        return nil
    }
}

extension Fields {
    /// The value of every line of a field, in order, without surrounding whitespace.
    func values(_ field: KnownField) -> [[UInt8]] {
        var values: [[UInt8]] = []
        forEachValue(field) { values.append(Array($0.trimmingWhitespace())) }
        return values
    }

    /// The value of every line of a field whose name is only known at run time.
    func values(named name: String) -> [[UInt8]] {
        var text = name
        let field = text.withUTF8 { KnownField.find(UnsafeRawBufferPointer($0)) }
        if field != .other, !present.contains(field) { return [] }
        var values: [[UInt8]] = []
        let wanted = name.utf8
        forEachLine { name, value, _ in
            if ASCII.equalIgnoringCase(name, wanted) { values.append(Array(value.trimmingWhitespace())) }
        }
        return values
    }

    /// Removes every line whose lower-case name is in `names`.
    mutating func removeAll(named names: Set<String>) {
        guard !names.isEmpty else { return }
        removeAll { name, _ in names.contains(ASCII.lowercased(name)) }
    }
}

// MARK: - Patterns with stars

/// Patterns of configurations, purges and listings in which a star stands for anything. They are compared as bytes.
package enum StarPattern {
    /// Whether the pattern matches: `*` stands for any bytes or none, every other byte for itself. The time grows with
    /// the product of the lengths at worst.
    package static func matches(_ pattern: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
        var (cursor, position) = (pattern.startIndex, text.startIndex)
        // The cursor of the last star, and the position in the text at which the bytes after its match begin.
        var star: (cursor: Int, position: Int)?
        while position < text.endIndex {
            if cursor < pattern.endIndex, pattern[cursor] == UInt8(ascii: "*") {
                star = (cursor, position)
                cursor += 1
            } else if cursor < pattern.endIndex, pattern[cursor] == text[position] {
                cursor += 1
                position += 1
            } else if let last = star {
                star = (last.cursor, last.position + 1)
                (cursor, position) = (last.cursor + 1, last.position + 1)
            } else {
                return false
            }
        }
        return pattern[cursor...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
