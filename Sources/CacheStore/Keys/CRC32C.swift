// CRC32C (Castagnoli), eight bytes per step: the checksum of blocks of bodies and of head records.

/// A running checksum over bytes in any number of pieces. More than 64 KiB belong on an I/O thread.
package struct CRC32C: Sendable {
    private var state: UInt32 = 0xFFFF_FFFF

    package init() {}

    /// The checksum of all bytes so far.
    package var value: UInt32 { ~state }

    /// The checksum of bytes in memory.
    package static func of(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        var sum = CRC32C()
        sum.update(bytes)
        return sum.value
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var crc = state
        var rest = bytes[...]
        Self.tables.withUnsafeBufferPointer { table in
            while rest.count >= 8 {
                let start = rest.startIndex
                let word = rest.base.loadUnaligned(fromByteOffset: start, as: UInt64.self).littleEndian
                let low = UInt32(truncatingIfNeeded: word) ^ crc
                let high = UInt32(truncatingIfNeeded: word >> 32)
                crc =
                    table[1792 + Int(low & 0xFF)] ^ table[1536 + Int((low >> 8) & 0xFF)]
                    ^ table[1280 + Int((low >> 16) & 0xFF)] ^ table[1024 + Int(low >> 24)]
                crc =
                    crc ^ table[768 + Int(high & 0xFF)] ^ table[512 + Int((high >> 8) & 0xFF)]
                    ^ table[256 + Int((high >> 16) & 0xFF)] ^ table[Int(high >> 24)]
                rest = rest[(start + 8)...]
            }
            for byte in rest { crc = (crc >> 8) ^ table[Int((crc ^ UInt32(byte)) & 0xFF)] }
        }
        state = crc
    }

    /// The eight tables of 256 numbers, one after the other.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 2048)
        for byte in 0..<256 {
            var crc = UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0x82F6_3B78 : crc >> 1 }
            tables[byte] = crc
        }
        for row in 1..<8 {
            for byte in 0..<256 {
                let before = tables[(row - 1) * 256 + byte]
                tables[row * 256 + byte] = (before >> 8) ^ tables[Int(before & 0xFF)]
            }
        }
        return tables
    }()
}

/// The checksums of a body's blocks of 256 KiB, kept while the body streams in; the last block may be short.
package struct BlockSums: Sendable {
    /// The size of a block that has a checksum, in bytes.
    package static let blockSize = 256 * 1024

    private var finished: [UInt32] = []
    private var current = CRC32C()
    private var currentCount = 0

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = rest.prefix(Self.blockSize - currentCount)
            current.update(UnsafeRawBufferPointer(rebasing: part))
            currentCount += part.count
            rest = rest.dropFirst(part.count)
            if currentCount == Self.blockSize {
                finished.append(current.value)
                current = CRC32C()
                currentCount = 0
            }
        }
    }

    /// The checksums of all bytes so far, one for each block.
    package var sums: [UInt32] { currentCount == 0 ? finished : finished + [current.value] }
}
