// Queries of the index for listings and purges.

import CacheStore
import EventLoop
import SQLite

// MARK: - Listings

extension DiskIndex {
    /// A row of a listing, with the file that it describes.
    struct Listed: Sendable {
        let name: StoredFileName
        let url: String
    }

    /// The rows of a listing, by URL; on the index's thread.
    func list(_ query: ListQuery, pinned: [String], limit: Int) throws(SQLiteError) -> [Listed] {
        var conditions = ["1"]
        var arguments: [SQLiteValue] = []
        func add(_ sql: String, _ values: [SQLiteValue]) {
            conditions.append(sql)
            arguments += values
        }
        if let after = query.after { add("url > ?", [.text(after)]) }
        var (match, values): ([String], [SQLiteValue]) = (["1"], [])
        for beginning in [
            query.prefix, query.pattern.map { $0.contains("*") ? String($0.prefix { $0 != "*" }) : "" } ?? "",
        ]
        where !beginning.isEmpty {
            // The range ends before the first string that does not begin with the prefix; no character follows the last
            // one of Unicode.
            match.append("url >= ? AND url < ?")
            values += [.text(beginning), .text(beginning + "\u{10FFFF}")]
        }
        func condition(_ pattern: String) -> (String, [SQLiteValue]) {
            // In brackets these characters match themselves.
            let escaped = pattern.map { "?[".contains($0) ? "[\($0)]" : "\($0)" }.joined()
            return pattern.contains("*") ? ("url GLOB ?", [.text(escaped)]) : ("instr(url, ?) > 0", [.text(pattern)])
        }
        if let (sql, value) = query.pattern.map(condition) {
            match.append(sql)
            values += value
        }
        let others = query.alternatives.map(condition)
        let own = match.joined(separator: " AND ")
        add(
            others.isEmpty ? own : (["(\(own))"] + others.map(\.0)).joined(separator: " OR "),
            others.reduce(into: values) { $0 += $1.1 }
        )
        if let service = query.service { add("service = ?", [.text(service)]) }
        if query.minSize > 0 { add("body >= ?", [.integer(query.minSize)]) }
        if let time = query.arrivedBefore { add("stored < ?", [.integer(time)]) }
        if query.isPinned {
            add("url IN (\(pinned.map { _ in "?" }.joined(separator: ", ")))", pinned.map { .text($0) })
        }
        let sql = """
            SELECT high, low, url FROM files WHERE \(conditions.map { "(\($0))" }.joined(separator: " AND "))
            ORDER BY url LIMIT \(limit)
            """
        return try database.read { [arguments] session throws(SQLiteError) in
            var listed: [Listed] = []
            try session.query(sql, arguments, isKept: false) { row in
                let name = StoredFileName(high: row.unsigned(0), low: row.unsigned(1))
                listed.append(Listed(name: name, url: row.text(2) ?? ""))
            }
            return listed
        }
    }
}

// MARK: - Purges

extension DiskIndex {
    /// A file that a purge removes, and the position at which the search for the next one begins.
    struct PendingRemoval: Sendable {
        var keyHash: UInt64
        var name: StoredFileName
        var fileID: UInt64
        var url: String
    }

    /// The number of files that purges affect and that were fetched or last validated before them; on the index's
    /// thread.
    /// - Parameter pinned: the URLs that purges for age spare.
    func count(_ rules: [PurgeRule], before number: UInt64, pinned: [String]) throws(SQLiteError) -> Int {
        let conditions = rules.map { $0.condition(pinned: pinned) }
        let values = conditions.flatMap(\.values) + [.unsigned(number)]
        let sql = """
            SELECT count(*) FROM files
            WHERE (\(conditions.map { "(\($0.sql))" }.joined(separator: " OR "))) AND number <= ?
            """
        return try database.read { session throws(SQLiteError) in
            Int(try session.integer(sql, values, isKept: false) ?? 0)
        }
    }

