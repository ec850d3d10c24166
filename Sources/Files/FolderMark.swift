// The mark of a folder that has a store of Drydock: CACHEDIR.TAG and a version file. A folder that belongs to another
// program is never changed.

package import EventLoop
import Glibc

/// The kind of a store, by its readers.
package enum StoreKind: String, Sendable, CaseIterable {
    /// A daemon's store, whose responses answer every client.
    case shared
    /// The store of one program, through the library.
    case `private`
}

/// The reason why a folder is not used as a store; nothing in it has been changed.
package enum FolderRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    /// The folder is not empty and has no mark; `found` is the first name in it.
    case foreign(path: String, found: String)
    /// A newer version of Drydock wrote the store.
    case newer(path: String, format: Int)
    /// The folder belongs to the other kind of store, which is `kind`.
    case otherKind(path: String, kind: StoreKind)

    package var description: String {
        switch self {
        case .foreign(let path, let found):
            "\(path) is not empty (it has '\(found)') and is not a cache folder of Drydock, so nothing in it was changed; name an empty folder, or one that does not exist yet"
        case .newer(let path, let format):
            "\(path) was written by a newer version of Drydock, in format \(format), and this one knows format \(FolderMark.format); use the newer version, or name an empty folder"
        case .otherKind(let path, .private):
            "\(path) belongs to a program that uses the library (its version file says 'private'), and a daemon would share what is stored there; name an empty folder"
        case .otherKind(let path, .shared):
            "\(path) belongs to a daemon (its version file says 'shared'), and a program needs its own folder; name an empty folder"
        }
    }
}

/// The reason why a folder cannot hold a store.
package enum FolderError: Error, Sendable, Equatable {
    /// The folder belongs to another program, or to another version; nothing in it was changed.
    case notTaken(FolderRefusal)
    /// The folder, or one of the files of its mark, cannot be made, read or written.
    case unusable(SystemError)
}

