// The index of the disk tier: one SQLite row per file, written behind, in batches, on one thread. It can be lost.

import CacheStore
import EventLoop
import Glibc
import SQLite
import Synchronization

enum IndexChange: Sendable {
    case put(IndexRow)
    case remove(StoredFileName)
    case removeAll
    /// When a file was last used, and its place in the order of eviction: see ``IndexRow/use(of:)``.
    case used(StoredFileName, Int64)
}

enum IndexFailure: Sendable {
    /// Writes are lost until the next walk over the files.
    case unwritten(String)
    /// The database was damaged and has been replaced by an empty one.
    case replaced(String)
}

/// Sendable: pending changes, the database and the observer are each under a mutex; the database is used on the index's
/// own thread once the tier is open, and its connection is under a lock of its own besides.
final class DiskIndex: Sendable {
    private struct Pending {
        var changes: [IndexChange] = []
        var isScheduled = false
        var isClosed = false
    }

    /// A closure right under a mutex would be wrapped once more with each look.
    private final class Observer: Sendable {
        let report: @Sendable (IndexFailure) -> Void

        init(_ report: @escaping @Sendable (IndexFailure) -> Void) { self.report = report }
    }

    let path: String
    /// On a full disk, say; forgotten with the process.
    private let isInMemory: Bool
    private let stamp: Int64
    let thread: IOPool
    private let connection: Mutex<SQLiteConnection>
    private let pending = Mutex(Pending())
    private let observer = Mutex<Observer?>(nil)
    private let hasFailed = Atomic<Bool>(false)
    private let isAbandoned = Atomic<Bool>(false)
    /// Databases that must not be closed while the process runs.
    private static let abandoned = Mutex<[SQLiteConnection]>([])

    /// What ``open(_:stamp:)`` has found.
    struct Opened {
        let index: DiskIndex
        /// How many rows it has, one for every file; nil where the last user did not close it in order.
        let count: Int?
        /// Why it is not the one that was there.
        var failure: IndexFailure?
    }

    /// Opens the index. It makes a new one if the file is missing, damaged or of another version, and one in memory if
    /// the disk is full. Blocks.
    /// - Parameter stamp: an index with another one is void.
    static func open(_ path: String, stamp: Int64) throws(DiskTierError) -> Opened {
        let thread: IOPool
        do throws(SystemError) {
            thread = try IOPool(threads: 1, name: "index")
        } catch {
            throw .index(path: path, reason: "\(error)")
        }
        let make = { (place: String?, failure: IndexFailure?) throws(SQLiteError) -> Opened in
            let (database, count) = try connect(place, stamp: stamp)
            let index = DiskIndex(path, isInMemory: place == nil, stamp, database, thread)
            return Opened(index: index, count: count, failure: failure)
        }
        do throws(SQLiteError) {
            do throws(SQLiteError) {
                return try make(path, nil)
            } catch let first {
                remove(path)
                do throws(SQLiteError) {
                    return try make(path, .replaced(first.reason))
                } catch let second {
                    remove(path)
                    return try make(nil, .unwritten(second.reason))
                }
            }
        } catch {
            throw .index(path: path, reason: error.reason)
        }
    }

    /// The index and SQLite's own files beside it.
    static func remove(_ path: String) {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    }

    /// From now on, an end that is not in order shows.
    /// - Parameter path: nil for an index that is forgotten with the process.
    private static func connect(
        _ path: String?,
        stamp: Int64
    ) throws(SQLiteError) -> (database: SQLiteConnection, count: Int?) {
        let database = try SQLiteConnection(path: path) { session throws(SQLiteError) in
            // A commit is a write without fsync: what the disk has lost then shows as a missing or older row.
            try session.execute("PRAGMA synchronous = NORMAL")
            if path != nil { try session.useWriteAheadLog() }
        }
        let count = try database.write { session throws(SQLiteError) in
            try prepare(session, stamp: stamp)
            let count = try session.integer("SELECT value FROM meta WHERE name = 'count'", isKept: false)
            try session.execute("DELETE FROM meta WHERE name = 'count'", isKept: false)
            return count.map { Int($0) }
        }
        return (database, count)
    }

