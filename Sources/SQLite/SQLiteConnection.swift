// A connection to a SQLite database: one transaction at a time, from any thread that may block, and the statements for
// it.

import CSQLite
import Synchronization

/// A connection to a database.
///
/// Sendable: everything is under `session`, a lock that separates whole transactions. It is taken only on threads that
/// may wait for a disk, and code under it uses only the session: it takes no other lock and submits no work.
package final class SQLiteConnection: Sendable {
    private let session: Mutex<SQLiteSession>

    /// Opens a database, or makes one if it does not exist; blocks.
    /// - Parameters:
    ///   - path: a file; nil for a database in memory.
    ///   - busyMilliseconds: the longest wait of a statement for other connections; 0, the default, to fail at once.
    ///   - prepare: settings, before anything else is done; not in a transaction.
    package init(
        path: String?,
        busyMilliseconds: Int32 = 0,
        _ prepare: @Sendable (SQLiteSession) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        let session = try SQLiteSession(path: path ?? ":memory:", busyMilliseconds: busyMilliseconds)
        try prepare(session)
        self.session = Mutex(session)
    }

    /// Runs a transaction that sees one state of the database, and refuses to write; blocks.
    package func read<Value: Sendable>(
        _ body: @Sendable (SQLiteSession) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        try session.withLock { session throws(SQLiteError) in try session.transaction(isReading: true, body) }
    }

    /// Runs a transaction that is the only one to write from its beginning; blocks.
    /// - Throws: `SQLiteError`, and then nothing of the transaction has been written.
    package func write<Value: Sendable>(
        _ body: @Sendable (SQLiteSession) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        try session.withLock { session throws(SQLiteError) in try session.transaction(isReading: false, body) }
    }

    /// Writes the log back, and removes the files beside the database if this is the last connection; blocks. Later
    /// calls throw `.misuse`. Without a call, it is closed with its last reference.
    package func close() throws(SQLiteError) {
        try session.withLock { session throws(SQLiteError) in try session.close() }
    }
}

// MARK: - What a transaction may do

/// The side of a connection that a transaction uses: statements, which are kept for their next use.
/// ``SQLiteConnection`` lends it while its lock is held.
///
/// Not Sendable: a transaction must not keep it.
package final class SQLiteSession {
    private let path: String
    /// The connection; nil once it is closed.
    private var connection: OpaquePointer?
    /// The compiled statements that are not in use, by their SQL.
    private var statements: [String: SQLiteStatement] = [:]
    private var isReading = false

    /// - Parameter busyMilliseconds: the longest wait of a statement for other connections; 0 for none.
    init(path: String, busyMilliseconds: Int32) throws(SQLiteError) {
        self.path = path
        connection = try Self.open(path)
        sqlite3_busy_timeout(connection, busyMilliseconds)
    }

    private static func open(_ path: String) throws(SQLiteError) -> OpaquePointer {
        var connection: OpaquePointer?
        // SQLITE_OPEN_NOMUTEX: the lock of SQLiteConnection suffices, so SQLite needs none of its own.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let code = sqlite3_open_v2(path, &connection, flags, nil)
        guard code == SQLITE_OK, let connection else {
            let message = connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)
            let text = message.map { String(cString: $0) } ?? ""
            // A connection that could not be opened has to be closed, too.
            sqlite3_close_v2(connection)
            throw SQLiteError(extendedCode: code, message: text, path: path)
        }
        sqlite3_extended_result_codes(connection, 1)
        return connection
    }

    deinit {
        statements = [:]
        sqlite3_close_v2(connection)
    }

    // MARK: - Statements

    /// Runs one statement and calls `row` with each of its rows.
    /// - Parameters:
    ///   - values: one for each parameter.
    ///   - isKept: whether it stays compiled for the next time; false for SQL whose text varies.
    /// - Throws: `SQLiteError`; `.misuse` if the text has more than one statement, or none.
    package func query(
        _ sql: String,
        _ values: [SQLiteValue] = [],
        isKept: Bool = true,
        _ row: (borrowing SQLiteRow) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        // The statement leaves the cache while it runs: the same SQL within `row` gets a statement of its own.
        let kept = statements.removeValue(forKey: sql)
        let statement = if let kept { kept } else { try prepare(sql, isKept: isKept) }
        defer { if isKept { statements[sql] = statement } }
        try run(statement, values, row)
    }

    /// Runs one statement, and ignores its rows.
    package func execute(_ sql: String, _ values: [SQLiteValue] = [], isKept: Bool = true) throws(SQLiteError) {
        try query(sql, values, isKept: isKept) { _ in }
    }

    /// Runs several statements, which are separated by semicolons and have no parameters.
    package func execute(script: String) throws(SQLiteError) {
        try SQLiteStatement.prepare(script, of: open(), path: path, isKept: false) { statement throws(SQLiteError) in
            try run(statement, []) { _ throws(SQLiteError) in }
        }
    }

    /// The integer in the first column of the first row; nil if there is no row, or the column is NULL.
    package func integer(
        _ sql: String,
        _ values: [SQLiteValue] = [],
        isKept: Bool = true
    ) throws(SQLiteError) -> Int64? {
        var found: Int64??
        try query(sql, values, isKept: isKept) { row throws(SQLiteError) in
            if found == nil { found = .some(row.isNull(0) ? nil : row.integer(0)) }
        }
        return found ?? nil
    }

    /// Turns the write-ahead log on, with which readers continue while a transaction writes.
    /// - Throws: an error also if SQLite keeps its other journal.
    package func useWriteAheadLog() throws(SQLiteError) {
        let sql = "PRAGMA journal_mode = WAL"
        var mode: String?
        try query(sql, isKept: false) { row throws(SQLiteError) in mode = row.text(0) }
        if mode != "wal" {
            throw SQLiteError(.error, "the journal stays \(mode ?? "what it was")", sql: sql, path: path)
        }
    }

    private func prepare(_ sql: String, isKept: Bool) throws(SQLiteError) -> SQLiteStatement {
        var first: SQLiteStatement?
        try SQLiteStatement.prepare(sql, of: open(), path: path, isKept: isKept) { statement throws(SQLiteError) in
            if first != nil { throw SQLiteError(.misuse, "more than one statement", sql: sql, path: path) }
            first = statement
        }
        guard let first else { throw SQLiteError(.misuse, "no statement", sql: sql, path: path) }
        return first
    }

    private func run(
        _ statement: SQLiteStatement,
        _ values: [SQLiteValue],
        _ row: (borrowing SQLiteRow) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        if isReading, !statement.isReadOnly {
            throw SQLiteError(.readOnly, "a transaction that reads does not write", sql: statement.sql, path: path)
        }
        try statement.run(values, row)
    }

    // MARK: - Transactions

    /// Runs a transaction, which ends with a commit, or with a rollback if anything is thrown.
    /// - Parameter isReading: whether it takes no lock that keeps others from writing, and refuses statements that
    ///   write.
    func transaction<Value>(
        isReading: Bool,
        _ body: (SQLiteSession) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        let connection = try open()
        try execute(isReading ? "BEGIN DEFERRED TRANSACTION" : "BEGIN IMMEDIATE TRANSACTION")
        do throws(SQLiteError) {
            self.isReading = isReading
            defer { self.isReading = false }
            let value = try body(self)
            try execute("COMMIT TRANSACTION")
            return value
        } catch {
            // A full disk, for example, has ended the transaction already. The first error is the cause, and is thrown.
            if sqlite3_get_autocommit(connection) == 0 { try? execute("ROLLBACK TRANSACTION") }
            throw error
        }
    }

    // MARK: - The end

    private func open() throws(SQLiteError) -> OpaquePointer {
        guard let connection else { throw SQLiteError(.misuse, "the database is closed", path: path) }
        return connection
    }

    /// Closes the connection; does nothing if it is closed already.
    func close() throws(SQLiteError) {
        guard let connection else { return }
        // SQLite refuses to close a connection with statements.
        statements = [:]
        let code = sqlite3_close(connection)
        guard code == SQLITE_OK else { throw SQLiteError(connection, code, sql: nil, path: path) }
        self.connection = nil
    }
}

