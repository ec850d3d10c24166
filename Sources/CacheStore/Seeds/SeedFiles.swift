// The files of a seed folder: the file names for a URL, and the list of files, made once without following links that
// lead out of the folder.

package import EventLoop
import Glibc
import HTTPCaching
import Policies

/// Pure functions from URLs, as cache keys have them, to names relative to the folder. No name leads out of it: every
/// part of one is checked by ``isSafe(_:)``.
enum SeedNames {
    /// The suffix of the file with the head.
    static let headSuffix = ".head.json"
    /// The most bytes of a part, so that a file name of 255 bytes has room for the suffix.
    private static let longestPart = 240
    /// The first character of hashed names; readable names never begin with it.
    private static let hashMark: UInt8 = UInt8(ascii: "~")

    /// The file names under which a URL may be found, the likeliest first.
    static func candidates(_ url: String, _ layout: SeedLayout) -> [String] {
        switch layout {
        case .url: unique([plain(url), decoded(url)].compactMap { $0 })
        case .hashed: docker(url)
        }
    }

    // MARK: - Layout `url`

    /// The name `HOST[:PORT]/PATH[?QUERY]`, byte for byte; a path that ends with a slash has the file `index.html`.
    /// - Returns: nil if a part of the path cannot be a file name.
    static func plain(_ url: String) -> String? {
        guard let parts = split(url) else { return nil }
        return parts.allSatisfy { isSafe($0) && isPrintable($0) } ? join(parts) : nil
    }

    /// The name of a URL's file with `%20` and the like decoded, for files that were named by hand.
    static func decoded(_ url: String) -> String? {
        guard let parts = split(url) else { return nil }
        var result: [[UInt8]] = []
        for part in parts {
            guard let part = percentDecoded(part), isSafe(part) else { return nil }
            result.append(part)
        }
        return join(result)
    }

    /// A unique name for any URL; `number` counts the variants of one URL from 0 on.
    static func hashed(_ url: String, _ number: Int = 0) -> String {
        // Without a digest, only the number makes names unique.
        let name = "~" + (ContentDigest.sha256.hex(url.utf8) ?? "") + (number == 0 ? "" : ".\(number)")
        guard let host = split(url)?.first, isSafe(host), isPrintable(host) else { return name }
        return String(decoding: host, as: UTF8.self) + "/" + name
    }

    /// The host, folders and file name of a URL; nil if it is not absolute.
    private static func split(_ url: String) -> [[UInt8]]? {
        let bytes = Array(url.utf8)
        let slash = UInt8(ascii: "/")
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: Array("://".utf8))
        else {
            return nil
        }
        let rest = bytes[(colon + 3)...]
        let hostEnd = rest.firstIndex { $0 == slash || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        let pathEnd = rest[hostEnd...].firstIndex(of: UInt8(ascii: "?")) ?? rest.endIndex
        var parts = [Array(rest[..<hostEnd])]
        let path = rest[hostEnd..<pathEnd].dropFirst()
        parts += path.split(separator: slash, omittingEmptySubsequences: false).map { Array($0) }
        if parts.count == 1 || parts[parts.count - 1].isEmpty { parts[parts.count - 1] = Array("index.html".utf8) }
        parts[parts.count - 1] += rest[pathEnd...]
        return parts
    }

    // MARK: - Layout `docker`

    /// The names of the layout `docker`: the hash of the parent, in which runs of slashes are one, as the old library's
    /// path functions made them, and the last component with its escapes escaped. The app's request may have been
    /// encoded or not, so both forms are tried.
    private static func docker(_ url: String) -> [String] {
        var names: [String] = []
        for text in unique([url, percentDecoded(Array(url.utf8)).map { String(decoding: $0, as: UTF8.self) } ?? url]) {
            guard let (parent, last) = dockerParts(text) else { continue }
            guard let hash = ContentDigest.md5.hex(parent.utf8) else { continue }
            for name in [escaped(last), last] { names.append(hash + "_" + name) }
        }
        return unique(names).filter { isSafe(Array($0.utf8), upTo: 255) }
    }

    /// The parent and the last component of a URL, as path functions see it.
    static func dockerParts(_ url: String) -> (parent: String, last: String)? {
        let components = url.split(separator: "/")
        guard let last = components.last, components.count > 1 else { return nil }
        return (components.dropLast().joined(separator: "/"), String(last))
    }

    /// Whether a name consists of a hash and a name.
    static func isDocker(_ name: String) -> Bool {
        guard let line = name.firstIndex(of: "_"), name.utf8.distance(from: name.startIndex, to: line) == 32 else {
            return false
        }
        return name[..<line].allSatisfy(\.isHexDigit)
    }

    /// Parents by their hash.
    static func parents(_ urls: [String]) -> [String: String] {
        var parents: [String: String] = [:]
        for url in urls {
            let folder = url.hasSuffix("/") ? String(url.dropLast()) : url
            guard let (parent, _) = dockerParts(folder + "/x") else { continue }
            if let hash = ContentDigest.md5.hex(parent.utf8) { parents[hash] = folder }
        }
        return parents
    }

