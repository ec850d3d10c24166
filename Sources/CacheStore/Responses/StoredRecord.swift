// The one encoding of a stored response without its body: behind the body in a file of the disk tier, before it on
// the wire to a shared one; and the layout of such a file.
//
//     offset  bytes
//          0      4  "DDHR"
//          4      2  version of the layout
//          6      2  0
//          8      4  length of the record
//         12      4  sequence
//         16      8  number of the fetch
//         24      8  length of the body
//         32      8  when the response arrived, Unix seconds
//         40      4  length of the key
//         44      4  length of the head
//         48      4  number of checksums of the body
//         52      4  0
//         56         key, head (`StoredHead.encode(into:)`, which has a version of its own), 4 bytes for each checksum
//        -12      4  CRC32C of all before
//         -8      4  length of the record
//         -4      4  "RHDD"
//
// All numbers are little-endian. A new field of `StoredHead` is encoded in `StoredHead.swift` alone.

package import HTTPCaching

/// A stored response without its body. Of several records in a file, the last valid one counts.
package struct StoredRecord: Sendable {
    private static let startMagic: UInt32 = 0x5248_4444
    private static let endMagic: UInt32 = 0x4444_4852
    private static let fixedSize = 56

    /// The number of the fetch that brought the body.
    package var fileID: UInt64
    /// The number of the record in its file, from 1.
    package var sequence: UInt32
    /// The length of the body, in bytes.
    package var bodyLength: Int64
    /// The key, as ``CacheKey/bytes``.
    package var key: [UInt8]
    package var head: StoredHead
    /// The CRC32C of each block of 256 KiB of the body.
    package var sums: [UInt32]

    package init(fileID: UInt64, sequence: UInt32, bodyLength: Int64, key: [UInt8], head: StoredHead, sums: [UInt32]) {
        self.fileID = fileID
        self.sequence = sequence
        self.bodyLength = bodyLength
        self.key = key
        self.head = head
        self.sums = sums
    }

    package func encode() -> [UInt8] {
        var encodedHead: [UInt8] = []
        head.encode(into: &encodedHead)
        let length = Self.fixedSize + key.count + encodedHead.count + sums.count * 4 + FileLayout.footerSize
        var bytes: [UInt8] = []
        bytes.reserveCapacity(length)
        bytes.add(Self.startMagic)
        bytes.add(FileLayout.version)
        bytes.add(UInt16(0))
        bytes.add(UInt32(truncatingIfNeeded: length))
        bytes.add(sequence)
        bytes.add(fileID)
        bytes.add(UInt64(bitPattern: bodyLength))
        bytes.add(UInt64(bitPattern: head.responseTime))
        bytes.add(UInt32(truncatingIfNeeded: key.count))
        bytes.add(UInt32(truncatingIfNeeded: encodedHead.count))
        bytes.add(UInt32(truncatingIfNeeded: sums.count))
        bytes.add(UInt32(0))
        bytes += key
        bytes += encodedHead
        for sum in sums { bytes.add(sum) }
        bytes.add(bytes.withUnsafeBytes(CRC32C.of))
        bytes.add(UInt32(truncatingIfNeeded: length))
        bytes.add(Self.endMagic)
        return bytes
    }

    /// The last valid record of a file's tail, and its end there.
    /// - Parameter tail: everything after the body.
    package static func last(in tail: UnsafeRawBufferPointer) -> (record: StoredRecord, end: Int)? {
        if let start = startOfLast(tail), let record = parse(tail, at: start)?.0 { return (record, tail.count) }
        var found: (record: StoredRecord, end: Int)?
        while let (record, length) = parse(tail, at: found?.end ?? 0) {
            found = (record, (found?.end ?? 0) + length)
        }
        return found
    }

    /// The beginning of the record whose footer ends the bytes.
    private static func startOfLast(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= fixedSize + FileLayout.footerSize,
            bytes.number(at: bytes.count - 4, UInt32.self) == endMagic
        else { return nil }
        let length = Int(bytes.number(at: bytes.count - 8, UInt32.self))
        return length <= bytes.count ? bytes.count - length : nil
    }

    /// The record at an offset, if it is whole and matches its checksum.
    private static func parse(_ bytes: UnsafeRawBufferPointer, at start: Int) -> (StoredRecord, Int)? {
        guard start >= 0, bytes.count - start >= fixedSize + FileLayout.footerSize,
            bytes.number(at: start, UInt32.self) == startMagic,
            bytes.number(at: start + 4, UInt16.self) == FileLayout.version
        else { return nil }
        let length = Int(bytes.number(at: start + 8, UInt32.self))
        guard length >= fixedSize + FileLayout.footerSize, length <= bytes.count - start else { return nil }
        let record = UnsafeRawBufferPointer(rebasing: bytes[start..<start + length])
        let checked = UnsafeRawBufferPointer(rebasing: record[..<(length - FileLayout.footerSize)])
        guard record.number(at: length - 12, UInt32.self) == CRC32C.of(checked),
            record.number(at: length - 8, UInt32.self) == UInt32(length),
            record.number(at: length - 4, UInt32.self) == endMagic
        else { return nil }
        let counts = [40, 44, 48].map { Int(record.number(at: $0, UInt32.self)) }
        guard fixedSize + counts[0] + counts[1] + counts[2] * 4 + FileLayout.footerSize == length else { return nil }
        let headStart = fixedSize + counts[0]
        let sumsStart = headStart + counts[1]
        let encodedHead = UnsafeRawBufferPointer(rebasing: record[headStart..<sumsStart])
        guard let head = try? StoredHead(decoding: encodedHead) else { return nil }
        let bodyLength = Int64(bitPattern: record.number(at: 24, UInt64.self))
        guard bodyLength >= 0, bodyLength < Int64.max / 2, Int64(counts[2]) == (bodyLength + 262_143) / 262_144 else {
            return nil
        }
        let decoded = StoredRecord(
            fileID: record.number(at: 16, UInt64.self),
            sequence: record.number(at: 12, UInt32.self),
            bodyLength: bodyLength,
            key: Array(record[fixedSize..<headStart]),
            head: head,
            sums: (0..<counts[2]).map { record.number(at: sumsStart + $0 * 4, UInt32.self) }
        )
        return (decoded, length)
    }
}

