// A database in a folder of its own, and what it holds in files.

import Glibc
import TestSupport

@testable import SQLite

/// A folder with a database in it, as the index has one.
struct DatabaseFile {
    let folder: TemporaryFolder
    var path: String { folder.file("a.sqlite") }

    init() throws { folder = try TemporaryFolder("sqlite") }

    func open(busyMilliseconds: Int32 = 0) throws(SQLiteError) -> SQLiteConnection {
        try SQLiteConnection(path: path, busyMilliseconds: busyMilliseconds) { session throws(SQLiteError) in
            try session.execute("PRAGMA synchronous = NORMAL")
            try session.useWriteAheadLog()
        }
    }

    /// With a table of numbers.
    func openWithTable(busyMilliseconds: Int32 = 0) throws(SQLiteError) -> SQLiteConnection {
        let connection = try open(busyMilliseconds: busyMilliseconds)
        try connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, x)")
        return connection
    }

    /// Files of the folder that the process has open.
    var openFiles: [String] {
        guard let list = opendir("/proc/self/fd") else { return [] }
        defer { closedir(list) }
        var found: [String] = []
        while let entry = readdir(list) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            var target = [CChar](repeating: 0, count: 4096)
            let count = readlink("/proc/self/fd/\(name)", &target, target.count)
            let link = String(decoding: target.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if link.hasPrefix(folder.path + "/") { found.append(link) }
        }
        return found
    }

    func exists(_ suffix: String) -> Bool { access(path + suffix, F_OK) == 0 }
}

extension SQLiteConnection {
    static func inMemory() throws(SQLiteError) -> SQLiteConnection { try SQLiteConnection(path: nil) { _ in } }

    func execute(_ sql: String, _ values: [SQLiteValue] = []) throws(SQLiteError) {
        try write { session throws(SQLiteError) in try session.execute(sql, values) }
    }

    func integer(_ sql: String) throws(SQLiteError) -> Int64? {
        try read { session throws(SQLiteError) in try session.integer(sql) }
    }

    func count() throws(SQLiteError) -> Int64? { try integer("SELECT count(*) FROM t") }
}