    /// Some of the files that a purge removes, only those after `last`; on the index's thread.
    /// - Throws: `SQLiteError`; `.corrupt` if one of their rows is damaged.
    func doomed(
        by rule: PurgeRule,
        before number: UInt64,
        pinned: [String],
        after last: PendingRemoval?,
        limit: Int
    ) throws(SQLiteError) -> [PendingRemoval] {
        let condition = rule.condition(pinned: pinned)
        var (found, values) = ("(\(condition.sql)) AND number <= ?", condition.values)
        values.append(.unsigned(number))
        if let last {
            found += rule.hasRange ? " AND (url, high, low) > (?, ?, ?)" : " AND (high, low) > (?, ?)"
            if rule.hasRange { values.append(.text(last.url)) }
            values += [.unsigned(last.name.high), .unsigned(last.name.low)]
        }
        values.append(.integer(Int64(limit)))
        let order = rule.hasRange ? "url, high, low" : "high, low"
        let sql = "SELECT \(IndexRow.columns) FROM files WHERE \(found) ORDER BY \(order) LIMIT ?"
        return try database.read { [path, values] session throws(SQLiteError) in
            var doomed: [PendingRemoval] = []
            try session.query(sql, values, isKept: false) { row throws(SQLiteError) in
                guard let row = IndexRow(row) else {
                    throw SQLiteError(.corrupt, "a row does not match its checksum", path: path)
                }
                let slot = row.slot
                doomed.append(
                    PendingRemoval(keyHash: slot.keyHash, name: slot.name, fileID: slot.fileID, url: row.url)
                )
            }
            return doomed
        }
    }

    /// The key hashes of all files of a URL; on the index's thread.
    func keyHashes(of url: String) throws(SQLiteError) -> [UInt64] {
        try database.read { session throws(SQLiteError) in
            var hashes: [UInt64] = []
            try session.query("SELECT DISTINCT keyhash FROM files WHERE url = ?", [.text(url)]) { row in
                hashes.append(row.unsigned(0))
            }
            return hashes
        }
    }
}

extension PurgeRule {
    /// Whether the rule affects one range of the index's order by URL.
    fileprivate var hasRange: Bool {
        switch target {
        case .url: true
        case .prefix(let prefix): !prefix.isEmpty
        case .glob(let pattern): !pattern.hasPrefix("*")
        case .tag, .olderThan, .all: false
        }
    }

    fileprivate func condition(pinned: [String]) -> (sql: String, values: [SQLiteValue]) {
        var (sql, values): (String, [SQLiteValue]) =
            switch target {
            case .url(let url): ("url = ?", [.text(url)])
            case .prefix(let prefix): Self.range(prefix)
            case .glob(let pattern): Self.glob(pattern)
            case .tag(let tag): ("tags IS NOT NULL AND instr(tags, ?) > 0", [.text("\n\(tag)\n")])
            case .olderThan(let time): Self.age(time, pinned)
            case .all: ("1", [])
            }
        if let service {
            sql += " AND service = ?"
            values.append(.text(service))
        }
        return (sql, values)
    }

    /// The condition for URLs that begin with a prefix; no character follows the last one of Unicode.
    private static func range(_ prefix: String) -> (String, [SQLiteValue]) {
        prefix.isEmpty ? ("1", []) : ("url >= ? AND url < ?", [.text(prefix), .text(prefix + "\u{10FFFF}")])
    }

    private static func glob(_ pattern: String) -> (String, [SQLiteValue]) {
        let (sql, values) = range(String(pattern.prefix { $0 != "*" }))
        // In brackets these characters match themselves.
        let escaped = pattern.map { "?[".contains($0) ? "[\($0)]" : "\($0)" }.joined()
        return (sql + " AND url GLOB ?", values + [.text(escaped)])
    }

    private static func age(_ time: Int64, _ pinned: [String]) -> (String, [SQLiteValue]) {
        let placeholders = pinned.map { _ in "?" }.joined(separator: ", ")
        return ("stored < ? AND url NOT IN (\(placeholders))", [.integer(time)] + pinned.map { .text($0) })
    }
}
