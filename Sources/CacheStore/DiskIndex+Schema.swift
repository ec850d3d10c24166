// The tables of the index: one row a file, with a checksum of its own, since SQLite has none for its pages.

import GRDB
import HTTPCaching

/// A row that is to be written.
struct IndexRow: Sendable {
    var slot: DiskTable.Slot
    var key: [UInt8]
    var status: Int
    /// Of the fetch or check that last brought or confirmed it.
    var number: UInt64
    /// The names that it can be purged by, each between line feeds; nil where it has none.
    var tags: String?

    init(slot: DiskTable.Slot, key: [UInt8], head: StoredHead) {
        self.slot = slot
        self.key = key
        status = head.status
        number = head.number
        let names = Caching.cacheTags(head.fields)
        tags = names.isEmpty ? nil : "\n" + names.joined(separator: "\n") + "\n"
    }
}

extension DiskIndex {
    /// Another number makes the index anew from the files.
    private static let schema: Int64 = 3

    /// - Parameter stamp: rows that were written under another one are void.
    static func prepare(_ db: Database, stamp: Int64) throws {
        try db.execute(sql: "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER)")
        let number = { (name: String) in
            try Int64.fetchOne(db, sql: "SELECT value FROM meta WHERE name = ?", arguments: [name])
        }
        if try number("schema") == schema, try number("stamp") == stamp { return }
        try db.execute(
            sql: """
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
        /// Every row matches its checksum.
        var isWhole = true
        /// Where the next page begins; nil after the last one.
        var next: Digest?
    }

    /// The rows behind `last`; the index's thread, or while nobody else has the index.
    func page(after last: Digest?, limit: Int) throws -> Page {
        try database.read { db in
            var page = Page()
            page.slots.reserveCapacity(limit)
            let condition = last == nil ? "" : "WHERE (high, low) > (?, ?)"
            let sql = """
                SELECT high, low, keyhash, fileid, body, size, stored, used, sum FROM files \(condition)
                ORDER BY high, low LIMIT \(limit)
                """
            let statement = try db.cachedStatement(sql: sql)
            let arguments: StatementArguments = last.map { [Self.signed($0.high), Self.signed($0.low)] } ?? []
            let cursor = try Row.fetchCursor(statement, arguments: arguments)
            var count = 0
            while let row = try cursor.next() {
                let number = { (column: Int) -> Int64 in row[column] ?? 0 }
                let slot = DiskTable.Slot(
                    keyHash: UInt64(bitPattern: number(2)),
                    name: Digest(high: UInt64(bitPattern: number(0)), low: UInt64(bitPattern: number(1))),
                    fileID: UInt64(bitPattern: number(3)),
                    bodyLength: number(4),
                    size: number(5),
                    storedAt: number(6),
                    lastUse: UInt32(clamping: number(7))
                )
                if number(8) == Int64(slot.checksum) { page.slots.append(slot) } else { page.isWhole = false }
                page.next = slot.name
                count += 1
            }
            if count < limit { page.next = nil }
            return page
        }
    }

    static func write(_ change: IndexChange, _ db: Database) throws {
        switch change {
        case .put(let row):
            let slot = row.slot
            let key = CacheKey(bytes: row.key)
            let sql = "REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            try db.cachedStatement(sql: sql).execute(arguments: [
                signed(slot.name.high), signed(slot.name.low), signed(slot.keyHash), key.service, key.description,
                signed(slot.fileID), slot.bodyLength, slot.size, slot.storedAt, Int64(slot.lastUse), row.status,
                signed(row.number), row.tags, Int64(slot.checksum),
            ])
        case .remove(let name):
            let remove = try db.cachedStatement(sql: "DELETE FROM files WHERE high = ? AND low = ?")
            try remove.execute(arguments: [signed(name.high), signed(name.low)])
        case .removeAll: try db.execute(sql: "DELETE FROM files")
        case .used(let name, let time):
            let update = try db.cachedStatement(sql: "UPDATE files SET used = ? WHERE high = ? AND low = ?")
            try update.execute(arguments: [Int64(time), signed(name.high), signed(name.low)])
        }
    }

    static func signed(_ value: UInt64) -> Int64 { Int64(bitPattern: value) }
}

extension DiskTable.Slot {
    /// CRC32C of what the index must not get wrong; when it was last used does not matter that much.
    var checksum: UInt32 {
        let numbers = (keyHash, name.high, name.low, fileID, bodyLength, size, storedAt)
        return withUnsafeBytes(of: numbers) { Checksum.of($0) }
    }
}
