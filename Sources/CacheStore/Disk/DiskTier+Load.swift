// How a stored response comes back from the disk: its record, its key, its first block; damage is a miss.

import EventLoop
import Glibc
package import HTTPCaching
import Synchronization

extension DiskTier {
    /// Reads a file's head on an I/O thread. A small body comes into memory, verified; a larger one is verified now,
    /// once per process, so that damage makes a miss; of a very large one only the first block is verified now, and
    /// each other block when it is read.
    /// - Parameters:
    ///   - via: as for `StoredResponse`.
    ///   - bytes: bodies up to this size come into memory.
    ///   - limit: larger bodies are not verified as a whole first, since the first byte would have to wait for that.
    /// - Parameter isUse: false if the response will not answer a request; then it does not count as used.
    /// - Throws: `DiskTierError`: `.absent` and `.damaged` are misses.
    package func load(
        _ entry: DiskEntry,
        via: String?,
        policy: CachePolicy,
        inMemoryUpTo bytes: Int = 256 * 1024,
        verifiedUpTo limit: Int64 = 8 << 20,
        isUse: Bool = true
    ) async throws -> StoredResponse {
        try await pool.run { [self] in
            do throws(DiskTierError) {
                let (response, stamp) = try loadNow(entry, via: via, policy: policy, inMemoryUpTo: bytes, limit)
                if isUse {
                    used(keyHash(entry.key), entry.name)
                    if via == nil, let stamp { keepOpen(response, stamp) }
                }
                return response
            } catch {
                state.withLock { state in
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
                file = SharedFile(descriptor: descriptor, pool: pool, calls: folder.calls)
                let length = Int(record.bodyLength)
                let chunk = try file.read(offset: FileLayout.bodyOffset, count: length, isKept: true)
                var sums = BlockSums()
                chunk.withBytes { sums.update($0) }
                guard sums.sums == record.sums else { throw .damaged(block: 0) }
                body = .complete(chunk)
            } else {
                file = SharedFile(
                    descriptor: descriptor,
                    pool: pool,
                    calls: folder.calls,
                    verification: verification(of: current, stored),
                    isVerified: isVerified
                )
                let isWhole = !isVerified && record.bodyLength <= limit
                let start = min(record.bodyLength, Int64(SharedFile.pieceSize))
                // A body that is verified and in the page cache is sent from the file, without reading it.
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
            diskEntry: current
        )
        return (response, isVerified ? stored.stamp : nil)
    }

    /// What files say about themselves, in one turn of an I/O thread; their bodies are not looked at. Those that are
    /// gone or damaged are left out.
    package func heads(_ entries: [DiskEntry]) async -> [DiskHead] {
        let heads = try? await pool.run { [self] in
            entries.compactMap { entry -> DiskHead? in
                guard let (descriptor, stored, slot) = try? openStored(entry) else { return nil }
                Glibc.close(descriptor)
                return DiskHead(entry: DiskEntry(key: entry.key, slot: slot), head: stored.record.head)
            }
        }
        return heads ?? []
    }

    /// Keeps the file of a response open, if all of it was verified and it was not loaded into memory.
    private func keepOpen(_ response: StoredResponse, _ stamp: FileStamp) {
        guard case .file(let file, _, _) = response.body.source, let entry = response.diskEntry else { return }
        let hash = keyHash(entry.key)
        openFiles.keep(entry.name, response, file, stamp) {
            state.withLock { !$0.isClosed && $0.table.find(hash, entry.name)?.fileID == entry.fileID }
        }
    }

    /// The response of a file that is open, as ``load(_:via:policy:inMemoryUpTo:verifiedUpTo:isUse:)`` gives it without
    /// `via`; nil where that must read it. Any thread; asks no disk.
    package func loaded(_ entry: DiskEntry, isUse: Bool = true) -> StoredResponse? {
        guard let response = openFiles.find(entry.name, entry.fileID, isUse: isUse) else { return nil }
        if isUse { used(keyHash(entry.key), entry.name) }
        return response
    }

    private func verification(of entry: DiskEntry, _ stored: StoredFile) -> SharedFile.Verification {
        let (hash, record, stamp) = (keyHash(entry.key), stored.record, stored.stamp.digest)
        return SharedFile.Verification(
            bodyOffset: FileLayout.bodyOffset,
            bodyLength: record.bodyLength,
            sums: record.sums,
            onDamage: { [weak self] in self?.discard(entry, $0) },
            onVerified: { [weak self] in
                self?.state.withLock { state in
                    state.table.update(hash, entry.name) { if $0.fileID == entry.fileID { $0.verifiedStamp = stamp } }
                }
            }
        )
    }

    /// Opens a file and reads its record under the file's lock; the table learns what the file says.
    private func openStored(
        _ entry: DiskEntry
    ) throws(DiskTierError) -> (descriptor: Int32, file: StoredFile, slot: DiskTable.Slot) {
        let hash = keyHash(entry.key)
        let place = folder.place(of: entry.name)
        var isMissing = false
        // Not under the lock: where all is gone, the folder is made anew.
        defer { if isMissing { noteMissing(entry) } }
        return try lock(entry.name).withLock { () throws(DiskTierError) in
            let known = state.withLock { $0.table.find(hash, entry.name) }
            // Removed since the lookup.
            if known == nil && !entry.isGuess { throw .absent }
            let descriptor = folder.calls.open(place, O_RDONLY, 0)
            if descriptor < 0 {
                let error = SystemError("open \(place)")
                isMissing = error.code == ENOENT && !entry.isGuess
                throw unopened(entry, error)
            }
            let read: StoredFile?
            do throws(SystemError) {
                read = try StoredFile.read(descriptor, folder.calls)
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
            guard let slot = adopt(file, hash, entry.name) else {
                Glibc.close(descriptor)
                openFiles.remove(entry.name)
                unlink(place)
                throw .absent
            }
            return (descriptor, file, slot)
        }
    }

    /// What becomes of a file that cannot be opened; under its lock.
    private func unopened(_ entry: DiskEntry, _ error: SystemError) -> DiskTierError {
        switch error.code {
        case ENOENT, ENOTDIR:
            forget(keyHash(entry.key), entry.name)
            return .absent
        case EMFILE, ENFILE, ENOMEM, EINTR:
            // Not the file's fault.
            troubles.note(.unreadable, "\(error.operation): \(error.named): \(error.advice(to: folder.kind))")
            return .folder(error)
        default:
            expel(entry, .unreadable, "opening its file failed with \(error.named)")
            return .damaged
        }
    }

    /// Removes a stored response that is of no use; under its file's lock.
    private func expel(_ entry: DiskEntry, _ kind: DiskTrouble.Kind, _ reason: String) {
        forget(keyHash(entry.key), entry.name)
        openFiles.remove(entry.name)
        // Also where the table does not know the row yet.
        if entry.isGuess { index.note(.remove(entry.name)) }
        let place = folder.place(of: entry.name)
        unlink(place)
        state.withLock { $0.statistics.damaged += 1 }
        troubles.note(kind, "the stored response \(entry.key) (\(place)) is removed: \(reason); it is fetched again")
    }

    /// Tells the table and the index about a file that they do not know; under the file's lock.
    /// - Returns: nil where the key was removed, or purged by a rule, before the file was found.
    @discardableResult
    func adopt(_ file: StoredFile, _ hash: UInt64, _ name: StoredFileName) -> DiskTable.Slot? {
        var slot = DiskTable.Slot(
            keyHash: hash,
            name: name,
            fileID: file.record.fileID,
            bodyLength: file.record.bodyLength,
            size: Self.pages(file.size),
            storedAt: file.record.head.responseTime,
            lastUse: UInt32(clamping: file.record.head.responseTime),
            isSeen: true
        )
        let (key, head) = (CacheKey(bytes: file.record.key), file.record.head)
        let rules = InvalidationRule.concerning(head, key)
        let isOurs = state.withLock { $0.table.find(hash, name)?.fileID == slot.fileID }
        let suspect = invalidations.suspectNumber
        // First, so that a rule that is made meanwhile has a greater number.
        invalidations.advance(past: max(slot.fileID, head.number))
        if invalidations.verdict(head, key, rules) == .gone { return nil }
        if !isOurs, max(slot.fileID, head.number) > suspect, invalidations.isConcerned(head, key, rules) { return nil }
        notePin(key, hash)
        let isWelcome = state.withLock { state in
            if state.isDoomed(slot) { return false }
            if let known = state.table.find(hash, name), known.fileID == slot.fileID {
                slot.takeUse(of: known)
                slot.verifiedStamp = known.verifiedStamp
            }
            state.table.insert(slot)
            return true
        }
        guard isWelcome else { return nil }
        index.note(.put(IndexRow(slot: slot, key: file.record.key, head: file.record.head)))
        return slot
    }

    private func forget(_ hash: UInt64, _ name: StoredFileName) {
        if state.withLock({ $0.table.remove(hash, name) }) != nil { index.note(.remove(name)) }
    }

    /// Removes a file whose body is damaged or unreadable, unless another file has replaced it; I/O thread.
    private func discard(_ entry: DiskEntry, _ error: BodyError) {
        let hash = keyHash(entry.key)
        lock(entry.name).withLock {
            guard let slot = state.withLock({ $0.table.find(hash, entry.name) }), slot.fileID == entry.fileID else {
                return
            }
            if case .file(let error) = error {
                expel(entry, .unreadable, "reading its body failed with \(error.named)")
            } else {
                expel(entry, .damaged, "\(error)")
            }
        }
    }

    /// An answer was given from this file.
    func used(_ keyHash: UInt64, _ name: StoredFileName) {
        let now = Self.now()
        let news = state.withLock { state in
            state.statistics.hits += 1
            return state.table.use(keyHash, name, now)
        }
        if let news { index.note(.used(name, IndexRow.use(of: news))) }
    }
}
