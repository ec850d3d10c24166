// What the index knows about purges: how many files they concern, and which.

import EventLoop
import GRDB

extension DiskIndex {
    /// A file that a purge concerns, and where the search for the next one begins.
    struct Doomed: Sendable {
        var keyHash: UInt64
        var name: Digest
        var fileID: UInt64
        var url: String
    }

    /// How many files purges concern that were fetched or last confirmed before them; the index's thread.
    /// - Parameter pinned: the URLs that purges for age spare.
    func count(_ rules: [PurgeRule], before number: UInt64, pinned: [String]) throws -> Int {
        let conditions = rules.map { $0.condition(pinned: pinned) }
        var arguments = conditions.reduce(into: StatementArguments()) { $0 += $1.arguments }
        arguments += [Self.signed(number)]
        let sql = """
            SELECT count(*) FROM files
            WHERE (\(conditions.map { "(\($0.sql))" }.joined(separator: " OR "))) AND number <= ?
            """
        return try database.read { db in try Int.fetchOne(db, sql: sql, arguments: arguments) ?? 0 }
    }

    /// Some of the files that a purge concerns, those behind `last` only; the index's thread.
    /// - Throws: `DatabaseError`; `SQLITE_CORRUPT` where one of their rows is damaged.
    func doomed(
        by rule: PurgeRule,
        before number: UInt64,
        pinned: [String],
        after last: Doomed?,
        limit: Int
    ) throws -> [Doomed] {
        let condition = rule.condition(pinned: pinned)
        var (sql, arguments) = ("(\(condition.sql)) AND number <= ?", condition.arguments)
        arguments += [Self.signed(number)]
        if let last {
            sql += rule.hasRange ? " AND (url, high, low) > (?, ?, ?)" : " AND (high, low) > (?, ?)"
            if rule.hasRange { arguments += [last.url] }
            arguments += [Self.signed(last.name.high), Self.signed(last.name.low)]
        }
        arguments += [limit]
        let order = rule.hasRange ? "url, high, low" : "high, low"
        return try database.read { db in
            let sql = "SELECT \(IndexRow.columns) FROM files WHERE \(sql) ORDER BY \(order) LIMIT ?"
            let cursor = try Row.fetchCursor(db, sql: sql, arguments: arguments)
            var doomed: [Doomed] = []
            while let row = try cursor.next() {
                guard let row = IndexRow(row) else {
                    throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "a row does not match its checksum")
                }
                let slot = row.slot
                doomed.append(
                    Doomed(keyHash: slot.keyHash, name: slot.name, fileID: slot.fileID, url: row.url)
                )
            }
            return doomed
        }
    }

    /// Where the files of a URL are, whatever key they have; the index's thread.
    func keyHashes(of url: String) throws -> [UInt64] {
        try database.read { db in
            try Int64.fetchAll(db, sql: "SELECT DISTINCT keyhash FROM files WHERE url = ?", arguments: [url])
        }.map { UInt64(bitPattern: $0) }
    }
}

extension PurgeRule {
    /// It concerns a range of the index's order by URL.
    fileprivate var hasRange: Bool {
        switch target {
        case .url: true
        case .prefix(let prefix): !prefix.isEmpty
        case .glob(let pattern): !pattern.hasPrefix("*")
        case .tag, .olderThan, .all: false
        }
    }

    fileprivate func condition(pinned: [String]) -> (sql: String, arguments: StatementArguments) {
        var (sql, arguments): (String, StatementArguments) =
            switch target {
            case .url(let url): ("url = ?", [url])
            case .prefix(let prefix): Self.range(prefix)
            case .glob(let pattern): Self.glob(pattern)
            case .tag(let tag): ("tags IS NOT NULL AND instr(tags, ?) > 0", ["\n\(tag)\n"])
            case .olderThan(let time): Self.age(time, pinned)
            case .all: ("1", [])
            }
        if let service {
            sql += " AND service = ?"
            arguments += [service]
        }
        return (sql, arguments)
    }

    /// URLs that begin like this; no character comes after the last one of Unicode.
    private static func range(_ prefix: String) -> (String, StatementArguments) {
        prefix.isEmpty ? ("1", []) : ("url >= ? AND url < ?", [prefix, prefix + "\u{10FFFF}"])
    }

    private static func glob(_ pattern: String) -> (String, StatementArguments) {
        let (sql, arguments) = range(String(pattern.prefix { $0 != "*" }))
        // In brackets these stand for themselves.
        let escaped = pattern.map { "?[".contains($0) ? "[\($0)]" : "\($0)" }.joined()
        return (sql + " AND url GLOB ?", arguments + [escaped])
    }

    private static func age(_ time: Int64, _ pinned: [String]) -> (String, StatementArguments) {
        let places = pinned.map { _ in "?" }.joined(separator: ", ")
        return ("stored < ? AND url NOT IN (\(places))", [time] + StatementArguments(pinned))
    }
}
