// The tables of the index: one row a file, with a checksum of its own, since SQLite has none for its pages.

import GRDB
import HTTPCaching

/// A row of the index.
struct IndexRow: Sendable {
    var slot: DiskTable.Slot
    var service: String
    var url: String
    var status: Int64
    /// Of the fetch or check that last brought or confirmed it.
    var number: UInt64
    /// The names that it can be purged by, each between line feeds; nil where it has none.
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

    /// What ``init(_:)`` reads, in its order.
    static let columns =
        "high, low, keyhash, service, url, fileid, body, size, stored, used, status, number, tags, sum"

    /// Nil where the row does not match its checksum. Only while the row's statement is at it: a column whose type is damaged,
    /// too, is read as SQLite converts it then.
    init?(_ row: Row) {
        func number(_ column: Int) -> Int64 { row[column] ?? 0 }
        func unsigned(_ column: Int) -> UInt64 { UInt64(bitPattern: number(column)) }
        slot = DiskTable.Slot(
            keyHash: unsigned(2),
            name: Digest(high: unsigned(0), low: unsigned(1)),
            fileID: unsigned(5),
            bodyLength: number(6),
            size: number(7),
            storedAt: number(8),
            lastUse: UInt32(clamping: number(9))
        )
        (service, url) = (row[3] ?? "", row[4] ?? "")
        (status, self.number, tags) = (number(10), unsigned(11), row[12])
        guard number(13) == Int64(checksum) else { return nil }
    }

    /// CRC32C of all columns but when the file was last used, of which no purge and no answer depends.
    var checksum: UInt32 {
        let numbers = (
            slot.keyHash, slot.name.high, slot.name.low, slot.fileID, slot.bodyLength, slot.size, slot.storedAt, status,
            number
        )
        var sum = Checksum()
        withUnsafeBytes(of: numbers) { sum.update($0) }
        for text in [service, url, tags ?? ""] {
            var text = text
            text.withUTF8 { sum.update(UnsafeRawBufferPointer($0)) }
            // No text holds a NUL.
            withUnsafeBytes(of: UInt8(0)) { sum.update($0) }
        }
        return sum.value
    }
}

extension DiskIndex {
    /// Another number makes the index anew from the files.
    private static let schema: Int64 = 4

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

    /// The rows behind `last`; the index's thread, or while nobody else has the index. A row counts as damaged, too, where one
    /// of SQLite's indexes, by which purges find it, does not have it.
    func page(after last: Digest?, limit: Int) throws -> Page {
        try database.read { db in
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
            let statement = try db.cachedStatement(sql: sql)
            let arguments: StatementArguments = last.map { [Self.signed($0.high), Self.signed($0.low)] } ?? []
            let cursor = try Row.fetchCursor(statement, arguments: arguments)
            var count = 0
            while let row = try cursor.next() {
                let isFound = (row[14] as Int64? ?? 0) != 0 && (row[15] as Int64? ?? 0) != 0
                if isFound, let read = IndexRow(row) { page.slots.append(read.slot) } else { page.isWhole = false }
                page.next = Digest(
                    high: UInt64(bitPattern: row[0] as Int64? ?? 0),
                    low: UInt64(bitPattern: row[1] as Int64? ?? 0)
                )
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
            let sql = "REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            try db.cachedStatement(sql: sql).execute(arguments: [
                signed(slot.name.high), signed(slot.name.low), signed(slot.keyHash), row.service, row.url,
                signed(slot.fileID), slot.bodyLength, slot.size, slot.storedAt, Int64(slot.lastUse), row.status,
                signed(row.number), row.tags, Int64(row.checksum),
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
