// The index of the disk tier: one SQLite row per file, written later in batches on one thread. The tier works without
// it, and rebuilds it from the files.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching
import SQLite
import Synchronization

enum IndexChange: Sendable {
    case put(IndexRow)
    case remove(StoredFileName)
    case removeAll
    /// A file was used; the number is its last use and its position in the order of eviction, see
    /// ``IndexRow/use(of:)``.
    case used(StoredFileName, Int64)
}

enum IndexFailure: Sendable {
    /// A batch could not be written; its changes are lost until the next walk over the files.
    case unwritten(String)
    /// The database was damaged and has been replaced by an empty one.
    case replaced(String)
}

/// The index. Sendable: pending changes, the database and the observer are each under a mutex; the database is used on
/// the index's own thread once the tier is open, and its connection also has a lock of its own.
final class DiskIndex: Sendable {
    private struct Pending {
        var changes: [IndexChange] = []
        var isScheduled = false
        var isClosed = false
    }

    /// A closure right under a mutex would be wrapped again at each access, so that an object holds it.
    private final class Observer: Sendable {
        let report: @Sendable (IndexFailure) -> Void

        init(_ report: @escaping @Sendable (IndexFailure) -> Void) { self.report = report }
    }

    let path: String
    /// Whether the index is in memory only, such as on a full disk.
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

    /// The result of ``open(_:stamp:)``.
    struct Opened {
        let index: DiskIndex
        /// The number of rows, one for every file; nil if the last user did not close it in order.
        let count: Int?
        /// The reason why the previous index is not used; nil if it is.
        var failure: IndexFailure?
    }