    /// The URL for a name of the layout `docker`, if its parent is known by hash.
    static func dockerURL(_ name: String, _ parents: [String: String]) -> String? {
        guard let line = name.firstIndex(of: "_"), let parent = parents[String(name[..<line])] else { return nil }
        let last = Array(name[name.index(after: line)...].utf8)
        if last.isEmpty { return nil }
        // A name with escaped escapes belongs to a URL that was encoded already.
        let isEncoded = name.contains("%25")
        let bytes = isEncoded ? percentDecoded(last) ?? last : last
        return parent + "/" + String(decoding: bytes, as: UTF8.self)
    }

    /// The URLs, with each scheme, from which ``plain(_:)`` may have made a name.
    static func urls(_ name: String) -> [String] {
        guard let slash = name.firstIndex(of: "/"), !name.contains("/~"), !name.hasPrefix("~") else { return [] }
        let host = String(name[..<slash])
        var path = escaped(String(name[slash...]), keepingEscapes: true)
        if path.hasSuffix("/index.html") { path.removeLast("index.html".utf8.count) }
        return ["https://", "http://"].map { $0 + host + path }
    }

    /// Percent-encodes characters that are not allowed in a URL, including `%`.
    /// - Parameter keepingEscapes: whether `%` is left unchanged.
    private static func escaped(_ text: String, keepingEscapes: Bool = false) -> String {
        var result = ""
        for byte in text.utf8 {
            let isOdd = byte <= 0x20 || byte >= 0x7f || "\"#%<>[\\]^`{|}".utf8.contains(byte)
            if isOdd, !(keepingEscapes && byte == UInt8(ascii: "%")) {
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            } else {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            }
        }
        return result
    }

    // MARK: - Parts

    /// Whether a file may have this name: one component that does not leave the folder, and that Drydock does not
    /// reserve.
    static func isSafe(_ part: [UInt8]) -> Bool { isSafe(part, upTo: longestPart) && part.first != hashMark }

    private static func isSafe(_ part: [UInt8], upTo longest: Int) -> Bool {
        if part.isEmpty || part.count > longest || part == [0x2e] || part == [0x2e, 0x2e] { return false }
        if part.suffix(headSuffix.utf8.count).elementsEqual(headSuffix.utf8) { return false }
        return part.allSatisfy { $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "/") }
    }

    private static func isPrintable(_ part: [UInt8]) -> Bool { part.allSatisfy { $0 > 0x20 && $0 < 0x7f } }

    private static func join(_ parts: [[UInt8]]) -> String {
        String(decoding: Array(parts.joined(separator: [0x2f])), as: UTF8.self)
    }

    /// Decodes percent-encoded bytes; nil if an escape is invalid, or the result is no UTF-8.
    static func percentDecoded(_ bytes: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if bytes[index] == UInt8(ascii: "%") {
                guard index + 2 < bytes.count, let high = digit(bytes[index + 1]), let low = digit(bytes[index + 2])
                else {
                    return nil
                }
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return String(validating: result, as: UTF8.self) == nil ? nil : result
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
    }

    private static func unique(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}

// MARK: - Finding them

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

/// The state of a file when it was opened.
struct SeedStamp: Equatable {
    var size: Int64
    /// The last change in nanoseconds since 1970.
    var modified: Int64
    var inode: UInt64

    init(_ status: stat) {
        size = Int64(status.st_size)
        modified = Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec)
        inode = UInt64(status.st_ino)
    }

    /// The last change in Unix seconds.
    var modifiedSeconds: Int64 { modified / 1_000_000_000 }
}

/// The files of a seed folder. Every call blocks: on an I/O thread.
struct SeedFiles: Sendable {
    /// The path of the folder, with symbolic links resolved.
    let root: String
    static let limit = 1_000_000
    private static let deepest = 64

    /// Opens a folder.
    /// - Throws: `SeedError` if the path is no folder that can be read.
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
    /// behind links that lead out of the folder, and names that are not UTF-8.
    /// - Throws: `SeedError.tooMany`, or `.folder` if a folder in it cannot be read.
    func list(deep: Bool) throws(SeedError) -> Set<String> {
        var found: Set<String> = []
        var pending: [(path: String, depth: Int)] = [("", 0)]
        while let (folder, depth) = pending.popLast() {
            let directory = folder.isEmpty ? root : "\(root)/\(folder)"
            guard let stream = opendir(directory) else { throw .folder(SystemError("open \(directory)")) }
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
    /// - Throws: `SystemError`; also ENOENT, if a link leads out of the folder now.
    func open(_ name: String) throws(SystemError) -> (descriptor: Int32, stamp: SeedStamp) {
        let path = "\(root)/\(name)"
        guard let real = Self.real(path) else { throw SystemError("open \(path)") }
        guard real.hasPrefix(root == "/" ? "/" : root + "/") else { throw SystemError("open \(path)", code: ENOENT) }
        // With O_NONBLOCK, a pipe at the path of a file does not block the thread; it is refused below.
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
        // The path was allocated by realpath for the caller.
        defer { free(real) }
        return String(cString: real)
    }
}
