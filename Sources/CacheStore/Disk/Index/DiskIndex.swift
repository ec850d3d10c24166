// The index of the disk tier: one SQLite row per file, written behind, in batches, on one thread. It can be lost.

import EventLoop
import GRDB
import Glibc
import Synchronization

enum IndexChange: Sendable {
    case put(IndexRow)
    case remove(Digest)
    case removeAll
    case used(Digest, UInt32)
}

enum IndexFailure: Sendable {
    /// What is written now is missing until the files are looked at again.
    case unwritten(String)
    /// The database was damaged and has been replaced by an empty one.
    case replaced(String)
}

/// Sendable: pending changes, the database and the observer are each under a mutex; the database is used on the index's own
/// thread once the tier is open.
final class DiskIndex: Sendable {
    private struct Pending {
        var changes: [IndexChange] = []
        var isScheduled = false
        var isClosed = false
    }

    private let path: String
    /// On a full disk, say; forgotten with the process.
    private let isInMemory: Bool
    private let stamp: Int64
    let thread: IOPool
    private let connection: Mutex<DatabaseQueue>
    private let pending = Mutex(Pending())
    private let observer = Mutex<(@Sendable (IndexFailure) -> Void)?>(nil)
    private let hasFailed = Atomic<Bool>(false)
    private let isAbandoned = Atomic<Bool>(false)
    /// Databases that must not be closed while the process runs.
    private static let abandoned = Mutex<[DatabaseQueue]>([])

    /// What ``open(_:stamp:)`` has found.
    struct Opened {
        let index: DiskIndex
        /// How many rows it has, one for every file; nil where the last user did not close it in order.
        let count: Int?
        /// Why it is not the one that was there.
        var failure: IndexFailure?
    }

    /// Opens the index, or makes a new one where it is missing, damaged or of another version, in memory where the disk is
    /// full; blocks.
    /// - Parameter stamp: an index with another one is void.
    static func open(_ path: String, stamp: Int64) throws(DiskTierError) -> Opened {
        do {
            let thread = try IOPool(threads: 1, name: "index")
            let make = { (place: String?, failure: IndexFailure?) throws -> Opened in
                let (database, count) = try connect(place, stamp: stamp)
                let index = DiskIndex(path, isInMemory: place == nil, stamp, database, thread)
                return Opened(index: index, count: count, failure: failure)
            }
            do {
                return try make(path, nil)
            } catch let first {
                remove(path)
                do {
                    return try make(path, .replaced("\(first)"))
                } catch let second {
                    remove(path)
                    return try make(nil, .unwritten("\(second)"))
                }
            }
        } catch {
            throw .index(path: path, reason: "\(error)")
        }
    }

    /// The index and SQLite's own files beside it.
    static func remove(_ path: String) {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    }

    /// From now on, an end that is not in order shows.
    /// - Parameter path: nil for an index that is forgotten with the process.
    private static func connect(_ path: String?, stamp: Int64) throws -> (database: DatabaseQueue, count: Int?) {
        var configuration = Configuration()
        if path != nil { configuration.journalMode = .wal }
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = NORMAL") }
        let database =
            if let path {
                try DatabaseQueue(path: path, configuration: configuration)
            } else {
                try DatabaseQueue(configuration: configuration)
            }
        let count = try database.write { db in
            try prepare(db, stamp: stamp)
            let count = try Int.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'count'")
            try db.execute(sql: "DELETE FROM meta WHERE name = 'count'")
            return count
        }
        return (database, count)
    }

    private init(_ path: String, isInMemory: Bool, _ stamp: Int64, _ database: DatabaseQueue, _ thread: IOPool) {
        self.path = path
        self.isInMemory = isInMemory
        self.stamp = stamp
        self.thread = thread
        connection = Mutex(database)
    }

    deinit { thread.stop() }

    /// A batch was lost: the files know better.
    var isIncomplete: Bool { hasFailed.load(ordering: .relaxed) }

    var database: DatabaseQueue { connection.withLock { $0 } }

    /// - Parameter report: called on the index's thread.
    func observe(_ report: @escaping @Sendable (IndexFailure) -> Void) { observer.exchange(report) }

    // MARK: - Changes

    /// Writes behind; any thread.
    func note(_ change: IndexChange) {
        let mustSchedule = pending.withLock { pending in
            if pending.isClosed { return false }
            pending.changes.append(change)
            defer { pending.isScheduled = true }
            return !pending.isScheduled
        }
        if mustSchedule { thread.submit { [weak self] in self?.writeBatch() } }
    }

    /// Runs work on the index's thread, between batches; drops it when the index is closed.
    func submit(_ work: @escaping @Sendable () -> Void) { thread.submit(work) }

    /// Waits for what the index's thread was given before; not when the index is closed.
    func pass() async { try? await thread.run {} }

    /// Everything that has been noted, in one transaction; the index's thread.
    func writeBatch() {
        let changes = pending.withLock { pending in
            defer {
                pending.changes = []
                pending.isScheduled = false
            }
            return pending.changes
        }
        guard !changes.isEmpty else { return }
        do {
            try database.write { db in
                for change in changes { try Self.write(change, db) }
            }
        } catch {
            hasFailed.store(true, ordering: .relaxed)
            fail(error)
        }
    }

    /// The index's thread.
    func fail(_ error: any Error) {
        let report = observer.withLock { $0 }
        guard let code = (error as? DatabaseError)?.resultCode, [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(code) else {
            report?(.unwritten("\(error)"))
            return
        }
        do {
            try replace()
            report?(.replaced("\(error)"))
        } catch let second {
            report?(.unwritten("\(second)"))
        }
    }

    /// Somebody has removed the file, which what is written now would go to all the same; blocks.
    var isLost: Bool { !isInMemory && access(path, F_OK) != 0 && errno == ENOENT }

    /// Makes a new file where somebody has removed it. Whoever calls this looks at the files of the tier afterwards; the
    /// index's thread.
    func replaceLost() {
        guard isLost else { return }
        let report = observer.withLock { $0 }
        do {
            try replace()
        } catch {
            report?(.unwritten("\(error)"))
        }
    }

    /// The folder is another daemon's now. Closing the database would remove, by their names, what SQLite keeps beside that one's:
    /// it stays open until the process ends.
    func abandon() {
        if isAbandoned.exchange(true, ordering: .relaxed) { return }
        let database = database
        Self.abandoned.withLock { $0.append(database) }
    }

    private func replace() throws {
        try database.close()
        Self.remove(path)
        let (fresh, _) = try Self.connect(path, stamp: stamp)
        connection.exchange(fresh)
        hasFailed.store(false, ordering: .relaxed)
        isAbandoned.store(false, ordering: .relaxed)
    }

    /// Writes what is pending, marks the index as complete if it is, and ends its thread. Blocks.
    /// - Parameter count: how many rows there must be; nil where files may be without a row.
    func close(count: Int?) {
        let wasClosed = pending.withLock { pending in
            defer { pending.isClosed = true }
            return pending.isClosed
        }
        if wasClosed { return }
        thread.submit { [self] in
            writeBatch()
            guard let count, !hasFailed.load(ordering: .relaxed) else { return }
            try? database.write { db in
                try db.execute(sql: "REPLACE INTO meta VALUES ('count', ?)", arguments: [count])
            }
        }
        thread.stop()
        if !isAbandoned.load(ordering: .relaxed) { try? database.close() }
    }
}