    /// Opens the index. A file that is missing, damaged or of another version is replaced, and on a full disk the index
    /// is in memory. Blocks.
    /// - Parameter stamp: the stamp of the store; an index with another one is invalid.
    static func open(_ path: String, stamp: Int64) throws(DiskTierError) -> Opened {
        let thread: IOPool
        do throws(SystemError) {
            thread = try IOPool(threads: 1, name: "index")
        } catch {
            throw .index(path: path, reason: "\(error)")
        }
        let make = { (file: String?, failure: IndexFailure?) throws(SQLiteError) -> Opened in
            let (database, count) = try connect(file, stamp: stamp)
            let index = DiskIndex(path, isInMemory: file == nil, stamp, database, thread)
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

    /// Removes the index and SQLite's own files beside it.
    static func remove(_ path: String) {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    }

    /// Opens the database, and removes its mark of an orderly end, so that a crash is noticed at the next start.
    /// - Parameter path: the path; nil for an index in memory only.
    private static func connect(
        _ path: String?,
        stamp: Int64
    ) throws(SQLiteError) -> (database: SQLiteConnection, count: Int?) {
        let database = try SQLiteConnection(path: path) { session throws(SQLiteError) in
            // A commit is a write without fsync: after a loss by the disk a row is missing, or older.
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

    /// Whether a batch was lost, so that only the files are reliable.
    var isIncomplete: Bool { hasFailed.load(ordering: .relaxed) }

    var database: SQLiteConnection { connection.withLock { $0 } }

    /// Sets the receiver of failures.
    /// - Parameter report: called on the index's thread.
    func observe(_ report: @escaping @Sendable (IndexFailure) -> Void) { observer.exchange(Observer(report)) }

    // MARK: - Changes

    /// Adds a change to the next batch; any thread.
    func note(_ change: IndexChange) {
        let mustSchedule = pending.withLock { pending in
            if pending.isClosed { return false }
            pending.changes.append(change)
            defer { pending.isScheduled = true }
            return !pending.isScheduled
        }
        if mustSchedule { thread.submit { [weak self] in self?.writeBatch() } }
    }

    /// Runs work on the index's thread, between batches; drops it after the index is closed.
    func submit(_ work: @escaping @Sendable () -> Void) { thread.submit(work) }

    /// Waits for all work that was submitted to the index's thread before; returns at once if the index is closed.
    func pass() async { try? await thread.run {} }

    /// Writes all pending changes in one transaction; on the index's thread.
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

    /// Handles a failure of the database; on the index's thread.
    func fail(_ error: SQLiteError) {
        let report = observer.withLock { $0 }?.report
        // Misuse means that the database is closed, because it could not be replaced when it was damaged. After the end
        // of the index its path belongs to another owner.
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

    /// Creates a new file if the index's file was removed. The caller must then walk over the files of the tier; on the
    /// index's thread.
    func replaceLost() {
        guard isLost else { return }
        let report = observer.withLock { $0 }?.report
        do throws(SQLiteError) {
            try replace()
        } catch {
            report?(.unwritten(error.reason))
        }
    }

    /// Abandons the index, because another daemon has the folder now. The database stays open until the process ends:
    /// closing it would delete, by name, files that SQLite keeps for the other daemon.
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

// MARK: - Tables and rows

/// A row of the index.
struct IndexRow: Sendable {
    var slot: DiskTable.Slot
    var service: String
    var url: String
    var status: Int64
    /// The number of the fetch that brought the response, or of its last validation.
    var number: UInt64
    /// The tags for purges, each between line feeds; nil for none.
    var tags: String?

    init(slot: DiskTable.Slot, key: [UInt8], head: StoredHead) {
        self.slot = slot
        let key = CacheKey(bytes: key)
        (service, url) = (key.service, key.description)
        status = Int64(head.status)
        number = head.number
        let names = Caching.cacheTags(head.fields)
        tags = names.isEmpty ? nil : "\n" + names.joined(separator: "\n") + "\n"
    }

    /// The columns that ``init(_:)`` reads, in its order.
    static let columns =
        "high, low, keyhash, service, url, fileid, body, size, stored, used, status, number, tags, sum"

    /// Reads a row; nil if it does not match its checksum. A column of a wrong type is read as SQLite converts it.
    init?(_ row: borrowing SQLiteRow) {
        slot = DiskTable.Slot(
            keyHash: row.unsigned(2),
            name: StoredFileName(high: row.unsigned(0), low: row.unsigned(1)),
            fileID: row.unsigned(5),
            bodyLength: row.integer(6),
            size: row.integer(7),
            storedAt: row.integer(8),
            lastUse: UInt32(truncatingIfNeeded: row.integer(9))
        )
        slot.note(useAt: slot.lastUse, Self.standing(row.integer(9)))
        (service, url) = (row.text(3) ?? "", row.text(4) ?? "")
        (status, number, tags) = (row.integer(10), row.unsigned(11), row.text(12))
        guard row.integer(13) == Int64(checksum) else { return nil }
    }

    /// The value of the column of the last use: Unix seconds, and above 32 bits the position in the order of eviction,
    /// which older versions did not write, and interpret as a late use.
    static func use(of slot: DiskTable.Slot) -> Int64 {
        let standing = slot.standing
        return Int64(slot.lastUse) | Int64(standing.uses) << 32 | (standing.isInMain ? 1 << 34 : 0)
    }

    static func standing(_ use: Int64) -> EvictionStanding {
        EvictionStanding(isInMain: use >> 34 & 1 == 1, uses: UInt8(truncatingIfNeeded: use >> 32 & 3))
    }

    /// The CRC32C of all columns except for the last use, which affects neither purges nor answers.
    var checksum: UInt32 {
        let numbers = (
            slot.keyHash, slot.name.high, slot.name.low, slot.fileID, slot.bodyLength, slot.size, slot.storedAt, status,
            number
        )
        var sum = CRC32C()
        withUnsafeBytes(of: numbers) { sum.update($0) }
        for text in [service, url, tags ?? ""] {
            var text = text
            text.withUTF8 { sum.update(UnsafeRawBufferPointer($0)) }
            // A NUL separates the texts, because no text contains one.
            withUnsafeBytes(of: UInt8(0)) { sum.update($0) }
        }
        return sum.value
    }
}

extension SQLiteRow {
    /// SQLite's integers are signed: the bits are the same.
    func unsigned(_ column: Int) -> UInt64 { UInt64(bitPattern: integer(column)) }
}

extension SQLiteValue {
    static func unsigned(_ value: UInt64) -> SQLiteValue { .integer(Int64(bitPattern: value)) }
}

extension DiskIndex {
    /// The version of the schema; an index of another version is rebuilt from the files.
    private static let schema: Int64 = 4

    /// Creates the tables.
    /// - Parameter stamp: the stamp of the store; rows with another one are invalid.
    static func prepare(_ session: SQLiteSession, stamp: Int64) throws(SQLiteError) {
        try session.execute(script: "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER)")
        let number = { (name: String) throws(SQLiteError) in
            try session.integer("SELECT value FROM meta WHERE name = ?", [.text(name)], isKept: false)
        }
        if try number("schema") == schema, try number("stamp") == stamp { return }
        try session.execute(
            script: """
                DROP TABLE IF EXISTS files;
                DELETE FROM meta;
                CREATE TABLE files (high INTEGER, low INTEGER, keyhash INTEGER, service TEXT, url TEXT, fileid INTEGER,
                    body INTEGER, size INTEGER, stored INTEGER, used INTEGER, status INTEGER, number INTEGER, tags TEXT,
                    sum INTEGER, PRIMARY KEY (high, low)) WITHOUT ROWID;
                CREATE INDEX files_url ON files (url);
                CREATE INDEX files_tagged ON files (high, low) WHERE tags IS NOT NULL;
                INSERT INTO meta VALUES ('schema', \(schema)), ('stamp', \(stamp));
                """
        )
    }

    /// Some rows, in the order of their names.
    struct Page: Sendable {
        var slots: [DiskTable.Slot] = []
        /// Whether every row matches its checksum.
        var isWhole = true
        /// The position of the next page; nil after the last one.
        var next: StoredFileName?
    }

    /// The rows after `last`; on the index's thread, or while no other code uses the index. A row also counts as
    /// damaged if one of SQLite's indexes, which purges use, lacks it.
    func page(after last: StoredFileName?, limit: Int) throws(SQLiteError) -> Page {
        try database.read { session throws(SQLiteError) in
            var page = Page()
            page.slots.reserveCapacity(limit)
            let condition = last == nil ? "" : "WHERE (high, low) > (?, ?)"
            let sql = """
                SELECT \(IndexRow.columns),
                    EXISTS (SELECT 1 FROM files AS other INDEXED BY files_url
                        WHERE other.url = files.url AND other.high = files.high AND other.low = files.low),
                    files.tags IS NULL OR EXISTS (SELECT 1 FROM files AS other INDEXED BY files_tagged
                        WHERE other.tags IS NOT NULL AND other.high = files.high AND other.low = files.low)
                FROM files NOT INDEXED \(condition) ORDER BY high, low LIMIT \(limit)
                """
            let values: [SQLiteValue] = last.map { [.unsigned($0.high), .unsigned($0.low)] } ?? []
            var count = 0
            try session.query(sql, values) { row throws(SQLiteError) in
                let isFound = row.integer(14) != 0 && row.integer(15) != 0
                if isFound, let read = IndexRow(row) { page.slots.append(read.slot) } else { page.isWhole = false }
                page.next = StoredFileName(high: row.unsigned(0), low: row.unsigned(1))
                count += 1
            }
            if count < limit { page.next = nil }
            return page
        }
    }

    static func write(_ change: IndexChange, _ session: SQLiteSession) throws(SQLiteError) {
        switch change {
        case .put(let row):
            let slot = row.slot
            try session.execute(
                "REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    .unsigned(slot.name.high), .unsigned(slot.name.low), .unsigned(slot.keyHash), .text(row.service),
                    .text(row.url), .unsigned(slot.fileID), .integer(slot.bodyLength), .integer(slot.size),
                    .integer(slot.storedAt), .integer(IndexRow.use(of: slot)), .integer(row.status),
                    .unsigned(row.number), row.tags.map { .text($0) } ?? .null, .integer(Int64(row.checksum)),
                ]
            )
        case .remove(let name):
            let sql = "DELETE FROM files WHERE high = ? AND low = ?"
            try session.execute(sql, [.unsigned(name.high), .unsigned(name.low)])
        case .removeAll: try session.execute("DELETE FROM files")
        case .used(let name, let use):
            let sql = "UPDATE files SET used = ? WHERE high = ? AND low = ?"
            try session.execute(sql, [.integer(use), .unsigned(name.high), .unsigned(name.low)])
        }
    }
}
