// The layout of a stored file: a preamble, the body from byte 4096 on, head records after it.
//
// A record is found from the end of the file by its last twelve bytes; where an append was torn, by walking the records
// from the end of the body, whose length the preamble knows. Whatever does not match its checksum does not exist.

import HTTPCaching

/// All numbers are little-endian.
enum FileLayout {
    /// Where the body begins, in bytes.
    static let bodyOffset: Int64 = 4096
    static let version: UInt16 = 1
    static let footerSize = 12
    /// Longer tails are not read: no writer makes them.
    static let longestTail: Int64 = 64 * 1024 * 1024
}

/// The first 4096 bytes; written once, before the file gets its name.
struct FilePreamble: Equatable {
    private static let magic = Array("DRYDOCK\n".utf8)
    private static let size = 36

    /// Random: tells a file from one that replaced it under the same name.
    var fileID: UInt64
    var bodyLength: Int64

    init(fileID: UInt64, bodyLength: Int64) {
        self.fileID = fileID
        self.bodyLength = bodyLength
    }

    func encode() -> [UInt8] {
        var bytes = Self.magic
        bytes.add(FileLayout.version)
        bytes.add(UInt16(0))
        bytes.add(UInt32(BlockSums.blockSize))
        bytes.add(fileID)
        bytes.add(UInt64(bitPattern: bodyLength))
        bytes.add(bytes.withUnsafeBytes(Checksum.of))
        bytes += [UInt8](repeating: 0, count: Int(FileLayout.bodyOffset) - bytes.count)
        return bytes
    }

    /// Nil where the bytes are no preamble of this version.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.size, bytes.prefix(8).elementsEqual(Self.magic) else { return nil }
        let checked = UnsafeRawBufferPointer(rebasing: bytes[..<(Self.size - 4)])
        guard bytes.number(at: 8, UInt16.self) == FileLayout.version,
            bytes.number(at: 12, UInt32.self) == UInt32(BlockSums.blockSize),
            bytes.number(at: Self.size - 4, UInt32.self) == Checksum.of(checked)
        else { return nil }
        fileID = bytes.number(at: 16, UInt64.self)
        bodyLength = Int64(bitPattern: bytes.number(at: 24, UInt64.self))
        guard bodyLength >= 0, bodyLength < Int64.max / 2 else { return nil }
    }
}

/// Everything about a stored response but its body. The last valid one of a file counts.
struct HeadRecord {
    private static let startMagic: UInt32 = 0x5248_4444
    private static let endMagic: UInt32 = 0x4444_4852
    private static let fixedSize = 56

    var fileID: UInt64
    /// Counts the records of a file.
    var sequence: UInt32
    var bodyLength: Int64
    var key: [UInt8]
    var head: StoredHead
    /// One a block of the body.
    var sums: [UInt32]

    func encode() -> [UInt8] {
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
        bytes.add(bytes.withUnsafeBytes(Checksum.of))
        bytes.add(UInt32(truncatingIfNeeded: length))
        bytes.add(Self.endMagic)
        return bytes
    }

    /// The last valid record of a file's tail, and where it ends there.
    /// - Parameter tail: everything after the body.
    static func last(in tail: UnsafeRawBufferPointer) -> (record: HeadRecord, end: Int)? {
        if let start = startOfLast(tail), let record = parse(tail, at: start)?.0 { return (record, tail.count) }
        var found: (record: HeadRecord, end: Int)?
        while let (record, length) = parse(tail, at: found?.end ?? 0) {
            found = (record, (found?.end ?? 0) + length)
        }
        return found
    }

    /// Where the record begins whose footer ends the bytes.
    private static func startOfLast(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count >= fixedSize + FileLayout.footerSize,
            bytes.number(at: bytes.count - 4, UInt32.self) == endMagic
        else { return nil }
        let length = Int(bytes.number(at: bytes.count - 8, UInt32.self))
        return length <= bytes.count ? bytes.count - length : nil
    }

    /// The record at an offset, if it is whole and matches its checksum.
    private static func parse(_ bytes: UnsafeRawBufferPointer, at start: Int) -> (HeadRecord, Int)? {
        guard start >= 0, bytes.count - start >= fixedSize + FileLayout.footerSize,
            bytes.number(at: start, UInt32.self) == startMagic,
            bytes.number(at: start + 4, UInt16.self) == FileLayout.version
        else { return nil }
        let length = Int(bytes.number(at: start + 8, UInt32.self))
        guard length >= fixedSize + FileLayout.footerSize, length <= bytes.count - start else { return nil }
        let record = UnsafeRawBufferPointer(rebasing: bytes[start..<start + length])
        let checked = UnsafeRawBufferPointer(rebasing: record[..<(length - FileLayout.footerSize)])
        guard record.number(at: length - 12, UInt32.self) == Checksum.of(checked),
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
        let decoded = HeadRecord(
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

extension [UInt8] {
    mutating func add<Number: FixedWidthInteger>(_ number: Number) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// The caller has checked that the number lies inside.
    func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, _ type: Number.Type) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}
