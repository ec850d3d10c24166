// The folder of the disk tier: its lock, its secret, its temporaries and the places of its files.

package import EventLoop
import Glibc
import Synchronization

/// Why a disk tier cannot be opened, or a stored response cannot be had from it.
package enum DiskTierError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Another daemon uses the folder.
    case inUse(path: String)
    /// The folder or one of its files cannot be made, read or written.
    case folder(SystemError)
    /// The index cannot be made; the text is SQLite's.
    case index(path: String, reason: String)
    /// There is no such file any more: a miss.
    case absent
    /// The stored response does not match its checksums and has been removed: a miss.
    case damaged
    /// The key was invalidated while the response arrived.
    case invalidated
    /// A newer response of the same variant is stored already.
    case outdated
    /// The body is larger than max_object, or there is no room.
    case refused(BodyError)
    /// The tier has been closed.
    case closed

    package var description: String {
        switch self {
        case .inUse(let path):
            "the cache folder \(path) is in use by another daemon: stop it, or set cache.disk.path to another folder"
        case .folder(let error): "the cache folder cannot be used: \(error); \(error.advice)"
        case .index(let path, let reason): "the index \(path) cannot be made: \(reason)"
        case .absent: "no such stored response"
        case .damaged: "the stored response was damaged and has been removed"
        case .invalidated: "the key was invalidated while the response arrived"
        case .outdated: "a newer response is stored already"
        case .refused(let error): "the response was not stored: \(error)"
        case .closed: "the disk tier is closed"
        }
    }
}

/// Sendable: nothing in it changes but the lock's descriptor, which is under a mutex.
final class DiskFolder: Sendable {
    let path: String
    let calls: FileCalls
    let digestKey: DigestKey
    /// -1 once the lock has been given back.
    private let lock: Mutex<Int32>

    /// Blocks.
    init(_ path: String, calls: FileCalls = .real) throws(DiskTierError) {
        self.path = path
        self.calls = calls
        try Self.makeFolders(path, calls)
        if chmod(path, 0o700) != 0 { throw .folder(SystemError("chmod \(path)")) }
        let lock = calls.open("\(path)/lock", O_RDWR | O_CREAT, 0o600)
        if lock < 0 { throw .folder(SystemError("open \(path)/lock")) }
        do throws(DiskTierError) {
            if flock(lock, LOCK_EX | LOCK_NB) != 0 {
                throw errno == EWOULDBLOCK ? .inUse(path: path) : .folder(SystemError("flock \(path)/lock"))
            }
            for name in ["tmp", "objects", "trash"] { try Self.makeFolders("\(path)/\(name)", calls) }
            for name in Self.names("\(path)/tmp") { unlink("\(path)/tmp/\(name)") }
            digestKey = try Self.secret("\(path)/secret", calls)
        } catch {
            close(lock)
            throw error
        }
        self.lock = Mutex(lock)
    }

    deinit { release() }

    /// Lets another process use the folder.
    func release() {
        lock.withLock { lock in
            guard lock >= 0 else { return }
            // Closing alone would not do while a child that was just forked has a copy of the descriptor.
            flock(lock, LOCK_UN)
            close(lock)
            lock = -1
        }
    }

    var objects: String { "\(path)/objects" }
    /// What is removed as a whole waits here for an I/O thread.
    var trash: String { "\(path)/trash" }
    var index: String { "\(path)/index.sqlite" }
    var rules: String { "\(path)/rules" }
    var pins: String { "\(path)/pins" }

    func place(of name: Digest) -> String { "\(objects)/\(name.relativePath)" }

    /// A name that nobody else uses.
    func temporary() -> String { "\(path)/tmp/\(String(UInt64.random(in: 0 ... .max), radix: 36))" }

    /// Gives a temporary file its place; blocks.
    func move(_ temporary: String, to name: Digest) throws(DiskTierError) {
        let place = place(of: name)
        if calls.rename(temporary, place) == 0 { return }
        if errno == ENOENT {
            try Self.makeFolders(String(place.prefix(place.utf8.count - 33)), calls)
            if calls.rename(temporary, place) == 0 { return }
        }
        throw .folder(SystemError("rename to \(place)"))
    }

    /// Takes every stored file away at once; nobody may be in the folder. Blocks.
    /// - Throws: `DiskTierError.folder`; the files are where they were then.
    func discardObjects() throws(DiskTierError) {
        let target = "\(trash)/\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        guard calls.rename(objects, target) == 0 else { throw .folder(SystemError("rename \(objects)")) }
        // Where that fails, the next file makes it.
        _ = calls.makeFolder(objects)
    }

    /// Removes some of what waits in the trash; blocks.
    /// - Returns: whether there is more that can be removed.
    func emptyTrash(files most: Int) -> Bool {
        var left = most
        for name in Self.names(trash) where left > 0 { remove("\(trash)/\(name)", &left) }
        return left == 0
    }

    /// - Parameter left: how many files may still be removed; below zero where one cannot be.
    private func remove(_ path: String, _ left: inout Int) {
        left -= 1
        if calls.unlink(path) == 0 { return }
        guard errno == EISDIR else { return left = -1 }
        for name in Self.names(path) where left > 0 { remove("\(path)/\(name)", &left) }
        if left > 0 { rmdir(path) }
    }

    /// Bytes that the file system has left for us.
    func available() -> Int64? { calls.available(path) }

    /// The names in a folder, but `.` and `..`; empty where it cannot be read. Blocks.
    static func names(_ path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    private static func makeFolders(_ path: String, _ calls: FileCalls) throws(DiskTierError) {
        if calls.makeFolder(path) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw .folder(SystemError("mkdir \(path)"))
        }
        try makeFolders(String(path[..<slash]), calls)
        if calls.makeFolder(path) != 0 && errno != EEXIST { throw .folder(SystemError("mkdir \(path)")) }
    }

    /// Reads the secret, or makes one; files that were named with a lost one keep their names.
    private static func secret(_ path: String, _ calls: FileCalls) throws(DiskTierError) -> DigestKey {
        let file = calls.open(path, O_RDWR | O_CREAT, 0o600)
        if file < 0 { throw .folder(SystemError("open \(path)")) }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 16)
        if pread(file, &bytes, 16, 0) != 16 {
            for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255) }
            if pwrite(file, bytes, 16, 0) != 16 { throw .folder(SystemError("write \(path)")) }
        }
        return bytes.withUnsafeBytes { bytes in
            DigestKey(low: bytes.number(at: 0, UInt64.self), high: bytes.number(at: 8, UInt64.self))
        }
    }
}
