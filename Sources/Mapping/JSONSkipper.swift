// Finds the end of a JSON value (RFC 8259) and checks its grammar, over bytes that may come piece by piece; and the
// small pieces of JSON.

extension MappingFailure {
    static let grammar = MappingFailure("the document is not well-formed JSON")
    static let end = MappingFailure("the document ends too early")
    static let depth = MappingFailure("the document has more than \(JSONSkipper.depthLimit) levels")
}

/// Skips one value; ``restart()`` prepares for another one.
struct JSONSkipper {
    /// The most levels of nested arrays and objects.
    static let depthLimit = 512

    private enum State: UInt8 { case value, valueOrEnd, name, nameOrEnd, colon, commaOrEnd, text, nameText, done }

    private var state = State.value
    /// The arrays and objects that are open, with true for an object.
    private var open: [Bool] = []

    var isDone: Bool { state == .done }

    mutating func restart() {
        state = .value
        open.removeAll(keepingCapacity: true)
    }

    /// Reads on from `start`; bytes up to `end` are available.
    /// - Parameter isLast: whether no more bytes will come.
    /// - Returns: the place where it stopped: after the value if ``isDone``, otherwise where it continues with more
    ///   bytes.
    mutating func advance(
        _ bytes: UnsafePointer<UInt8>,
        from start: Int,
        to end: Int,
        isLast: Bool
    ) throws(MappingFailure) -> Int {
        var place = start
        while state != .done {
            if state == .text || state == .nameText {
                guard try Self.text(bytes, &place, end) else {
                    if isLast { throw MappingFailure.end }
                    return place
                }
                if state == .nameText { state = .colon } else { close() }
                continue
            }
            while place < end, Self.isSpace(bytes[place]) { place += 1 }
            guard place < end else {
                if isLast { throw MappingFailure.end }
                return place
            }
            let byte = bytes[place]
            switch state {
            case .valueOrEnd where byte == UInt8(ascii: "]"), .nameOrEnd where byte == UInt8(ascii: "}"):
                place += 1
                pop()
            case .value, .valueOrEnd:
                switch byte {
                case UInt8(ascii: "\""):
                    place += 1
                    state = .text
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    guard open.count < Self.depthLimit else { throw MappingFailure.depth }
                    place += 1
                    open.append(byte == UInt8(ascii: "{"))
                    state = byte == UInt8(ascii: "{") ? .nameOrEnd : .valueOrEnd
                default:
                    guard try Self.scalar(bytes, &place, end, isLast) else { return place }
                    close()
                }
            case .name, .nameOrEnd:
                guard byte == UInt8(ascii: "\"") else { throw MappingFailure.grammar }
                place += 1
                state = .nameText
            case .colon:
                guard byte == UInt8(ascii: ":") else { throw MappingFailure.grammar }
                place += 1
                state = .value
            case .commaOrEnd:
                place += 1
                if byte == UInt8(ascii: ",") {
                    state = open.last == true ? .name : .value
                } else {
                    guard byte == (open.last == true ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
                        throw MappingFailure.grammar
                    }
                    pop()
                }
            case .text, .nameText, .done: break
            }
        }
        return place
    }

    private mutating func pop() {
        open.removeLast()
        close()
    }

    /// Ends a value.
    private mutating func close() { state = open.isEmpty ? .done : .commaOrEnd }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }

    /// Reads the rest of a string.
    /// - Returns: whether its end was available; `place` is after it then, otherwise where more bytes are needed.
    static func text(_ bytes: UnsafePointer<UInt8>, _ place: inout Int, _ end: Int) throws(MappingFailure) -> Bool {
        let low: UInt64 = 0x0101_0101_0101_0101
        let high: UInt64 = 0x8080_8080_8080_8080
        while place < end {
            // Eight plain characters are read at a time.
            while place + 8 <= end {
                let word = UnsafeRawPointer(bytes + place).loadUnaligned(as: UInt64.self)
                let quote = word ^ (low &* 0x22)
                let slash = word ^ (low &* 0x5C)
                let special =
                    ((quote &- low) & ~quote) | ((slash &- low) & ~slash) | ((word &- (low &* 0x20)) & ~word) | word
                guard special & high == 0 else { break }
                place += 8
            }
            guard place < end else { return false }
            let byte = bytes[place]
            switch byte {
            case UInt8(ascii: "\""):
                place += 1
                return true
            case UInt8(ascii: "\\"):
                guard place + 1 < end else { return false }
                switch bytes[place + 1] {
                case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
                    UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
                    place += 2
                case UInt8(ascii: "u"):
                    guard place + 6 <= end else { return false }
                    for digit in place + 2..<place + 6 where JSONText.hex(bytes[digit]) == nil {
                        throw MappingFailure.grammar
                    }
                    place += 6
                default: throw MappingFailure.grammar
                }
            case ..<0x20: throw MappingFailure.grammar
            case ..<0x80: place += 1
            default:
                guard let length = try character(bytes + place, end - place) else { return false }
                place += length
            }
        }
        return false
    }

    /// The length of a multibyte character (RFC 3629 section 4); nil if more bytes are needed.
    private static func character(_ bytes: UnsafePointer<UInt8>, _ count: Int) throws(MappingFailure) -> Int? {
        let length: Int
        var second: ClosedRange<UInt8> = 0x80...0xBF
        switch bytes[0] {
        case 0xC2...0xDF: length = 2
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: length = 3
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        case 0xF1...0xF3: length = 4
        default: throw MappingFailure.grammar
        }
        for offset in 1..<length {
            guard offset < count else { return nil }
            guard (offset == 1 ? second : 0x80...0xBF).contains(bytes[offset]) else { throw MappingFailure.grammar }
        }
        return length
    }

    /// Reads a number or a literal.
    /// - Returns: false if more bytes are needed.
    private static func scalar(
        _ bytes: UnsafePointer<UInt8>,
        _ place: inout Int,
        _ end: Int,
        _ isLast: Bool
    ) throws(MappingFailure) -> Bool {
        var stop = place
        while stop < end, isWordByte(bytes[stop]) { stop += 1 }
        let word = UnsafeBufferPointer(start: bytes + place, count: stop - place)
        guard stop < end || isLast else {
            // No literal has more than five letters, and no number is accepted with this many digits.
            guard word.count <= 4096 else { throw MappingFailure.grammar }
            return false
        }
        guard JSONText.isNumber(word) || JSONText.isLiteral(word) else { throw MappingFailure.grammar }
        place = stop
        return true
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 97...122, 43, 45, 46, 69: true
        default: false
        }
    }
}

