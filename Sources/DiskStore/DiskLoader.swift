// The ways in which the table learns of the files: page by page from the index, and after a crash by a walk over the
// folders.

import CacheStore
import EventLoop
import Files
import Glibc
import HTTPCaching
import SQLite
import Synchronization

/// Loads the table from the index. Sendable: its members are.
final class DiskLoader: Sendable {
    /// The rows of the first page, which opening waits for: more than most folders have.
    static let firstPage = 2048
    private static let page = 8192
    /// The rows that are added to the table under one lock.
    private static let slice = 512

    private struct Progress: Sendable {
        /// The expected number of rows; nil if files may lack a row.
        var expected: Int?
        /// The number of rows so far whose checksums matched, and whose files need no check by the walk.
        var count = 0
        var last: StoredFileName?
    }

    private let parts: DiskParts
    private let remover: DiskRemover
    private let walker: DiskWalker
    private let onEnd: @Sendable () -> Void

    /// Makes a loader.
    /// - Parameter onEnd: called when the table is known to be complete without a walk.
    init(_ parts: DiskParts, _ remover: DiskRemover, _ walker: DiskWalker, onEnd: @escaping @Sendable () -> Void) {
        self.parts = parts
        self.remover = remover
        self.walker = walker
        self.onEnd = onEnd
    }

    /// Loads the first page; blocks, because opening waits for it.
    /// - Parameter expected: the expected number of rows; nil if files may lack a row.
    func begin(expected: Int?) { step(Progress(expected: expected), limit: Self.firstPage) }

    /// Loads a page; on the index's thread, or before the tier is in use.
    private func step(_ progress: Progress, limit: Int) {
        if parts.state.withLock({ $0.isClosed }) { return }
        let (index, invalidations) = (parts.index, parts.invalidations)
        let page: DiskIndex.Page
        do throws(SQLiteError) {
            // Pending changes are written first, so that a row is not read in an older state than the table has.
            index.writeBatch()
            page = try index.page(after: progress.last, limit: limit)
        } catch {
            index.fail(error)
            // If the index could not be replaced, its rows are rebuilt from the files.
            if parts.state.withLock({ $0.phase == .loading }) { walker.start(trustsTable: true) }
            return
        }
        invalidations.advance(past: page.slots.reduce(0) { max($0, $1.fileID) })
        let suspect = invalidations.suspectNumber
        var unknown = 0
        for start in stride(from: 0, to: page.slots.count, by: Self.slice) {
            let slots = page.slots[start..<min(start + Self.slice, page.slots.count)]
            let loaded = parts.state.withLock { state in slots.map { state.load($0, unless: suspect) } }
            let doomed = zip(slots, loaded).filter { $1 == .doomed }.map(\.0)
            remover.deleteBehind(doomed)
            unknown += loaded.count { $0 == .unknown }
        }
        if !page.isWhole {
            parts.troubles.note(.index, "rows of the index \(parts.folder.index) are damaged: they are made anew")
        }
        let count = progress.count + page.slots.count - unknown
        guard let next = page.next else { return end(isComplete: count == progress.expected) }
        let further = Progress(expected: progress.expected, count: count, last: next)
        index.submit { [weak self] in self?.step(further, limit: Self.page) }
    }

    private func end(isComplete: Bool) {
        if isComplete || FolderNames.of(parts.folder.objects).isEmpty {
            parts.state.withLock { $0.settle() }
            onEnd()
        } else {
            walker.start(trustsTable: true)
        }
    }
}

// MARK: - The walk

/// Walks over the folders, one at a time on the index's thread, so that its batches are written in between.
///
/// Sendable: its members are.
final class DiskWalker: Sendable {
    private struct Walk: Sendable {
        let names: [String]
        var next = 0
        /// The number of the walk; a later walk replaces this one.
        let number: Int
        /// Whether each file in the table is known to have a row in the index.
        let trustsTable: Bool
    }

    private let parts: DiskParts
    private let adopter: DiskAdopter
    private let remover: DiskRemover
    private let onEnd: @Sendable () -> Void

    /// Makes a walker.
    /// - Parameter onEnd: called on the index's thread when the table is complete.
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

    /// Handles a failure of the index, by a walk; on the index's thread.
    func indexFailed(_ failure: IndexFailure) {
        parts.tell(failure)
        if case .replaced = failure { start(trustsTable: false) }
    }

    /// Starts a walk.
    /// - Parameter trustsTable: false if the index was replaced, so that every file needs a new row.
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
            // Only an empty folder is removed; other content stays.
            if files.isEmpty { _ = folder.calls.removeFolder("\(first)/\(second)") }
        }
        if FolderNames.of(first).isEmpty { _ = folder.calls.removeFolder(first) }
        var walk = walk
        walk.next += 1
        step(walk)
    }

    private func visit(_ file: String, _ path: String, _ trustsTable: Bool) {
        // A file with a foreign name is ignored.
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

    /// Removes entries without a file from the table, some at a time.
    private func forgetMissing(_ number: Int, before position: Int?) {
        let (missing, next) = parts.state.withLock { state in
            let (missing, next) = state.table.unseen(before: position, count: 2048)
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

// MARK: - A file that is not known

/// Adds files that are found on the disk. Sendable: its members are.
final class DiskAdopter: Sendable {
    private let parts: DiskParts
    private let pins: DiskPins

    init(_ parts: DiskParts, _ pins: DiskPins) {
        self.parts = parts
        self.pins = pins
    }

    /// Adds a file to the table and the index that they do not know; under the file's lock.
    /// - Returns: nil if the key was removed, or purged by a rule, before the file was found.
    func adopt(_ file: StoredFile, _ hash: UInt64, _ name: StoredFileName) -> DiskTable.Slot? {
        let found = DiskTable.Slot(
            keyHash: hash,
            name: name,
            fileID: file.record.fileID,
            bodyLength: file.record.bodyLength,
            size: file.size,
            storedAt: file.record.head.responseTime,
            lastUse: UInt32(clamping: file.record.head.responseTime),
            isSeen: true
        )
        let (key, head) = (CacheKey(bytes: file.record.key), file.record.head)
        let (invalidations, rules) = (parts.invalidations, InvalidationRule.concerning(head, key))
        let isOurs = parts.state.withLock { $0.table.find(hash, name)?.fileID == found.fileID }
        let suspect = invalidations.suspectNumber
        // This comes first, so that a rule that is made at the same time has a greater number.
        invalidations.advance(past: max(found.fileID, head.number))
        if invalidations.verdict(head, key, rules) == .gone { return nil }
        if !isOurs, max(found.fileID, head.number) > suspect, invalidations.isConcerned(head, key, rules) { return nil }
        pins.note(key, hash)
        guard let slot = parts.state.withLock({ $0.adopt(found) }) else { return nil }
        parts.index.note(.put(IndexRow(slot: slot, key: file.record.key, head: file.record.head)))
        return slot
    }
}
