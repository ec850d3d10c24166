// Copies in both directions: a seed becomes a stored response, and a stored response becomes a plain file for programs
// that read it without HTTP.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching

/// The copies between stored responses and other files. Sendable: its members are.
final class DiskCopies: Sendable {
    private let parts: DiskParts
    private let reader: DiskReader
    private let writer: DiskWriter
    private let room: DiskRoom

    init(_ parts: DiskParts, _ reader: DiskReader, _ writer: DiskWriter, _ room: DiskRoom) {
        self.parts = parts
        self.reader = reader
        self.writer = writer
        self.room = room
    }

    /// The folder in which ``keepAsFile(_:as:onlyIfMissing:)`` makes files.
    private var filesFolder: String { "\(parts.folder.path)/files" }

    /// Copies the body of a stored response to a file in ``filesFolder``, which has either the old bytes or the new
    /// ones at any moment. The copy stays until the next one takes its place.
    /// - Parameters:
    ///   - name: a relative path without empty or dot segments.
    ///   - onlyIfMissing: leaves a file alone that is there.
    /// - Throws: `DiskTierError`, `BodyError` or `SystemError`; the file is as it was then.
    func keepAsFile(_ entry: DiskEntry, as name: String, onlyIfMissing: Bool = false) async throws {
        let target = "\(filesFolder)/\(name)"
        if onlyIfMissing, try await parts.pool.run({ access(target, F_OK) == 0 }) { return }
        let response = try await reader.load(entry, via: nil, policy: CachePolicy(), isUse: false)
        try await parts.pool.run { [self] in
            let bytes = Int(clamping: response.body.knownLength ?? 0)
            guard room.reserve(bytes) else { throw SystemError("write \(target)", code: ENOSPC) }
            // The space is reserved only while the copy is written: a plain copy does not
            // count towards the tier's size.
            defer { room.release(bytes) }
            let temporary = parts.folder.temporary()
            defer { unlink(temporary) }
            _ = try BodyFile.write(response.body, to: temporary)
            var path = filesFolder
            for part in [""] + name.split(separator: "/").dropLast().map({ "/\($0)" }) {
                path += part
                if mkdir(path, 0o755) != 0, errno != EEXIST { throw SystemError("mkdir \(path)") }
            }
            guard rename(temporary, target) == 0 else { throw SystemError("rename to \(target)") }
        }
    }

    /// Copies a seed into a file of its own; suspends while an I/O thread does it.
    /// - Throws: as ``DiskWriter/commit(_:spill:key:head:generation:maxVariants:number:)``.
    func adopt(
        _ copy: SeedCopy,
        head: StoredHead,
        key: CacheKey,
        generation: (Invalidations, InvalidationToken),
        maxVariants: Int
    ) async throws {
        let length = copy.body.knownLength ?? 0
        guard let file = copy.body.file, length > Int64(SharedFile.pieceSize) else {
            let chunk = try await copy.chunk()
            let body = Body.complete(chunk)
            try await writer.commit(
                body,
                key: key,
                head: head,
                generation: generation,
                maxVariants: maxVariants,
                number: generation.1.number
            )
            return
        }
        let spill = writer.makeSpill(expected: length)
        try await parts.pool.run {
            var position: Int64 = 0
            while position < length {
                let count = Int(min(Int64(SharedFile.pieceSize), length - position))
                let chunk = try file.read(offset: position, count: count)
                try spill.appendNow([(chunk, 0..<count)])
                position += Int64(count)
            }
        }
        try await writer.commit(
            copy.body,
            spill: spill,
            key: key,
            head: head,
            generation: generation,
            maxVariants: maxVariants,
            number: generation.1.number
        )
    }
}
