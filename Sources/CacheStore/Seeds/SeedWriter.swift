// Writes stored responses into a seed folder that any program can read: a body and its head, each complete or absent.

package import EventLoop
import Glibc
import Synchronization

/// The counts of written responses.
package struct SeedTally: Sendable, Equatable {
    package var written = 0
    /// The bytes of the bodies.
    package var bytes: Int64 = 0
}

/// Writes responses into a seed folder. Sendable: the counts are under a mutex; one call writes at a time.
package final class SeedWriter: Sendable {
    private struct State {
        /// The names that are in use.
        var taken: Set<String> = []
        var tally = SeedTally()
    }

    private let files: SeedFiles
    private let pool: IOPool
    private let state = Mutex(State())

    /// Creates the folder if it is missing; blocks.
    /// - Throws: `SeedError` if it cannot be created or written.
    package init(_ path: String, pool: IOPool) throws(SeedError) {
        self.pool = pool
        guard Self.makeFolder(path) else { throw .folder(SystemError("mkdir \(path)")) }
        files = try SeedFiles(path)
        guard access(path, W_OK | X_OK) == 0 else { throw .folder(SystemError("write to \(path)")) }
    }

    package var tally: SeedTally { state.withLock { $0.tally } }

    /// Writes one response on an I/O thread. It replaces a file of the same name.
    /// - Throws: `SystemError` or `BodyError`; then the old file stays.
    package func write(_ response: StoredResponse) async throws {
        try await pool.run { [self] in try writeNow(response) }
    }

    private func writeNow(_ response: StoredResponse) throws {
        let url = "\(response.key)"
        let head = try SeedHead(response.head, url: url).encode()
        let temporary = "\(files.root)/.drydock-\(String(UInt64.random(in: 0 ... .max), radix: 36))"
        let temporaryHead = temporary + ".head"
        defer {
            unlink(temporary)
            unlink(temporaryHead)
        }
        let length = try BodyFile.write(response.body, to: temporary)
        _ = try BodyFile.write(.complete(head), to: temporaryHead)
        let target = "\(files.root)/\(try name(url))"
        // The head is written first, because a body without one would answer every URL with that name.
        try Self.move(temporaryHead, to: target + SeedNames.headSuffix)
        try Self.move(temporary, to: target)
        state.withLock { state in
            state.tally.written += 1
            state.tally.bytes += length
        }
    }

    // MARK: - Names

    /// The readable name, unless it belongs to another URL or leads through a file; then a name that only this URL has.
    /// Missing folders are created.
    private func name(_ url: String) throws(SystemError) -> String {
        if let plain = SeedNames.plain(url), isFree(plain, url), Self.makeFolders(files.root, plain) {
            if state.withLock({ $0.taken.insert(plain).inserted }) { return plain }
        }
        for number in 0... {
            let name = SeedNames.hashed(url, number)
            guard state.withLock({ $0.taken.insert(name).inserted }) else { continue }
            guard Self.makeFolders(files.root, name) else { throw SystemError("mkdir \(files.root)/\(name)") }
            return name
        }
        return SeedNames.hashed(url)
    }

    /// Whether the name is free: it is neither a folder nor a seed of another URL.
    private func isFree(_ name: String, _ url: String) -> Bool {
        var status = stat()
        guard lstat("\(files.root)/\(name)", &status) == 0 else { return errno == ENOENT }
        guard status.st_mode & S_IFMT == S_IFREG, let bytes = try? files.read(name + SeedNames.headSuffix) else {
            return false
        }
        return (try? SeedHead.decode(bytes).url) == url
    }

    /// Creates the folders of a name, one by one; false if something else has one of the names.
    private static func makeFolders(_ root: String, _ name: String) -> Bool {
        var path = root
        for part in name.split(separator: "/").dropLast() {
            path += "/" + part
            var status = stat()
            if lstat(path, &status) == 0 {
                guard status.st_mode & S_IFMT == S_IFDIR else { return false }
            } else if mkdir(path, 0o755) != 0, errno != EEXIST {
                return false
            }
        }
        return true
    }

    private static func makeFolder(_ path: String) -> Bool {
        if mkdir(path, 0o755) == 0 || errno == EEXIST { return true }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return false }
        return makeFolder(String(path[..<slash])) && (mkdir(path, 0o755) == 0 || errno == EEXIST)
    }

    private static func move(_ temporary: String, to target: String) throws(SystemError) {
        guard rename(temporary, target) == 0 else { throw SystemError("rename to \(target)") }
    }
}
