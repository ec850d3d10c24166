// How a response gets onto the disk: a temporary file, its record, room by eviction, a name; and how it is freshened.

import EventLoop
import Glibc
package import HTTPCaching
import Synchronization

extension DiskTier {
    /// The temporary file for a fill that may be stored; no I/O happens before its first bytes. Any thread.
    /// - Parameter expected: the declared length of the body in bytes; zero where there is none.
    package func makeSpill(expected: Int64 = 0) -> SpillFile {
        SpillFile(
            path: folder.temporary(),
            pool: pool,
            room: room,
            expected: expected
        )
    }

    /// What temporary files may take.
    var room: SpillFile.Room {
        SpillFile.Room(
            reserve: { [weak self] in self?.reserve($0) ?? false },
            release: { [weak self] in self?.release($0) },
            maxObject: min(limits.maxObject ?? limits.size / 4, limits.size)
        )
    }

    /// Stores a complete body under its key.
    /// - Parameters:
    ///   - spill: the file that the body's fill was given, or one that holds the body already; nil for a body that is in
    ///     memory.
    ///   - generation: noted when the fill began: nothing is stored if the key was invalidated since.
    ///   - maxVariants: files of one key at most, at least 1; the one that was stored longest ago goes.
    ///   - number: of the response's fetch (see ``Generations/nextNumber()``): writes may overtake one another.
    /// - Throws: `DiskTierError` (`.refused`, `.invalidated`, `.outdated`, `.folder`, `.closed`); the response is not stored
    ///   then.
    @discardableResult
    package func commit(
        _ body: Body,
        spill: SpillFile? = nil,
        key: CacheKey,
        head: StoredHead,
        generation: (Generations, GenerationToken)? = nil,
        maxVariants: Int = 32,
        number: UInt64? = nil
    ) async throws -> DiskEntry {
        if let (generations, token) = generation, !generations.isUnchanged(token) { throw DiskTierError.invalidated }
        let target = spill ?? makeSpill()
        do {
            if spill != nil, case .fill(let fill) = body.source {
                try await fill.flush()
            } else if let spill, spill.written > 0, spill.written == body.knownLength {
                // Sealed: nothing is left to write.
            } else {
                guard let chunk = body.inMemory()?.wholeChunk else { throw BodyError.abandoned }
                try await pool.run { try target.appendNow([(chunk, 0..<chunk.capacity)]) }
            }
            return try await pool.run { [self] in
                let number = number ?? generations.nextNumber()
                return try place(target, number, key: key, head: head, generation, maxVariants: maxVariants)
            }
        } catch let error as BodyError {
            state.withLock { $0.statistics.refusals += 1 }
            throw DiskTierError.refused(error)
        }
    }

    /// Writes the preamble and the first record, then gives the file its name; I/O thread.
    private func place(
        _ spill: SpillFile,
        _ fileID: UInt64,
        key: CacheKey,
        head: StoredHead,
        _ generation: (Generations, GenerationToken)?,
        maxVariants: Int
    ) throws -> DiskEntry {
        let file = try spill.open()
        var head = head
        head.bodyLength = spill.written
        let record = HeadRecord(
            fileID: fileID,
            sequence: 1,
            bodyLength: spill.written,
            key: key.bytes,
            head: head,
            sums: spill.sums
        )
        let bytes = record.encode()
        let recordStart = FileLayout.bodyOffset + record.bodyLength
        let size = Self.pages(recordStart + Int64(bytes.count))
        let extra = max(0, Int(size) - spill.reserved)
        guard reserve(extra) else { throw BodyError.file(SystemError("store \(key)", code: ENOSPC)) }
        defer { release(extra) }
        try StoredFile.write(bytes, to: file.descriptor, at: recordStart)
        let preamble = FilePreamble(fileID: record.fileID, bodyLength: record.bodyLength)
        try StoredFile.write(preamble.encode(), to: file.descriptor, at: 0)
        let slot = DiskTable.Slot(
            keyHash: keyHash(key),
            name: name(key, head),
            fileID: record.fileID,
            bodyLength: record.bodyLength,
            size: size,
            storedAt: head.responseTime,
            lastUse: Self.now(),
            isSeen: true
        )
        try lock(slot.name).withLock { () throws(DiskTierError) in
            let (isClosed, isOutdated) = state.withLock { state in
                (state.isClosed, state.table.find(slot.keyHash, slot.name).map { $0.fileID > slot.fileID } ?? false)
            }
            if isClosed { throw .closed }
            if isOutdated { throw .outdated }
            try folder.move(spill.path, to: slot.name)
            defer { release(spill.markCommitted()) }
            let insert = { [self] in state.withLock { $0.add(slot) } }
            if let (generations, token) = generation {
                guard generations.ifUnchanged(token, insert) else {
                    state.withLock { _ = $0.table.remove(slot.keyHash, slot.name) }
                    unlink(folder.place(of: slot.name))
                    index.note(.remove(slot.name))
                    throw .invalidated
                }
            } else {
                insert()
            }
            index.note(.put(IndexRow(slot: slot, key: key.bytes, status: head.status)))
        }
        deleteBehind(state.withLock { $0.table.removeOldest(slot.keyHash, beyond: max(1, maxVariants)) })
        return DiskEntry(key: key, slot: slot)
    }

