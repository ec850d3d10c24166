// How everything leaves the disk at once: the folder of the files gets another name, and is emptied behind.

import CacheStore
import EventLoop
import Synchronization

/// Sendable: its members are.
final class DiskEmptier: Sendable {
    private let parts: DiskParts
    private let restorer: DiskRestorer

    init(_ parts: DiskParts, _ restorer: DiskRestorer) {
        self.parts = parts
        self.restorer = restorer
    }

    /// Removes everything, at once and for good: the folder of the files gets another name, and
    /// an I/O thread empties it.
    /// - Throws: `DiskTierError.folder` where the folder cannot be renamed: nothing is removed then.
    func removeAll() async throws {
        try await parts.pool.run { [self] in
            let number = parts.invalidations.nextNumber()
            // Where the folders are gone, there is nothing to be renamed.
            restorer.restore()
            try parts.withEveryLock { () throws(DiskTierError) in
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
