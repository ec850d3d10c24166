// How stored responses leave the disk: lookups miss at once, the files go behind, a few at a time.

import EventLoop
import Glibc
import Synchronization

/// One file of the disk tier, as the index names it.
package struct DiskFileID: Sendable, Hashable {
    let keyHash: UInt64
    let name: StoredFileName
    /// A file that has replaced it has another id.
    let fileID: UInt64
}

extension DiskTier {
    /// Files that are removed by one piece of work of an I/O thread, and slots that are looked at under one lock.
    private static let slice = 128

    /// Removes every variant of a key: lookups miss at once, the files go behind. Any thread.
    package func remove(_ key: CacheKey) {
        let digest = StoredFileName(key.bytes, key: folder.fileNameKey)
        let number = invalidations.nextNumber()
        let removed = state.withLock { state in
            let removed = state.table.find(digest.low)
            for slot in removed { state.table.remove(slot.keyHash, slot.name) }
            if state.phase == .settled { return removed }
            // A file that the table does not have yet must not come back.
            state.doomed[digest.low] = number
            return removed.contains { $0.name == digest } ? removed : removed + [DiskTable.Slot(guess: digest)]
        }
        deleteBehind(removed)
    }

    /// Removes one file. Any thread.
    package func remove(_ entry: DiskEntry) {
        remove([DiskFileID(keyHash: keyHash(entry.key), name: entry.name, fileID: entry.fileID)])
    }

    /// Removes files, and leaves those alone that have been replaced meanwhile. Any thread; takes the longer the more
    /// there are, so not many on a loop.
    /// - Returns: how many there were.
    @discardableResult
    package func remove(_ files: [DiskFileID]) -> Int {
        var count = 0
        for start in stride(from: 0, to: files.count, by: Self.slice) {
            let removed = state.withLock { state in
                files[start..<min(start + Self.slice, files.count)].compactMap { state.remove($0) }
            }
            count += removed.count
            deleteBehind(removed)
        }
        return count
    }

    /// Removes everything, at once and for good: the folder of the files gets another name, and
    /// an I/O thread empties it.
    /// - Throws: `DiskTierError.folder` where the folder cannot be renamed: nothing is removed then.
    package func removeAll() async throws {
        try await pool.run { [self] in
            let number = invalidations.nextNumber()
            // Where the folders are gone, there is nothing to be renamed.
            restore()
            try withEveryLock { () throws(DiskTierError) in
                try folder.discardObjects()
                defer { openFiles.removeAll() }
                state.withLock { state in
                    if state.phase != .settled { state.doomedAll = number }
                    let reserved = state.table.reserved
                    state.discarded = state.table
                    state.table = DiskTable()
                    state.table.reserved = reserved
                }
                index.note(.removeAll)
            }
            emptyTrash()
        }
    }

    /// Deletes the files of a purge of everything, in the background.
    func emptyTrash() {
        pool.submit { [self] in
            let (isClosed, discarded) = state.withLock { state in
                defer { state.discarded = nil }
                return (state.isClosed, state.discarded)
            }
            withExtendedLifetime(discarded) {}
            // The remaining files are deleted after the next start.
            if !isClosed, folder.emptyTrash(files: Self.slice) { emptyTrash() }
        }
    }

    /// Any thread.
    func deleteBehind(_ slots: [DiskTable.Slot]) {
        guard !slots.isEmpty else { return }
        let mustStart = state.withLock { state in
            for slot in slots { state.deletions.append(slot) }
            defer { state.isDeleting = true }
            return !state.isDeleting
        }
        if mustStart { pool.submit { [self] in deleteSome() } }
    }

    /// Removes some of the files that wait for it, and then the others, so that other work of
    /// the pool comes in between.
    private func deleteSome() {
        if deleteNow(Self.slice) { pool.submit { [self] in deleteSome() } }
    }

    /// Removes all files that wait for it; blocks.
    func deleteAll() { while deleteNow(Self.slice) {} }

    /// - Returns: whether there are more.
    private func deleteNow(_ count: Int) -> Bool {
        deletion.withLock {
            let slots = state.withLock { state in
                let slots = (max(0, state.deletions.count - count)..<state.deletions.count).map { state.deletions[$0] }
                for _ in slots { state.deletions.removeLast() }
                return slots
            }
            for slot in slots { delete(slot.keyHash, slot.name) }
            return state.withLock { state in
                state.isDeleting = state.deletions.count > 0
                return state.isDeleting
            }
        }
    }

    /// Waits until the files of everything that was removed are gone, so that a killed process
    /// does not find them again.
    package func flushRemovals() async {
        while state.withLock({ $0.isDeleting }), (try? await pool.run {}) != nil {}
    }

    /// Removes a file unless the table has it (again); I/O thread.
    /// - Returns: false if the file is still there.
    @discardableResult
    func delete(_ keyHash: UInt64, _ name: StoredFileName) -> Bool {
        lock(name).withLock {
            guard state.withLock({ $0.table.find(keyHash, name) }) == nil else { return true }
            openFiles.remove(name)
            guard unlink(folder.place(of: name)) else { return false }
            index.note(.remove(name))
            return true
        }
    }

    /// Removes a file, and the folders that become empty; an empty folder in the place of a file is removed,
    /// too. Under the file's lock.
    /// - Returns: false if it is still there.
    @discardableResult
    func unlink(_ path: String) -> Bool {
        let isGone =
            folder.calls.unlink(path) == 0 || errno == ENOENT || errno == EISDIR && folder.calls.removeFolder(path) == 0
        if isGone {
            folder.removeFolders(of: path)
            return true
        }
        let error = SystemError("remove \(path)")
        let text = "the stored file \(path) cannot be removed: \(error.named)"
        troubles.note(.unwritable, "\(text); \(error.advice(to: folder.kind))")
        return false
    }

    // MARK: - Pins

    /// Keeps the files of a key from being evicted, those too that are stored later; any thread.
    package func pin(_ key: CacheKey) {
        let hash = keyHash(key)
        state.withLock { _ = $0.pinned.insert(hash) }
    }

    /// Any thread.
    package func unpin(_ key: CacheKey) {
        let hash = keyHash(key)
        state.withLock { _ = $0.pinned.remove(hash) }
    }
}

extension DiskTier.State {
    /// Remembers that this file must not come back when the walk finds it, unless it was written later.
    mutating func doom(_ name: StoredFileName, through fileID: UInt64) {
        doomedFiles[name] = max(fileID, doomedFiles[name] ?? 0)
    }

    /// - Returns: the file, where the table had it.
    mutating func remove(_ file: DiskFileID) -> DiskTable.Slot? {
        if phase != .settled { doom(file.name, through: file.fileID) }
        guard let slot = table.find(file.keyHash, file.name), slot.fileID <= file.fileID else { return nil }
        return table.remove(file.keyHash, file.name)
    }
}
