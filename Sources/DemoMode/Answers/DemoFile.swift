// An answer file of demo mode, read as a whole when the plan is built, and its media type, from the extension of its
// name.

package import EventLoop
import Glibc

/// The bytes of an answer file and their properties; shared by every answer, never read again. The name and the time
/// are those of the file that was read.
///
/// Sendable: it is immutable.
package final class DemoFile: Sendable {
    /// The path that was given to `load`.
    package let path: String
    /// The length in bytes.
    package let count: Int
    /// All bytes of a small file; empty if ``large`` has them.
    private let small: [UInt8]
    // The memory is filled before this object is shared, and never written again; it is freed in deinit, unless it
    // belongs to the memory file.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer?
    /// The anonymous file with the bytes of a large file, as long as there are descriptors for it.
    package let memory: MemoryFile?
    /// The media type for the extension of the file's name; `application/octet-stream` if the extension is unknown.
    package let contentType: String
    /// A strong entity tag that depends on the bytes only: the same file has the same tag on every machine (RFC 9110
    /// section 8.8.3).
    package let entityTag: String
    /// The time of the last change in seconds since 1970, no later than the file was read (RFC 9110 section 8.8.2.1);
    /// nil for bytes that are not from a file.
    package let modifiedAt: Int64?

    package init(path: String, bytes: [UInt8], contentType: String, modifiedAt: Int64? = nil) {
        self.path = path
        self.modifiedAt = modifiedAt
        self.contentType = contentType
        count = bytes.count
        entityTag = Self.entityTag(of: bytes)
        guard bytes.count >= Self.largeFile else {
            (small, base, memory) = (bytes, nil, nil)
            return
        }
        memory = MemoryFile(count: bytes.count)
        let base = memory?.base ?? .allocate(byteCount: bytes.count, alignment: 16)
        bytes.withUnsafeBytes { base.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(base), byteCount: $0.count) }
        (small, self.base) = ([], base)
    }

    deinit { if memory == nil { base?.deallocate() } }

    /// The size in bytes from which on a file is kept in memory from which all its answers can be sent.
    private static let largeFile = 64 << 10

    /// The bytes of a large file, valid while this object is held: every answer is sent from here. Nil for a small
    /// file.
    package var large: UnsafeRawBufferPointer? { base.map { UnsafeRawBufferPointer(start: $0, count: count) } }

    /// The bytes; those of a large file are copied.
    package var bytes: [UInt8] { large.map(Array.init) ?? small }

    /// A strong entity tag that depends on the bytes only.
    package static func entityTag(of bytes: [UInt8]) -> String {
        let digest = bytes.withUnsafeBytes { fingerprint($0) }
        return "\"\(String(bytes.count, radix: 16))-\(String(digest, radix: 16))\""
    }

    /// The default limit of an answer file: 64 MiB.
    package static let defaultLimit = 64 << 20

    /// Reads a regular file; blocks the calling thread, so it is called while a plan is built and never on a loop.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the working directory.
    ///   - limit: the most bytes that the file may have.
    /// - Throws: `DemoFileError` if there is no such file, if it is not a regular file or too large, or if it cannot be
    ///   read.
    package static func load(path: String, limit: Int = defaultLimit) throws(DemoFileError) -> DemoFile {
        // O_NONBLOCK keeps the reload from blocking on a named pipe, which is refused below.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw DemoFileError(path: path, reason: errno == ENOENT ? .missing : .unreadable(errno: errno))
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw DemoFileError(path: path, reason: .unreadable(errno: errno))
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw DemoFileError(path: path, reason: .notARegularFile)
        }
        guard status.st_size <= limit else {
            throw DemoFileError(path: path, reason: .tooLarge(limit: limit))
        }
        let bytes = try readAll(descriptor, path: path, expected: Int(status.st_size), limit: limit)
        let modifiedAt = min(Int64(status.st_mtim.tv_sec), Int64(time(nil)))
        return DemoFile(path: path, bytes: bytes, contentType: mediaType(forPath: path), modifiedAt: modifiedAt)
    }

    /// Reads to the end of the file, which may have grown or shrunk since its size was read.
    private static func readAll(
        _ descriptor: Int32,
        path: String,
        expected: Int,
        limit: Int
    ) throws(DemoFileError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(expected)
        var buffer = [UInt8](repeating: 0, count: min(max(expected, 4096), 1 << 20))
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0 {
                if errno == EINTR { continue }
                throw DemoFileError(path: path, reason: .unreadable(errno: errno))
            }
            if count == 0 { return bytes }
            guard bytes.count + count <= limit else {
                throw DemoFileError(path: path, reason: .tooLarge(limit: limit))
            }
            bytes.append(contentsOf: buffer[..<count])
        }
    }
}

/// The reason why an answer file cannot be part of a plan.
package struct DemoFileError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Reason: Sendable, Equatable {
        case missing
        case notARegularFile
        case tooLarge(limit: Int)
        case unreadable(errno: Int32)
    }

    /// The path as it was given.
    package let path: String
    package let reason: Reason

    package init(path: String, reason: Reason) {
        self.path = path
        self.reason = reason
    }

    /// The path, the mistake and the remedy.
    package var description: String {
        switch reason {
        case .missing:
            "demo file \(path) does not exist: create it, or correct `file` or `files`"
        case .notARegularFile:
            "demo file \(path) is not a regular file: name a file that holds the answer"
        case .tooLarge(let limit):
            "demo file \(path) is larger than \(limit) bytes: name a smaller file"
        case .unreadable(let number):
            "demo file \(path) cannot be read (\(String(cString: strerror(number)))): check its permissions"
        }
    }
}

// MARK: - Media types

/// The media type for the extension of the last path component, compared without case; `application/octet-stream` if
/// there is none or it is not known.
package func mediaType(forPath path: String) -> String {
    let name = path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "application/octet-stream" }
    return mediaTypes[name[name.index(after: dot)...].lowercased()] ?? "application/octet-stream"
}

private let mediaTypes: [String: String] = [
    "avif": "image/avif",
    "bin": "application/octet-stream",
    "bmp": "image/bmp",
    "css": "text/css; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "gif": "image/gif",
    "gz": "application/gzip",
    "heic": "image/heic",
    "htm": "text/html; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/vnd.microsoft.icon",
    "ics": "text/calendar; charset=utf-8",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "map": "application/json",
    "md": "text/markdown; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "mov": "video/quicktime",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ndjson": "application/x-ndjson",
    "ogg": "audio/ogg",
    "otf": "font/otf",
    "pdf": "application/pdf",
    "plist": "application/x-plist",
    "png": "image/png",
    "svg": "image/svg+xml",
    "tar": "application/x-tar",
    "ttf": "font/ttf",
    "txt": "text/plain; charset=utf-8",
    "wasm": "application/wasm",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webmanifest": "application/manifest+json",
    "webp": "image/webp",
    "woff": "font/woff",
    "woff2": "font/woff2",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "zip": "application/zip",
]
