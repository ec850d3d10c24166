// Reading stored responses: one with its record, its key and its first block, or many as a listing; a damaged one is a
// miss.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching
import Synchronization

/// Reads stored responses. Sendable: its members are.
final class DiskReader: Sendable {
    private let parts: DiskParts
    private let finder: DiskFinder
    private let adopter: DiskAdopter
    private let remover: DiskRemover
    private let restorer: DiskRestorer

    init(
        _ parts: DiskParts,
        _ finder: DiskFinder,
        _ adopter: DiskAdopter,
        _ remover: DiskRemover,
        _ restorer: DiskRestorer
    ) {
        self.parts = parts
        self.finder = finder
        self.adopter = adopter
        self.remover = remover
        self.restorer = restorer
    }

    /// Reads a file's head on an I/O thread. A small body comes into memory, verified; a larger one is verified now,
    /// once per process, so that damage makes a miss; of a very large one only the first block is verified now, and
    /// each other block when it is read.
    /// - Parameters:
    ///   - via: as for `StoredResponse`.
    ///   - bytes: bodies up to this size come into memory.
    ///   - limit: larger bodies are not verified as a whole first, since the first byte would have to wait for that.
    /// - Parameter isUse: false if the response will not answer a request; then it does not count as used.
    /// - Throws: `DiskTierError`: `.absent` and `.damaged` are misses.
    func load(
        _ entry: DiskEntry,
        via: String?,
        policy: CachePolicy,
        inMemoryUpTo bytes: Int = 256 * 1024,
        verifiedUpTo limit: Int64 = 8 << 20,
        isUse: Bool = true
    ) async throws -> StoredResponse {
        try await parts.pool.run { [self] in
            do throws(DiskTierError) {
                let (response, stamp) = try loadNow(entry, via: via, policy: policy, inMemoryUpTo: bytes, limit)
                if isUse {
                    finder.noteUse(parts.keyHash(entry.key), entry.name)
                    if via == nil, let stamp { keepOpen(response, entry, stamp) }
                }
                return response
            } catch {
                parts.state.withLock { state in
                    if isUse { state.statistics.misses += 1 }
                }
                throw error
            }
        }
    }

    private func loadNow(
        _ entry: DiskEntry,
        via: String?,
        policy: CachePolicy,
        inMemoryUpTo memoryLimit: Int,
        _ limit: Int64
    ) throws(DiskTierError) -> (response: StoredResponse, stamp: FileStamp?) {
        let (descriptor, stored, slot) = try openStored(entry)
        let record = stored.record
        let isVerified = slot.verifiedStamp == stored.stamp.digest
        let body: Body
        let file: SharedFile
        let current = DiskEntry(key: entry.key, slot: slot)
        do throws(BodyError) {
            if record.bodyLength <= Int64(memoryLimit) {
                file = SharedFile(descriptor: descriptor, pool: parts.pool, calls: parts.folder.calls)
                let length = Int(record.bodyLength)
                let chunk = try file.read(offset: FileLayout.bodyOffset, count: length, isKept: true)
                var sums = BlockSums()
                chunk.withBytes { sums.update($0) }
                guard sums.sums == record.sums else { throw .damaged(block: 0) }
                body = .complete(chunk)
            } else {
                file = SharedFile(
                    descriptor: descriptor,
                    pool: parts.pool,
                    calls: parts.folder.calls,
                    verification: verification(of: current, stored),
                    isVerified: isVerified
                )
                let isWhole = !isVerified && record.bodyLength <= limit
                let start = min(record.bodyLength, Int64(SharedFile.pieceSize))
                // A verified body in the page cache is sent from the file, without reading it.
                if !isVerified || !file.isReady(offset: FileLayout.bodyOffset, count: Int(start)) {
                    try file.prepareNow(first: isWhole ? record.bodyLength : 1, of: record.bodyLength)
                }
                body = .file(file, offset: FileLayout.bodyOffset, length: record.bodyLength)
            }
        } catch {
            discard(current, error)
            throw .damaged
        }
        let response = StoredResponse(
            key: entry.key,
            head: record.head,
            body: body,
            tier: .disk,
            via: via,
            policy: policy,
            fileName: current.name,
            number: current.fileID
        )
        return (response, isVerified ? stored.stamp : nil)
    }

