// Loads the index into the table page by page, in the background; the walk over the folders finds files that it lacks.

import EventLoop
import Files
import SQLite
import Synchronization

enum DiskLoad {
    /// Rows of the first page, for which opening waits: more than most folders have.
    static let firstPage = 2048
    private static let page = 8192
    /// Rows that are put into the table under one lock.
    private static let slice = 512

    /// What becomes of a row.
    enum Loaded { case known, doomed, unknown }

    struct Progress: Sendable {
        /// How many rows there must be; nil where files may be without a row.
        var expected: Int?
        /// Rows so far whose checksums matched, and whose files need no check by the walk.
        var count = 0
        var last: StoredFileName?
    }

    /// Blocks: opening waits for it.
    static func begin(_ tier: DiskTier, expected: Int?) {
        step(tier, Progress(expected: expected), limit: firstPage)
    }

    /// On the index's thread, or before anybody else has the tier.
    private static func step(_ tier: DiskTier, _ progress: Progress, limit: Int) {
        if tier.state.withLock({ $0.isClosed }) { return }
        let page: DiskIndex.Page
        do throws(SQLiteError) {
            // A row that changes behind the load is written before it is read, or after the table knows better.
            tier.index.writeBatch()
            page = try tier.index.page(after: progress.last, limit: limit)
        } catch {
            tier.index.fail(error)
            // If the index could not be replaced, its rows are made again from the files.
            if tier.state.withLock({ $0.phase == .loading }) { DiskRebuild.start(tier, trustsTable: true) }
            return
        }
        tier.invalidations.advance(past: page.slots.reduce(0) { max($0, $1.fileID) })
        let suspect = tier.invalidations.suspectNumber
        var unknown = 0
        for start in stride(from: 0, to: page.slots.count, by: slice) {
            let slots = page.slots[start..<min(start + slice, page.slots.count)]
            let loaded = tier.state.withLock { state in slots.map { state.load($0, unless: suspect) } }
            let doomed = zip(slots, loaded).filter { $1 == .doomed }.map(\.0)
            tier.deleteBehind(doomed)
            unknown += loaded.count { $0 == .unknown }
        }
        if !page.isWhole {
            tier.troubles.note(.index, "rows of the index \(tier.folder.index) are damaged: they are made anew")
        }
        let count = progress.count + page.slots.count - unknown
        guard let next = page.next else { return end(tier, isComplete: count == progress.expected) }
        let further = Progress(expected: progress.expected, count: count, last: next)
        tier.index.submit { [weak tier] in if let tier { step(tier, further, limit: Self.page) } }
    }

    private static func end(_ tier: DiskTier, isComplete: Bool) {
        if isComplete || FolderNames.of(tier.folder.objects).isEmpty {
            tier.state.withLock { $0.settle() }
            tier.trim()
            tier.sweep()
        } else {
            DiskRebuild.start(tier, trustsTable: true)
        }
    }
}

extension DiskTier.State {
    /// A row of the index.
    /// - Parameter suspect: files of an earlier process have smaller numbers; if a row has a greater one, the head in
    ///   its file must be checked.
    mutating func load(_ slot: DiskTable.Slot, unless suspect: UInt64) -> DiskLoad.Loaded {
        if isDoomed(slot) { return .doomed }
        // What this process has written, or found in the folder, is newer.
        if table.find(slot.keyHash, slot.name) != nil { return .known }
        if slot.fileID > suspect { return .unknown }
        table.insert(slot)
        return .known
    }

    /// Removed since the tier was opened, before the table knew the file.
    func isDoomed(_ slot: DiskTable.Slot) -> Bool {
        slot.fileID < doomedAll || slot.fileID < doomed[slot.keyHash] ?? 0 || slot.fileID <= doomedFiles[slot.name] ?? 0
    }

    /// The table knows every file.
    mutating func settle() {
        phase = .settled
        doomed = [:]
        doomedFiles = [:]
        doomedAll = 0
    }
}
