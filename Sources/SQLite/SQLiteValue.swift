// What is bound to a parameter of a statement, and what is read from a row.

import CSQLite

/// A value that is bound to a parameter.
package enum SQLiteValue: Sendable, Equatable {
    case null
    case integer(Int64)
    /// SQLite stores NaN as NULL.
    case real(Double)
    /// All of it, a NUL included.
    case text(String)
    case blob([UInt8])
}

/// The row at which a statement is. It is lent for one call and cannot be kept: the next row takes its place.
///
/// A column that has another type is converted as SQLite does it: nothing that a file holds can make a read fail.
package struct SQLiteRow: ~Copyable {
    /// Of a statement that is at a row; its session finalizes it after the call that lends the row.
    private let statement: OpaquePointer
    private let columnCount: Int32

    init(_ statement: OpaquePointer) {
        self.statement = statement
        columnCount = sqlite3_column_count(statement)
    }

    package func isNull(_ column: Int) -> Bool { sqlite3_column_type(statement, place(column)) == SQLITE_NULL }

    /// 0 for NULL.
    package func integer(_ column: Int) -> Int64 { sqlite3_column_int64(statement, place(column)) }

    /// 0 for NULL.
    package func real(_ column: Int) -> Double { sqlite3_column_double(statement, place(column)) }

    /// Nil for NULL. What is no UTF-8 is repaired.
    package func text(_ column: Int) -> String? {
        let place = place(column)
        // SQLite's until the next call for this column, and then copied already; the order of the two calls matters.
        guard let bytes = sqlite3_column_text(statement, place) else { return nil }
        let count = Int(sqlite3_column_bytes(statement, place))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    /// Nil for NULL.
    package func blob(_ column: Int) -> [UInt8]? {
        if isNull(column) { return nil }
        let place = place(column)
        // As above; null for no bytes.
        let bytes = sqlite3_column_blob(statement, place)
        let count = Int(sqlite3_column_bytes(statement, place))
        return Array(UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
    }

    /// The columns are those of the caller's own SQL; SQLite says nothing about what is read beyond them.
    private func place(_ column: Int) -> Int32 {
        precondition(column >= 0 && column < Int(columnCount), "no such column")
        return Int32(truncatingIfNeeded: column)
    }
}
