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
        case .folder(let error): "the cache folder cannot be used: \(error)"
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
    let digestKey: DigestKey
    /// The secret was made now: what an index says about keys is void.
    let isNew: Bool
    /// -1 once the lock has been given back.
    private let lock: Mutex<Int32>

    /// Blocks.
    init(_ path: String) throws(DiskTierError) {
        self.path = path
        try Self.makeFolders(path)
        if chmod(path, 0o700) != 0 { throw .folder(SystemError("chmod \(path)")) }
        let lock = open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if lock < 0 { throw .folder(SystemError("open \(path)/lock")) }
        do throws(DiskTierError) {
            if flock(lock, LOCK_EX | LOCK_NB) != 0 {
                throw errno == EWOULDBLOCK ? .inUse(path: path) : .folder(SystemError("flock \(path)/lock"))
            }
            for name in ["tmp", "objects"] { try Self.makeFolders("\(path)/\(name)") }
            for name in Self.names("\(path)/tmp") { unlink("\(path)/tmp/\(name)") }
            (digestKey, isNew) = try Self.secret("\(path)/secret")
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
    var index: String { "\(path)/index.sqlite" }
    var invalidations: String { "\(path)/invalidations" }

    func place(of name: Digest) -> String { "\(objects)/\(name.relativePath)" }

    /// A name that nobody else uses.
    func temporary() -> String { "\(path)/tmp/\(String(UInt64.random(in: 0 ... .max), radix: 36))" }

    /// Gives a temporary file its place; blocks.
    func move(_ temporary: String, to name: Digest) throws(DiskTierError) {
        let place = place(of: name)
        if rename(temporary, place) == 0 { return }
        if errno == ENOENT {
            try Self.makeFolders(String(place.prefix(place.utf8.count - 33)))
            if rename(temporary, place) == 0 { return }
        }
        throw .folder(SystemError("rename to \(place)"))
    }

    /// Bytes that the file system has left for us.
    func available() -> Int64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        let (bytes, overflow) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(status.f_frsize))
        return overflow ? .max : bytes
    }

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

    private static func makeFolders(_ path: String) throws(DiskTierError) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw .folder(SystemError("mkdir \(path)"))
        }
        try makeFolders(String(path[..<slash]))
        if mkdir(path, 0o700) != 0 && errno != EEXIST { throw .folder(SystemError("mkdir \(path)")) }
    }

    /// Reads the secret, or makes one; files that were named with a lost one keep their names.
    private static func secret(_ path: String) throws(DiskTierError) -> (DigestKey, isNew: Bool) {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if file < 0 { throw .folder(SystemError("open \(path)")) }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 16)
        let isNew = pread(file, &bytes, 16, 0) != 16
        if isNew {
            for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255) }
            if pwrite(file, bytes, 16, 0) != 16 { throw .folder(SystemError("write \(path)")) }
        }
        let key = bytes.withUnsafeBytes { bytes in
            DigestKey(low: bytes.number(at: 0, UInt64.self), high: bytes.number(at: 8, UInt64.self))
        }
        return (key, isNew)
    }
}
