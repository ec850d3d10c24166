// Checks that bytes are one JSON text (RFC 8259), piece by piece and without building a tree.

/// A scanner for one JSON text; a value type. Numbers, literals and escapes have to follow the grammar; text has to be
/// UTF-8.
struct JSONScanner {
    /// The most levels of nested arrays and objects.
    static let depthLimit = 10_000

    /// The kind of the outermost value.
    enum Root: Equatable { case object, array, other }

    private enum State: UInt8 {
        case value, valueOrEnd, nameOrEnd, name, colon, commaOrEnd, done
        case string, escape, hex1, hex2, hex3, hex4
        case minus, zero, integer, point, fraction, exponent, exponentSign, exponentDigits
        case literal
    }

    private var state = State.value
    /// The arrays and objects that are open, with true for an object.
    private var open: [Bool] = []
    private var isName = false
    /// The remaining bytes of `true`, `false` or `null`.
    private var rest: [UInt8] = []
    /// The number of continuation bytes that the character still needs, and the range of the next one.
    private var pending = 0
    private var continuation: ClosedRange<UInt8> = 0x80...0xBF
    private var markLeft: [UInt8] = [0xEF, 0xBB, 0xBF]
    private var isStarted = false
    private(set) var root: Root?
    private(set) var hasFailed = false

    /// Scans the next bytes.
    /// - Returns: false once they cannot be a JSON text any more.
    mutating func push(_ bytes: UnsafeRawBufferPointer) -> Bool {
        for byte in bytes {
            guard !hasFailed, accept(byte) else {
                hasFailed = true
                return false
            }
        }
        return !hasFailed
    }

    /// Whether the bytes so far are a complete JSON text.
    var isComplete: Bool {
        guard !hasFailed, open.isEmpty else { return false }
        switch state {
        case .done, .zero, .integer, .fraction, .exponentDigits: return true
        default: return false
        }
    }

    private mutating func accept(_ byte: UInt8) -> Bool {
        if !isStarted {
            // A byte order mark may be ignored (RFC 8259 section 8.1).
            if byte == markLeft.first {
                markLeft.removeFirst()
                if markLeft.isEmpty { isStarted = true }
                return true
            }
            guard markLeft.count == 3 else { return false }
            isStarted = true
        }
        switch state {
        case .string: return text(byte)
        case .escape: return escape(byte)
        case .hex1, .hex2, .hex3, .hex4: return hex(byte)
        case .literal: return literal(byte)
        case .minus, .zero, .integer, .point, .fraction, .exponent, .exponentSign, .exponentDigits:
            return number(byte)
        case .value, .valueOrEnd, .nameOrEnd, .name, .colon, .commaOrEnd, .done: return structure(byte)
        }
    }

    private mutating func structure(_ byte: UInt8) -> Bool {
        if byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { return true }
        switch (state, byte) {
        case (.value, _): return value(byte)
        case (.valueOrEnd, UInt8(ascii: "]")): return close(object: false)
        case (.valueOrEnd, _): return value(byte)
        case (.nameOrEnd, UInt8(ascii: "}")): return close(object: true)
        case (.nameOrEnd, UInt8(ascii: "\"")), (.name, UInt8(ascii: "\"")):
            isName = true
            state = .string
            return true
        case (.colon, UInt8(ascii: ":")):
            state = .value
            return true
        case (.commaOrEnd, UInt8(ascii: ",")):
            state = open.last == true ? .name : .value
            return true
        case (.commaOrEnd, UInt8(ascii: "]")): return close(object: false)
        case (.commaOrEnd, UInt8(ascii: "}")): return close(object: true)
        default: return false
        }
    }

