// Finds in the index the files that a listing is about, in the order of their URLs.

import CacheStore
import SQLite

extension DiskIndex {
    /// A row of a listing.
    struct Listed: Sendable {
        let name: StoredFileName
        let url: String
    }

    /// Rows by URL; the index's thread.
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
            // No character comes after the last one of Unicode.
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