    private init(_ path: String, isInMemory: Bool, _ stamp: Int64, _ database: SQLiteConnection, _ thread: IOPool) {
        self.path = path
        self.isInMemory = isInMemory
        self.stamp = stamp
        self.thread = thread
        connection = Mutex(database)
    }

    deinit { thread.stop() }

    /// A batch was lost: the files know better.
    var isIncomplete: Bool { hasFailed.load(ordering: .relaxed) }

    var database: SQLiteConnection { connection.withLock { $0 } }

    /// - Parameter report: called on the index's thread.
    func observe(_ report: @escaping @Sendable (IndexFailure) -> Void) { observer.exchange(Observer(report)) }

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

    /// Writes all pending changes in one transaction; the index's thread.
    func writeBatch() {
        let changes = pending.withLock { pending in
            defer {
                pending.changes = []
                pending.isScheduled = false
            }
            return pending.changes
        }
        guard !changes.isEmpty else { return }
        do throws(SQLiteError) {
            try database.write { session throws(SQLiteError) in
                for change in changes { try Self.write(change, session) }
            }
        } catch {
            hasFailed.store(true, ordering: .relaxed)
            fail(error)
        }
    }

    /// The index's thread.
    func fail(_ error: SQLiteError) {
        let report = observer.withLock { $0 }?.report
        // Misuse: the database is closed, since it could not be replaced when it was damaged. After the end of the
        // index it is somebody else's.
        let isUnreplaced = error.code == .misuse && !pending.withLock { $0.isClosed }
        guard isUnreplaced || [.corrupt, .notADatabase].contains(error.code) else {
            report?(.unwritten(error.reason))
            return
        }
        do throws(SQLiteError) {
            try replace()
            report?(.replaced(error.reason))
        } catch let second {
            report?(.unwritten(second.reason))
        }
    }

    /// Whether the file of the index was removed; writes to the open database would be lost. Blocks.
    var isLost: Bool { !isInMemory && access(path, F_OK) != 0 && errno == ENOENT }

    /// Makes a new file if the index's file was removed. The caller must then walk over the files of the
    /// tier; the index's thread.
    func replaceLost() {
        guard isLost else { return }
        let report = observer.withLock { $0 }?.report
        do throws(SQLiteError) {
            try replace()
        } catch {
            report?(.unwritten(error.reason))
        }
    }

    /// Gives the index up, because another daemon has the folder now. The database stays open until the process ends:
    /// closing it would delete, by name, the files that SQLite keeps beside the other daemon's.
    func abandon() {
        if isAbandoned.exchange(true, ordering: .relaxed) { return }
        let database = database
        Self.abandoned.withLock { $0.append(database) }
    }

    private func replace() throws(SQLiteError) {
        try database.close()
        Self.remove(path)
        let (fresh, _) = try Self.connect(path, stamp: stamp)
        connection.exchange(fresh)
        hasFailed.store(false, ordering: .relaxed)
        isAbandoned.store(false, ordering: .relaxed)
    }

    /// Writes pending changes, marks the index as complete if it is, and ends its thread. Blocks.
    /// - Parameter count: the expected number of rows; nil if some files may lack a row.
    func close(count: Int?) {
        let wasClosed = pending.withLock { pending in
            defer { pending.isClosed = true }
            return pending.isClosed
        }
        if wasClosed { return }
        thread.submit { [self] in
            writeBatch()
            guard let count, !hasFailed.load(ordering: .relaxed) else { return }
            try? database.write { session throws(SQLiteError) in
                try session.execute("REPLACE INTO meta VALUES ('count', ?)", [.integer(Int64(count))])
            }
        }
        thread.stop()
        if !isAbandoned.load(ordering: .relaxed) { try? database.close() }
    }
}
