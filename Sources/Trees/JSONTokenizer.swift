// JSON texts (RFC 8259) as tokens, over bytes that may come in pieces of any size: the only reader of JSON's grammar.

/// The reason why bytes are not a JSON text.
package struct JSONFault: Error, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        /// The text ends before its value does.
        case end
        /// There is no value where one has to be.
        case value
        /// There is neither a comma nor the end of the object or the array.
        case comma
        case colon
        /// The name of a member is missing.
        case name
        /// A number has no digits where some have to be.
        case digits
        /// More objects and arrays are nested than the tokenizer allows.
        case depth
        /// A control character in a string is not escaped.
        case control
        /// A backslash is followed by what is no escape.
        case escape
        /// An escape with `u` has fewer than four hexadecimal digits.
        case hexadecimal
        /// A string is not UTF-8.
        case utf8
    }

    package let kind: Kind
    /// Whether more bytes could have continued the text.
    package let isAtEnd: Bool

    package init(_ kind: Kind, isAtEnd: Bool = false) {
        self.kind = kind
        self.isAtEnd = isAtEnd
    }
}

/// Takes one value apart. A value type that keeps the state within a token, so that no byte is needed twice; its memory
/// is one byte for each level of nesting. ``restart()`` prepares for another value.
package struct JSONTokenizer {
    /// What has just ended, or begun.
    package enum Token: UInt8, Sendable {
        case objectBegins, objectEnds, arrayBegins, arrayEnds
        /// The name of a member, with its quotes.
        case name
        /// A string, with its quotes.
        case text
        case number
        /// `true`, `false` or `null`.
        case literal
    }

    private enum State: UInt8 {
        case value, valueOrEnd, name, nameOrEnd, colon, commaOrEnd, text, nameText, number, literal, done
    }

    /// The most levels of nested arrays and objects.
    private let depth: Int
    private var state = State.value
    /// The arrays and objects that are open, with true for an object.
    private var open: [Bool] = []
    private var string = JSONString()
    private var numeral = JSONNumber()
    /// The literal that is being read, and the number of its bytes so far.
    private var literal: StaticString = "null"
    private var literalCount = 0
    /// The position of the first byte of the token, among the bytes of the call that returned it. It is useless if the token
    /// began in an earlier call.
    package private(set) var start = 0

    /// - Parameter depth: the most levels of nested arrays and objects.
    package init(depth: Int) { self.depth = depth }

    /// Whether all of the value has been read.
    package var isDone: Bool { state == .done }

    /// Whether the value may end here: it is done, or a number that is complete as it is.
    package var mayEnd: Bool { state == .done || open.isEmpty && state == .number && numeral.isComplete }

    package mutating func restart() {
        state = .value
        open.removeAll(keepingCapacity: true)
    }

    /// Skips the rest of the value.
    /// - Parameters:
    ///   - bytes: the bytes, available up to `end`, that continue those of the last call.
    ///   - start: the position where to read on.
    ///   - isLast: whether no more bytes will come.
    /// - Returns: the position after the value if ``isDone``, otherwise `end`.
    package mutating func advance(
        _ bytes: UnsafePointer<UInt8>,
        from start: Int,
        to end: Int,
        isLast: Bool
    ) throws(JSONFault) -> Int {
        var position = start
        while try next(bytes, &position, end, isLast: isLast) != nil {}
        return position
    }

    /// Reads the next token.
    /// - Parameters:
    ///   - bytes: the bytes, available up to `end`, that continue those of the last call.
    ///   - position: the position where to read on; afterwards that after the token, or that of the mistake.
    ///   - isLast: whether no more bytes will come.
    /// - Returns: nil if the value ``isDone``, or if more bytes are needed.
    package mutating func next(
        _ bytes: UnsafePointer<UInt8>,
        _ position: inout Int,
        _ end: Int,
        isLast: Bool
    ) throws(JSONFault) -> Token? {
        while true {
            switch state {
            case .text, .nameText:
                guard try string.advance(bytes, &position, end) else {
                    if isLast { throw JSONFault(.end, isAtEnd: true) }
                    return nil
                }
                if state == .text {
                    close()
                    return .text
                }
                state = .colon
                return .name
            case .number: return try number(bytes, &position, end, isLast) ? .number : nil
            case .literal: return try word(bytes, &position, end, isLast) ? .literal : nil
            case .done: return nil
            case .value, .valueOrEnd, .name, .nameOrEnd, .colon, .commaOrEnd: break
            }
            while position < end, Self.isSpace(bytes[position]) { position += 1 }
            guard position < end else {
                guard isLast else { return nil }
                switch state {
                case .name, .nameOrEnd: throw JSONFault(.name, isAtEnd: true)
                case .colon: throw JSONFault(.colon, isAtEnd: true)
                default: throw JSONFault(.end, isAtEnd: true)
                }
            }
            if let token = try structure(bytes[position], &position) { return token }
        }
    }

    /// Takes one byte of structure, or the first one of a scalar.
    /// - Returns: the token that is complete with it.
    private mutating func structure(_ byte: UInt8, _ position: inout Int) throws(JSONFault) -> Token? {
        switch state {
        case .valueOrEnd where byte == UInt8(ascii: "]"), .nameOrEnd where byte == UInt8(ascii: "}"):
            return pop(&position)
        case .value, .valueOrEnd: return try begin(byte, &position)
        case .name, .nameOrEnd:
            guard byte == UInt8(ascii: "\"") else { throw JSONFault(.name) }
            start = position
            position += 1
            state = .nameText
        case .colon:
            guard byte == UInt8(ascii: ":") else { throw JSONFault(.colon) }
            position += 1
            state = .value
        case .commaOrEnd:
            let isObject = open.last == true
            if byte == UInt8(ascii: ",") {
                position += 1
                state = isObject ? .name : .value
            } else {
                guard byte == (isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else { throw JSONFault(.comma) }
                return pop(&position)
            }
        case .text, .nameText, .number, .literal, .done: break
        }
        return nil
    }

    private mutating func begin(_ byte: UInt8, _ position: inout Int) throws(JSONFault) -> Token? {
        start = position
        switch byte {
        case UInt8(ascii: "\""):
            position += 1
            state = .text
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard open.count < depth else { throw JSONFault(.depth) }
            position += 1
            open.append(byte == UInt8(ascii: "{"))
            state = byte == UInt8(ascii: "{") ? .nameOrEnd : .valueOrEnd
            return byte == UInt8(ascii: "{") ? .objectBegins : .arrayBegins
        case UInt8(ascii: "t"): begin("true")
        case UInt8(ascii: "f"): begin("false")
        case UInt8(ascii: "n"): begin("null")
        default:
            guard byte == UInt8(ascii: "-") || byte &- 0x30 < 10 else { throw JSONFault(.value) }
            numeral = JSONNumber()
            state = .number
        }
        return nil
    }

    private mutating func begin(_ word: StaticString) {
        literal = word
        literalCount = 0
        state = .literal
    }

    private mutating func pop(_ position: inout Int) -> Token {
        start = position
        position += 1
        let isObject = open.removeLast()
        close()
        return isObject ? .objectEnds : .arrayEnds
    }

    /// Ends a value.
    private mutating func close() { state = open.isEmpty ? .done : .commaOrEnd }

    /// Reads on in a number.
    /// - Returns: false if more bytes are needed.
    private mutating func number(
        _ bytes: UnsafePointer<UInt8>,
        _ position: inout Int,
        _ end: Int,
        _ isLast: Bool
    ) throws(JSONFault) -> Bool {
        while position < end, numeral.accept(bytes[position]) { position += 1 }
        guard position < end || isLast else { return false }
        guard numeral.isComplete else { throw refused(numeral.hasDigits ? .digits : .value, &position) }
        // A number has no zero before its other digits.
        if position < end, bytes[position] &- 0x30 < 10 { throw refused(.value, &position) }
        close()
        return true
    }

    /// Reads on in a literal.
    /// - Returns: false if more bytes are needed.
    private mutating func word(
        _ bytes: UnsafePointer<UInt8>,
        _ position: inout Int,
        _ end: Int,
        _ isLast: Bool
    ) throws(JSONFault) -> Bool {
        while literalCount < literal.utf8CodeUnitCount {
            guard position < end || isLast else { return false }
            guard position < end, bytes[position] == literal.utf8Start[literalCount] else {
                throw refused(.value, &position)
            }
            position += 1
            literalCount += 1
        }
        close()
        return true
    }

    /// The fault of a scalar that is no value: its position is the beginning of the scalar.
    private func refused(_ kind: JSONFault.Kind, _ position: inout Int) -> JSONFault {
        if kind == .value, start < position { position = start }
        return JSONFault(kind)
    }

    package static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }

    /// Reads the rest of a string whose first quote was taken.
    /// - Returns: whether its end was available; `position` is after it then. Otherwise the string has to be read again, with
    ///   more bytes.
    package static func text(
        _ bytes: UnsafePointer<UInt8>,
        _ position: inout Int,
        _ end: Int
    ) throws(JSONFault) -> Bool {
        var string = JSONString()
        return try string.advance(bytes, &position, end)
    }
}

