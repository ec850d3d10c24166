// The lines of an answer on the hot path: put together in memory that is there already.

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

    /// Four digits.
    mutating func append(hexadecimal number: UInt16) {
        for shift in [12, 8, 4, 0] as [UInt16] {
            let digit = UInt8(truncatingIfNeeded: number >> shift & 15)
            append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
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
