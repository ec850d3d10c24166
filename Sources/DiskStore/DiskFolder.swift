// The folder of the disk tier: its lock, its secret, its temporary files, and the paths of its files.

package import CacheStore
package import EventLoop
package import Files
import Glibc
import Synchronization

/// The reason why a disk tier cannot be opened, or why a stored response cannot be read.
package enum DiskTierError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Another daemon uses the folder.
    case inUse(path: String)
    /// The folder belongs to another owner or version; nothing in it was changed.
    case notTaken(FolderRefusal)
    /// The folder or one of its files cannot be created, read or written.
    case folder(SystemError)
    /// The index cannot be created; `reason` is SQLite's text.
    case index(path: String, reason: String)
    /// The file no longer exists: a miss.
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

    init(_ error: FolderError) {
        self =
            switch error {
            case .notTaken(let refusal): .notTaken(refusal)
            case .unusable(let error): .folder(error)
            }
    }

    /// Runs a call on the folder's mark, and converts its errors into errors of the tier.
    static func mark<Result>(_ call: () throws(FolderError) -> Result) throws(DiskTierError) -> Result {
        do throws(FolderError) { return try call() } catch { throw DiskTierError(error) }
    }

    package var description: String {
        switch self {
        case .inUse(let path):
            "the cache folder \(path) is in use by another daemon: stop it, or set cache.disk.path to another folder"
        case .notTaken(let refusal): "the cache folder \(refusal)"
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

/// The folder of a disk tier. Sendable: it never changes, except for the lock, which is under a mutex that is held on
/// I/O threads only.
final class DiskFolder: Sendable {
    let path: String
    let calls: FileCalls
    let fileNameKey: StoredFileNameKey
    /// The treatment of a folder of another version of Drydock, for the log; nil for a folder of this version.
    let remark: String?
    let kind: StoreKind
    let format: Int
    /// Whether the folder had a mark of this format, and stored responses, before it was opened.
    let hasBeenUsed: Bool
    /// The secret from which `fileNameKey` is made.
    let secret: [UInt8]
    /// The lock of the folder, which excludes other processes; nil after it was released.
    let lock: Mutex<FolderLock?>

    /// Opens a folder that is empty, missing, or marked as such a store. Blocks.
    /// - Parameter format: the format of the files that are written; tests use another one.
    /// - Throws: `DiskTierError`; `.notTaken` if the folder has foreign content, which is then unchanged.
    init(
        _ path: String,
        kind: StoreKind = .shared,
        format: Int = FolderMark.format,
        calls: FileCalls = .real
    ) throws(DiskTierError) {
        (self.path, self.calls, self.kind, self.format) = (path, calls, kind, format)
        try Self.makeFolders(path, calls)
        // Nothing in the folder may be changed before the mark is written, because it may belong to another owner until
        // then.
        _ = try DiskTierError.mark { () throws(FolderError) in try FolderMark.inspect(path, kind, newest: format) }
        var lock = try FolderLock(path)
        do throws(DiskTierError) {
            let found = try DiskTierError.mark { () throws(FolderError) in
                try FolderMark.claim(path, kind, newest: format)
            }
            if chmod(path, 0o700) != 0 { throw .folder(SystemError("chmod \(path)")) }
            try lock.takeFile(path, calls)
            for name in Self.folders { try Self.makeFolders("\(path)/\(name)", calls) }
            for name in FolderNames.of("\(path)/tmp") { unlink("\(path)/tmp/\(name)") }
            secret = try Self.secret("\(path)/secret", calls)
            fileNameKey = secret.withUnsafeBytes { bytes in
                StoredFileNameKey(low: bytes.number(at: 0, UInt64.self), high: bytes.number(at: 8, UInt64.self))
            }
            remark = try Self.convert(path, from: found, to: format, kind, calls)
            hasBeenUsed = found == .marked(format: format) && !FolderNames.of("\(path)/objects").isEmpty
        } catch {
            lock.release()
            throw error
        }
        self.lock = Mutex(lock)
    }

    deinit { release() }

    /// Allows another process to use the folder.
    func release() {
        lock.withLock { lock in
            lock?.release()
            lock = nil
        }
    }

    static let folders = ["tmp", "objects", "trash"]
    var objects: String { "\(path)/objects" }
    /// The path of folders that were removed as a whole, until an I/O thread deletes them.
    var trash: String { "\(path)/trash" }
    var index: String { "\(path)/index.sqlite" }
    var rules: String { "\(path)/rules" }
    var pins: String { "\(path)/pins" }

    func path(of name: StoredFileName) -> String { "\(objects)/\(name.relativePath)" }

    /// The path of a new temporary file.
    func temporary() -> String { "\(path)/tmp/\(String(UInt64.random(in: 0 ... .max), radix: 36))" }

    /// Moves a temporary file to its final path; blocks. Another thread may remove an empty folder at the same time, so
    /// that the folders may have to be created twice.
    func move(_ temporary: String, to name: StoredFileName) throws(DiskTierError) {
        let target = path(of: name)
        var error = SystemError("rename to \(target)", code: ENOENT)
        // Another daemon may have created the folder anew in the meantime.
        guard lock.withLock({ $0?.holds(path) ?? false }) else { throw .folder(error) }
        for _ in 0..<8 {
            if calls.rename(temporary, target) == 0 { return }
            error = SystemError("rename to \(target)")
            if error.code == ENOENT {
                do throws(DiskTierError) {
                    try makeFolders(of: target)
                } catch {
                    removeFolders(of: target)
                    throw error
                }
            } else if error.code != EISDIR || calls.removeFolder(target) != 0 {
                break
            }
        }
        removeFolders(of: target)
        throw .folder(error)
    }

    /// The two folders above a path. A missing `objects` itself is created by the repair of the whole folder.
    private static func folders(of file: String) -> (first: String, second: String) {
        (String(file.dropLast(36)), String(file.dropLast(33)))
    }

    private func makeFolders(of file: String) throws(DiskTierError) {
        let (first, second) = Self.folders(of: file)
        if calls.makeFolder(second) == 0 || errno == EEXIST { return }
        guard errno == ENOENT else { throw .folder(SystemError("mkdir \(second)")) }
        if calls.makeFolder(first) != 0, errno != EEXIST { throw .folder(SystemError("mkdir \(first)")) }
        // If this fails because the first folder was removed again, the next turn creates both.
        if calls.makeFolder(second) != 0, errno != EEXIST, errno != ENOENT {
            throw .folder(SystemError("mkdir \(second)"))
        }
    }

    /// Removes the empty folders above a path; blocks.
    func removeFolders(of file: String) {
        // A path outside of these folders, such as that of a temporary file, is ignored.
        guard file.hasPrefix("\(objects)/"), file.utf8.count == objects.utf8.count + 39 else { return }
        let (first, second) = Self.folders(of: file)
        if calls.removeFolder(second) == 0 || errno == ENOENT { _ = calls.removeFolder(first) }
    }

    static func hex(_ part: Int) -> String { (part < 16 ? "0" : "") + String(part, radix: 16) }

    /// Removes the empty folders below one of the 256 in `objects`, and that one if it becomes empty; blocks.
    func removeEmptyFolders(in part: Int) {
        let first = "\(objects)/\(Self.hex(part))"
        for name in FolderNames.of(first) { _ = calls.removeFolder("\(first)/\(name)") }
        _ = calls.removeFolder(first)
    }

    /// Removes all stored files at once, while no other thread works in the folder. Blocks.
    /// - Throws: `DiskTierError.folder`; the files then still exist.
    func discardObjects() throws(DiskTierError) {
        guard isHeld else { throw .folder(SystemError("rename \(objects)", code: ESTALE)) }
        try Self.discard(objects, trash, calls)
    }

    /// Whether the folder at this path is the locked one, and not one that another daemon has created since; blocks.
    var isHeld: Bool { lock.withLock { $0?.holds(path) ?? false } }

    private static func discard(_ objects: String, _ trash: String, _ calls: FileCalls) throws(DiskTierError) {
        let target = "\(trash)/\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        guard calls.rename(objects, target) == 0 else { throw .folder(SystemError("rename \(objects)")) }
        // If this fails, the next file creates the folder.
        _ = calls.makeFolder(objects)
    }

    /// Removes some files of the trash; blocks.
    /// - Returns: whether there are more that can be removed.
    func emptyTrash(files most: Int) -> Bool {
        var left = most
        for name in FolderNames.of(trash) where left > 0 { remove("\(trash)/\(name)", &left) }
        return left == 0
    }

    /// Removes a folder with its content.
    /// - Parameter left: the number of files that may still be removed; negative if one cannot be removed.
    private func remove(_ path: String, _ left: inout Int) {
        left -= 1
        if calls.unlink(path) == 0 { return }
        guard errno == EISDIR else { return left = -1 }
        for name in FolderNames.of(path) where left > 0 { remove("\(path)/\(name)", &left) }
        if left > 0 { _ = calls.removeFolder(path) }
    }

    /// The free bytes of the file system; nil if they are unknown.
    func available() -> Int64? { calls.available(path) }

    /// Creates the folder if it is missing, and marks it for later openers; blocks.
    /// - Returns: the state of the folder before.
    /// - Throws: `DiskTierError`; the folder is then unchanged, or has a part of the mark if the disk failed.
    @discardableResult
    static func claim(
        _ path: String,
        _ kind: StoreKind,
        _ format: Int = FolderMark.format,
        _ calls: FileCalls = .real
    ) throws(DiskTierError) -> FolderMark.State {
        try makeFolders(path, calls)
        return try DiskTierError.mark { () throws(FolderError) in try FolderMark.claim(path, kind, newest: format) }
    }

    /// Empties a store of an older format; pins and the secret are kept, because their format never changed.
    /// - Returns: what was found and done, for the log.
    private static func convert(
        _ path: String,
        from found: FolderMark.State,
        to format: Int,
        _ kind: StoreKind,
        _ calls: FileCalls
    ) throws(DiskTierError) -> String? {
        let old: Int
        switch found {
        case .empty: return nil
        case .marked(let written): old = written
        case .unmarked: old = 1
        }
        guard old < format else { return found.remark(path, kind) }
        try discard("\(path)/objects", "\(path)/trash", calls)
        DiskIndex.remove("\(path)/index.sqlite")
        _ = calls.unlink("\(path)/rules")
        // The mark is written last: if the process is killed before, the next one begins again.
        try DiskTierError.mark { () throws(FolderError) in try FolderMark.write(path, kind, format: format) }
        return "the cache folder \(path) was written in format \(old), which this version does not read: it was emptied"
    }

    static func makeFolders(_ path: String, _ calls: FileCalls) throws(DiskTierError) {
        if calls.makeFolder(path) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw .folder(SystemError("mkdir \(path)"))
        }
        try makeFolders(String(path[..<slash]), calls)
        if calls.makeFolder(path) != 0 && errno != EEXIST { throw .folder(SystemError("mkdir \(path)")) }
    }

    /// Reads the secret, or creates one. Files whose names were made with a lost secret keep them.
    private static func secret(_ path: String, _ calls: FileCalls) throws(DiskTierError) -> [UInt8] {
        let file = calls.open(path, O_RDWR | O_CREAT, 0o600)
        if file < 0 { throw .folder(SystemError("open \(path)")) }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 16)
        if pread(file, &bytes, 16, 0) != 16 {
            for index in bytes.indices { bytes[index] = UInt8.random(in: 0...255) }
            if pwrite(file, bytes, 16, 0) != 16 { throw .folder(SystemError("write \(path)")) }
        }
        return bytes
    }
}

