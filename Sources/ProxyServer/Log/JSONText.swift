// A JSON writer into bytes, without Foundation, for problem documents and log lines.

import HTTPWire

/// A JSON text under construction. Strings are escaped as RFC 8259 section 7 asks.
package struct JSONText {
    package private(set) var bytes: [UInt8] = []
    private var needsComma = false

    package init() {}

    /// Continues `bytes`, which must end at a position for a value; their capacity is kept.
    init(continuing bytes: consuming [UInt8]) { self.bytes = bytes }

    /// Takes the bytes out, without a copy.
    mutating func take() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &bytes)
        return taken
    }

    package mutating func beginObject() { begin(0x7B) }
    package mutating func endObject() { end(0x7D) }
    package mutating func beginArray() { begin(0x5B) }
    package mutating func endArray() { end(0x5D) }

    package mutating func name(_ name: StaticString) {
        separate()
        bytes.append(0x22)
        append(name)
        bytes.append(0x22)
        bytes.append(0x3A)
        needsComma = false
    }

    /// Writes a member's name that is not a literal.
    package mutating func name(text name: String) {
        value(name)
        bytes.append(0x3A)
        needsComma = false
    }

    /// Appends JSON text with its commas. The text must end at a position for a value, or after the last value.
    mutating func write(_ text: StaticString) {
        append(text)
        needsComma = false
    }

    /// Appends JSON text that `body` writes.
    mutating func write(_ body: (inout [UInt8]) -> Void) {
        body(&bytes)
        needsComma = false
    }

    package mutating func value(_ text: String) {
        var text = text
        text.withUTF8 { value(utf8: UnsafeRawBufferPointer($0)) }
    }

    /// Appends a string in UTF-8; each byte of invalid UTF-8 becomes the scalar of the same number.
    package mutating func value(utf8 raw: UnsafeRawBufferPointer) {
        separate()
        bytes.append(0x22)
        // Non-ASCII text is decoded and checked: a log line must be valid UTF-8 whatever a client sends.
        if Self.isPlain(raw) {
            bytes.append(contentsOf: raw)
        } else if raw.allSatisfy({ $0 < 0x80 })
            || String(validating: raw.bindMemory(to: UInt8.self), as: UTF8.self) != nil
        {
            for byte in raw { escape(byte) }
        } else {
            for byte in raw {
                if byte < 0x80 { escape(byte) } else { escapeNumber(byte) }
            }
        }
        bytes.append(0x22)
        needsComma = true
    }

    package mutating func value(_ number: Int) {
        separate()
        appendDecimal(Int64(number))
    }

    package mutating func value(_ flag: Bool) {
        separate()
        append(flag ? "true" : "false")
    }

    /// Appends nanoseconds as milliseconds with three decimals.
    package mutating func value(milliseconds nanoseconds: UInt64) {
        separate()
        let micros = nanoseconds / 1000
        appendDecimal(Int64(clamping: micros / 1000))
        bytes.append(0x2E)
        bytes.append(0x30 + UInt8(micros / 100 % 10))
        bytes.append(0x30 + UInt8(micros / 10 % 10))
        bytes.append(0x30 + UInt8(micros % 10))
        needsComma = true
    }

    package mutating func member(_ name: StaticString, _ value: String) {
        self.name(name)
        self.value(value)
    }

    package mutating func member(_ name: StaticString, _ value: Int) {
        self.name(name)
        self.value(value)
    }

    // MARK: - Pieces

    /// True if nothing has to be escaped: all bytes are visible ASCII or spaces, without quotes and backslashes.
    private static func isPlain(_ raw: UnsafeRawBufferPointer) -> Bool {
        var position = 0
        // Eight bytes are checked at a time: the top bit of a byte of `odd` is set if that byte needs an escape. A
        // borrow or carry from such a byte may also set the bit of the next one, which does no harm: the text is not
        // plain in any case.
        while raw.count &- position >= 8 {
            let word = raw.loadUnaligned(fromByteOffset: position, as: UInt64.self)
            let (quotes, slashes) = (word ^ 0x2222_2222_2222_2222, word ^ 0x5C5C_5C5C_5C5C_5C5C)
            let ones: UInt64 = 0x0101_0101_0101_0101
            let low = (word &- ones &* 0x20) | (quotes &- ones) | (slashes &- ones)
            let odd = low | word | (word &+ ones)
            if odd & 0x8080_8080_8080_8080 != 0 { return false }
            position &+= 8
        }
        while position < raw.count {
            let byte = raw[position]
            if byte < 0x20 || byte >= 0x7F || byte == 0x22 || byte == 0x5C { return false }
            position &+= 1
        }
        return true
    }

    private mutating func begin(_ byte: UInt8) {
        separate()
        bytes.append(byte)
        needsComma = false
    }

    private mutating func end(_ byte: UInt8) {
        bytes.append(byte)
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { bytes.append(0x2C) }
        needsComma = true
    }

    private mutating func append(_ text: StaticString) {
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    private mutating func appendDecimal(_ number: Int64) {
        withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { buffer in
            let length = Serializer.appendDecimal(number, into: buffer, at: 0)
            bytes.append(contentsOf: buffer[0..<length])
        }
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case 0x22, 0x5C:
            bytes.append(0x5C)
            bytes.append(byte)
        case 0..<0x20, 0x7F: escapeNumber(byte)
        default: bytes.append(byte)
        }
    }

    private mutating func escapeNumber(_ byte: UInt8) {
        append("\\u00")
        for digit in [byte >> 4, byte & 15] { bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
    }
}