    /// The heads of files, read in one turn of an I/O thread, without their bodies. Files that are gone or damaged are
    /// left out.
    func heads(_ entries: [DiskEntry]) async -> [DiskHead] {
        let heads = try? await parts.pool.run { [self] in
            entries.compactMap { entry -> DiskHead? in
                guard let (descriptor, stored, slot) = try? openStored(entry) else { return nil }
                Glibc.close(descriptor)
                return DiskHead(entry: DiskEntry(key: entry.key, slot: slot), head: stored.record.head)
            }
        }
        return heads ?? []
    }

    /// Keeps the file of a response open, if all of it was verified and it was not loaded into memory.
    private func keepOpen(_ response: StoredResponse, _ entry: DiskEntry, _ stamp: FileStamp) {
        guard let file = response.body.file else { return }
        let hash = parts.keyHash(entry.key)
        parts.openFiles.keep(entry.name, response, file, stamp) {
            parts.state.withLock { !$0.isClosed && $0.table.find(hash, entry.name)?.fileID == response.number }
        }
    }

    private func verification(of entry: DiskEntry, _ stored: StoredFile) -> SharedFile.Verification {
        let (hash, record, stamp) = (parts.keyHash(entry.key), stored.record, stored.stamp.digest)
        return SharedFile.Verification(
            bodyOffset: FileLayout.bodyOffset,
            bodyLength: record.bodyLength,
            sums: record.sums,
            onDamage: { [weak self] in self?.discard(entry, $0) },
            onVerified: { [weak self] in
                self?.parts.state.withLock { state in
                    state.table.update(hash, entry.name) { if $0.fileID == entry.fileID { $0.verifiedStamp = stamp } }
                }
            }
        )
    }

    /// Opens a file and reads its record under the file's lock; the table learns what the file says.
    private func openStored(
        _ entry: DiskEntry
    ) throws(DiskTierError) -> (descriptor: Int32, file: StoredFile, slot: DiskTable.Slot) {
        let hash = parts.keyHash(entry.key)
        let path = parts.folder.path(of: entry.name)
        var isMissing = false
        // The folder is created anew outside the lock, if all of it is gone.
        defer { if isMissing { restorer.noteMissing(entry) } }
        return try parts.lock(entry.name).withLock { () throws(DiskTierError) in
            let known = parts.state.withLock { $0.table.find(hash, entry.name) }
            // The file was removed since the lookup.
            if known == nil && !entry.isGuess { throw .absent }
            let descriptor = parts.folder.calls.open(path, O_RDONLY, 0)
            if descriptor < 0 {
                let error = SystemError("open \(path)")
                isMissing = error.code == ENOENT && !entry.isGuess
                throw unopened(entry, error)
            }
            let read: StoredFile?
            do throws(SystemError) {
                read = try StoredFile.read(descriptor, parts.folder.calls)
            } catch {
                Glibc.close(descriptor)
                expel(entry, .unreadable, "reading its head failed with \(error.named)")
                throw .damaged
            }
            guard let file = read else {
                Glibc.close(descriptor)
                expel(entry, .damaged, "its head does not match its checksum, or it is too short, or no regular file")
                throw .damaged
            }
            guard file.record.key == entry.key.bytes else {
                Glibc.close(descriptor)
                throw .absent
            }
            if let known, known.fileID == file.record.fileID { return (descriptor, file, known) }
            guard let slot = adopter.adopt(file, hash, entry.name) else {
                Glibc.close(descriptor)
                parts.openFiles.remove(entry.name)
                remover.unlink(path)
                throw .absent
            }
            return (descriptor, file, slot)
        }
    }