/// Reads and writes the mark; everything here blocks.
///
/// The mark is two files: `CACHEDIR.TAG`, which tells backup programs that the folder is a cache, and `version`, one
/// line such as `drydock 1 shared`. Both are written before anything else is made in the folder, so that a folder in
/// which a process was killed in between has at most parts of the mark, and the next process can take it.
package enum FolderMark {
    /// The format of the files that this version writes. Version 0.1.0 wrote format 1 without a mark.
    package static let format = 1

    /// The state of a folder that may hold a store.
    package enum State: Sendable, Equatable {
        /// The folder is missing, or has no content.
        case empty
        /// The folder has a store of version 0.1.0, which wrote no mark.
        case unmarked
        /// The folder has a store in this format, or in an older one.
        case marked(format: Int)

        /// The line for the log that a folder without a mark was taken over; nil for other folders.
        package func remark(_ path: String, _ kind: StoreKind) -> String? {
            guard self == .unmarked else { return nil }
            return "the cache folder \(path) of version 0.1.0 was taken over, and marked as a \(kind.rawValue) store"
        }
    }

    /// Inspects a folder without changing it.
    /// - Parameter newest: the newest format that the caller knows; another one in tests.
    /// - Throws: `FolderError.notTaken`, and `.unusable` if it cannot be read or is not a folder.
    package static func inspect(
        _ path: String,
        _ kind: StoreKind,
        newest: Int = format
    ) throws(FolderError) -> State {
        let names = try names(path)
        // A mark that this process may not read belongs to another user, possibly to a store.
        if names.isSuperset(of: Self.names) {
            for name in Self.names where access("\(path)/\(name)", R_OK) != 0 && errno == EACCES {
                throw .unusable(SystemError("open \(path)/\(name)", code: EACCES))
            }
        }
        let version = version(path)
        if let version {
            if version.format > newest { throw .notTaken(.newer(path: path, format: version.format)) }
            if let found = version.kind, found != kind { throw .notTaken(.otherKind(path: path, kind: found)) }
        }
        let tag = read("\(path)/\(tagName)", atMost: 1024)
        if let version, version.kind != nil, tag?.starts(with: signature) ?? false {
            return .marked(format: version.format)
        }
        // `lost+found`, which fsck keeps in the root of a file system, does not count as content.
        let others = names.filter { !ownNames.contains($0) && $0 != "lost+found" }.sorted()
        if others.isEmpty, isPartOfMark(path, names) { return .empty }
        if isUnmarkedStore(path, names) {
            // Only daemons had jobs, so this store is a daemon's.
            if kind == .private, names.contains("jobs") { throw .notTaken(.otherKind(path: path, kind: .shared)) }
            return .unmarked
        }
        throw .notTaken(.foreign(path: path, found: others.first ?? names.sorted().first ?? ""))
    }

    /// Marks a folder if it has no mark yet; it must exist.
    /// - Returns: the format of its files.
    /// - Throws: the errors of ``inspect(_:_:newest:)``, and `.unusable` if the mark cannot be written.
    package static func claim(_ path: String, _ kind: StoreKind, newest: Int = format) throws(FolderError) -> State {
        let state = try inspect(path, kind, newest: newest)
        switch state {
        case .empty: try write(path, kind, format: newest)
        case .unmarked: try write(path, kind, format: 1)
        case .marked: break
        }
        return state
    }

    /// Marks a folder in use whose mark has been removed.
    /// - Throws: `FolderError.notTaken` if it has a file now that no store has.
    package static func restore(_ path: String, _ kind: StoreKind, format: Int) throws(FolderError) {
        if case .marked = try? inspect(path, kind, newest: format) { return }
        if let found = try names(path).subtracting(ownNames).subtracting(storeNames).sorted().first {
            throw .notTaken(.foreign(path: path, found: found))
        }
        try write(path, kind, format: format)
    }

    /// Writes both files, the version last: a folder that has this one has the other one, too.
    package static func write(_ path: String, _ kind: StoreKind, format: Int) throws(FolderError) {
        do throws(SystemError) {
            try WholeFile.replace("\(path)/\(tagName)", with: signature + comment)
            try WholeFile.replace("\(path)/\(versionName)", with: Array("drydock \(format) \(kind.rawValue)\n".utf8))
        } catch {
            throw .unusable(error)
        }
    }

    // MARK: - The two files

    private static let tagName = "CACHEDIR.TAG"
    private static let versionName = "version"
    package static let names = [tagName, versionName]
    /// The names of the files of the mark, and the names under which `WholeFile` writes them first.
    private static let ownNames: Set<String> = [tagName, "\(tagName).new", versionName, "\(versionName).new"]
    /// The other names of a store, and the folder that fsck keeps in the root of a file system.
    private static let storeNames: Set<String> = [
        "files", "index.sqlite", "index.sqlite-journal", "index.sqlite-shm", "index.sqlite-wal", "jobs", "lock",
        "lost+found", "objects", "pins", "pins.new", "rules", "rules.new", "secret", "secret.new", "tmp", "trash",
    ]
    /// The first line of every CACHEDIR.TAG (https://bford.info/cachedir/).
    private static let signature = Array("Signature: 8a477f597d28d172789f06886806bc55".utf8)
    private static let comment = Array(
        """

        # This folder is a cache of Drydock, which makes, changes and removes what is in it.
        # What a cache directory tag is: https://bford.info/cachedir/

        """.utf8
    )
    private static let versionStart = Array("drydock ".utf8)

    /// The contents of the version file; the kind is nil if this version does not know it.
    private static func version(_ path: String) -> (format: Int, kind: StoreKind?)? {
        guard let bytes = read("\(path)/\(versionName)", atMost: 1024), bytes.last == UInt8(ascii: "\n") else {
            return nil
        }
        let words = String(decoding: bytes.dropLast(), as: UTF8.self).split(separator: " ")
        guard words.count >= 3, words[0] == "drydock", let format = Int(words[1]), format > 0 else { return nil }
        return (format, words.count == 3 ? StoreKind(rawValue: String(words[2])) : nil)
    }

    /// Whether ``write(_:_:format:)`` wrote the present files of the mark, completely or in part.
    private static func isPartOfMark(_ path: String, _ names: Set<String>) -> Bool {
        ownNames.intersection(names).allSatisfy { name in
            guard let bytes = read("\(path)/\(name)", atMost: 1024) else { return false }
            if name.hasPrefix(tagName) { return (signature + comment).starts(with: bytes) }
            return versionStart.starts(with: bytes.prefix(versionStart.count))
        }
    }

    // MARK: - Version 0.1.0

    /// Whether the folder has a store of version 0.1.0: `lock`, `secret`, and an index with its tables.
    private static func isUnmarkedStore(_ path: String, _ names: Set<String>) -> Bool {
        guard names.isSuperset(of: ["lock", "secret", "index.sqlite"]),
            read("\(path)/lock", atMost: 1)?.isEmpty ?? false,
            read("\(path)/secret", atMost: 17)?.count == 16,
            let index = read("\(path)/index.sqlite", atMost: 64 * 1024),
            index.starts(with: Array("SQLite format 3\0".utf8))
        else { return false }
        // The SQL of the tables is in the first page, or in the first frames of the write-ahead log. The files are read
        // directly, because SQLite creates files beside a database that it opens.
        return hasTables(index) || hasTables(read("\(path)/index.sqlite-wal", atMost: 256 * 1024) ?? [])
    }

    private static func hasTables(_ bytes: [UInt8]) -> Bool {
        [
            "CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER)",
            "CREATE TABLE files (high INTEGER, low INTEGER, keyhash INTEGER",
        ].allSatisfy { bytes.contains(Array($0.utf8)) }
    }

    // MARK: - Reading

    /// The names in a folder; empty if it does not exist.
    private static func names(_ path: String) throws(FolderError) -> Set<String> {
        guard let folder = opendir(path) else {
            if errno == ENOENT { return [] }
            throw .unusable(SystemError("open \(path)"))
        }
        defer { closedir(folder) }
        return Set(FolderNames.of(folder))
    }

    /// The first bytes of a regular file; nil if it is not one, or cannot be read.
    private static func read(_ path: String, atMost limit: Int) -> [UInt8]? {
        // O_NONBLOCK keeps the process from waiting for a FIFO.
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        if file < 0 { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        var bytes = [UInt8](repeating: 0, count: limit)
        let count = pread(file, &bytes, limit, 0)
        return count < 0 ? nil : Array(bytes[..<count])
    }
}
