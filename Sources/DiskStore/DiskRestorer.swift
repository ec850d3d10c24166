// Repairs the folder if files of it are removed while it is in use, and reports that once with the remedy.

import CacheStore
import EventLoop
import Files
import Glibc
import Synchronization

/// Repairs the folder. Sendable: its members are.
final class DiskRestorer: Sendable {
    enum Restored { case nothingMissing, restored, failed }

    private let parts: DiskParts
    private let walker: DiskWalker
    /// A lock that is held while the folder is checked and repaired; taken before the locks of files, on I/O threads
    /// only.
    private let restoring = FileLock()

    init(_ parts: DiskParts, _ walker: DiskWalker) {
        self.parts = parts
        self.walker = walker
    }

    /// Checks that the folder is complete, and repairs it; a walk in the background finds the files that remain. On an
    /// I/O thread; not under a file's lock.
    @discardableResult
    func restore() -> Restored {
        do throws(DiskTierError) { return try makeWhole() ? .restored : .nothingMissing } catch { return .failed }
    }

    /// Repairs the folder.
    /// - Returns: whether something was missing.
    /// - Throws: the errors of ``DiskFolder/restore()``.
    @discardableResult
    func makeWhole() throws(DiskTierError) -> Bool {
        try restoring.withLock { () throws(DiskTierError) in
            let wasAway: Bool? = parts.state.withLock { $0.isClosed ? nil : $0.isAway }
            guard let wasAway else { return false }
            let (folder, invalidations) = (parts.folder, parts.invalidations)
            var missing: [String]
            do throws(DiskTierError) {
                missing = try folder.restore()
            } catch {
                leave(error)
                throw error
            }
            parts.state.withLock { $0.isAway = false }
            invalidations.setAway(false)
            let isIndexLost = parts.index.isLost
            if isIndexLost { missing.append("index.sqlite") }
            guard wasAway || !missing.isEmpty else { return false }
            let isLoss = wasAway || isIndexLost || missing.contains("objects") || missing.contains("tmp")
            let count = isLoss ? forgetFiles() : 0
            if isLoss { lookForFiles() }
            invalidations.rewrite()
            invalidations.pins.rewrite()
            let text = "somebody has removed \(missing.joined(separator: ", ")) from the cache folder \(folder.path)"
            let loss = isLoss ? "; of \(count) stored responses those that are still there are looked for" : ""
            parts.troubles.note(.removed, "\(text): it is made anew\(loss); \(folder.kind.insteadOfRemoving)")
            return true
        }
    }

    /// Gives up a folder that belongs to another owner now, or cannot be created again: nothing is read from it or
    /// stored in it.
    private func leave(_ error: DiskTierError) {
        if error == .closed { return }
        parts.state.withLock { $0.isAway = true }
        parts.invalidations.setAway(true)
        parts.index.abandon()
        forgetFiles()
        parts.state.withLock { $0.settle() }
        let folder = parts.folder
        let text = "the cache folder \(folder.path) was removed under \(folder.kind.owner) and cannot be made again"
        parts.troubles.note(.removed, "\(text): \(error); nothing is stored on the disk until then")
    }

    /// Forgets all files, which a walk then looks for.
    /// - Returns: the number of files that the table had.
    @discardableResult
    private func forgetFiles() -> Int {
        let before = parts.withEveryLock {
            parts.openFiles.removeAll()
            return parts.state.withLock { $0.forgetFiles() }
        }
        return before.count
    }

    /// Starts a walk in the background.
    private func lookForFiles() {
        parts.index.submit { [weak self] in
            guard let self, !parts.state.withLock({ $0.isClosed || $0.isAway }) else { return }
            parts.index.replaceLost()
            walker.start(trustsTable: false)
        }
    }

    /// Handles a missing file of the table. On an I/O thread; not under a file's lock.
    func noteMissing(_ entry: DiskEntry) {
        guard restore() == .nothingMissing else { return }
        let text = "the file \(parts.folder.path(of: entry.name)) of the stored response \(entry.key) is gone"
        parts.troubles.note(.missing, "\(text): it is fetched again")
    }

    /// Removes empty folders in the next part of the folder. On an I/O thread.
    func removeSomeEmptyFolders() {
        let part = parts.state.withLock { state in
            guard !state.isClosed, !state.isAway, state.prunedParts < 256 else { return Int?.none }
            defer { state.prunedParts += 1 }
            return state.prunedParts
        }
        if let part { parts.folder.removeEmptyFolders(in: part) }
    }
}

// MARK: - The folder

extension DiskFolder {
    /// The files and folders that must exist while the folder is in use.
    private static let lasting = FolderMark.names + ["secret", "lock"] + folders

    /// The names of what is missing in the folder; blocks.
    func missing() -> [String] {
        let isHeld = lock.withLock { $0?.holds(path) ?? true }
        // A file whose state cannot be read is not missing.
        return Self.lasting.filter { name in
            !isHeld || access("\(path)/\(name)", F_OK) != 0 && [ENOENT, ENOTDIR].contains(errno)
        }
    }

    /// Creates missing files and folders, with the same secret, and locks the folder again if it was replaced; blocks.
    /// - Returns: the names that were missing.
    /// - Throws: `DiskTierError`: `.inUse` if another daemon has replaced the folder, `.notTaken` if its path has
    ///   foreign content.
    func restore() throws(DiskTierError) -> [String] {
        let missing = missing()
        guard !missing.isEmpty else { return [] }
        try lock.withLock { held throws(DiskTierError) in
            guard let lock = held else { throw .closed }
            if !lock.holds(path) {
                try Self.makeFolders(path, calls)
                guard
                    try DiskTierError.mark({ () throws(FolderError) in
                        try FolderMark.inspect(path, kind, newest: format)
                    }) == .empty
                else {
                    throw .folder(SystemError("use \(path), which is another store now", code: ESTALE))
                }
                held = try FolderLock(path)
                lock.release()
            }
            try DiskTierError.mark { () throws(FolderError) in try FolderMark.restore(path, kind, format: format) }
            try held?.takeFile(path, calls)
            for name in Self.folders { try Self.makeFolders("\(path)/\(name)", calls) }
            do throws(SystemError) {
                try WholeFile.replace("\(path)/secret", with: secret)
            } catch {
                throw .folder(error)
            }
        }
        return missing
    }
}