/// The grammar of a string after its first quote (RFC 8259 section 7); a value that keeps its state between pieces.
private struct JSONString {
    private enum Step: UInt8 { case plain, escape, hexadecimal }

    private var step = Step.plain
    /// The number of hexadecimal digits that were taken.
    private var digits = 0
    /// The number of continuation bytes that the character still needs, and the bounds of the next one.
    private var pending = 0
    private var lowest: UInt8 = 0x80
    private var highest: UInt8 = 0xBF

    /// Reads on.
    /// - Returns: whether the string has ended; `position` is after its last quote then, otherwise at `end`.
    mutating func advance(
        _ bytes: UnsafePointer<UInt8>,
        _ position: inout Int,
        _ end: Int
    ) throws(JSONFault) -> Bool {
        while true {
            if step == .plain, pending == 0 { position = Self.endOfPlain(bytes, position, end) }
            guard position < end else { return false }
            let byte = bytes[position]
            switch step {
            case .escape: try escape(byte, &position)
            case .hexadecimal:
                guard JSONTokenizer.hex(byte) != nil else {
                    position -= min(digits, position)
                    throw JSONFault(.hexadecimal)
                }
                position += 1
                digits += 1
                if digits == 4 { step = .plain }
            case .plain where pending > 0:
                guard lowest <= byte, byte <= highest else { throw JSONFault(.utf8) }
                (lowest, highest) = (0x80, 0xBF)
                pending -= 1
                position += 1
            case .plain:
                switch byte {
                case UInt8(ascii: "\""):
                    position += 1
                    return true
                case UInt8(ascii: "\\"): step = .escape
                case ..<0x20: throw JSONFault(.control)
                case ..<0x80: break
                default: try lead(byte)
                }
                position += 1
            }
        }
    }

