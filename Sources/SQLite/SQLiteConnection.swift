// A connection to a SQLite database: one transaction at a time, from any thread that may block, and what it offers
// meanwhile.

import CSQLite
import Synchronization

/// Sendable: everything is under `session`, a lock that keeps whole transactions apart. It is taken only on
/// threads that may wait for a disk, and what runs under it uses the session alone: no other lock is taken
/// there, and no work submitted.
package final class SQLiteConnection: Sendable {
    private let session: Mutex<SQLiteSession>

    /// Opens a database, or makes one where there is none; blocks.
    /// - Parameters:
    ///   - path: a file; nil for a database in memory.
    ///   - busyMilliseconds: how long a statement waits for other connections; 0, the default: it fails at once.
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

    /// A transaction that sees one state of the database, and refuses to write; blocks.
    package func read<Value: Sendable>(
        _ body: @Sendable (SQLiteSession) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        try session.withLock { session throws(SQLiteError) in try session.transaction(isReading: true, body) }
    }

    /// A transaction that is the only one to write from its beginning; blocks.
    /// - Throws: `SQLiteError`, and then nothing of it has been written.
    package func write<Value: Sendable>(
        _ body: @Sendable (SQLiteSession) throws(SQLiteError) -> Value
    ) throws(SQLiteError) -> Value {
        try session.withLock { session throws(SQLiteError) in try session.transaction(isReading: false, body) }
    }

    /// Writes back what is in the log, and removes the files beside the database where it is the last connection;
    /// blocks. Later calls throw `.misuse`. Without a call, it is closed with its last reference.
    package func close() throws(SQLiteError) {
        try session.withLock { session throws(SQLiteError) in try session.close() }
    }
}

// MARK: - What a transaction may do

/// What a connection offers to the transaction that has it: statements, which it keeps for their next use.
/// ``SQLiteConnection`` lends it while its lock is held.
///
/// Not Sendable: it is neither kept nor used elsewhere.
package final class SQLiteSession {
    private let path: String
    /// Nil once it is closed.
    private var connection: OpaquePointer?
    /// Compiled, and not in use: by their SQL.
    private var statements: [String: SQLiteStatement] = [:]
    private var isReading = false

    /// - Parameter busyMilliseconds: how long a statement waits for other connections; 0: not at all.
    init(path: String, busyMilliseconds: Int32) throws(SQLiteError) {
        self.path = path
        connection = try Self.open(path)
        sqlite3_busy_timeout(connection, busyMilliseconds)
    }

    private static func open(_ path: String) throws(SQLiteError) -> OpaquePointer {
        var connection: OpaquePointer?
        // SQLITE_OPEN_NOMUTEX: the lock of SQLiteConnection keeps others out, so SQLite needs none of its own.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        let code = sqlite3_open_v2(path, &connection, flags, nil)
        guard code == SQLITE_OK, let connection else {
            let message = connection.map { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)
            let text = message.map { String(cString: $0) } ?? ""
            // There is one to close even where it could not be opened.
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
    ///   - isKept: it stays compiled for the next time: not for SQL whose text varies.
    /// - Throws: `SQLiteError`; `.misuse` where the text has more than one statement, or none.
    package func query(
        _ sql: String,
        _ values: [SQLiteValue] = [],
        isKept: Bool = true,
        _ row: (borrowing SQLiteRow) throws(SQLiteError) -> Void
    ) throws(SQLiteError) {
        // Out of the cache while it runs: the same SQL within `row` gets a statement of its own.
        let kept = statements.removeValue(forKey: sql)
        let statement = if let kept { kept } else { try prepare(sql, isKept: isKept) }
        defer { if isKept { statements[sql] = statement } }
        try run(statement, values, row)
    }

    /// Runs one statement, whatever rows it has.
    package func execute(_ sql: String, _ values: [SQLiteValue] = [], isKept: Bool = true) throws(SQLiteError) {
        try query(sql, values, isKept: isKept) { _ in }
    }

    /// Runs several statements, which are separated by semicolons and have no parameters.
    package func execute(script: String) throws(SQLiteError) {
        try SQLiteStatement.prepare(script, of: open(), path: path, isKept: false) { statement throws(SQLiteError) in
            try run(statement, []) { _ throws(SQLiteError) in }
        }
    }

    /// The first column of the first row; nil where there is no row, or NULL in it.
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

    /// Readers go on while a transaction writes, which is written to a log beside the database first.
    /// - Throws: also where SQLite stays with its other journal.
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

    /// Ends with a commit, or where anything is thrown with a rollback.
    /// - Parameter isReading: it takes no lock that keeps others from writing, and refuses statements that write.
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
            // A full disk, among others, has ended it already. The first error is the one that says why.
            if sqlite3_get_autocommit(connection) == 0 { try? execute("ROLLBACK TRANSACTION") }
            throw error
        }
    }

    // MARK: - The end

    private func open() throws(SQLiteError) -> OpaquePointer {
        guard let connection else { throw SQLiteError(.misuse, "the database is closed", path: path) }
        return connection
    }

    /// Does nothing where it is closed already.
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

/// A call of SQLite that failed.
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

    /// What SQLite returned: the primary code in the low byte, and details above it.
    package let extendedCode: Int32
    package let message: String
    /// Its bound values are not part of it; nil where it was no statement that failed.
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
        let place = statement.map { " - while executing `\($0)`" } ?? ""
        return "SQLite error \(code.rawValue)\(extended): \(message)\(place)"
    }

    package var description: String { "\(path): \(reason)" }
}
