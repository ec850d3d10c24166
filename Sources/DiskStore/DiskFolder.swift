// The folder of the disk tier: its lock, its secret, its temporaries and the places of its files.

package import CacheStore
package import EventLoop
package import Files
import Glibc
import Synchronization

/// Why a disk tier cannot be opened, or a stored response cannot be had from it.
package enum DiskTierError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Another daemon uses the folder.
    case inUse(path: String)
    /// The folder is somebody else's, or another version's; nothing in it was changed.
    case notTaken(FolderRefusal)
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

    init(_ error: FolderError) {
        self =
            switch error {
            case .notTaken(let refusal): .notTaken(refusal)
            case .unusable(let error): .folder(error)
            }
    }

    /// Does something with the mark of the folder, and throws what that throws as an error of the tier.
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

/// Sendable: nothing in it changes but the lock, which is under a mutex that is held on I/O threads only.
final class DiskFolder: Sendable {
    let path: String
    let calls: FileCalls
    let fileNameKey: StoredFileNameKey
    /// What became of a folder that another version of Drydock wrote, for the log; nil where this one did.
    let remark: String?
    let kind: StoreKind
    let format: Int
    /// It had a mark of this format and stored responses before it was opened.
    let hasBeenUsed: Bool
    /// What `fileNameKey` was made of.
    let secret: [UInt8]
    /// The lock of the folder, which keeps other processes out; nil once it has been given back.
    let lock: Mutex<FolderLock?>