    /// The position of the next byte that is a quote, a backslash, a control character or no ASCII; `end` if there is none.
    @inline(__always)
    private static func endOfPlain(_ bytes: UnsafePointer<UInt8>, _ start: Int, _ end: Int) -> Int {
        let low: UInt64 = 0x0101_0101_0101_0101
        let high: UInt64 = 0x8080_8080_8080_8080
        var position = start
        // Eight bytes at a time.  A borrow goes upwards, so that the lowest bit that is set is never a wrong one.
        while position + 8 <= end {
            let word = UInt64(littleEndian: UnsafeRawPointer(bytes + position).loadUnaligned(as: UInt64.self))
            let quote = word ^ (low &* 0x22)
            let slash = word ^ (low &* 0x5C)
            let found =
                (((quote &- low) & ~quote) | ((slash &- low) & ~slash) | ((word &- (low &* 0x20)) & ~word) | word)
                & high
            if found != 0 { return position + (found.trailingZeroBitCount >> 3) }
            position += 8
        }
        while position < end {
            let byte = bytes[position]
            if byte < 0x20 || byte >= 0x80 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { break }
            position += 1
        }
        return position
    }

    private mutating func escape(_ byte: UInt8, _ position: inout Int) throws(JSONFault) {
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            step = .plain
        case UInt8(ascii: "u"): (step, digits) = (.hexadecimal, 0)
        default: throw JSONFault(.escape)
        }
    }

    /// Takes the first byte of a multibyte character (RFC 3629 section 4).
    private mutating func lead(_ byte: UInt8) throws(JSONFault) {
        switch byte {
        case 0xC2...0xDF: pending = 1
        case 0xE0: (pending, lowest) = (2, 0xA0)
        case 0xED: (pending, highest) = (2, 0x9F)
        case 0xE1...0xEF: pending = 2
        case 0xF0: (pending, lowest) = (3, 0x90)
        case 0xF4: (pending, highest) = (3, 0x8F)
        case 0xF1...0xF3: pending = 3
        default: throw JSONFault(.utf8)
        }
    }
}

