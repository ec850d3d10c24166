// The layout of a stored file: a preamble, the body from byte 4096 on, records after it: see `StoredRecord`.
//
// A record is found from the end of the file by its last twelve bytes; where an append was torn, by walking the records
// from the end of the body, whose length the preamble knows. Data that does not match its checksum counts as absent.

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

    /// A random id, which differs for a file that replaces this one under the same name.
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
        bytes.add(bytes.withUnsafeBytes(CRC32C.of))
        bytes += [UInt8](repeating: 0, count: Int(FileLayout.bodyOffset) - bytes.count)
        return bytes
    }

    /// Nil where the bytes are no preamble of this version.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.size, bytes.prefix(8).elementsEqual(Self.magic) else { return nil }
        let checked = UnsafeRawBufferPointer(rebasing: bytes[..<(Self.size - 4)])
        guard bytes.number(at: 8, UInt16.self) == FileLayout.version,
            bytes.number(at: 12, UInt32.self) == UInt32(BlockSums.blockSize),
            bytes.number(at: Self.size - 4, UInt32.self) == CRC32C.of(checked)
        else { return nil }
        fileID = bytes.number(at: 16, UInt64.self)
        bodyLength = Int64(bitPattern: bytes.number(at: 24, UInt64.self))
        guard bodyLength >= 0, bodyLength < Int64.max / 2 else { return nil }
    }
}

extension [UInt8] {
    mutating func add<Number: FixedWidthInteger>(_ number: Number) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }
}

extension UnsafeRawBufferPointer {
    /// The caller must have checked that the number lies inside.
    func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int, _ type: Number.Type) -> Number {
        Number(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}
