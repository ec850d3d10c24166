// The names in a folder.

import Glibc

/// Blocks: it is not called on a loop.
package enum FolderNames {
    /// All but `.` and `..`; empty where the folder cannot be read.
    package static func of(_ path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        return of(folder)
    }

    /// What `readdir` still has to give; the folder stays open.
    static func of(_ folder: OpaquePointer) -> [String] {
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}