@available(*, unavailable) extension SQLiteSession: Sendable {}

// MARK: - Errors

/// The error of a call of SQLite.
package struct SQLiteError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A primary result code, such as `SQLITE_CORRUPT`.
    package struct Code: RawRepresentable, Sendable, Equatable {
        package let rawValue: Int32
        package init(rawValue: Int32) { self.rawValue = rawValue }

        package static let error = Code(rawValue: SQLITE_ERROR)
        package static let busy = Code(rawValue: SQLITE_BUSY)
        package static let readOnly = Code(rawValue: SQLITE_READONLY)
        package static let corrupt = Code(rawValue: SQLITE_CORRUPT)
        package static let full = Code(rawValue: SQLITE_FULL)
        package static let cannotOpen = Code(rawValue: SQLITE_CANTOPEN)
        package static let constraint = Code(rawValue: SQLITE_CONSTRAINT)
        package static let misuse = Code(rawValue: SQLITE_MISUSE)
        package static let notADatabase = Code(rawValue: SQLITE_NOTADB)
    }

    /// The result code of SQLite: the primary code in the low byte, and details above it.
    package let extendedCode: Int32
    package let message: String
    /// The SQL of the statement that failed, without its bound values; nil if it was no statement.
    package let sql: String?
    /// The file of the database.
    package let path: String

    package init(extendedCode: Int32, message: String, sql: String? = nil, path: String) {
        (self.extendedCode, self.message, self.sql, self.path) = (extendedCode, message, sql, path)
    }

    package init(_ code: Code, _ message: String, sql: String? = nil, path: String) {
        self.init(extendedCode: code.rawValue, message: message, sql: sql, path: path)
    }

    package var code: Code { Code(rawValue: extendedCode & 0xff) }

    /// The reason in one line without the path, for a text that names it already.
    package var reason: String {
        let extended = extendedCode == code.rawValue ? "" : " (extended \(extendedCode))"
        let statement = sql.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
        let context = statement.map { " - while executing `\($0)`" } ?? ""
        return "SQLite error \(code.rawValue)\(extended): \(message)\(context)"
    }

    package var description: String { "\(path): \(reason)" }
}
