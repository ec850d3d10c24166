// Every type is bound and read as it is, and what has another type is converted.

import Testing

@testable import SQLite

@Suite struct ValueTests {
    /// What SQLite says of a value: its type, and its bytes as hexadecimal digits.
    private struct Read: Equatable {
        var type: String?
        var hex: String?
        var value: SQLiteValue
    }

    private func roundTrip(_ value: SQLiteValue) throws -> Read {
        let connection = try SQLiteConnection.inMemory()
        try connection.execute("CREATE TABLE t (x)")
        try connection.execute("INSERT INTO t VALUES (?)", [value])
        return try connection.read { session throws(SQLiteError) in
            var read = Read(value: .null)
            try session.query("SELECT typeof(x), hex(x), x FROM t") { row in
                (read.type, read.hex) = (row.text(0), row.text(1))
                read.value =
                    switch read.type {
                    case "integer": .integer(row.integer(2))
                    case "real": .real(row.real(2))
                    case "text": row.text(2).map { .text($0) } ?? .null
                    case "blob": row.blob(2).map { .blob($0) } ?? .null
                    default: row.isNull(2) ? .null : .text("not NULL")
                    }
            }
            return read
        }
    }

    static let values: [(SQLiteValue, type: String)] = [
        (.null, "null"), (.integer(0), "integer"), (.integer(-1), "integer"), (.integer(.max), "integer"),
        (.integer(.min), "integer"), (.real(0.1), "real"), (.real(-.infinity), "real"),
        (.real(.leastNonzeroMagnitude), "real"), (.text(""), "text"), (.text("é 漢 🚢"), "text"), (.text("a\0b"), "text"),
        (.text("\0"), "text"), (.text(String(repeating: "x", count: 100_000)), "text"), (.blob([]), "blob"),
        (.blob([0]), "blob"), (.blob([0, 255, 0, 1]), "blob"), (.blob(Array(repeating: 7, count: 100_000)), "blob"),
    ]

    @Test(arguments: values.indices) func `what is bound is read`(index: Int) throws {
        let (value, type) = Self.values[index]
        let read = try roundTrip(value)
        #expect(read.value == value)
        #expect(read.type == type)
    }

    @Test func `a NUL in a text is stored with what is behind it`() throws {
        #expect(try roundTrip(.text("a\0b")).hex == "610062")
        #expect(try roundTrip(.blob([])).hex == "")
    }

    @Test func `NaN is stored as NULL`() throws {
        #expect(try roundTrip(.real(.nan)) == Read(type: "null", hex: "", value: .null))
    }

    @Test func `a column of another type is converted, and NULL is 0 or nil`() throws {
        try SQLiteConnection.inMemory().read { session throws(SQLiteError) in
            try session.query("SELECT NULL, '12x', 7, x'C3A9FF', 2.9, ''") { row in
                #expect(row.isNull(0) && row.integer(0) == 0 && row.real(0) == 0)
                #expect(row.text(0) == nil && row.blob(0) == nil)
                #expect(row.integer(1) == 12 && row.blob(1) == Array("12x".utf8))
                #expect(row.text(2) == "7" && row.real(2) == 7)
                #expect(row.text(3) == "é\u{FFFD}" && row.integer(3) == 0)
                #expect(row.integer(4) == 2)
                #expect(row.text(5) == "" && row.blob(5) == [] && !row.isNull(5))
            }
        }
    }

    @Test func `the first column of the first row, or nil`() throws {
        let connection = try SQLiteConnection.inMemory()
        #expect(try connection.integer("SELECT 5 UNION ALL SELECT 6") == 5)
        #expect(try connection.integer("SELECT NULL UNION ALL SELECT 6") == nil)
        #expect(try connection.integer("SELECT 5 WHERE 0") == nil)
    }
}
