// The walk over the folders after an unclean end: files that the index does not know are adopted, rows without a file go.

import EventLoop
import Glibc
import Synchronization

/// One folder at a time on the index's thread, so that its batches are written in between.
enum DiskRebuild {
    static func start(_ tier: DiskTier) {
        step(tier, DiskFolder.Walk(names: DiskFolder.names(tier.folder.objects), next: 0))
    }

    private static func step(_ tier: DiskTier, _ walk: DiskFolder.Walk) {
        tier.index.submit { [weak tier] in
            guard let tier, !tier.state.withLock({ $0.isClosed }) else { return }
            guard walk.next < walk.names.count else { return finish(tier) }
            let first = "\(tier.folder.objects)/\(walk.names[walk.next])"
            for second in DiskFolder.names(first) {
                for file in DiskFolder.names("\(first)/\(second)") { visit(tier, file, "\(first)/\(second)/\(file)") }
            }
            step(tier, DiskFolder.Walk(names: walk.names, next: walk.next + 1))
        }
    }

    private static func visit(_ tier: DiskTier, _ file: String, _ path: String) {
        // What is not ours is left alone.
        guard let name = Digest(hex: file), path.hasSuffix(name.relativePath) else { return }
        tier.lock(name).withLock {
            if tier.state.withLock({ $0.markSeen(name) }) { return }
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            if descriptor < 0 { return }
            defer { close(descriptor) }
            guard let stored = StoredFile.read(descriptor) else {
                unlink(path)
                return
            }
            let hash = Digest(stored.record.key, key: tier.folder.digestKey).low
            if tier.adopt(stored, hash, name) == nil { unlink(path) }
        }
    }

    private static func finish(_ tier: DiskTier) {
        let missing = tier.state.withLock { state in
            let missing = state.table.all.filter { !$0.isSeen }
            for slot in missing { state.table.remove(slot.keyHash, slot.name) }
            state.endRebuild()
            return missing
        }
        for slot in missing { tier.delete(slot.keyHash, slot.name) }
        // What was found may be more than is allowed now.
        if tier.reserve(0) { tier.release(0) }
    }
}

extension DiskFolder {
    struct Walk: Sendable {
        let names: [String]
        let next: Int
    }
}

extension DiskTier {
    /// Waits until no walk over the folders is under way.
    package func settle() async {
        while state.withLock({ $0.isRebuilding && !$0.isClosed }) {
            // Behind the walk's current step on the same thread.
            await withUnsafeContinuation { waiter in index.submit { waiter.resume() } }
        }
    }
}

extension DiskTier.State {
    /// The walk has met a file.
    /// - Returns: whether the table knows it.
    mutating func markSeen(_ name: Digest) -> Bool { table.markSeen(name) }

    mutating func endRebuild() {
        isRebuilding = false
        doomed = [:]
        table.forgetNames()
    }
}
