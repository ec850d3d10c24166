// Storing a response on the disk: a temporary file, its record, room by eviction, a name; and freshening its head.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching
import Synchronization

/// Stores responses. Sendable: its members are.
final class DiskWriter: Sendable {
    private let parts: DiskParts
    private let room: DiskRoom
    private let remover: DiskRemover
    private let restorer: DiskRestorer
    private let pins: DiskPins

    init(
        _ parts: DiskParts,
        _ room: DiskRoom,
        _ remover: DiskRemover,
        _ restorer: DiskRestorer,
        _ pins: DiskPins
    ) {
        self.parts = parts
        self.room = room
        self.remover = remover
        self.restorer = restorer
        self.pins = pins
    }

    /// The temporary file for a body that may be stored; no I/O happens before its first bytes. Any thread.
    /// - Parameter expected: the declared length of the body in bytes; zero if none is declared.
    func makeSpill(expected: Int64 = 0) -> SpillFile {
        let folder = parts.folder
        return SpillFile(
            path: folder.temporary(),
            pool: parts.pool,
            room: spillRoom,
            expected: expected,
            calls: folder.calls
        )
    }

    /// A temporary file for the parts of one representation; no I/O happens before its first bytes. Any thread.
    func makeSparse() -> SparseFile {
        let folder = parts.folder
        return SparseFile(path: folder.temporary(), pool: parts.pool, room: spillRoom, calls: folder.calls)
    }

    /// The room for temporary files.
    private var spillRoom: SpillFile.Room {
        let limits = parts.limits
        return SpillFile.Room(
            reserve: { [weak room] in room?.reserve($0) ?? false },
            release: { [weak room] in room?.release($0) },
            maxObject: min(limits.maxObject ?? limits.size / 4, limits.size),
            mend: { [weak self] in self?.mend($0, $1, $2) ?? false }
        )
    }

    /// Whether a failed file operation should be repeated: files were evicted because the file system has no space,
    /// inodes or quota left, or missing folders were created again. On an I/O thread; not under a file's lock.
    /// - Parameters:
    ///   - attempt: the number of earlier repetitions.
    ///   - bytes: the bytes that are to be written.
    private func mend(_ error: SystemError, _ attempt: Int, _ bytes: Int) -> Bool {
        switch error.code {
        // The tier's count and the file system's differ. The limit keeps a file system that others have filled from
        // evicting everything.
        case ENOSPC, EDQUOT: attempt < 3 && !error.operation.hasPrefix(SpillFile.wantsRoom) && room.make(bytes, error)
        case ENOENT: attempt == 0 && restorer.restore() != .failed
        default: false
        }
    }

    /// Stores a complete body under its key.
    /// - Parameters:
    ///   - spill: the file that the arriving body was given, or one that holds the body already; nil for
    ///     a body that is in memory.
    ///   - generation: noted when the fetch began: nothing is stored if the key was invalidated since.
    ///   - maxVariants: files of one key at most, at least 1; the one that was stored longest ago goes.
    ///   - number: of the response's fetch (see ``Invalidations/nextNumber()``): writes may overtake one another.
    /// - Throws: `DiskTierError` (`.refused`, `.invalidated`, `.outdated`, `.folder`, `.closed`); the
    ///   response is not stored then.
    @discardableResult
    func commit(
        _ body: Body,
        spill: SpillFile? = nil,
        key: CacheKey,
        head: StoredHead,
        generation: (Invalidations, InvalidationToken)? = nil,
        maxVariants: Int = 32,
        number: UInt64? = nil
    ) async throws -> DiskEntry {
        if let (invalidations, token) = generation, !invalidations.isUnchanged(token) {
            throw DiskTierError.invalidated
        }
        if parts.state.withLock({ $0.isAway }) { throw DiskTierError.closed }
        let target = spill ?? makeSpill()
        do {
            if spill != nil, try await body.flush() {
                // The whole body is in the file now.
            } else if let spill, spill.written > 0, spill.written == body.knownLength {
                // The file is complete: nothing is left to write.
            } else {
                guard let chunk = body.inMemory()?.wholeChunk else { throw BodyError.abandoned }
                try await parts.pool.run { try target.appendNow([(chunk, 0..<chunk.capacity)]) }
            }
            return try await parts.pool.run { [self] in
                let number = number ?? parts.invalidations.nextNumber()
                return try publish(target, number, key: key, head: head, generation, maxVariants: maxVariants)
            }
        } catch let error as BodyError {
            parts.state.withLock { $0.statistics.refusals += 1 }
            unwritten(key, error)
            throw DiskTierError.refused(error)
        } catch DiskTierError.folder(let error) {
            unwritten(key, error)
            throw DiskTierError.folder(error)
        }
    }

    private func unwritten(_ key: CacheKey, _ error: BodyError) {
        // A lack of space within the limits is reported by `reserve`.
        if case .file(let error) = error, !error.operation.hasPrefix(SpillFile.wantsRoom) { unwritten(key, error) }
    }

    private func unwritten(_ key: CacheKey, _ error: SystemError) {
        let isAway = parts.state.withLock { state in
            state.failure = Monotonic.coarse()
            return state.isAway
        }
        // The loss of the folder was reported already.
        if isAway { return }
        let text = "the response \(key) cannot be stored in \(parts.folder.path): \(error.named)"
        parts.troubles.note(.unwritable, "\(text); it is answered all the same; \(error.advice(to: parts.folder.kind))")
    }

