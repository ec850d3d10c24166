// The files of a database: how they are opened, what damage says, and what is left when it is closed.

import Glibc
import TestSupport
import Testing

@testable import SQLite

@Suite struct FileTests {
    /// Of the test, which outlives its connections.
    private let database: DatabaseFile

    init() throws { database = try DatabaseFile() }

    @Test func `it is opened as it is asked for`() throws {
        let connection = try database.open()
        // SQLITE_OPEN_READWRITE with a log, and a commit without fsync.
        #expect(try connection.integer("PRAGMA synchronous") == 1)
        #expect(try connection.integer("SELECT journal_mode = 'wal' FROM pragma_journal_mode") == 1)
        #expect(try connection.integer("PRAGMA busy_timeout") == 0)
        #expect(try database.open(busyMilliseconds: 70).integer("PRAGMA busy_timeout") == 70)
    }

    @Test func `a database in memory has no log`() throws {
        let error = #expect(throws: SQLiteError.self) {
            _ = try SQLiteConnection(path: nil) { session throws(SQLiteError) in try session.useWriteAheadLog() }
        }
        #expect(error?.message == "the journal stays memory")
    }

    @Test func `a file that is none is refused, and let go of`() throws {
        try database.folder.write("a.sqlite", [UInt8](repeating: 0x2f, count: 10_000))
        let error = #expect(throws: SQLiteError.self) { _ = try database.open() }
        #expect(error?.code == .notADatabase)
        #expect(error?.path == database.path)
        #expect(database.openFiles == [])
    }

    @Test func `where no file can be made it is refused`() throws {
        let folder = try TemporaryFolder("sqlite")
        for path in [folder.path, folder.file("none/a.sqlite")] {
            let error = #expect(throws: SQLiteError.self) { _ = try SQLiteConnection(path: path) { _ in } }
            #expect(error?.code == .cannotOpen)
            #expect(error?.description.hasPrefix("\(path): SQLite error 14") == true)
        }
    }

    @Test func `a damaged page is told, and what the others hold is read`() throws {
        let connection = try database.openWithTable()
        try connection.write { session throws(SQLiteError) in
            for number in Int64(1)...500 {
                try session.execute("INSERT INTO t VALUES (?, zeroblob(400))", [.integer(number)])
            }
        }
        try connection.close()
        let file = open(database.path, O_RDWR)
        defer { close(file) }
        // The kind of the last page, which is a leaf of the table.
        #expect(pwrite(file, [0xEE], 1, lseek(file, 0, SEEK_END) - 4096) == 1)
        let damaged = try database.open()
        let error = #expect(throws: SQLiteError.self) {
            try damaged.read { session throws(SQLiteError) in try session.query("SELECT * FROM t") { _ in } }
        }
        #expect(error?.code == .corrupt)
        #expect(try damaged.integer("SELECT length(x) FROM t WHERE n = 1") == 400)
    }

    @Test func `closing takes the log away and lets go of every file`() throws {
        let connection = try database.openWithTable()
        try connection.execute("INSERT INTO t VALUES (?, ?)", [.integer(1), .text("x")])
        #expect(try connection.count() == 1)
        #expect(database.exists("-wal") && database.exists("-shm") && database.openFiles.count >= 2)
        try connection.close()
        #expect(!database.exists("-wal") && !database.exists("-shm") && database.openFiles == [])
        try connection.close()
        let error = #expect(throws: SQLiteError.self) { try connection.execute("INSERT INTO t VALUES (2, 2)") }
        #expect(error?.code == .misuse)
        #expect(error?.reason == "SQLite error 21: the database is closed")
        #expect(try database.open().count() == 1)
    }

    @Test func `a connection that nobody holds is closed`() throws {
        do {
            let connection = try database.openWithTable()
            #expect(try connection.count() == 0)
            #expect(database.openFiles.count >= 2)
        }
        #expect(database.openFiles == [] && !database.exists("-wal"))
    }

    @Test func `settings that fail let go of the file`() throws {
        let own = SQLiteError(.error, "own", path: "p")
        #expect(throws: own) {
            _ = try SQLiteConnection(path: database.path) { session throws(SQLiteError) in
                try session.useWriteAheadLog()
                throw own
            }
        }
        #expect(database.openFiles == [])
    }

    @Test func `the code of an error is its primary one`() {
        // SQLITE_IOERR_SHORT_READ and SQLITE_CORRUPT_INDEX.
        #expect(SQLiteError(extendedCode: 522, message: "m", path: "p").reason == "SQLite error 10 (extended 522): m")
        #expect(SQLiteError(extendedCode: 779, message: "m", path: "p").code == .corrupt)
    }
}
