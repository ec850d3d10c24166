// The classes of bytes in an HTTP/1.1 head, as a table of class bits, and small views over raw bytes that the scanners
// share.

import Glibc

/// Class bits of a byte (RFC 9110 section 5.6.2, RFC 9112 section 3.2, RFC 3986 section 2.3).
enum ByteClass {
    /// A byte of a token, such as a method or a field name.
    static let token: UInt8 = 1
    /// A byte of a field value: visible ASCII, obs-text, SP and HTAB.
    static let value: UInt8 = 2
    /// A byte of a request target: visible ASCII except `#`.
    static let target: UInt8 = 4
    /// A hexadecimal digit.
    static let hex: UInt8 = 8
    /// An unreserved URI byte: letters, digits, `-`, `.`, `_` and `~`.
    static let unreserved: UInt8 = 16

    /// The class bits of all 256 bytes, in static read-only storage; a literal, so that reading it needs no lazy
    /// initializer.
    ///
    /// Each letter is 64 plus the class bits. Load the pointer once per scan.
    @inline(__always)
    static var table: UnsafePointer<UInt8> {
        // The literal lives as long as the process, so the pointer stays valid.
        let bits: StaticString = """
            @@@@@@@@@B@@@@@@@@@@@@@@@@@@@@@@\
            BGFCGGGGFFGGFWWF__________FFFFFF\
            F______WWWWWWWWWWWWWWWWWWWWFFFGW\
            G______WWWWWWWWWWWWWWWWWWWWFGFW@\
            BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\
            BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\
            BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\
            BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\
            .
            """
        return bits.utf8Start
    }

    /// Whether there is at least one byte, and every byte is of the class.
    static func all(_ bytes: UnsafeRawBufferPointer, are mask: UInt8) -> Bool {
        guard !bytes.isEmpty else { return false }
        let table = table
        for byte in bytes where table[Int(byte)] & mask == 0 { return false }
        return true
    }

    /// The byte with ASCII upper-case letters made lower-case.
    @inline(__always)
    static func lower(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// The position of the first byte from `start` on that is not allowed in a target; `end` if there is none.
    static func skipTarget(_ bytes: RawSpan, from start: Int, to end: Int) -> Int {
        skip(target, bytes, from: start, to: end) { word in
            // The top bit of a byte is set in `low` if the byte is below 0x21, in `high` if it is above 0x7E,
            // and in `hash` if it is `#`.
            let low = (word &- 0x2121_2121_2121_2121) & ~word
            let high = (word &+ 0x0101_0101_0101_0101) | word
            let unequal = word ^ 0x2323_2323_2323_2323
            let hash = (unequal &- 0x0101_0101_0101_0101) & ~unequal
            return low | high | hash
        }
    }

    /// The position of the first byte from `start` on that is not of a class, searched eight at a
    /// time; `end` if there is none.
    /// - Parameter suspects: sets the top bit of each byte of a word that may be of another class. A borrow or
    ///   a carry may set further bits above the first such byte, never below it: only the first is used, and
    ///   the table decides about it.
    @inline(__always)
    static func skip(
        _ mask: UInt8,
        _ bytes: RawSpan,
        from start: Int,
        to end: Int,
        suspects: (UInt64) -> UInt64
    ) -> Int {
        let table = table
        var position = start
        while position &+ 8 <= end {
            let word = UInt64(littleEndian: bytes[wordAt: position])
            let found = suspects(word) & 0x8080_8080_8080_8080
            if found == 0 {
                position &+= 8
                continue
            }
            position &+= found.trailingZeroBitCount &>> 3
            if table[Int(bytes[at: position])] & mask == 0 { return position }
            position &+= 1
        }
        while position < end, table[Int(bytes[at: position])] & mask != 0 { position &+= 1 }
        return position
    }
}

extension RawSpan {
    /// The byte at a position within the span. The caller has compared the position with the count, or read a byte
    /// beyond it.
    ///
    /// The bound is checked in debug builds, and so by every test and the fuzzing: a check in the release build would
    /// cost 40 instructions for each field line.
    @inline(__always)
    subscript(at position: Int) -> UInt8 {
        assert(position >= 0 && position < byteCount, "a scan left its bytes")
        return unsafeLoad(fromUncheckedByteOffset: position, as: UInt8.self)
    }

    /// An unaligned word at a position within the span, under the same rule.
    @inline(__always)
    subscript<Word: FixedWidthInteger & BitwiseCopyable>(wordAt position: Int) -> Word {
        assert(position >= 0 && position + MemoryLayout<Word>.size <= byteCount, "a scan left its bytes")
        return unsafeLoadUnaligned(fromUncheckedByteOffset: position, as: Word.self)
    }
}

// MARK: - Views over raw bytes

// Small views over raw bytes that several scanners share: parts, trimming, comparison without case, list members.
extension UnsafeRawBufferPointer {
    /// The bytes of the range as a separate buffer; empty if the range is not inside this one.
    @inlinable @inline(__always)
    public func part(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        guard range.lowerBound >= 0, range.upperBound <= count else {
            return UnsafeRawBufferPointer(start: nil, count: 0)
        }
        return UnsafeRawBufferPointer(rebasing: self[range])
    }

    /// The bytes without SP and HTAB at both ends (OWS, RFC 9110 section 5.6.3).
    public func trimmingWhitespace() -> UnsafeRawBufferPointer {
        var start = 0
        var end = count
        while start < end, self[start] == 0x20 || self[start] == 0x09 { start += 1 }
        while end > start, self[end - 1] == 0x20 || self[end - 1] == 0x09 { end -= 1 }
        return part(start..<end)
    }

    /// Whether both hold the same bytes.
    public func holdsSame(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        // A buffer without a base is empty.
        guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
        return memcmp(base, otherBase, count) == 0
    }

    /// Whether the buffer has exactly these bytes.
    @inlinable @inline(__always)
    public func holds(_ bytes: [UInt8]) -> Bool { count == bytes.count && begins(with: bytes) }

    /// Whether the buffer begins with these bytes.
    public func begins(with bytes: [UInt8]) -> Bool {
        guard let base = baseAddress, count >= bytes.count else { return bytes.isEmpty }
        return bytes.withUnsafeBytes { wanted in
            // Both lengths have been compared above.
            wanted.baseAddress.map { memcmp(base, $0, wanted.count) == 0 } ?? true
        }
    }

    /// Whether both hold the same bytes, ignoring the case of ASCII letters.
    public func equalsIgnoringCase(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        for position in 0..<count where ByteClass.lower(self[position]) != ByteClass.lower(other[position]) {
            return false
        }
        return true
    }

    /// Whether the buffer holds this ASCII word, ignoring the case of letters.
    public func equalsIgnoringCase(_ word: StaticString) -> Bool {
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        equalsIgnoringCase(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    /// Calls `body` with each member of a comma-separated list, trimmed, empty ones included (RFC 9110 section 5.6.1).
    /// Quoted strings are not recognized.
    public func forEachMember(_ body: (UnsafeRawBufferPointer) -> Void) {
        var start = 0
        for position in 0...count where position == count || self[position] == 0x2C {
            body(part(start..<position).trimmingWhitespace())
            start = position + 1
        }
    }
}