    /// Writes the preamble and the first record, then gives the file its name; on an I/O thread.
    private func publish(
        _ spill: SpillFile,
        _ fileID: UInt64,
        key: CacheKey,
        head: StoredHead,
        _ generation: (Invalidations, InvalidationToken)?,
        maxVariants: Int
    ) throws -> DiskEntry {
        let file = try spill.open()
        var head = head
        head.bodyLength = spill.written
        if head.number == 0 { head.number = fileID }
        let record = StoredRecord(
            fileID: fileID,
            sequence: 1,
            bodyLength: spill.written,
            key: key.bytes,
            head: head,
            sums: spill.sums
        )
        let bytes = record.encode()
        let recordStart = FileLayout.bodyOffset + record.bodyLength
        let size = (recordStart + Int64(bytes.count) + 4095) / 4096 * 4096
        let extra = max(0, Int(size) - spill.reserved)
        guard room.reserve(extra) else {
            throw BodyError.file(SystemError("\(SpillFile.wantsRoom) \(key)", code: ENOSPC))
        }
        defer { room.release(extra) }
        let preamble = FilePreamble(fileID: record.fileID, bodyLength: record.bodyLength).encode()
        try spillRoom.retrying(bytes.count + preamble.count) { () throws(BodyError) in
            try StoredFile.write(bytes, to: file.descriptor, at: recordStart, parts.folder.calls)
            try StoredFile.write(preamble, to: file.descriptor, at: 0, parts.folder.calls)
        }
        let slot = DiskTable.Slot(
            keyHash: parts.keyHash(key),
            name: parts.name(key, head),
            fileID: record.fileID,
            bodyLength: record.bodyLength,
            size: size,
            storedAt: head.responseTime,
            lastUse: UInt32(clamping: time(nil)),
            isSeen: true
        )
        var attempt = 0
        while true {
            do throws(DiskTierError) {
                try give(spill, slot, key, head, generation)
                break
            } catch {
                guard case .folder(let reason) = error, mend(reason, attempt, 0) else { throw error }
                attempt += 1
            }
        }
        remover.deleteBehind(parts.state.withLock { $0.table.removeOldest(slot.keyHash, beyond: max(1, maxVariants)) })
        return DiskEntry(key: key, slot: slot)
    }

    /// Gives the file its final name, and enters it into the table and the index.
    private func give(
        _ spill: SpillFile,
        _ slot: DiskTable.Slot,
        _ key: CacheKey,
        _ head: StoredHead,
        _ generation: (Invalidations, InvalidationToken)?
    ) throws(DiskTierError) {
        try parts.lock(slot.name).withLock { () throws(DiskTierError) in
            let (isClosed, isOutdated) = parts.state.withLock { state in
                (state.isClosed, state.table.find(slot.keyHash, slot.name).map { $0.fileID > slot.fileID } ?? false)
            }
            if isClosed { throw .closed }
            if isOutdated { throw .outdated }
            try parts.folder.move(spill.path, to: slot.name)
            defer { room.release(spill.markCommitted()) }
            var known = slot
            let insert = { [self] in known = parts.state.withLock { $0.add(slot) } }
            if let (invalidations, token) = generation {
                guard invalidations.ifUnchanged(token, insert) else {
                    parts.state.withLock { _ = $0.table.remove(slot.keyHash, slot.name) }
                    // The file that it has replaced is closed.
                    parts.openFiles.remove(slot.name)
                    remover.unlink(parts.folder.path(of: slot.name))
                    parts.index.note(.remove(slot.name))
                    throw .invalidated
                }
            } else {
                insert()
            }
            parts.openFiles.remove(slot.name)
            parts.index.note(.put(IndexRow(slot: known, key: key.bytes, head: head)))
            pins.note(key, slot.keyHash)
        }
    }

    /// Appends a head that a validation has freshened; the body is unchanged. A file that has been replaced meanwhile
    /// is ignored.
    /// - Returns: whether the head was written.
    @discardableResult
    func freshen(_ entry: DiskEntry, head: StoredHead) async -> Bool {
        let isDone = try? await parts.pool.run { [self] in
            guard room.reserve(64 * 1024) else { return false }
            defer { room.release(64 * 1024) }
            return parts.lock(entry.name).withLock { freshenNow(entry, head: head) }
        }
        return isDone ?? false
    }

    private func freshenNow(_ entry: DiskEntry, head: StoredHead) -> Bool {
        if parts.state.withLock({ $0.isClosed }) { return false }
        let descriptor = parts.folder.calls.open(parts.folder.path(of: entry.name), O_RDWR, 0)
        if descriptor < 0 {
            // A missing file is reported when a request needs it.
            if errno != ENOENT { unwritten(entry.key, SystemError("open")) }
            return false
        }
        defer { Glibc.close(descriptor) }
        guard let file = try? StoredFile.read(descriptor, parts.folder.calls), file.record.fileID == entry.fileID else {
            return false
        }
        var record = file.record
        record.head = head
        record.head.bodyLength = record.bodyLength
        record.sequence &+= 1
        let size: Int64
        do throws(BodyError) {
            size = try StoredFile.append(record, to: descriptor, after: file, parts.folder.calls)
        } catch {
            unwritten(entry.key, error)
            return false
        }
        parts.openFiles.remove(entry.name)
        let hash = parts.keyHash(entry.key)
        let (before, after) = (file.stamp.digest, FileStamp(descriptor)?.digest ?? 0)
        let changed: DiskTable.Slot? = parts.state.withLock { state in
            state.table.update(hash, entry.name) { slot in
                slot.size = size
                slot.storedAt = head.responseTime
                // The stamp has changed by this write alone.
                if slot.verifiedStamp == before { slot.verifiedStamp = after }
            }
            return state.table.find(hash, entry.name)
        }
        if let changed {
            parts.index.note(.put(IndexRow(slot: changed, key: entry.key.bytes, head: head)))
        }
        return true
    }
}