    /// Opens a folder that is empty, missing, or marked as such a store. Blocks.
    /// - Parameter format: of the files that are written; another one in tests.
    /// - Throws: `DiskTierError`; `.notTaken` if the folder has foreign content; then it was not changed.
    init(
        _ path: String,
        kind: StoreKind = .shared,
        format: Int = FolderMark.format,
        calls: FileCalls = .real
    ) throws(DiskTierError) {
        (self.path, self.calls, self.kind, self.format) = (path, calls, kind, format)
        try Self.makeFolders(path, calls)
        // Before the mark is written nothing in the folder may be changed: it may be anybody's until then.
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

    /// Lets another process use the folder.
    func release() {
        lock.withLock { lock in
            lock?.release()
            lock = nil
        }
    }

    static let folders = ["tmp", "objects", "trash"]
    var objects: String { "\(path)/objects" }
    /// Folders that were removed as a whole wait here until an I/O thread deletes them.
    var trash: String { "\(path)/trash" }
    var index: String { "\(path)/index.sqlite" }
    var rules: String { "\(path)/rules" }
    var pins: String { "\(path)/pins" }

    func place(of name: StoredFileName) -> String { "\(objects)/\(name.relativePath)" }

    /// A unique name.
    func temporary() -> String { "\(path)/tmp/\(String(UInt64.random(in: 0 ... .max), radix: 36))" }

    /// Moves a temporary file to its place; blocks. Another thread may remove an empty folder in between, so the
    /// folders may have to be made twice.
    func move(_ temporary: String, to name: StoredFileName) throws(DiskTierError) {
        let place = place(of: name)
        var error = SystemError("rename to \(place)", code: ENOENT)
        // Another daemon may have made the folder anew by then.
        guard lock.withLock({ $0?.holds(path) ?? false }) else { throw .folder(error) }
        for _ in 0..<8 {
            if calls.rename(temporary, place) == 0 { return }
            error = SystemError("rename to \(place)")
            if error.code == ENOENT {
                do throws(DiskTierError) {
                    try makeFolders(of: place)
                } catch {
                    removeFolders(of: place)
                    throw error
                }
            } else if error.code != EISDIR || calls.removeFolder(place) != 0 {
                break
            }
        }
        removeFolders(of: place)
        throw .folder(error)
    }

    /// The two folders of a place. A missing `objects` itself is made by the repair of the whole folder.
    private static func folders(of place: String) -> (first: String, second: String) {
        (String(place.dropLast(36)), String(place.dropLast(33)))
    }

    private func makeFolders(of place: String) throws(DiskTierError) {
        let (first, second) = Self.folders(of: place)
        if calls.makeFolder(second) == 0 || errno == EEXIST { return }
        guard errno == ENOENT else { throw .folder(SystemError("mkdir \(second)")) }
        if calls.makeFolder(first) != 0, errno != EEXIST { throw .folder(SystemError("mkdir \(first)")) }
        // Where that fails since the first one is gone again, the next turn makes both.
        if calls.makeFolder(second) != 0, errno != EEXIST, errno != ENOENT {
            throw .folder(SystemError("mkdir \(second)"))
        }
    }

    /// Removes the folders that a place was in, where they are empty now; blocks.
    func removeFolders(of place: String) {
        // A temporary file, for example, is in none of these folders.
        guard place.hasPrefix("\(objects)/"), place.utf8.count == objects.utf8.count + 39 else { return }
        let (first, second) = Self.folders(of: place)
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
    /// - Throws: `DiskTierError.folder`; then the files are still there.
    func discardObjects() throws(DiskTierError) {
        guard isHeld else { throw .folder(SystemError("rename \(objects)", code: ESTALE)) }
        try Self.discard(objects, trash, calls)
    }

    /// Whether the folder at this place is the one that was taken, and not one that another
    /// daemon has made since; blocks.
    var isHeld: Bool { lock.withLock { $0?.holds(path) ?? false } }

    private static func discard(_ objects: String, _ trash: String, _ calls: FileCalls) throws(DiskTierError) {
        let target = "\(trash)/\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        guard calls.rename(objects, target) == 0 else { throw .folder(SystemError("rename \(objects)")) }
        // Where that fails, the next file makes it.
        _ = calls.makeFolder(objects)
    }

    /// Removes some of what waits in the trash; blocks.
    /// - Returns: whether there is more that can be removed.
    func emptyTrash(files most: Int) -> Bool {
        var left = most
        for name in FolderNames.of(trash) where left > 0 { remove("\(trash)/\(name)", &left) }
        return left == 0
    }

    /// - Parameter left: how many files may still be removed; below zero where one cannot be.
    private func remove(_ path: String, _ left: inout Int) {
        left -= 1
        if calls.unlink(path) == 0 { return }
        guard errno == EISDIR else { return left = -1 }
        for name in FolderNames.of(path) where left > 0 { remove("\(path)/\(name)", &left) }
        if left > 0 { _ = calls.removeFolder(path) }
    }

    /// Bytes that the file system has left for us.
    func available() -> Int64? { calls.available(path) }

    /// Makes the folder if it is missing, and marks it for later openers; blocks.
    /// - Returns: the state of the folder before.
    /// - Throws: `DiskTierError`; then the folder is unchanged, or has a part of the mark if the disk failed.
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

    /// Empties a store of an older format; pins and the secret stay, since their format never changed.
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
        // Last: a process that is killed before begins again.
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

    /// Reads the secret, or makes one; files that were named with a lost one keep their names.
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
    /// The lock on the file `lock`, the only one that version 0.1.0 checks; -1 if it is not held.
    private var file: Int32 = -1

    /// Takes the folder and changes nothing in it; blocks.
    /// - Throws: `DiskTierError.inUse` where another process has it.
    init(_ path: String) throws(DiskTierError) {
        folder = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folder < 0 { throw .folder(SystemError("open \(path)")) }
        // Some network file systems lock only files that are open for writing: there the lock file must do.
        guard flock(folder, LOCK_EX | LOCK_NB) != 0, [EWOULDBLOCK, EINTR].contains(errno) else { return }
        close(folder)
        throw .inUse(path: path)
    }

    /// Locks the file, too, and makes it if it is missing; blocks.
    mutating func takeFile(_ path: String, _ calls: FileCalls) throws(DiskTierError) {
        if file >= 0 { close(file) }
        file = calls.open("\(path)/lock", O_RDWR | O_CREAT, 0o600)
        if file < 0 { throw .folder(SystemError("open \(path)/lock")) }
        if flock(file, LOCK_EX | LOCK_NB) == 0 { return }
        throw errno == EWOULDBLOCK ? .inUse(path: path) : .folder(SystemError("flock \(path)/lock"))
    }

    /// Whether the folder of that name is still the one that is locked; blocks.
    func holds(_ path: String) -> Bool {
        var (mine, there) = (stat(), stat())
        guard fstat(folder, &mine) == 0, stat(path, &there) == 0 else { return false }
        return mine.st_dev == there.st_dev && mine.st_ino == there.st_ino
    }

    /// Lets another process use the folder.
    func release() {
        for descriptor in [file, folder] where descriptor >= 0 {
            // Closing alone would not do while a child that was just forked has a copy of the descriptor.
            flock(descriptor, LOCK_UN)
            close(descriptor)
        }
    }
}
