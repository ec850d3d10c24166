// An index that an earlier version has written: it is used where its tables are the same ones, and otherwise made anew.

import EventLoop
import Glibc
import HTTPCaching
import SQLite
import StoreSupport
import Testing

@testable import CacheStore
@testable import DiskStore

@Suite(.timeLimit(.minutes(5))) struct IndexVersionTests {
    let folder = Folder()
    var path: String { "\(folder.path)/cache" }

    struct Version: CustomTestStringConvertible {
        let name: String
        let schema: Int
        let hasMark: Bool
        let isUsed: Bool
        var testDescription: String { name }
    }

    static let versions = [
        Version(name: "0.1.0", schema: 3, hasMark: false, isUsed: false),
        Version(name: "0.2.0", schema: 4, hasMark: true, isUsed: true),
    ]

    @Test(arguments: versions)
    func `every file is found with the index of an earlier version`(version: Version) async throws {
        try await withPool { pool, _ in
            let first = try await DiskTier.open(path: path, limits: ample, pool: pool)
            for number in 0..<20 {
                try await first.store(pattern(100 + number), key(number), head: storedHead([("Cache-Tag", "one")]))
            }
            first.close()
            try writeAnew(first.parts.folder.index, version, stamp: first.parts.folder.fileNameKey.stamp)
            if !version.hasMark { for name in ["version", "CACHEDIR.TAG"] { unlink("\(path)/\(name)") } }
            let told = Told()
            let tier = try await DiskTier.open(path: path, limits: ample, pool: pool) { told.note($0) }
            #expect(told.kinds == (version.hasMark ? [] : [.format]))
            // The walk of folders that have no index may have ended already.
            if version.isUsed { #expect(!tier.statistics.isRebuilding) }
            for number in 0..<20 { #expect(await tier.bytes(key(number)) == pattern(100 + number)) }
            await tier.settle()
            // One row more than there are files tells that the rows are the old ones.
            #expect(tier.statistics.objects == (version.isUsed ? 21 : 20))
            #expect(
                try await tier.sweeper.count([PurgeRule(.tag("one"))], before: .max >> 1) == (version.isUsed ? 21 : 20)
            )
            try await tier.store(pattern(7), key(20))
            tier.close()
            let again = try await DiskTier.open(path: path, limits: ample, pool: pool)
            #expect(!again.statistics.isRebuilding)
            #expect(await again.bytes(key(20)) == pattern(7))
            again.close()
        }
    }

    /// The same rows and one more, in a new file that is written with the statements of those versions: they spoke to
    /// SQLite through GRDB, which made a table and dropped it at first.
    private func writeAnew(_ index: String, _ version: Version, stamp: Int64) throws {
        let current = try SQLiteConnection(path: index) { _ in }
        var rows = try current.read { session throws(SQLiteError) in
            var rows: [[SQLiteValue]] = []
            try session.query("SELECT \(IndexRow.columns) FROM files") { row in
                rows.append(
                    (0..<14).map { column in
                        if row.isNull(column) { return .null }
                        let isText = [3, 4, 12].contains(column)
                        return isText ? .text(row.text(column) ?? "") : .integer(row.integer(column))
                    }
                )
            }
            return rows
        }
        try current.close()
        #expect(rows.count == 20)
        let slot = DiskTable.Slot(
            keyHash: 5,
            name: StoredFileName(high: 4, low: 5),
            fileID: 1,
            bodyLength: 1,
            size: 4096,
            storedAt: 1,
            lastUse: 1
        )
        let extra = IndexRow(slot: slot, key: key(99).bytes, head: storedHead([("Cache-Tag", "one")]))
        rows.append([
            .integer(4), .integer(5), .integer(5), .text(extra.service), .text(extra.url), .integer(1), .integer(1),
            .integer(4096), .integer(1), .integer(1), .integer(extra.status), .integer(Int64(extra.number)),
            .text(extra.tags ?? ""), .integer(Int64(extra.checksum)),
        ])
        DiskIndex.remove(index)
        let old = try SQLiteConnection(path: index) { session throws(SQLiteError) in try session.useWriteAheadLog() }
        try old.write { [rows] session throws(SQLiteError) in
            try session.execute(
                script: """
                    CREATE TABLE grdb_issue_102 (id INTEGER PRIMARY KEY);
                    DROP TABLE grdb_issue_102;
                    CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER);
                    CREATE TABLE files (high INTEGER, low INTEGER, keyhash INTEGER, service TEXT, url TEXT, fileid INTEGER,
                        body INTEGER, size INTEGER, stored INTEGER, used INTEGER, status INTEGER, number INTEGER, tags TEXT,
                        sum INTEGER, PRIMARY KEY (high, low)) WITHOUT ROWID;
                    CREATE INDEX files_url ON files (url);
                    CREATE INDEX files_tagged ON files (high, low) WHERE tags IS NOT NULL;
                    INSERT INTO meta VALUES ('schema', \(version.schema)), ('stamp', \(stamp)), ('count', \(rows.count));
                    """
            )
            for row in rows {
                try session.execute("REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
            }
        }
        try old.close()
    }
}
