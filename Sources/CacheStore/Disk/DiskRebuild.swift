// The walk over the folders after an unclean end: files that the index does not know are
// adopted, rows without a file go.

import EventLoop
import Files
import Glibc
import Synchronization

/// One folder at a time on the index's thread, so that its batches are written in between.
enum DiskRebuild {
    private struct Walk: Sendable {
        let names: [String]
        var next = 0
        /// A later walk takes the place of this one.
        let number: Int
        /// A file that the table knows has its row.
        let trustsTable: Bool
    }

    /// - Parameter trustsTable: false where the index was replaced, so that every file needs a new row.
    static func start(_ tier: DiskTier, trustsTable: Bool) {
        let number = tier.state.withLock { state in
            state.phase = .walking
            state.walks += 1
            return state.walks
        }
        step(tier, Walk(names: FolderNames.of(tier.folder.objects), number: number, trustsTable: trustsTable))
    }

    private static func step(_ tier: DiskTier, _ walk: Walk) {
        tier.index.submit { [weak tier] in
            guard let tier, tier.state.withLock({ !$0.isClosed && $0.walks == walk.number }) else { return }
            guard walk.next < walk.names.count else { return sweep(tier, walk.number, before: nil) }
            let first = "\(tier.folder.objects)/\(walk.names[walk.next])"
            for second in FolderNames.of(first) {
                let files = FolderNames.of("\(first)/\(second)")
                for file in files { visit(tier, file, "\(first)/\(second)/\(file)", walk.trustsTable) }
                // Only an empty folder is removed; any other file stays.
                if files.isEmpty { _ = tier.folder.calls.removeFolder("\(first)/\(second)") }
            }
            if FolderNames.of(first).isEmpty { _ = tier.folder.calls.removeFolder(first) }
            var walk = walk
            walk.next += 1
            step(tier, walk)
        }
    }

    private static func visit(_ tier: DiskTier, _ file: String, _ path: String, _ trustsTable: Bool) {
        // A file with a foreign name is left alone.
        guard let name = StoredFileName(hex: file), path.hasSuffix(name.relativePath) else { return }
        tier.lock(name).withLock {
            if tier.state.withLock({ $0.table.markSeen(name) }), trustsTable { return }
            let calls = tier.folder.calls
            let descriptor = calls.open(path, O_RDONLY, 0)
            if descriptor < 0 { return }
            defer { close(descriptor) }
            do throws(SystemError) {
                if let stored = try StoredFile.read(descriptor, calls) {
                    let hash = StoredFileName(stored.record.key, key: tier.folder.fileNameKey).low
                    if tier.adopt(stored, hash, name) != nil { return }
                } else {
                    tier.troubles.note(.damaged, "the stored file \(path) is damaged: it is removed")
                }
            } catch {
                tier.troubles.note(.unreadable, "the stored file \(path) cannot be read: \(error.named): it is removed")
            }
            tier.openFiles.remove(name)
            tier.unlink(path)
        }
    }

    /// Takes rows without a file out of the table, some at a time.
    private static func sweep(_ tier: DiskTier, _ number: Int, before place: Int?) {
        let (missing, next) = tier.state.withLock { state in
            let (missing, next) = state.table.unseen(before: place, count: 2048)
            for slot in missing { state.table.remove(slot.keyHash, slot.name) }
            return (missing, next)
        }
        for slot in missing { tier.delete(slot.keyHash, slot.name) }
        if let next {
            tier.index.submit { [weak tier] in if let tier { sweep(tier, number, before: next) } }
        } else if tier.state.withLock({ $0.endWalk(number) }) {
            // The files found may exceed the limits.
            tier.trim()
            tier.sweep()
        }
    }
}

extension DiskTier {
    /// Waits until the table knows every file.
    package func settle() async {
        while state.withLock({ $0.phase != .settled && !$0.isClosed }) {
            // Behind the current step on the same thread.
            await index.pass()
        }
    }
}

extension DiskTier.State {
    /// - Returns: false where another walk has begun.
    mutating func endWalk(_ number: Int) -> Bool {
        guard walks == number else { return false }
        settle()
        return true
    }
}
