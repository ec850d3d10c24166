// The lines and the cache key of a request on the hot path: put together in memory that is there already.

import CacheStore
import Glibc
import HTTPCaching
import HTTPWire

/// Lines of one answer. Room is checked in debug builds only: whoever gives the memory has allocated enough, and
/// asks before it copies a head.
struct HotLines {
    // A part of the hot path's scratch memory, `capacity` bytes; used within one call on the loop.
    private let start: UnsafeMutableRawPointer
    private let capacity: Int
    private(set) var end = 0

    init(_ start: UnsafeMutableRawPointer, _ capacity: Int) {
        self.start = start
        self.capacity = capacity
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: end) }

    mutating func append(_ text: StaticString) {
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        assert(bytes.count <= capacity - end)
        (start + end).copyMemory(from: source, byteCount: bytes.count)
        end &+= bytes.count
    }

    mutating func append(utf8 text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    mutating func append(_ byte: UInt8) {
        assert(end < capacity)
        start.storeBytes(of: byte, toByteOffset: end, as: UInt8.self)
        end &+= 1
    }

    /// Sixteen digits.
    mutating func append(hexadecimal number: UInt64) {
        // Eight digits at once, a byte for each: the half's four-bit pieces are spread out, and turned into text.
        for half in [UInt32(truncatingIfNeeded: number >> 32), UInt32(truncatingIfNeeded: number)] {
            var digits = UInt64(half)
            digits = (digits << 16 | digits) & 0x0000_ffff_0000_ffff
            digits = (digits << 8 | digits) & 0x00ff_00ff_00ff_00ff
            digits = (digits << 4 | digits) & 0x0f0f_0f0f_0f0f_0f0f
            // 1 in each byte whose digit is above 9.
            let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
            append(word: (digits &+ 0x3030_3030_3030_3030 &+ letters &* 0x27).bigEndian)
        }
    }

    /// The eight bytes of a number, as memory has them.
    private mutating func append(word: UInt64) {
        assert(capacity - end >= 8)
        (start + end).storeBytes(of: word, as: UInt64.self)
        end &+= 8
    }

    mutating func append(_ number: Int64) {
        // The longest number has 20 bytes.
        assert(capacity - end >= 20)
        let room = UnsafeMutableRawBufferPointer(start: start + end, count: 20)
        end &+= Serializer.appendDecimal(number, into: room, at: 0)
    }

    /// - Returns: the value of Cache-Status, in the buffer.
    mutating func append(_ status: HitStatus, age: Int64, ttl: Int64) -> UnsafeRawBufferPointer {
        assert(capacity - end >= status.maximumLength)
        let room = UnsafeMutableRawBufferPointer(start: start + end, count: status.maximumLength)
        let (count, value) = status.write(age: age, ttl: ttl, into: room)
        end &+= count
        return UnsafeRawBufferPointer(room).part(value)
    }

    /// The field lines of a ready head that `isWanted` names, by name.
    mutating func append(
        _ head: UnsafeRawBufferPointer,
        where isWanted: (UnsafeRawBufferPointer, KnownField) -> Bool
    ) {
        // The status line ends where the fields begin.
        var start = head.position(of: UInt8(ascii: "\n"), from: 0) + 1
        while start < head.count {
            let next = head.position(of: UInt8(ascii: "\n"), from: start) + 1
            let name = head.part(start..<head.position(of: UInt8(ascii: ":"), from: start))
            if isWanted(name, KnownField.find(name)) { append(head.part(start..<min(next, head.count))) }
            start = next
        }
    }
}

extension UnsafeRawBufferPointer {
    /// The next position of the byte; `count` if there is none.
    fileprivate func position(of byte: UInt8, from start: Int) -> Int {
        // Within bounds: the rest of the buffer is searched, and nothing where `start` is its end.
        guard let base = baseAddress, start < count, let found = memchr(base + start, Int32(byte), count - start) else {
            return count
        }
        return UnsafeRawPointer(found) - base
    }
}

/// A cache key being put together.
struct KeyBuffer {
    // A part of the hot path's scratch memory, `capacity` bytes.
    private let start: UnsafeMutableRawPointer
    private let capacity: Int
    private var count = 0

    init(_ start: UnsafeMutableRawPointer, _ capacity: Int) {
        self.start = start
        self.capacity = capacity
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// False if the key does not fit.
    mutating func append(_ part: UnsafeRawBufferPointer) -> Bool {
        guard let source = part.baseAddress else { return true }
        guard part.count <= capacity &- count else { return false }
        (start + count).copyMemory(from: source, byteCount: part.count)
        count &+= part.count
        return true
    }

    mutating func append(_ part: [UInt8]) -> Bool { part.withUnsafeBytes { append($0) } }

    mutating func append(_ part: String) -> Bool {
        for byte in part.utf8 where !append(byte) { return false }
        return true
    }

    mutating func append(_ byte: UInt8) -> Bool { withUnsafeBytes(of: byte) { append($0) } }
}