// MARK: - The lock

// The lock is on the folder itself, so that removing a file in it does not release it.

/// A value that holds descriptors: its owner must call ``release()`` once.
struct FolderLock: Sendable {
    private let folder: Int32
    /// The descriptor of the file `lock`, the only lock that version 0.1.0 checks; -1 if it is not held.
    private var file: Int32 = -1

    /// Locks the folder without changing anything in it; blocks.
    /// - Throws: `DiskTierError.inUse` if another process has locked it.
    init(_ path: String) throws(DiskTierError) {
        folder = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder < 0 { throw .folder(SystemError("open \(path)")) }
        // Some network file systems lock only files that are open for writing; there the lock file has to be enough.
        guard flock(folder, LOCK_EX | LOCK_NB) != 0, [EWOULDBLOCK, EINTR].contains(errno) else { return }
        close(folder)
        throw .inUse(path: path)
    }

    /// Locks the lock file, too, and creates it if it is missing; blocks.
    mutating func takeFile(_ path: String, _ calls: FileCalls) throws(DiskTierError) {
        if file >= 0 { close(file) }
        file = calls.open("\(path)/lock", O_RDWR | O_CREAT, 0o600)
        if file < 0 { throw .folder(SystemError("open \(path)/lock")) }
        if flock(file, LOCK_EX | LOCK_NB) == 0 { return }
        throw errno == EWOULDBLOCK ? .inUse(path: path) : .folder(SystemError("flock \(path)/lock"))
    }

    /// Whether the folder with this name is still the locked one; blocks.
    func holds(_ path: String) -> Bool {
        var (mine, there) = (stat(), stat())
        guard fstat(folder, &mine) == 0, stat(path, &there) == 0 else { return false }
        return mine.st_dev == there.st_dev && mine.st_ino == there.st_ino
    }

    /// Allows another process to use the folder.
    func release() {
        for descriptor in [file, folder] where descriptor >= 0 {
            // Closing is not enough while a child process that was just forked has a copy of the descriptor.
            flock(descriptor, LOCK_UN)
            close(descriptor)
        }
    }
}