extension StoredRecord {
    /// The record of a body in memory.
    package init(_ key: CacheKey, _ head: StoredHead, number: UInt64, body: Chunk) {
        var sums = BlockSums()
        body.withBytes { sums.update($0) }
        self.init(
            fileID: number,
            sequence: 1,
            bodyLength: Int64(body.capacity),
            key: key.bytes,
            head: head,
            sums: sums.sums
        )
    }

    /// Decodes one record; nil if the bytes are not exactly one.
    package init?(decoding bytes: [UInt8]) {
        let found = bytes.withUnsafeBytes { StoredRecord.last(in: $0) }
        guard let found, found.end == bytes.count, found.record.encode().count == bytes.count else { return nil }
        self = found.record
    }

    /// Whether these bytes are the unchanged body.
    package func describes(_ body: Chunk) -> Bool {
        var sums = BlockSums()
        body.withBytes { sums.update($0) }
        return Int64(body.capacity) == bodyLength && sums.sums == self.sums
    }
}

// MARK: - The layout of a file

// A stored file has a preamble, the body from byte 4096 on, and records after it. A record is found from the end of the
// file by its last twelve bytes; after a torn append, by walking the records from the end of the body, whose length is
// in the preamble. Data that does not match its checksum counts as absent.

/// The numbers that the writers and readers of stored files agree on. All numbers in files are little-endian.
package enum FileLayout {
    /// The offset of the body in bytes.
    package static let bodyOffset: Int64 = 4096
    package static let version: UInt16 = 1
    package static let footerSize = 12
    /// The longest tail that is read; no writer makes longer ones.
    package static let longestTail: Int64 = 64 * 1024 * 1024
}

extension [UInt8] {
    /// Appends a number, little-endian.
    package mutating func add<Number: FixedWidthInteger>(_ number: Number) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// A little-endian number. The caller must have checked that it lies inside.
    package func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, _ type: Number.Type) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}
