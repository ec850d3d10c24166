// The typed error of a failed call of SQLite: its codes, what it says, which SQL, and in which database.

import CSQLite

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

    /// Without the path, for a text that names it already; one line.
    package var reason: String {
        let extended = extendedCode == code.rawValue ? "" : " (extended \(extendedCode))"
        let statement = sql.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
        let place = statement.map { " - while executing `\($0)`" } ?? ""
        return "SQLite error \(code.rawValue)\(extended): \(message)\(place)"
    }

    package var description: String { "\(path): \(reason)" }
}
