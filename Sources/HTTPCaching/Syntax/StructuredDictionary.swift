// A strict parser for the Structured Field dictionaries and lists (RFC 9651 section 4.2) of targeted cache-control (RFC
// 9213) and cache groups (RFC 9875).
//
// swift-http-structured-headers is not used: it searches all earlier keys for each member and each parameter, so that
// an origin's long field would hold a loop for a time that grows with the square of its length.

/// The type and value of a dictionary member, as far as cache directives use them.
enum StructuredValue: Equatable {
    case integer(Int64)
    case string([UInt8])
    case token([UInt8])
    case boolean(Bool)
    /// The value is a decimal, date, byte sequence, display string or inner list, which is valid, but the type of no
    /// cache directive.
    case other
}

struct StructuredDictionary {
    /// The members by key; the last one of equal keys counts.
    private(set) var members: [String: StructuredValue] = [:]

    /// The dictionary in the field's lines; nil if they are not one.
    init?(_ lines: [[UInt8]]) {
        var cursor = Cursor(Array(lines.joined(separator: [ASCII.comma, 0x20])))
        cursor.skipSpaces()
        while !cursor.atEnd {
            guard let key = cursor.key() else { return nil }
            if cursor.take(ASCII.equals) {
                guard let value = cursor.itemOrInnerList() else { return nil }
                members[key] = value
            } else {
                guard cursor.parameters() else { return nil }
                members[key] = .boolean(true)
            }
            cursor.skipWhitespace()
            if cursor.atEnd { return }
            guard cursor.take(ASCII.comma) else { return nil }
            cursor.skipWhitespace()
            // A trailing comma is an error.
            if cursor.atEnd { return nil }
        }
    }
}

enum StructuredList {
    /// The members of the list in the field's lines; nil if they are not one (RFC 9651 section 4.2.1).
    static func parse(_ lines: [[UInt8]]) -> [StructuredValue]? {
        var cursor = Cursor(Array(lines.joined(separator: [ASCII.comma, 0x20])))
        var members: [StructuredValue] = []
        cursor.skipSpaces()
        while !cursor.atEnd {
            guard let member = cursor.itemOrInnerList() else { return nil }
            members.append(member)
            cursor.skipWhitespace()
            if cursor.atEnd { return members }
            guard cursor.take(ASCII.comma) else { return nil }
            cursor.skipWhitespace()
            // A trailing comma is an error.
            if cursor.atEnd { return nil }
        }
        return members
    }
}

private struct Cursor {
    private let bytes: [UInt8]
    private var index = 0

    init(_ bytes: [UInt8]) {
        var bytes = bytes
        while bytes.last == 0x20 { bytes.removeLast() }
        self.bytes = bytes
    }

    var atEnd: Bool { index == bytes.count }
    private var peek: UInt8? { index < bytes.count ? bytes[index] : nil }

    mutating func take(_ byte: UInt8) -> Bool {
        guard peek == byte else { return false }
        index += 1
        return true
    }

    private mutating func takeWhile(_ condition: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = index
        while let byte = peek, condition(byte) { index += 1 }
        return bytes[start..<index]
    }

    mutating func skipSpaces() { _ = takeWhile { $0 == 0x20 } }
    mutating func skipWhitespace() { _ = takeWhile(ASCII.isSpace) }

    mutating func key() -> String? {
        guard let first = peek, ASCII.isLower(first) || first == UInt8(ascii: "*") else { return nil }
        let key = takeWhile { byte in
            ASCII.isLower(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "*")
        }
        return String(decoding: key, as: UTF8.self)
    }

    mutating func itemOrInnerList() -> StructuredValue? {
        guard take(UInt8(ascii: "(")) else {
            guard let value = bareItem(), parameters() else { return nil }
            return value
        }
        while true {
            skipSpaces()
            if take(UInt8(ascii: ")")) { return parameters() ? .other : nil }
            guard bareItem() != nil, parameters() else { return nil }
            guard let next = peek, next == 0x20 || next == UInt8(ascii: ")") else { return nil }
        }
    }

    mutating func parameters() -> Bool {
        while take(ASCII.semicolon) {
            skipSpaces()
            guard key() != nil else { return false }
            if take(ASCII.equals), bareItem() == nil { return false }
        }
        return true
    }

    private mutating func bareItem() -> StructuredValue? {
        guard let first = peek else { return nil }
        switch first {
        case UInt8(ascii: "-"), 0x30...0x39: return number()
        case ASCII.quote: return string()
        case UInt8(ascii: "*"): return token()
        case UInt8(ascii: "?"):
            index += 1
            if take(UInt8(ascii: "1")) { return .boolean(true) }
            return take(UInt8(ascii: "0")) ? .boolean(false) : nil
        case UInt8(ascii: ":"):
            index += 1
            _ = takeWhile { byte in
                ASCII.isAlpha(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/")
                    || byte == ASCII.equals
            }
            return take(UInt8(ascii: ":")) ? .other : nil
        case UInt8(ascii: "@"):
            index += 1
            if case .integer? = number() { return .other }
            return nil
        case UInt8(ascii: "%"):
            index += 1
            return string() == nil ? nil : .other
        default: return ASCII.isAlpha(first) ? token() : nil
        }
    }

    private mutating func number() -> StructuredValue? {
        let negative = take(UInt8(ascii: "-"))
        let digits = takeWhile(ASCII.isDigit)
        guard (1...15).contains(digits.count) else { return nil }
        guard take(UInt8(ascii: ".")) else {
            let magnitude = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
            return .integer(negative ? -magnitude : magnitude)
        }
        let fraction = takeWhile(ASCII.isDigit)
        return digits.count <= 12 && (1...3).contains(fraction.count) ? .other : nil
    }

    private mutating func string() -> StructuredValue? {
        guard take(ASCII.quote) else { return nil }
        var value: [UInt8] = []
        while let byte = peek {
            index += 1
            switch byte {
            case ASCII.quote: return .string(value)
            case ASCII.backslash:
                guard let escaped = peek, escaped == ASCII.quote || escaped == ASCII.backslash else { return nil }
                index += 1
                value.append(escaped)
            case 0x20...0x7E: value.append(byte)
            default: return nil
            }
        }
        return nil
    }

    private mutating func token() -> StructuredValue? {
        let token = takeWhile { ASCII.isTokenByte($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
        return .token(Array(token))
    }
}