    /// Appends a head that a validation has freshened; the body stays as it is. A file that has been replaced meanwhile
    /// is left alone.
    /// - Returns: whether the head was written.
    @discardableResult
    package func freshen(_ entry: DiskEntry, head: StoredHead) async -> Bool {
        let isDone = try? await pool.run { [self] in
            guard reserve(64 * 1024) else { return false }
            defer { release(64 * 1024) }
            return lock(entry.name).withLock { freshenNow(entry, head: head) }
        }
        return isDone ?? false
    }

    private func freshenNow(_ entry: DiskEntry, head: StoredHead) -> Bool {
        let descriptor = Glibc.open(folder.place(of: entry.name), O_RDWR | O_CLOEXEC)
        if descriptor < 0 { return false }
        defer { Glibc.close(descriptor) }
        guard let file = StoredFile.read(descriptor), file.record.fileID == entry.fileID else { return false }
        var record = file.record
        record.head = head
        record.head.bodyLength = record.bodyLength
        record.sequence &+= 1
        guard let size = try? StoredFile.append(record, to: descriptor, after: file) else { return false }
        let hash = keyHash(entry.key)
        let changed: DiskTable.Slot? = state.withLock { state in
            state.table.update(hash, entry.name) { slot in
                slot.size = Self.pages(size)
                slot.storedAt = head.responseTime
            }
            return state.table.find(hash, entry.name)
        }
        if let changed {
            index.note(.put(IndexRow(slot: changed, key: entry.key.bytes, status: head.status)))
        }
        return true
    }

    // MARK: - Room

    /// Counts bytes that are about to be written, and evicts what has not been used for the longest time to make room.
    /// - Returns: false where there is no room. I/O thread; not under a file's lock.
    func reserve(_ bytes: Int) -> Bool {
        let bytes = Int64(bytes)
        while true {
            let spare = folder.available().map { $0 - limits.minFree } ?? .max
            let decision: Decision = state.withLock { state in
                if state.isClosed { return .refuse }
                let held = state.table.used + state.table.reserved
                if held + bytes <= limits.size && bytes <= spare {
                    state.table.reserved += bytes
                    return .grant
                }
                // Even an empty tier would not help.
                if state.table.reserved + bytes > limits.size || bytes - spare > state.table.used { return .refuse }
                guard let victim = state.table.victim() else { return .refuse }
                state.table.remove(victim.keyHash, victim.name)
                state.statistics.evictions += 1
                return .evict(victim)
            }
            switch decision {
            case .grant: return true
            case .refuse:
                state.withLock { $0.refusal = (bytes, Monotonic.coarse()) }
                return false
            case .evict(let victim): delete(victim.keyHash, victim.name)
            }
        }
    }

    func release(_ bytes: Int) { state.withLock { $0.table.reserved -= Int64(bytes) } }

    private enum Decision {
        case grant, refuse
        case evict(DiskTable.Slot)
    }
}

extension DiskTier.State {
    mutating func add(_ slot: DiskTable.Slot) {
        table.insert(slot)
        statistics.commits += 1
    }
}