    /// Handles a file that cannot be opened; under its lock.
    private func unopened(_ entry: DiskEntry, _ error: SystemError) -> DiskTierError {
        switch error.code {
        case ENOENT, ENOTDIR:
            forget(parts.keyHash(entry.key), entry.name)
            return .absent
        case EMFILE, ENFILE, ENOMEM, EINTR:
            // The file itself may be intact.
            parts.troubles.note(
                .unreadable,
                "\(error.operation): \(error.named): \(error.advice(to: parts.folder.kind))"
            )
            return .folder(error)
        default:
            expel(entry, .unreadable, "opening its file failed with \(error.named)")
            return .damaged
        }
    }

    /// Removes an unusable stored response; under its file's lock.
    private func expel(_ entry: DiskEntry, _ kind: DiskTrouble.Kind, _ reason: String) {
        forget(parts.keyHash(entry.key), entry.name)
        parts.openFiles.remove(entry.name)
        // The index may have a row that is not in the table yet.
        if entry.isGuess { parts.index.note(.remove(entry.name)) }
        let path = parts.folder.path(of: entry.name)
        remover.unlink(path)
        parts.state.withLock { $0.statistics.damaged += 1 }
        parts.troubles.note(
            kind,
            "the stored response \(entry.key) (\(path)) is removed: \(reason); it is fetched again"
        )
    }

    private func forget(_ hash: UInt64, _ name: StoredFileName) {
        if parts.state.withLock({ $0.table.remove(hash, name) }) != nil { parts.index.note(.remove(name)) }
    }

    /// Removes a file whose body is damaged or unreadable, unless another file has replaced it; I/O thread.
    private func discard(_ entry: DiskEntry, _ error: BodyError) {
        let hash = parts.keyHash(entry.key)
        parts.lock(entry.name).withLock {
            guard let slot = parts.state.withLock({ $0.table.find(hash, entry.name) }), slot.fileID == entry.fileID
            else {
                return
            }
            if case .file(let error) = error {
                expel(entry, .unreadable, "reading its body failed with \(error.named)")
            } else {
                expel(entry, .damaged, "\(error)")
            }
        }
    }
}

// MARK: - Listings

/// Lists stored responses. Sendable: its member is.
final class DiskLister: Sendable {
    private let parts: DiskParts

    init(_ parts: DiskParts) { self.parts = parts }

    /// The rows after the URL `after`, and the URL after which there may be more; all rows of a URL are returned
    /// together.
    func list(
        _ query: ListQuery,
        pinned: [String],
        limit: Int
    ) async throws -> (rows: [DiskIndex.Listed], end: String?) {
        try await parts.index.thread.run { [index = parts.index] in
            index.writeBatch()
            var limit = limit
            while true {
                let rows = try index.list(query, pinned: pinned, limit: limit)
                guard rows.count >= limit, let last = rows.last?.url else { return (rows, nil) }
                // More rows may have the last URL: those belong to the next page.
                let whole = rows.prefix { $0.url != last }
                if let end = whole.last?.url { return (Array(whole), end) }
                limit *= 2
            }
        }
    }

    /// The heads of some rows, read in one turn of an I/O thread; files that are gone are left out.
    func heads(of rows: [TierRow]) async -> [TierListing] {
        let found = try? await parts.pool.run { [self] in
            rows.compactMap { row in StoredFileName(hex: row.name).flatMap { head(of: $0) } }
        }
        return found ?? []
    }

    /// Reads the head of a file; blocks.
    /// - Returns: nil if the file is gone or unreadable.
    func head(of name: StoredFileName) -> TierListing? {
        let (folder, calls) = (parts.folder, parts.folder.calls)
        let descriptor = calls.open(folder.path(of: name), O_RDONLY, 0)
        if descriptor < 0 { return nil }
        defer { close(descriptor) }
        guard let file = try? StoredFile.read(descriptor, calls) else { return nil }
        let record = file.record
        return TierListing(
            CacheKey(bytes: record.key),
            record.head,
            length: record.bodyLength,
            number: record.fileID
        )
    }
}