/// The grammar of a number (RFC 8259 section 6); a value that keeps its state between pieces.
private struct JSONNumber {
    private enum Step: UInt8 { case start, minus, zero, whole, point, fraction, exponent, sign, power }

    private var step = Step.start

    /// Whether the bytes so far are a number.
    var isComplete: Bool { step == .zero || step == .whole || step == .fraction || step == .power }

    /// Whether there are digits before the point.
    var hasDigits: Bool { step.rawValue >= Step.zero.rawValue }

    /// Takes the next byte.
    /// - Returns: false if the number has no such byte here; it is not taken then.
    mutating func accept(_ byte: UInt8) -> Bool {
        if byte &- 0x30 < 10 {
            switch step {
            case .start, .minus: step = byte == 0x30 ? .zero : .whole
            case .zero: return false
            case .whole, .fraction, .power: break
            case .point: step = .fraction
            case .exponent, .sign: step = .power
            }
            return true
        }
        switch (step, byte) {
        case (.start, UInt8(ascii: "-")): step = .minus
        case (.zero, UInt8(ascii: ".")), (.whole, UInt8(ascii: ".")): step = .point
        case (.zero, UInt8(ascii: "e")), (.zero, UInt8(ascii: "E")), (.whole, UInt8(ascii: "e")),
            (.whole, UInt8(ascii: "E")), (.fraction, UInt8(ascii: "e")), (.fraction, UInt8(ascii: "E")):
            step = .exponent
        case (.exponent, UInt8(ascii: "+")), (.exponent, UInt8(ascii: "-")): step = .sign
        default: return false
        }
        return true
    }
}

// MARK: - Small pieces

// Numbers, hexadecimal digits, and strings without their escapes.
extension JSONTokenizer {
    /// Whether these bytes are a number, and nothing else.
    package static func isNumber(_ bytes: ArraySlice<UInt8>) -> Bool {
        var number = JSONNumber()
        for byte in bytes { guard number.accept(byte) else { return false } }
        return number.isComplete
    }

    /// The value of a hexadecimal digit; nil for any other byte.
    package static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }

    /// The text of a string. Half of a surrogate pair becomes U+FFFD.
    /// - Parameter string: the bytes between its quotes. They need not be well-formed: whatever is no escape stays.
    package static func unescaped(_ string: UnsafeRawBufferPointer) -> [UInt8] {
        var half: Int?
        return unescaped(string, half: &half)
    }

    /// The text of a string.
    /// - Parameter half: gets the position after the first escape that is half of a surrogate pair, if there is one.
    static func unescaped(_ string: UnsafeRawBufferPointer, half: inout Int?) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(string.count)
        var position = 0
        func unit(_ position: Int) -> UInt32? {
            guard position + 6 <= string.count, string[position] == UInt8(ascii: "\\"),
                string[position + 1] == UInt8(ascii: "u")
            else { return nil }
            var value: UInt32 = 0
            for byte in string[position + 2..<position + 6] {
                guard let digit = hex(byte) else { return nil }
                value = value << 4 | UInt32(digit)
            }
            return value
        }
        while position < string.count {
            let byte = string[position]
            guard byte == UInt8(ascii: "\\") else {
                result.append(byte)
                position += 1
                continue
            }
            if var code = unit(position) {
                position += 6
                if 0xD800...0xDBFF ~= code, let low = unit(position) {
                    if 0xDC00...0xDFFF ~= low {
                        position += 6
                        code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
                    } else {
                        half = half ?? position + 6
                    }
                }
                let scalar = Unicode.Scalar(code)
                if scalar == nil { half = half ?? position }
                result += Array(String(Character(scalar ?? "\u{FFFD}")).utf8)
                continue
            }
            let escaped = position + 1 < string.count ? string[position + 1] : byte
            position = min(position + 2, string.count)
            switch escaped {
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0C)
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            case UInt8(ascii: "t"): result.append(0x09)
            default: result.append(escaped)
            }
        }
        return result
    }
}
