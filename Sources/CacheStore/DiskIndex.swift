// The index of the disk tier: one SQLite row per file, written behind, in batches, on one thread. It can be lost.

import EventLoop
import GRDB
import Glibc
import Synchronization

/// A row that is to be written.
struct IndexRow: Sendable {
    var slot: DiskTable.Slot
    var key: [UInt8]
    var status: Int
}

enum IndexChange: Sendable {
    case put(IndexRow)
    case remove(Digest)
    case used(Digest, UInt32)
}

/// Sendable: pending changes are under a mutex; the database is used on the index's own thread only.
final class DiskIndex: Sendable {
    private struct Pending {
        var changes: [IndexChange] = []
        var isScheduled = false
        var isClosed = false
    }

    private static let schema = 1
    private let thread: IOPool
    private let database: DatabaseQueue
    private let pending = Mutex(Pending())
    private let hasFailed = Atomic<Bool>(false)

    /// Opens the index, or makes a new one where it is missing, damaged or of another version; blocks.
    /// - Returns: the rows, and whether they are all there is: the last user closed the index in order.
    static func open(_ path: String) throws(DiskTierError) -> (index: DiskIndex, table: DiskTable, isComplete: Bool) {
        if let opened = try? load(path) { return opened }
        remove(path)
        do {
            return try load(path)
        } catch {
            throw .index(path: path, reason: "\(error)")
        }
    }

    /// The index and SQLite's own files beside it.
    static func remove(_ path: String) {
        for suffix in ["", "-wal", "-shm", "-journal"] { unlink(path + suffix) }
    }

    private static func load(_ path: String) throws -> (DiskIndex, DiskTable, Bool) {
        var configuration = Configuration()
        configuration.journalMode = .wal
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA synchronous = NORMAL") }
        let database = try DatabaseQueue(path: path, configuration: configuration)
        let index = DiskIndex(database, try IOPool(threads: 1, name: "index"))
        let (table, isClean) = try database.write { db in
            try prepare(db)
            let isClean = try Int.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'clean'") == 1
            let table = try rows(db)
            try db.execute(sql: "REPLACE INTO meta VALUES ('clean', 0)")
            return (table, isClean)
        }
        return (index, table, isClean)
    }

    private init(_ database: DatabaseQueue, _ thread: IOPool) {
        self.database = database
        self.thread = thread
    }

    deinit { thread.stop() }

    private static func prepare(_ db: Database) throws {
        try db.execute(sql: "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER)")
        if try Int.fetchOne(db, sql: "SELECT value FROM meta WHERE name = 'schema'") == schema { return }
        try db.execute(
            sql: """
                DROP TABLE IF EXISTS files;
                DELETE FROM meta;
                CREATE TABLE files (high INTEGER, low INTEGER, keyhash INTEGER, service TEXT, url TEXT, fileid INTEGER,
                    body INTEGER, size INTEGER, stored INTEGER, used INTEGER, status INTEGER, PRIMARY KEY (high, low))
                    WITHOUT ROWID;
                INSERT INTO meta VALUES ('schema', \(schema));
                """
        )
    }

    private static func rows(_ db: Database) throws -> DiskTable {
        let count = try Int.fetchOne(db, sql: "SELECT count(*) FROM files") ?? 0
        var table = DiskTable(capacity: count)
        let sql = "SELECT high, low, keyhash, fileid, body, size, stored, used FROM files"
        let cursor = try Row.fetchCursor(db, sql: sql)
        while let row = try cursor.next() {
            let number = { (column: Int) -> Int64 in row[column] ?? 0 }
            table.insert(
                DiskTable.Slot(
                    keyHash: UInt64(bitPattern: number(2)),
                    name: Digest(high: UInt64(bitPattern: number(0)), low: UInt64(bitPattern: number(1))),
                    fileID: UInt64(bitPattern: number(3)),
                    bodyLength: max(0, number(4)),
                    size: min(max(0, number(5)), 1 << 48),
                    storedAt: number(6),
                    lastUse: UInt32(clamping: number(7))
                )
            )
        }
        return table
    }

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
    private func writeBatch() {
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
            // What is missing is found again from the files at the next start.
            hasFailed.store(true, ordering: .relaxed)
        }
    }

    private static func write(_ change: IndexChange, _ db: Database) throws {
        switch change {
        case .put(let row):
            let slot = row.slot
            let key = CacheKey(bytes: row.key)
            let put = try db.cachedStatement(sql: "REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            try put.execute(arguments: [
                signed(slot.name.high), signed(slot.name.low), signed(slot.keyHash), key.service, key.description,
                signed(slot.fileID), slot.bodyLength, slot.size, slot.storedAt, Int64(slot.lastUse), row.status,
            ])
        case .remove(let name):
            let remove = try db.cachedStatement(sql: "DELETE FROM files WHERE high = ? AND low = ?")
            try remove.execute(arguments: [signed(name.high), signed(name.low)])
        case .used(let name, let time):
            let update = try db.cachedStatement(sql: "UPDATE files SET used = ? WHERE high = ? AND low = ?")
            try update.execute(arguments: [Int64(time), signed(name.high), signed(name.low)])
        }
    }

    private static func signed(_ value: UInt64) -> Int64 { Int64(bitPattern: value) }

    // MARK: - Listing

    /// Reads the rows whose URL matches; suspends until the index's thread has done it.
    /// - Parameter pattern: part of a URL, or a pattern with `*`; nil for all.
    func list(matching pattern: String?, service: String?, limit: Int, after url: String?) async throws -> [DiskListing]
    {
        try await thread.run { [self] in
            writeBatch()
            var conditions = ["1"]
            var arguments: StatementArguments = []
            if let pattern {
                conditions.append(pattern.contains("*") ? "url GLOB ?" : "instr(url, ?) > 0")
                arguments += [pattern]
            }
            if let service {
                conditions.append("service = ?")
                arguments += [service]
            }
            if let url {
                conditions.append("url > ?")
                arguments += [url]
            }
            arguments += [limit]
            let sql = """
                SELECT service, url, body, size, stored, used, status FROM files
                WHERE \(conditions.joined(separator: " AND ")) ORDER BY url LIMIT ?
                """
            return try database.read { db in
                try Row.fetchAll(db, sql: sql, arguments: arguments).map { row in
                    DiskListing(
                        service: row[0] ?? "",
                        url: row[1] ?? "",
                        bodyLength: row[2] ?? 0,
                        size: row[3] ?? 0,
                        storedAt: row[4] ?? 0,
                        lastUse: row[5] ?? 0,
                        status: row[6] ?? 0
                    )
                }
            }
        }
    }

    /// Writes what is pending, marks the index as complete if it is, and ends its thread. Blocks.
    func close(isComplete: Bool) {
        let wasClosed = pending.withLock { pending in
            defer { pending.isClosed = true }
            return pending.isClosed
        }
        if wasClosed { return }
        thread.submit { [self] in
            writeBatch()
            guard isComplete, !hasFailed.load(ordering: .relaxed) else { return }
            try? database.write { try $0.execute(sql: "REPLACE INTO meta VALUES ('clean', 1)") }
        }
        thread.stop()
        try? database.close()
    }
}

/// A row of the index, for `drydock list`.
package struct DiskListing: Sendable, Equatable {
    package let service: String
    package let url: String
    /// In bytes.
    package let bodyLength: Int64
    /// Bytes on the disk.
    package let size: Int64
    /// Unix seconds.
    package let storedAt: Int64
    /// Unix seconds, approximate.
    package let lastUse: Int64
    package let status: Int
}
