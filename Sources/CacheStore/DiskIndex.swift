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
    private let stamp: Int64
    let thread: IOPool
    private let connection: Mutex<DatabaseQueue>
    private let pending = Mutex(Pending())
    private let observer = Mutex<(@Sendable (IndexFailure) -> Void)?>(nil)
    private let hasFailed = Atomic<Bool>(false)

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
                return Opened(index: DiskIndex(path, stamp, database, thread), count: count, failure: failure)
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

    private init(_ path: String, _ stamp: Int64, _ database: DatabaseQueue, _ thread: IOPool) {
        self.path = path
        self.stamp = stamp
        self.thread = thread
        connection = Mutex(database)
    }

    deinit { thread.stop() }

    /// A batch was lost: the files know better.
    var isIncomplete: Bool { hasFailed.load(ordering: .relaxed) }

    var database: DatabaseQueue { connection.withLock { $0 } }

    /// - Parameter report: called on the index's thread.
    func observe(_ report: @escaping @Sendable (IndexFailure) -> Void) { observer.withLock { $0 = report } }

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

    /// Runs work on the index's thread, between batches.
    func submit(_ work: @escaping @Sendable () -> Void) { thread.submit(work) }

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
            try database.close()
            Self.remove(path)
            let (fresh, _) = try Self.connect(path, stamp: stamp)
            connection.withLock { $0 = fresh }
            hasFailed.store(false, ordering: .relaxed)
            report?(.replaced("\(error)"))
        } catch let second {
            report?(.unwritten("\(second)"))
        }
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
        try? database.close()
    }
}
