// Small pieces of JSON: numbers, literals, and strings with and without their escapes.

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
    /// - Parameter bytes: between its quotes, held to the grammar already. A surrogate without its other half becomes
    ///   U+FFFD.
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
