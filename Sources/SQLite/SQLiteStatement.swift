// One prepared statement: bound, stepped through and reset, and finalized with the object; the values that are bound,
// and rows.

import CSQLite

/// A prepared statement.
///
/// Not Sendable: it belongs to a session, which uses and releases it.
final class SQLiteStatement {
    let sql: String
    private let path: String
    /// The connection and the statement; both belong to the session, which releases its statements before it closes the
    /// connection.
    private let connection: OpaquePointer
    private let statement: OpaquePointer
    /// Whether the statement changes nothing in the database.
    let isReadOnly: Bool

    /// Takes a pointer that ``prepare(_:of:_:isKept:)`` has made, which is finalized with this object.
    private init(_ statement: OpaquePointer, _ connection: OpaquePointer, _ sql: String, path: String) {
        (self.statement, self.connection, self.sql, self.path) = (statement, connection, sql, path)
        isReadOnly = sqlite3_stmt_readonly(statement) != 0
    }

    deinit { sqlite3_finalize(statement) }

    /// Compiles each statement of a text.
    /// - Parameters:
    ///   - isKept: whether it will be used often.
    ///   - use: called with each statement before the next one is compiled, which may depend on its effect.
    static func prepare(
        _ sql: String,
        of connection: OpaquePointer,
        path: String,
        isKept: Bool,
        _ use: (SQLiteStatement) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        if sql.utf8.contains(0) { throw SQLiteError(.misuse, "the SQL has a NUL", sql: sql, path: path) }
        let flags = isKept ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
        var rest = sql[...]
        while !rest.isEmpty {
            var statement: OpaquePointer?
            var text = rest
            let (code, count) = text.withUTF8 { bytes in
                // The tail points into the same bytes. An empty text has no tail, but then the loop has ended before.
                bytes.withMemoryRebound(to: CChar.self) { bytes in
                    var tail: UnsafePointer<CChar>?
                    let length = Int32(clamping: bytes.count)
                    let code = sqlite3_prepare_v3(connection, bytes.baseAddress, length, flags, &statement, &tail)
                    return (code, bytes.baseAddress.flatMap { start in tail.map { $0 - start } } ?? bytes.count)
                }
            }
            guard code == SQLITE_OK else { throw SQLiteError(connection, code, sql: sql, path: path) }
            rest = Substring(rest.utf8.dropFirst(count))
            // White space and comments are not a statement.
            guard let statement else { continue }
            try use(SQLiteStatement(statement, connection, sql, path: path))
        }
    }

    /// Runs the statement from its beginning to its end; afterwards it can be run again, also after an error.
    func run(_ values: [SQLiteValue], _ row: (borrowing SQLiteRow) throws(SQLiteError) -> Void) throws(SQLiteError) {
        defer {
            // The reset returns the error of the last step, which has been thrown already.
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        try bind(values)
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: try row(SQLiteRow(statement))
            case SQLITE_DONE: return
            case let code: throw SQLiteError(connection, code, sql: sql, path: path)
            }
        }
    }

    private func bind(_ values: [SQLiteValue]) throws(SQLiteError) {
        let count = Int(sqlite3_bind_parameter_count(statement))
        // SQLite uses NULL for a parameter that is not bound.
        guard values.count == count else {
            throw SQLiteError(.misuse, "\(values.count) values for \(count) parameters", sql: sql, path: path)
        }
        for (position, value) in zip(Int32(1)..., values) {
            let code =
                switch value {
                case .null: sqlite3_bind_null(statement, position)
                case .integer(let number): sqlite3_bind_int64(statement, position, number)
                case .real(let number): sqlite3_bind_double(statement, position, number)
                case .text(var text):
                    text.withUTF8 { bytes in
                        bytes.withMemoryRebound(to: CChar.self) {
                            c_sqlite_bind_text(statement, position, $0.baseAddress, $0.count)
                        }
                    }
                case .blob(let bytes):
                    bytes.withUnsafeBytes { c_sqlite_bind_blob(statement, position, $0.baseAddress, $0.count) }
                }
            guard code == SQLITE_OK else { throw SQLiteError(connection, code, sql: sql, path: path) }
        }
    }
}

@available(*, unavailable) extension SQLiteStatement: Sendable {}

extension SQLiteError {
    /// The connection's description of the call that has just failed.
    init(_ connection: OpaquePointer, _ code: Int32, sql: String?, path: String) {
        self.init(extendedCode: code, message: String(cString: sqlite3_errmsg(connection)), sql: sql, path: path)
    }
}

// MARK: - Values and rows

/// A value that is bound to a parameter.
package enum SQLiteValue: Sendable, Equatable {
    case null
    case integer(Int64)
    /// A number; SQLite stores NaN as NULL.
    case real(Double)
    /// The whole text, with any NUL in it.
    case text(String)
    case blob([UInt8])
}

/// The current row of a statement. It is lent for one call and cannot be kept: the next row takes its place.
///
/// A column of another type is converted as by SQLite: no content of a file can make a read fail.
package struct SQLiteRow: ~Copyable {
    /// A statement with a current row; its session finalizes it after the call that lends the row.
    private let statement: OpaquePointer
    private let columnCount: Int32

    init(_ statement: OpaquePointer) {
        self.statement = statement
        columnCount = sqlite3_column_count(statement)
    }

    package func isNull(_ column: Int) -> Bool { sqlite3_column_type(statement, index(column)) == SQLITE_NULL }

    /// The integer in a column; 0 for NULL.
    package func integer(_ column: Int) -> Int64 { sqlite3_column_int64(statement, index(column)) }

    /// The number in a column; 0 for NULL.
    package func real(_ column: Int) -> Double { sqlite3_column_double(statement, index(column)) }

    /// The text in a column; nil for NULL. Bytes that are not UTF-8 are repaired.
    package func text(_ column: Int) -> String? {
        let index = index(column)
        // SQLite owns the bytes until the next call for this column, before which they are copied; the order of the two
        // calls matters.
        guard let bytes = sqlite3_column_text(statement, index) else { return nil }
        let count = Int(sqlite3_column_bytes(statement, index))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    /// The bytes of a column; nil for NULL.
    package func blob(_ column: Int) -> [UInt8]? {
        if isNull(column) { return nil }
        let index = index(column)
        // SQLite owns these bytes, too; the pointer is null if there are none.
        let bytes = sqlite3_column_blob(statement, index)
        let count = Int(sqlite3_column_bytes(statement, index))
        return Array(UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
    }

    /// Checks that the row has the column, since SQLite does not detect a column beyond the last.
    private func index(_ column: Int) -> Int32 {
        precondition(column >= 0 && column < Int(columnCount), "no such column")
        return Int32(truncatingIfNeeded: column)
    }
}
