// The files of a seed folder: listed once without following what leads out of it, opened one by one.

package import EventLoop
import Glibc

/// A seed folder that cannot be used.
package enum SeedError: Error, Sendable, Equatable, CustomStringConvertible {
    case folder(SystemError)
    case notAFolder(path: String)
    case tooMany(path: String, limit: Int)
    /// A file that is no valid property list.
    case dates(path: String)

    package var description: String {
        switch self {
        case .folder(let error): "seed folder: \(error); correct the path, or the permissions of the folder"
        case .notAFolder(let path): "seed folder: \(path) is not a folder; correct the path"
        case .tooMany(let path, let limit):
            "seed folder: \(path) has more than \(limit) files; use several folders, or the disk tier"
        case .dates(let path):
            "seed folder: \(path) is not a property list of dates; restore it, or remove it and go without its dates"
        }
    }
}

/// A file as it was when it was opened.
struct SeedStamp: Equatable {
    var size: Int64
    /// Nanoseconds since 1970.
    var modified: Int64
    var inode: UInt64

    init(_ status: stat) {
        size = Int64(status.st_size)
        modified = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
        inode = UInt64(status.st_ino)
    }

    /// Unix seconds.
    var modifiedSeconds: Int64 { modified / 1_000_000_000 }
}

/// Every call blocks: on an I/O thread.
struct SeedFiles: Sendable {
    /// Without symbolic links in it.
    let root: String
    static let limit = 1_000_000
    private static let deepest = 64

    /// - Throws: `SeedError` where the path is no folder that can be read.
    init(_ path: String) throws(SeedError) {
        guard let real = Self.real(path) else { throw .folder(SystemError("open \(path)")) }
        var status = stat()
        guard stat(real, &status) == 0 else { throw .folder(SystemError("open \(path)")) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw .notAFolder(path: path) }
        guard let folder = opendir(real) else { throw .folder(SystemError("open \(path)")) }
        closedir(folder)
        root = real
    }

    /// The regular files below the folder, relative to it. Folders behind symbolic links are left out, and so are files
    /// behind links that lead out of the folder, and names that are no UTF-8.
    /// - Throws: `SeedError.tooMany`, or `.folder` where a folder in it cannot be read.
    func list(deep: Bool) throws(SeedError) -> Set<String> {
        var found: Set<String> = []
        var pending: [(path: String, depth: Int)] = [("", 0)]
        while let (folder, depth) = pending.popLast() {
            let place = folder.isEmpty ? root : "\(root)/\(folder)"
            guard let stream = opendir(place) else { throw .folder(SystemError("open \(place)")) }
            defer { closedir(stream) }
            while let entry = readdir(stream) {
                let bytes = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
                guard let name = String(validating: bytes, as: UTF8.self), name != ".", name != ".." else { continue }
                let path = folder.isEmpty ? name : "\(folder)/\(name)"
                switch kind(path) {
                case S_IFDIR: if deep, depth < Self.deepest { pending.append((path, depth + 1)) }
                case S_IFREG: found.insert(path)
                case S_IFLNK: if isInside(path) { found.insert(path) }
                default: break
                }
                guard found.count <= Self.limit else { throw .tooMany(path: root, limit: Self.limit) }
            }
        }
        return found
    }

    /// Opens a regular file inside the folder for reading.
    /// - Throws: `SystemError`; ENOENT, too, where a link leads out of the folder by now.
    func open(_ name: String) throws(SystemError) -> (descriptor: Int32, stamp: SeedStamp) {
        let path = "\(root)/\(name)"
        guard let real = Self.real(path) else { throw SystemError("open \(path)") }
        guard real.hasPrefix(root == "/" ? "/" : root + "/") else { throw SystemError("open \(path)", code: ENOENT) }
        // O_NONBLOCK: a pipe in the place of a file must not hang the thread; it is refused below.
        let descriptor = Glibc.open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW)
        guard descriptor >= 0 else { throw SystemError("open \(path)") }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw SystemError("open \(path)", code: EINVAL)
        }
        return (descriptor, SeedStamp(status))
    }

    /// Reads a small file as a whole.
    /// - Throws: `SystemError`; EFBIG if it has more than `limit` bytes.
    func read(_ name: String, limit: Int = 1 << 20) throws(SystemError) -> [UInt8] {
        let (descriptor, stamp) = try open(name)
        defer { close(descriptor) }
        guard stamp.size <= Int64(limit) else { throw SystemError("read \(root)/\(name)", code: EFBIG) }
        var bytes = [UInt8](repeating: 0, count: Int(stamp.size))
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress.map { $0 + done }, $0.count - done, off_t(done))
            }
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw SystemError("read \(root)/\(name)") }
            if count == 0 { break }
            done += count
        }
        return Array(bytes[..<done])
    }

    private func kind(_ path: String) -> mode_t {
        var status = stat()
        return lstat("\(root)/\(path)", &status) == 0 ? status.st_mode & S_IFMT : 0
    }

    private func isInside(_ path: String) -> Bool {
        guard let opened = try? open(path) else { return false }
        close(opened.descriptor)
        return true
    }

    private static func real(_ path: String) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        // Allocated by realpath for the caller.
        defer { free(real) }
        return String(cString: real)
    }
}
