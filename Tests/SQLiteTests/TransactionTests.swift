// Transactions: all or nothing, one writer at a time, and readers beside it.

import Glibc
import Testing

@testable import SQLite

@Suite struct TransactionTests {
    /// Of the test, which outlives its connections.
    private let database: DatabaseFile

    init() throws { database = try DatabaseFile() }

    @Test func `what throws leaves nothing behind, and the connection usable`() throws {
        let connection = try database.openWithTable()
        let own = SQLiteError(.corrupt, "own", path: "p")
        #expect(throws: own) {
            try connection.write { session throws(SQLiteError) in
                try session.execute("INSERT INTO t VALUES (1, 1)")
                throw own
            }
        }
        #expect(throws: own) { try connection.read { _ throws(SQLiteError) in throw own } }
        #expect(try connection.count() == 0)
        try connection.execute("INSERT INTO t VALUES (1, 1)")
        #expect(try connection.count() == 1)
    }

    @Test func `one that reads refuses to write`() throws {
        let connection = try database.openWithTable()
        for sql in ["INSERT INTO t VALUES (1, 1)", "DELETE FROM t", "CREATE TABLE u (x)"] {
            // The same SQL where it may write, so that the statement is a kept one for the second time.
            for _ in 0..<2 {
                let error = #expect(throws: SQLiteError.self, "\(sql)") {
                    try connection.read { session throws(SQLiteError) in try session.execute(sql) }
                }
                #expect(error?.code == .readOnly)
            }
            try connection.execute(sql)
        }
        #expect(try connection.count() == 0)
    }

    @Test func `while one connection writes, another cannot, and reads what was there before`() throws {
        let (first, second) = (try database.openWithTable(), try database.open())
        try first.write { session throws(SQLiteError) in
            // It is the only writer from its beginning, before it has written anything.
            let error = #expect(throws: SQLiteError.self) { try second.execute("INSERT INTO t VALUES (2, 2)") }
            #expect(error?.code == .busy)
            try session.execute("INSERT INTO t VALUES (1, 1)")
            let seen = try second.count()
            #expect(seen == 0)
        }
        #expect(try second.count() == 1)
        try second.execute("INSERT INTO t VALUES (2, 2)")
        #expect(try first.count() == 2)
    }

    @Test func `one that reads sees one state, whatever others write meanwhile`() throws {
        let (first, second) = (try database.openWithTable(), try database.open())
        try second.read { session throws(SQLiteError) in
            let before = try session.integer("SELECT count(*) FROM t")
            try first.execute("INSERT INTO t VALUES (1, 1)")
            let after = try session.integer("SELECT count(*) FROM t")
            #expect(before == 0 && after == 0)
        }
        #expect(try second.count() == 1)
    }

    @Test func `with a patience it waits for the other one`() throws {
        let (first, second) = (try database.openWithTable(), try database.open(busyMilliseconds: 100))
        try first.write { _ in
            let start = seconds()
            let error = #expect(throws: SQLiteError.self) { try second.execute("INSERT INTO t VALUES (2, 2)") }
            #expect(error?.code == .busy)
            #expect(seconds() - start >= 0.09)
        }
    }

    private func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    @Test func `a full database loses the transaction alone`() throws {
        let connection = try database.openWithTable()
        try connection.execute("INSERT INTO t VALUES (1, 1)")
        let limit = try #require(try connection.integer("PRAGMA page_count"))
        try connection.execute("PRAGMA max_page_count = \(limit)")
        let error = #expect(throws: SQLiteError.self) {
            try connection.write { session throws(SQLiteError) in
                for number in Int64(2)..<1000 {
                    try session.execute("INSERT INTO t VALUES (?, zeroblob(500))", [.integer(number)])
                }
            }
        }
        #expect(error?.code == .full)
        let context = "while executing `INSERT INTO t VALUES (?, zeroblob(500))`"
        #expect(error?.reason == "SQLite error 13: database or disk is full - \(context)")
        #expect(try connection.count() == 1)
        try connection.execute("PRAGMA max_page_count = 100000")
        try connection.execute("INSERT INTO t VALUES (2, zeroblob(9000))")
        #expect(try connection.count() == 2)
    }

    @Test func `threads share a connection, one transaction at a time`() async throws {
        let connection = try database.openWithTable()
        try connection.execute("INSERT INTO t VALUES (1, 0)")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<50 {
                        try connection.write { session throws(SQLiteError) in
                            let x = try session.integer("SELECT x FROM t WHERE n = 1") ?? 0
                            try session.execute("UPDATE t SET x = ? WHERE n = 1", [.integer(x + 1)])
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try connection.integer("SELECT x FROM t") == 400)
    }
}
