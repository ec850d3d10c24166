// One stored file: the preamble that identifies it, and the reading and writing of its parts.

import CacheStore
import EventLoop
import Glibc

/// The parsed head of a stored file.
struct StoredFile {
    var record: StoredRecord
    /// The offset in the file at which the record's valid bytes end.
    var end: Int64
    /// The file's stamp from before its head was read.
    let stamp: FileStamp
    /// The bytes of the whole file.
    var size: Int64 { stamp.size }

    /// Reads the preamble and the last valid record.
    /// - Returns: nil if the file is no complete stored response, or no regular file: it does not wait for a pipe.
    /// - Throws: `SystemError` if it cannot be read.
    static func read(_ descriptor: Int32, _ calls: FileCalls) throws(SystemError) -> StoredFile? {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemError("stat") }
        guard status.st_mode & S_IFMT == S_IFREG else { return nil }
        let stamp = FileStamp(status)
        let size = stamp.size
        guard let start = try part(descriptor, 0..<64, calls),
            let preamble = start.withUnsafeBytes({ FilePreamble($0) })
        else { return nil }
        let tailStart = FileLayout.bodyOffset + preamble.bodyLength
        guard size > tailStart, size - tailStart <= FileLayout.longestTail,
            let tail = try part(descriptor, tailStart..<size, calls),
            let (record, end) = tail.withUnsafeBytes({ StoredRecord.last(in: $0) }),
            record.bodyLength == preamble.bodyLength, record.fileID == preamble.fileID
        else { return nil }
        return StoredFile(record: record, end: tailStart + Int64(end), stamp: stamp)
    }

    /// Appends a record, after the rest of an interrupted append was cut off. A long tail is shortened so that a valid
    /// record exists at every moment: the newest is copied to the front while it still ends the file.
    /// - Returns: the size of the file.
    static func append(
        _ record: StoredRecord,
        to descriptor: Int32,
        after file: StoredFile,
        _ calls: FileCalls
    ) throws(BodyError) -> Int64 {
        let bytes = record.encode()
        let tailStart = FileLayout.bodyOffset + record.bodyLength
        if file.end < file.size, calls.truncate(descriptor, file.end) != 0 {
            throw .file(SystemError("truncate a stored file"))
        }
        try write(bytes, to: descriptor, at: file.end, calls)
        let size = file.end + Int64(bytes.count)
        guard size - tailStart > 64 * 1024, file.end - tailStart >= Int64(2 * bytes.count) else { return size }
        try write(bytes, to: descriptor, at: tailStart, calls)
        let short = tailStart + Int64(bytes.count)
        return calls.truncate(descriptor, short) == 0 ? short : size
    }

    static func write(
        _ bytes: [UInt8],
        to descriptor: Int32,
        at offset: Int64,
        _ calls: FileCalls
    ) throws(BodyError) {
        let chunk = Chunk(bytes)
        try chunk.withBytes { part throws(BodyError) in try SpillFile.write(part, to: descriptor, at: offset, calls) }
    }

    /// A part of a file; nil if the file ends before the part does.
    private static func part(
        _ descriptor: Int32,
        _ range: Range<Int64>,
        _ calls: FileCalls
    ) throws(SystemError) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: Int(range.upperBound - range.lowerBound))
        var done = 0
        while done < bytes.count {
            let result = bytes.withUnsafeMutableBytes { room in
                let rest = UnsafeMutableRawBufferPointer(rebasing: room[done...])
                return calls.read(descriptor, rest, range.lowerBound + Int64(done))
            }
            if result < 0 && errno == EINTR { continue }
            if result < 0 { throw SystemError("read") }
            if result == 0 { return nil }
            done += result
        }
        return bytes
    }
}

// MARK: - The preamble

/// The first 4096 bytes; written once, before the file gets its name.
struct FilePreamble: Equatable {
    private static let magic = Array("DRYDOCK\n".utf8)
    private static let size = 36

    /// The number of the fetch that brought the body; it differs for a file that replaces this one under its name.
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

    /// Reads a preamble; nil if the bytes are not one of this version.
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
