// Helpers of these tests: tasks on loops, a paced writer, readers that check every byte, folders.

package import CacheStore
package import EventLoop
import Glibc
package import HTTPCaching
import HTTPWire
import LoopSupport

/// The byte of every test body at `position`.
package func patternByte(_ position: Int, seed: Int = 0) -> UInt8 {
    UInt8(truncatingIfNeeded: (position &+ seed) &* 31 ^ position >> 8 ^ position >> 16)
}

package func pattern(_ count: Int, seed: Int = 0) -> [UInt8] {
    seed == 0 ? Array(longPattern[..<count]) : (0..<count).map { patternByte($0, seed: seed) }
}

/// Made once: the tests would spend most of their time on it.
private let longPattern: [UInt8] = (0..<3_100_000).map { patternByte($0) }

/// A folder of its own under /tmp, removed with the object.
package final class Folder: Sendable {
    package let path: String

    package init() {
        var template = Array("/tmp/drydock-store-XXXXXX".utf8CString)
        path = template.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress, let made = mkdtemp(base) else { return "" }
            return String(cString: made)
        }
        precondition(!path.isEmpty, "no folder can be made under /tmp")
    }

    deinit {
        // Never anything but what was made above.
        if path.hasPrefix("/tmp/drydock-store-") { Self.remove(path) }
    }

    package static func remove(_ path: String) {
        for name in names(in: path) {
            let child = "\(path)/\(name)"
            if unlink(child) != 0 { remove(child) }
        }
        rmdir(path)
    }

    package static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// The length of a file in bytes; nil where there is none.
    package func size(of name: String) -> Int? {
        var status = stat()
        return stat("\(path)/\(name)", &status) == 0 ? Int(status.st_size) : nil
    }

    /// All plain files below `path`.
    package static func files(below path: String) -> [String] {
        names(in: path).flatMap { name in
            let child = "\(path)/\(name)"
            let inside = files(below: child)
            return inside.isEmpty && opensAsFile(child) ? [child] : inside
        }
    }

    private static func opensAsFile(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }
}

/// Writes `total` pattern bytes in steps, pausing when it is told to; loop-bound.
package final class Pump {
    package let writer: BodyWriter
    private let total: Int
    private let step: Int
    private let stopAt: Int?
    package private(set) var sent = 0
    package private(set) var pauses = 0
    private var done: UnsafeContinuation<Void, Never>?

    /// - Parameter stopAt: fail there.
    package init(_ writer: BodyWriter, total: Int, step: Int = 16 * 1024, stopAt: Int? = nil) {
        self.writer = writer
        self.total = total
        self.step = step
        self.stopAt = stopAt
        writer.onDrain = { [unowned self] in run() }
    }

    /// Until everything is written.
    package func finish(on loop: isolated EventLoop) async {
        await withUnsafeContinuation { continuation in
            done = continuation
            run()
        }
    }

    /// As much as the body takes now; true once everything is written.
    @discardableResult
    package func run() -> Bool {
        while sent < total {
            if let stopAt, sent >= stopAt {
                writer.fail(.source("cut"))
                return end()
            }
            let part = longPattern[sent..<min(total, sent + step)]
            sent += part.count
            if part.withUnsafeBytes(writer.append) == .pause {
                pauses += 1
                return false
            }
        }
        writer.finish()
        return end()
    }

    private func end() -> Bool {
        done?.resume()
        done = nil
        return true
    }
}

@available(*, unavailable) extension Pump: Sendable {}

/// What a reader found.
package struct ReadResult: Sendable, Equatable {
    package var count: Int
    /// Where the first piece with a wrong byte began.
    package var wrongAt: Int?
    package var error: BodyError?
    package var filePieces: Int

    package init(count: Int = 0, wrongAt: Int? = nil, error: BodyError? = nil, filePieces: Int = 0) {
        self.count = count
        self.wrongAt = wrongAt
        self.error = error
        self.filePieces = filePieces
    }
}

