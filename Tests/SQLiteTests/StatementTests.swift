// Statements: one at a time or a script, kept for the next time, and usable again whatever happened.

import Testing

@testable import SQLite

@Suite struct StatementTests {
    private func thrown(_ sql: String, _ values: [SQLiteValue] = []) throws -> SQLiteError? {
        let connection = try SQLiteConnection.inMemory()
        return #expect(throws: SQLiteError.self, "\(sql)") { try connection.execute(sql, values) }
    }

    @Test(arguments: ["SELECT 1; SELECT 2", "SELECT 1;;SELECT 2", "", " ", ";", "-- nothing", "SELECT 1\0"])
    func `a text that is not exactly one statement is refused`(sql: String) throws {
        #expect(try thrown(sql)?.code == .misuse)
    }

    @Test(arguments: ["SELECT 1;", " SELECT 1 ; \n", "SELECT 1 -- one", "/* one */ SELECT 1; -- one"])
    func `white space and comments are no statement`(sql: String) throws {
        try SQLiteConnection.inMemory().execute(sql)
    }

    @Test func `an error has SQLite's text, the SQL without its values, and the path`() throws {
        let error = try #require(try thrown("SELECT no\n  FROM sqlite_master WHERE name = ?", [.text("secret")]))
        #expect(error.code == .error)
        let context = "while executing `SELECT no FROM sqlite_master WHERE name = ?`"
        #expect(error.reason == "SQLite error 1: no such column: no - \(context)")
        #expect(error.description == ":memory:: \(error.reason)")
        #expect(try thrown("SELECT 1; SELEC 2")?.message.contains("syntax error") == true)
    }

    @Test(arguments: [0, 1, 3]) func `each parameter has its value`(count: Int) throws {
        let error = try thrown("SELECT ?, ?", Array(repeating: .integer(1), count: count))
        #expect(error?.code == .misuse)
        #expect(error?.message == "\(count) values for 2 parameters")
    }

    @Test func `a statement can be used again after an error, with other values`() throws {
        let connection = try SQLiteConnection.inMemory()
        try connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, x TEXT NOT NULL)")
        try connection.write { session throws(SQLiteError) in
            let sql = "INSERT INTO t VALUES (?, ?)"
            try session.execute(sql, [.integer(1), .text("a")])
            for values: [SQLiteValue] in [[.integer(1), .text("b")], [.integer(2), .null], [.integer(3)]] {
                let error = #expect(throws: SQLiteError.self) { try session.execute(sql, values) }
                #expect(error?.code == (values.count == 2 ? .constraint : .misuse))
                // SQLITE_CONSTRAINT_PRIMARYKEY and SQLITE_CONSTRAINT_NOTNULL.
                if values.count == 2 { #expect([1555, 1299].contains(error?.extendedCode)) }
            }
            try session.execute(sql, [.integer(2), .text("b")])
        }
        #expect(try connection.integer("SELECT count(*) FROM t") == 2)
    }

    @Test func `what is thrown between two rows leaves the statement usable`() throws {
        try SQLiteConnection.inMemory().read { session throws(SQLiteError) in
            let sql = "SELECT 1 UNION ALL SELECT 2"
            let own = SQLiteError(.corrupt, "own", path: "p")
            #expect(throws: own) { try session.query(sql) { _ throws(SQLiteError) in throw own } }
            var rows: [Int64] = []
            try session.query(sql) { rows.append($0.integer(0)) }
            #expect(rows == [1, 2])
        }
    }

    @Test func `the same SQL within its own rows`() throws {
        try SQLiteConnection.inMemory().read { session throws(SQLiteError) in
            let sql = "SELECT ? UNION ALL SELECT 2"
            var rows: [[Int64]] = []
            try session.query(sql, [.integer(1)]) { outer throws(SQLiteError) in
                let number = outer.integer(0)
                try session.query(sql, [.integer(8)]) { rows.append([number, $0.integer(0)]) }
            }
            #expect(rows == [[1, 8], [1, 2], [2, 8], [2, 2]])
        }
    }

    @Test func `a kept statement follows the table that it is about`() throws {
        let connection = try SQLiteConnection.inMemory()
        for columns in ["a", "a, b", "a, b, c"] {
            try connection.write { session throws(SQLiteError) in
                try session.execute(script: "DROP TABLE IF EXISTS t; CREATE TABLE t (\(columns));")
                try session.execute("INSERT INTO t (a) VALUES (?)", [.integer(4)])
            }
            #expect(try connection.integer("SELECT * FROM t") == 4)
        }
    }

    @Test func `a script runs to its end or its first error, and in a transaction to nothing then`() throws {
        let connection = try SQLiteConnection.inMemory()
        try connection.write { session throws(SQLiteError) in
            let inserts = "INSERT INTO t VALUES ('a;b'); INSERT INTO t VALUES ('c')"
            try session.execute(script: "CREATE TABLE t (x); -- é\n \(inserts)\n")
            try session.execute(script: "")
        }
        #expect(try connection.count() == 2)
        let error = #expect(throws: SQLiteError.self) {
            try connection.write { session throws(SQLiteError) in
                try session.execute(script: "DELETE FROM t; INSERT INTO nowhere VALUES (1); SELECT 1")
            }
        }
        #expect(error?.message == "no such table: nowhere")
        #expect(try connection.count() == 2)
    }
}
