// Helpers of the disk tier's tests: tiers on folders, entries, damage.

import Glibc
import HTTPCaching
import StoreSupport
import Synchronization
import Testing

@testable import CacheStore
@testable import DiskStore

/// Room enough, whatever the machine has left.
let ample = DiskLimits(size: 1 << 30, minFree: 0)

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
        return try await reader.load(entry, via: "1.1 test", policy: policy, inMemoryUpTo: bytes, verifiedUpTo: limit)
    }

    func remove(_ entry: DiskEntry) {
        remover.remove([DiskFileID(keyHash: parts.keyHash(entry.key), name: entry.name, fileID: entry.fileID)])
    }

    /// Keeps the files of a key from being evicted, or does so no more.
    func pin(_ key: CacheKey, _ isPinned: Bool) {
        let hash = parts.keyHash(key)
        parts.state.withLock { state in
            if isPinned { state.pin(key.description, [hash]) } else { state.unpin(key.description) }
        }
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