/// Reads a body to its end and compares every byte.
package func readAll(
    _ reader: BodyReader,
    maxBytes: Int = 64 * 1024,
    delay: UInt64 = 0,
    seed: Int = 0,
    on loop: isolated EventLoop
) async -> ReadResult {
    var result = ReadResult()
    let expected = pattern(seed == 0 ? longPattern.count : 1024 * 1024, seed: seed)
    do throws(BodyError) {
        while let piece = try await reader.next(maxBytes: maxBytes, on: loop) {
            let bytes: [UInt8]
            switch piece {
            case .bytes(let chunk, let range): bytes = chunk.array(range)
            case .file(let file, let offset, let count):
                result.filePieces += 1
                bytes = (try file.read(offset: offset, count: count)).array(0..<count)
            }
            if bytes[...] != expected[result.count..<result.count + bytes.count], result.wrongAt == nil {
                result.wrongAt = result.count
            }
            result.count += bytes.count
            if delay > 0 { try? await loop.sleep(nanoseconds: delay) }
        }
    } catch {
        result.error = error
    }
    return result
}

/// Reads a body from its start on a loop.
package func readAll(_ body: Body, maxBytes: Int = 64 * 1024, seed: Int = 0, on loop: EventLoop) async -> ReadResult? {
    await onLoop(loop) { loop in
        guard let reader = body.makeReader(on: loop) else { return nil }
        return await readAll(reader, maxBytes: maxBytes, seed: seed, on: loop)
    }
}

extension SpillFile {
    /// A spill without limits, for tests of bodies.
    package static func unlimited(_ path: String, pool: IOPool, maxObject: Int64 = .max) -> SpillFile {
        SpillFile(
            path: path,
            pool: pool,
            room: Room(reserve: { _ in true }, release: { _ in }, maxObject: maxObject)
        )
    }
}

package func storedHead(
    _ fields: [(String, String)] = [("Cache-Control", "max-age=60"), ("ETag", "\"1\"")],
    vary: [(String, String)] = [],
    length: Int64? = nil
) -> StoredHead {
    StoredHead(
        status: 200,
        reason: "OK",
        fields: Fields(fields),
        requestTime: 1000,
        responseTime: 1000,
        validatedAt: 1000,
        initialAge: 0,
        varyFields: Fields(vary),
        varyNames: vary.map { $0.0.lowercased() },
        bodyLength: length,
        requestMethod: .get,
        hadAuthorization: false
    )
}

package func key(_ number: Int) -> CacheKey { CacheKey(service: "s", url: "http://example.com/\(number)") }

/// A pool and a loop for as long as `body` runs.
package func withPool(_ body: (IOPool, EventLoop) async throws -> Void) async throws {
    let pool = try IOPool(threads: 2)
    let loop = try EventLoop.start()
    defer {
        loop.stop()
        pool.stop()
    }
    // As in the daemon: whoever waits for the pool is resumed on a loop.
    try await withTaskExecutorPreference(loop.taskExecutor) { try await body(pool, loop) }
}

package func contents(_ path: String) -> [UInt8] {
    let file = open(path, O_RDONLY)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: max(0, Int(lseek(file, 0, Int32(SEEK_END)))))
    let count = pread(file, &bytes, bytes.count, 0)
    return Array(bytes.prefix(max(0, count)))
}

package func overwrite(_ path: String, _ bytes: [UInt8]) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    defer { close(file) }
    precondition(pwrite(file, bytes, bytes.count, 0) == bytes.count, "\(path) cannot be written")
}

/// A copy of a folder as a killed process would leave it: without the lock, with everything that was written.
package func copyTree(_ from: String, _ to: String) {
    mkdir(to, 0o700)
    for name in Folder.names(in: from) {
        let source = "\(from)/\(name)"
        var status = stat()
        guard lstat(source, &status) == 0 else { continue }
        if status.st_mode & S_IFMT == S_IFDIR {
            copyTree(source, "\(to)/\(name)")
        } else {
            overwrite("\(to)/\(name)", contents(source))
        }
    }
}
