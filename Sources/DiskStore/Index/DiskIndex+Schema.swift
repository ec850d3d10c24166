// The tables of the index: one row a file, with a checksum of its own, since SQLite has none for its pages.

import CacheStore
import HTTPCaching
import SQLite

/// A row of the index.
struct IndexRow: Sendable {
    var slot: DiskTable.Slot
    var service: String
    var url: String
    var status: Int64
    /// Of the fetch or check that last brought or confirmed it.
    var number: UInt64
    /// The tags for purges, each between line feeds; nil if there are none.
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

    /// Nil if the row does not match its checksum; a column of a wrong type is read as SQLite converts it.
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

    /// The column of the last use: Unix seconds, and above 32 bits the standing in the order of eviction, which older
    /// versions did not write; they take it for a late use.
    static func use(of slot: DiskTable.Slot) -> Int64 {
        let standing = slot.standing
        return Int64(slot.lastUse) | Int64(standing.uses) << 32 | (standing.isInMain ? 1 << 34 : 0)
    }

    static func standing(_ use: Int64) -> EvictionStanding {
        EvictionStanding(isInMain: use >> 34 & 1 == 1, uses: UInt8(truncatingIfNeeded: use >> 32 & 3))
    }

    /// CRC32C of all columns but when the file was last used, of which no purge and no answer depends.
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
            // No text holds a NUL.
            withUnsafeBytes(of: UInt8(0)) { sum.update($0) }
        }
        return sum.value
    }
}

extension SQLiteRow {
    /// SQLite's integers have a sign: the bits are the same.
    func unsigned(_ column: Int) -> UInt64 { UInt64(bitPattern: integer(column)) }
}

extension SQLiteValue {
    static func unsigned(_ value: UInt64) -> SQLiteValue { .integer(Int64(bitPattern: value)) }
}

extension DiskIndex {
    /// Another number makes the index anew from the files.
    private static let schema: Int64 = 4

    /// - Parameter stamp: rows that were written under another one are void.
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
        /// Every row matches its checksum.
        var isWhole = true
        /// Where the next page begins; nil after the last one.
        var next: StoredFileName?
    }

    /// The rows after `last`; for the index's thread, or while no other code uses the index. A row also counts as
    /// damaged if one of SQLite's indexes, by which purges search, lacks it.
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