    private mutating func value(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard open.count < Self.depthLimit else { return false }
            open.append(byte == UInt8(ascii: "{"))
            state = byte == UInt8(ascii: "{") ? .nameOrEnd : .valueOrEnd
        case UInt8(ascii: "\""):
            isName = false
            state = .string
        case UInt8(ascii: "-"): state = .minus
        case UInt8(ascii: "0"): state = .zero
        case UInt8(ascii: "1")...UInt8(ascii: "9"): state = .integer
        case UInt8(ascii: "t"): begin("rue")
        case UInt8(ascii: "f"): begin("alse")
        case UInt8(ascii: "n"): begin("ull")
        default: return false
        }
        if root == nil {
            root = byte == UInt8(ascii: "{") ? .object : byte == UInt8(ascii: "[") ? .array : .other
        }
        return true
    }

    private mutating func begin(_ text: String) {
        rest = text.utf8.reversed()
        state = .literal
    }

    private mutating func literal(_ byte: UInt8) -> Bool {
        guard rest.popLast() == byte else { return false }
        if rest.isEmpty { end() }
        return true
    }

    private mutating func close(object: Bool) -> Bool {
        guard open.popLast() == object else { return false }
        end()
        return true
    }

    /// Ends a value.
    private mutating func end() { state = open.isEmpty ? .done : .commaOrEnd }

    // MARK: - Text

    private mutating func text(_ byte: UInt8) -> Bool {
        if pending > 0 {
            guard continuation.contains(byte) else { return false }
            continuation = 0x80...0xBF
            pending -= 1
            return true
        }
        switch byte {
        case UInt8(ascii: "\""): if isName { state = .colon } else { end() }
        case UInt8(ascii: "\\"): state = .escape
        case ..<0x20: return false
        case ..<0x80: break
        default: return lead(byte)
        }
        return true
    }

    /// Takes the first byte of a multibyte character (RFC 3629 section 4).
    private mutating func lead(_ byte: UInt8) -> Bool {
        switch byte {
        case 0xC2...0xDF: pending = 1
        case 0xE0: (pending, continuation) = (2, 0xA0...0xBF)
        case 0xED: (pending, continuation) = (2, 0x80...0x9F)
        case 0xE1...0xEF: pending = 2
        case 0xF0: (pending, continuation) = (3, 0x90...0xBF)
        case 0xF4: (pending, continuation) = (3, 0x80...0x8F)
        case 0xF1...0xF3: pending = 3
        default: return false
        }
        return true
    }

    private mutating func escape(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            state = .string
        case UInt8(ascii: "u"): state = .hex1
        default: return false
        }
        return true
    }

    private mutating func hex(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: break
        default: return false
        }
        state = state == .hex1 ? .hex2 : state == .hex2 ? .hex3 : state == .hex3 ? .hex4 : .string
        return true
    }

    // MARK: - Numbers

    private mutating func number(_ byte: UInt8) -> Bool {
        let isDigit = (0x30...0x39).contains(byte)
        switch (state, byte) {
        case (.minus, UInt8(ascii: "0")): state = .zero
        case (.minus, _) where isDigit: state = .integer
        case (.integer, _) where isDigit: break
        case (.zero, UInt8(ascii: ".")), (.integer, UInt8(ascii: ".")): state = .point
        case (.point, _) where isDigit: state = .fraction
        case (.fraction, _) where isDigit: break
        case (.zero, UInt8(ascii: "e")), (.zero, UInt8(ascii: "E")), (.integer, UInt8(ascii: "e")),
            (.integer, UInt8(ascii: "E")), (.fraction, UInt8(ascii: "e")), (.fraction, UInt8(ascii: "E")):
            state = .exponent
        case (.exponent, UInt8(ascii: "+")), (.exponent, UInt8(ascii: "-")): state = .exponentSign
        case (.exponent, _) where isDigit, (.exponentSign, _) where isDigit: state = .exponentDigits
        case (.exponentDigits, _) where isDigit: break
        case (.zero, _), (.integer, _), (.fraction, _), (.exponentDigits, _):
            // This byte ends the number and belongs to the structure after it.
            end()
            return structure(byte)
        default: return false
        }
        return true
    }
}
