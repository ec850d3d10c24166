// How a stored response comes back from the disk: its record, its key, its first block; damage is a miss.

import EventLoop
import Glibc
package import HTTPCaching
import Synchronization

extension DiskTier {
    /// Reads a file's head on an I/O thread. A small body comes into memory, verified; of a larger one the first block
    /// is verified now, and the others when they are read.
    /// - Parameters:
    ///   - via: as for `StoredResponse`.
    ///   - bytes: bodies up to this size come into memory.
    /// - Parameter isUse: false for whoever looks at it without answering with it: that is not counted.
    /// - Throws: `DiskTierError`: `.absent` and `.damaged` are misses.
    package func load(
        _ entry: DiskEntry,
        via: String?,
        policy: CachePolicy,
        inMemoryUpTo bytes: Int = 256 * 1024,
        isUse: Bool = true
    ) async throws -> StoredResponse {
        try await pool.run { [self] in
            do throws(DiskTierError) {
                let response = try loadNow(entry, via: via, policy: policy, inMemoryUpTo: bytes)
                if isUse { used(entry) }
                return response
            } catch {
                state.withLock { state in
                    if isUse { state.statistics.misses += 1 }
                    if error == .damaged { state.statistics.damaged += 1 }
                }
                throw error
            }
        }
    }

    private func loadNow(
        _ entry: DiskEntry,
        via: String?,
        policy: CachePolicy,
        inMemoryUpTo limit: Int
    ) throws(DiskTierError) -> StoredResponse {
        let (descriptor, stored, slot) = try openStored(entry)
        let record = stored.record
        let body: Body
        let file: SharedFile
        let current = DiskEntry(key: entry.key, slot: slot)
        do throws(BodyError) {
            if record.bodyLength <= Int64(limit) {
                file = SharedFile(descriptor: descriptor, pool: pool)
                let chunk = try file.read(offset: FileLayout.bodyOffset, count: Int(record.bodyLength))
                var sums = BlockSums()
                chunk.withBytes { sums.update($0) }
                guard sums.sums == record.sums else { throw .damaged(block: 0) }
                body = .complete(chunk)
            } else {
                file = SharedFile(
                    descriptor: descriptor,
                    pool: pool,
                    verification: verification(of: current, record),
                    isVerified: slot.isVerified
                )
                let first = file.pieceCount(at: FileLayout.bodyOffset, count: record.bodyLength)
                try file.prepareNow(offset: FileLayout.bodyOffset, count: first)
                body = .file(file, offset: FileLayout.bodyOffset, length: record.bodyLength)
            }
        } catch {
            discard(current)
            throw .damaged
        }
        return StoredResponse(
            key: entry.key,
            head: record.head,
            body: body,
            tier: .disk,
            via: via,
            policy: policy,
            diskEntry: current
        )
    }

    private func verification(of entry: DiskEntry, _ record: HeadRecord) -> SharedFile.Verification {
        let hash = keyHash(entry.key)
        return SharedFile.Verification(
            bodyOffset: FileLayout.bodyOffset,
            bodyLength: record.bodyLength,
            sums: record.sums,
            onDamage: { [weak self] in self?.discard(entry) },
            onVerified: { [weak self] in
                self?.state.withLock { state in
                    state.table.update(hash, entry.name) { if $0.fileID == entry.fileID { $0.isVerified = true } }
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
        return try lock(entry.name).withLock { () throws(DiskTierError) in
            let known = state.withLock { $0.table.find(hash, entry.name) }
            // Removed since the lookup.
            if known == nil && !entry.isGuess { throw .absent }
            let descriptor = Glibc.open(place, O_RDONLY | O_CLOEXEC)
            if descriptor < 0 {
                // The table and the index are repaired silently.
                forget(hash, entry.name)
                throw .absent
            }
            guard let file = StoredFile.read(descriptor) else {
                Glibc.close(descriptor)
                unlink(place)
                forget(hash, entry.name)
                throw .damaged
            }
            guard file.record.key == entry.key.bytes else {
                Glibc.close(descriptor)
                throw .absent
            }
            if let known, known.fileID == file.record.fileID { return (descriptor, file, known) }
            guard let slot = adopt(file, hash, entry.name) else {
                Glibc.close(descriptor)
                unlink(place)
                throw .absent
            }
            return (descriptor, file, slot)
        }
    }

    /// Tells the table and the index about a file that they do not know; under the file's lock.
    /// - Returns: nil where the key was removed before the file was found.
    @discardableResult
    func adopt(_ file: StoredFile, _ hash: UInt64, _ name: Digest) -> DiskTable.Slot? {
        let slot = DiskTable.Slot(
            keyHash: hash,
            name: name,
            fileID: file.record.fileID,
            bodyLength: file.record.bodyLength,
            size: Self.pages(file.size),
            storedAt: file.record.head.responseTime,
            lastUse: Self.now(),
            isSeen: true
        )
        generations.advance(past: slot.fileID)
        let isWelcome = state.withLock { state in
            if let moment = state.doomed[hash], slot.fileID < moment { return false }
            state.table.insert(slot)
            return true
        }
        guard isWelcome else { return nil }
        index.note(.put(IndexRow(slot: slot, key: file.record.key, status: file.record.head.status)))
        return slot
    }

    private func forget(_ hash: UInt64, _ name: Digest) {
        if state.withLock({ $0.table.remove(hash, name) }) != nil { index.note(.remove(name)) }
    }

    /// Removes a damaged file, unless another has taken its place; I/O thread.
    private func discard(_ entry: DiskEntry) {
        let hash = keyHash(entry.key)
        lock(entry.name).withLock {
            guard let slot = state.withLock({ $0.table.find(hash, entry.name) }), slot.fileID == entry.fileID else {
                return
            }
            forget(hash, entry.name)
            unlink(folder.place(of: entry.name))
        }
    }

    private func used(_ entry: DiskEntry) {
        let hash = keyHash(entry.key)
        let now = Self.now()
        let isNews = state.withLock { state in
            state.statistics.hits += 1
            var isNews = false
            state.table.update(hash, entry.name) { slot in
                // Minutes are exact enough for the order of eviction after a restart.
                isNews = now > slot.lastUse &+ 60
                slot.lastUse = now
            }
            return isNews
        }
        if isNews { index.note(.used(entry.name, now)) }
    }
}
