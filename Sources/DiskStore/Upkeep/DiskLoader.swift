// Loads the index into the table page by page, in the background; the walk over the folders finds files that it lacks.

import CacheStore
import EventLoop
import Files
import SQLite
import Synchronization

/// Sendable: its members are.
final class DiskLoader: Sendable {
    /// Rows of the first page, for which opening waits: more than most folders have.
    static let firstPage = 2048
    private static let page = 8192
    /// Rows that are put into the table under one lock.
    private static let slice = 512

    private struct Progress: Sendable {
        /// How many rows there must be; nil where files may be without a row.
        var expected: Int?
        /// Rows so far whose checksums matched, and whose files need no check by the walk.
        var count = 0
        var last: StoredFileName?
    }

    private let parts: DiskParts
    private let remover: DiskRemover
    private let walker: DiskWalker
    private let onEnd: @Sendable () -> Void

    /// - Parameter onEnd: the table knows every file, without a walk; called where that is found out.
    init(_ parts: DiskParts, _ remover: DiskRemover, _ walker: DiskWalker, onEnd: @escaping @Sendable () -> Void) {
        self.parts = parts
        self.remover = remover
        self.walker = walker
        self.onEnd = onEnd
    }

    /// Blocks: opening waits for it.
    /// - Parameter expected: how many rows there must be; nil where files may be without a row.
    func begin(expected: Int?) { step(Progress(expected: expected), limit: Self.firstPage) }

    /// On the index's thread, or before anybody else has the tier.
    private func step(_ progress: Progress, limit: Int) {
        if parts.state.withLock({ $0.isClosed }) { return }
        let (index, invalidations) = (parts.index, parts.invalidations)
        let page: DiskIndex.Page
        do throws(SQLiteError) {
            // A row that changes behind the load is written before it is read, or after the table knows better.
            index.writeBatch()
            page = try index.page(after: progress.last, limit: limit)
        } catch {
            index.fail(error)
            // If the index could not be replaced, its rows are made again from the files.
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
