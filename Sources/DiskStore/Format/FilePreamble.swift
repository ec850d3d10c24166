// The beginning of a stored file: it tells one from any other file, and says how long its body is.

import CacheStore

/// The first 4096 bytes; written once, before the file gets its name.
struct FilePreamble: Equatable {
    private static let magic = Array("DRYDOCK\n".utf8)
    private static let size = 36

    /// The number of the fetch that brought the body: another one for a file that replaces this one under its name.
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
