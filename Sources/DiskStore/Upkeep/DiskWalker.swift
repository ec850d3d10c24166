// The walk over the folders after an unclean end: files that the index does not know are
// adopted, rows without a file go.

import CacheStore
import EventLoop
import Files
import Glibc
import Synchronization

/// One folder at a time on the index's thread, so that its batches are written in between.
///
/// Sendable: its members are.
final class DiskWalker: Sendable {
    private struct Walk: Sendable {
        let names: [String]
        var next = 0
        /// A later walk takes the place of this one.
        let number: Int
        /// A file that the table knows has its row.
        let trustsTable: Bool
    }

    private let parts: DiskParts
    private let adopter: DiskAdopter
    private let remover: DiskRemover
    private let onEnd: @Sendable () -> Void

    /// - Parameter onEnd: the table knows every file; called on the index's thread.
    init(
        _ parts: DiskParts,
        _ adopter: DiskAdopter,
        _ remover: DiskRemover,
        onEnd: @escaping @Sendable () -> Void
    ) {
        self.parts = parts
        self.adopter = adopter
        self.remover = remover
        self.onEnd = onEnd
    }

    /// The index has failed; its thread.
    func indexFailed(_ failure: IndexFailure) {
        parts.tell(failure)
        if case .replaced = failure { start(trustsTable: false) }
    }

    /// - Parameter trustsTable: false where the index was replaced, so that every file needs a new row.
    func start(trustsTable: Bool) {
        let number = parts.state.withLock { $0.beginWalk() }
        step(Walk(names: FolderNames.of(parts.folder.objects), number: number, trustsTable: trustsTable))
    }

    private func step(_ walk: Walk) {
        parts.index.submit { [weak self] in self?.visitNext(walk) }
    }

    private func visitNext(_ walk: Walk) {
        guard parts.state.withLock({ !$0.isClosed && $0.walks == walk.number }) else { return }
        guard walk.next < walk.names.count else { return forgetMissing(walk.number, before: nil) }
        let folder = parts.folder
        let first = "\(folder.objects)/\(walk.names[walk.next])"
        for second in FolderNames.of(first) {
            let files = FolderNames.of("\(first)/\(second)")
            for file in files { visit(file, "\(first)/\(second)/\(file)", walk.trustsTable) }
            // Only an empty folder is removed; any other file stays.
            if files.isEmpty { _ = folder.calls.removeFolder("\(first)/\(second)") }
        }
        if FolderNames.of(first).isEmpty { _ = folder.calls.removeFolder(first) }
        var walk = walk
        walk.next += 1
        step(walk)
    }

    private func visit(_ file: String, _ path: String, _ trustsTable: Bool) {
        // A file with a foreign name is left alone.
        guard let name = StoredFileName(hex: file), path.hasSuffix(name.relativePath) else { return }
        parts.lock(name).withLock {
            if parts.state.withLock({ $0.table.markSeen(name) }), trustsTable { return }
            let calls = parts.folder.calls
            let descriptor = calls.open(path, O_RDONLY, 0)
            if descriptor < 0 { return }
            defer { close(descriptor) }
            do throws(SystemError) {
                if let stored = try StoredFile.read(descriptor, calls) {
                    let hash = parts.keyHash(CacheKey(bytes: stored.record.key))
                    if adopter.adopt(stored, hash, name) != nil { return }
                } else {
                    parts.troubles.note(.damaged, "the stored file \(path) is damaged: it is removed")
                }
            } catch {
                let text = "the stored file \(path) cannot be read: \(error.named): it is removed"
                parts.troubles.note(.unreadable, text)
            }
            parts.openFiles.remove(name)
            remover.unlink(path)
        }
    }

    /// Takes rows without a file out of the table, some at a time.
    private func forgetMissing(_ number: Int, before place: Int?) {
        let (missing, next) = parts.state.withLock { state in
            let (missing, next) = state.table.unseen(before: place, count: 2048)
            for slot in missing { state.table.remove(slot.keyHash, slot.name) }
            return (missing, next)
        }
        for slot in missing { remover.delete(slot.keyHash, slot.name) }
        if let next {
            parts.index.submit { [weak self] in self?.forgetMissing(number, before: next) }
        } else if parts.state.withLock({ $0.endWalk(number) }) {
            onEnd()
        }
    }
}
