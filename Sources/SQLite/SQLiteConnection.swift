// A connection to a SQLite database: one transaction at a time, from any thread that may block.

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
