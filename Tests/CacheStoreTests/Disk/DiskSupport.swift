// Helpers of the disk tier's tests: tiers on folders, entries, damage.

import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import Testing

@testable import CacheStore

func key(_ number: Int) -> CacheKey { CacheKey(service: "s", url: "http://example.com/\(number)") }

/// Room enough, whatever the machine has left.
let ample = DiskLimits(size: 1 << 30, minFree: 0)

/// A pool and a loop for as long as `body` runs.
func withPool(_ body: (IOPool, EventLoop) async throws -> Void) async throws {
    let pool = try IOPool(threads: 2)
    let loop = try EventLoop.start()
    defer {
        loop.stop()
        pool.stop()
    }
    // As in the daemon: whoever waits for the pool is resumed on a loop.
    try await withTaskExecutorPreference(loop.taskExecutor) { try await body(pool, loop) }
}

extension DiskTier {
    @discardableResult
    func store(_ bytes: [UInt8], _ key: CacheKey, head: StoredHead = storedHead()) async throws -> DiskEntry {
        try await commit(.complete(bytes), key: key, head: head)
    }

    func load(
        _ key: CacheKey,
        inMemoryUpTo bytes: Int = 256 * 1024,
        verifiedUpTo limit: Int64 = 8 << 20
    ) async throws -> StoredResponse? {
        guard let entry = lookup(key).first else { return nil }
        let policy = CachePolicy()
        return try await load(entry, via: "1.1 test", policy: policy, inMemoryUpTo: bytes, verifiedUpTo: limit)
    }

    /// Nil for any miss.
    func bytes(_ key: CacheKey) async -> [UInt8]? {
        guard let chunk = try? await load(key)?.body.wholeChunk else { return nil }
        return chunk.array(0..<chunk.capacity)
    }
}

/// The one file of a folder's tier.
func onlyFile(_ folder: String) throws -> String {
    let files = Folder.files(below: "\(folder)/objects")
    #expect(files.count == 1)
    return try #require(files.first)
}

func contents(_ path: String) -> [UInt8] {
    let file = open(path, O_RDONLY)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: max(0, Int(lseek(file, 0, Int32(SEEK_END)))))
    let count = pread(file, &bytes, bytes.count, 0)
    return Array(bytes.prefix(max(0, count)))
}

func overwrite(_ path: String, _ bytes: [UInt8]) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    defer { close(file) }
    #expect(pwrite(file, bytes, bytes.count, 0) == bytes.count)
}

/// A copy of a folder as a killed process would leave it: without the lock, with everything that was written.
func copyTree(_ from: String, _ to: String) {
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
