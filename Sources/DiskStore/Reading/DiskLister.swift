// Lists what the disk tier has: rows from the index, and the heads that belong to them from the files.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching

/// Sendable: its member is.
final class DiskLister: Sendable {
    private let parts: DiskParts

    init(_ parts: DiskParts) { self.parts = parts }

    /// Rows behind `after`, and the URL behind which there may be more; all rows of a URL come together.
    func list(
        _ query: ListQuery,
        pinned: [String],
        limit: Int
    ) async throws -> (rows: [DiskIndex.Listed], end: String?) {
        try await parts.index.thread.run { [index = parts.index] in
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

    /// What some rows are about, in one turn of an I/O thread; those that have gone since are left out.
    func heads(of rows: [TierRow]) async -> [TierListing] {
        let found = try? await parts.pool.run { [self] in
            rows.compactMap { row in StoredFileName(hex: row.name).flatMap { head(of: $0) } }
        }
        return found ?? []
    }

    /// Reads the head of a file; blocks.
    /// - Returns: nil if the file is gone or unreadable.
    func head(of name: StoredFileName) -> TierListing? {
        let (folder, calls) = (parts.folder, parts.folder.calls)
        let descriptor = calls.open(folder.place(of: name), O_RDONLY, 0)
        if descriptor < 0 { return nil }
        defer { close(descriptor) }
        guard let file = try? StoredFile.read(descriptor, calls) else { return nil }
        let record = file.record
        return TierListing(
            CacheKey(bytes: record.key),
            record.head,
            length: record.bodyLength,
            number: record.fileID
        )
    }
}
