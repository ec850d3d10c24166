// Lists stored responses from the index; data that it lacks is read from their files.

import EventLoop
import Glibc
import HTTPCaching
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

extension DiskTier {
    /// Rows behind `after`, and the URL behind which there may be more; all rows of a URL come together.
    func listed(
        _ query: ListQuery,
        pinned: [String],
        limit: Int
    ) async throws -> (rows: [DiskIndex.Listed], end: String?) {
        try await index.thread.run { [index] in
            index.writeBatch()
            var limit = limit
            while true {
                let rows = try index.list(query, pinned: pinned, limit: limit)
                guard rows.count >= limit, let last = rows.last?.url else { return (rows, nil) }
                // More rows may share the last URL: those are for the next page.
                let whole = rows.prefix { $0.url != last }
                if let end = whole.last?.url { return (Array(whole), end) }
                limit *= 2
            }
        }
    }

    /// Reads the head of a file; blocks.
    /// - Returns: nil if the file is gone or unreadable.
    func head(of row: DiskIndex.Listed) -> TierListing? {
        let descriptor = folder.calls.open(folder.place(of: row.name), O_RDONLY, 0)
        if descriptor < 0 { return nil }
        defer { Glibc.close(descriptor) }
        guard let file = try? StoredFile.read(descriptor, folder.calls) else { return nil }
        let record = file.record
        return TierListing(
            CacheKey(bytes: record.key),
            record.head,
            length: record.bodyLength,
            number: record.fileID
        )
    }
}