// MARK: - Small pieces

/// Small pieces of JSON: numbers, literals, and strings with and without their escapes.
enum JSONText {
    static let null: [UInt8] = Array("null".utf8)

    /// Whether these bytes are a number (RFC 8259 section 6).
    static func isNumber(_ bytes: some Collection<UInt8>) -> Bool {
        var rest = bytes[...]
        func isDigit(_ byte: UInt8?) -> Bool { byte.map { 48...57 ~= $0 } ?? false }
        if rest.first == UInt8(ascii: "-") { rest.removeFirst() }
        guard isDigit(rest.first) else { return false }
        if rest.removeFirst() != UInt8(ascii: "0") { while isDigit(rest.first) { rest.removeFirst() } }
        if rest.first == UInt8(ascii: ".") {
            rest.removeFirst()
            guard isDigit(rest.first) else { return false }
            while isDigit(rest.first) { rest.removeFirst() }
        }
        if rest.first == UInt8(ascii: "e") || rest.first == UInt8(ascii: "E") {
            rest.removeFirst()
            if rest.first == UInt8(ascii: "+") || rest.first == UInt8(ascii: "-") { rest.removeFirst() }
            guard isDigit(rest.first) else { return false }
            while isDigit(rest.first) { rest.removeFirst() }
        }
        return rest.isEmpty
    }

    static func isLiteral(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.elementsEqual("true".utf8) || bytes.elementsEqual("false".utf8) || bytes.elementsEqual("null".utf8)
    }

    static func hex(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 48...57: byte - 48
        case 65...70: byte - 55
        case 97...102: byte - 87
        default: nil
        }
    }

    /// Text as a JSON string with its quotes.
    static func quoted(_ text: some Sequence<UInt8>) -> [UInt8] {
        var result: [UInt8] = [UInt8(ascii: "\"")]
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
            case 0x0A: result += Array("\\n".utf8)
            case ..<0x20:
                let digits = Array(String(byte, radix: 16).utf8)
                result += Array("\\u00".utf8) + (digits.count == 1 ? [48] : []) + digits
            default: result.append(byte)
            }
        }
        return result + [UInt8(ascii: "\"")]
    }

    /// The text of a JSON string.
    /// - Parameter bytes: the bytes between its quotes, whose grammar was checked before. A surrogate without its other
    ///   half becomes U+FFFD.
    static func unescaped(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = Array(bytes)[...]
        func unit() -> UInt32? {
            guard rest.count >= 6, rest.first == UInt8(ascii: "\\"), rest[rest.startIndex + 1] == UInt8(ascii: "u")
            else { return nil }
            var value: UInt32 = 0
            for byte in rest.dropFirst(2).prefix(4) {
                guard let digit = hex(byte) else { return nil }
                value = value << 4 | UInt32(digit)
            }
            return value
        }
        while let byte = rest.first {
            guard byte == UInt8(ascii: "\\") else {
                result.append(byte)
                rest.removeFirst()
                continue
            }
            if var code = unit() {
                rest.removeFirst(6)
                if 0xD800...0xDBFF ~= code, let low = unit(), 0xDC00...0xDFFF ~= low {
                    rest.removeFirst(6)
                    code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
                }
                let scalar = Unicode.Scalar(code) ?? "\u{FFFD}"
                result += Array(String(Character(scalar)).utf8)
                continue
            }
            let escaped = rest.dropFirst().first ?? byte
            rest.removeFirst(min(2, rest.count))
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
