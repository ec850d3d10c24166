// Removing stored responses: lookups miss at once, and the files are deleted later, a few at a time, or all at once.

import CacheStore
import EventLoop
import Glibc
import Synchronization

/// Removes stored responses. Sendable: its members are.
final class DiskRemover: Sendable {
    /// The files that one piece of work of an I/O thread removes, and the slots that are examined under one lock.
    static let slice = 128

    private let parts: DiskParts
    /// A lock that is held while files are removed, so that closing waits for it.
    private let deletion = FileLock()

    init(_ parts: DiskParts) { self.parts = parts }

    /// Removes every variant of a key: lookups miss at once, the files are deleted later. Any thread.
    func remove(_ key: CacheKey) {
        let digest = parts.digest(key)
        let number = parts.invalidations.nextNumber()
        deleteBehind(parts.state.withLock { $0.remove(digest, number: number) })
    }

    /// Removes files, except for those that have been replaced. Any thread; the time grows with their number, so that a
    /// loop must not remove many.
    /// - Returns: the number of removed files.
    @discardableResult
    func remove(_ files: [DiskFileID]) -> Int {
        var count = 0
        for start in stride(from: 0, to: files.count, by: Self.slice) {
            let removed = parts.state.withLock { state in
                files[start..<min(start + Self.slice, files.count)].compactMap { state.remove($0) }
            }
            count += removed.count
            deleteBehind(removed)
        }
        return count
    }

    /// Deletes files later. Any thread.
    func deleteBehind(_ slots: [DiskTable.Slot]) {
        guard !slots.isEmpty else { return }
        let mustStart = parts.state.withLock { state in
            for slot in slots { state.deletions.append(slot) }
            defer { state.isDeleting = true }
            return !state.isDeleting
        }
        if mustStart { parts.pool.submit { [self] in deleteSome() } }
    }

    /// Deletes some of the pending files, and then submits the rest, so that other work of the pool comes in between.
    private func deleteSome() {
        if deleteNow(Self.slice) { parts.pool.submit { [self] in deleteSome() } }
    }

    /// Deletes all pending files; blocks.
    func deleteAll() { while deleteNow(Self.slice) {} }

    /// Deletes some pending files.
    /// - Returns: whether there are more.
    private func deleteNow(_ count: Int) -> Bool {
        deletion.withLock {
            let slots = parts.state.withLock { state in
                let slots = (max(0, state.deletions.count - count)..<state.deletions.count).map { state.deletions[$0] }
                for _ in slots { state.deletions.removeLast() }
                return slots
            }
            for slot in slots { delete(slot.keyHash, slot.name) }
            return parts.state.withLock { state in
                state.isDeleting = state.deletions.count > 0
                return state.isDeleting
            }
        }
    }

    /// Waits until the files of all removed responses are deleted, so that the process that follows a killed one does
    /// not find them.
    func flush() async {
        while parts.state.withLock({ $0.isDeleting }), (try? await parts.pool.run {}) != nil {}
    }

    /// Removes files that the index names, at once; on an I/O thread, or the index's.
    /// - Returns: false if one of them still exists.
    func removeNow(_ doomed: [DiskIndex.PendingRemoval]) -> Bool {
        var isDone = true
        for file in doomed {
            let isOurs = parts.state.withLock { state in
                guard let slot = state.table.find(file.keyHash, file.name) else { return true }
                // Another file has replaced it.
                guard slot.fileID == file.fileID else { return false }
                state.table.remove(file.keyHash, file.name)
                return true
            }
            if isOurs, !delete(file.keyHash, file.name) { isDone = false }
        }
        return isDone
    }

    /// Deletes a file unless the table has it (again); on an I/O thread.
    /// - Returns: false if the file still exists.
    @discardableResult
    func delete(_ keyHash: UInt64, _ name: StoredFileName) -> Bool {
        parts.lock(name).withLock {
            guard parts.state.withLock({ $0.table.find(keyHash, name) }) == nil else { return true }
            parts.openFiles.remove(name)
            guard unlink(parts.folder.path(of: name)) else { return false }
            parts.index.note(.remove(name))
            return true
        }
    }

    /// Deletes a file, and the folders that become empty; an empty folder at the path of a file is deleted, too. Under
    /// the file's lock.
    /// - Returns: false if it still exists.
    @discardableResult
    func unlink(_ path: String) -> Bool {
        // The file may be another process's.
        if parts.state.withLock({ $0.isReleased }) { return false }
        let folder = parts.folder
        let isGone =
            folder.calls.unlink(path) == 0 || errno == ENOENT || errno == EISDIR && folder.calls.removeFolder(path) == 0
        if isGone {
            folder.removeFolders(of: path)
            return true
        }
        let error = SystemError("remove \(path)")
        let text = "the stored file \(path) cannot be removed: \(error.named)"
        parts.troubles.note(.unwritable, "\(text); \(error.advice(to: folder.kind))")
        return false
    }
}

// MARK: - Everything at once

/// Empties the tier. Sendable: its members are.
final class DiskEmptier: Sendable {
    private let parts: DiskParts
    private let restorer: DiskRestorer

    init(_ parts: DiskParts, _ restorer: DiskRestorer) {
        self.parts = parts
        self.restorer = restorer
    }

    /// Removes everything at once and for good: the folder of the files is renamed, and an I/O thread deletes it.
    /// - Throws: `DiskTierError.folder` if the folder cannot be renamed; nothing is removed then.
    func removeAll() async throws {
        try await parts.pool.run { [self] in
            let number = parts.invalidations.nextNumber()
            // If the folders are gone, there is nothing to rename.
            restorer.restore()
            try parts.withEveryLock { () throws(DiskTierError) in
                if parts.state.withLock({ $0.isReleased }) { throw .closed }
                try parts.folder.discardObjects()
                defer { parts.openFiles.removeAll() }
                parts.state.withLock { $0.removeAll(number: number) }
                parts.index.note(.removeAll)
            }
            emptyTrash()
        }
    }

    /// Deletes the files of a purge of everything, in the background.
    func emptyTrash() {
        parts.pool.submit { [self] in
            let (isClosed, discarded) = parts.state.withLock { state in
                defer { state.discarded = nil }
                return (state.isClosed, state.discarded)
            }
            withExtendedLifetime(discarded) {}
            // The remaining files are deleted after the next start.
            if !isClosed, parts.folder.emptyTrash(files: DiskRemover.slice) { emptyTrash() }
        }
    }
}
