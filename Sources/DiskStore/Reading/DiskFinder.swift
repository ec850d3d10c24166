// What the disk tier finds without asking the disk: files in its table, and those that are open.

import CacheStore
import Glibc
import HTTPCaching
import Synchronization

/// The fast path asks it, so it holds what it uses itself.
///
/// Sendable: its members are.
final class DiskFinder: Sendable {
    private let parts: DiskParts
    private let nameKey: StoredFileNameKey
    private let openFiles: OpenFiles
    private let index: DiskIndex

    init(_ parts: DiskParts) {
        self.parts = parts
        nameKey = parts.folder.fileNameKey
        openFiles = parts.openFiles
        index = parts.index
    }

    // MARK: - The table

    /// The files of a key, newest first; any thread. While the folders are being walked, the result may name a file
    /// that does not exist: who reads it finds that out.
    /// - Parameter isCounted: whether an empty result counts as a miss; false outside of a lookup for a request.
    func lookup(_ key: CacheKey, isCounted: Bool) -> [DiskEntry] {
        let digest = StoredFileName(key.bytes, key: nameKey)
        return parts.state.withLock { state in
            if state.isClosed || state.isAway { return [] }
            let found = state.table.find(digest.low)
            if !found.isEmpty { return found.map { DiskEntry(key: key, slot: $0) } }
            if isCounted { state.statistics.misses += 1 }
            return state.mayLack(digest.low) ? [DiskEntry(key: key, guess: digest)] : []
        }
    }

    /// The files of a key except those of these variants, newest first; not counted as a lookup.
    func lookup(_ key: CacheKey, besides heads: [StoredHead]) -> [DiskEntry] {
        let known = Set(heads.map { parts.name(key, $0) })
        return lookup(key, isCounted: false).filter { !known.contains($0.name) }
    }

    /// The file of the variant that `head` is, if there is one; any thread.
    func entry(_ key: CacheKey, _ head: StoredHead) -> DiskEntry? {
        let name = parts.name(key, head)
        return lookup(key, isCounted: false).first { $0.name == name }
    }

    /// The file of the variant that `head` is, if it is the one with this number.
    func entry(_ key: CacheKey, _ head: StoredHead, number: UInt64) -> DiskEntry? {
        entry(key, head).flatMap { $0.fileID == number ? $0 : nil }
    }

    /// As ``ResponseTier/isKnownToHold(_:since:besides:)``.
    func isKnownToHold(_ key: CacheKey, since time: Int64, besides heads: [StoredHead]) -> Bool {
        // The names of variants cost more than their number.
        let newer = lookup(key, isCounted: false).filter { $0.storedAt >= time }
        guard newer.count > heads.count(where: { $0.responseTime >= time }) else { return false }
        let names = heads.map { parts.name(key, $0) }
        return newer.contains { !names.contains($0.name) }
    }

    // MARK: - Open files

    /// The response of a file that is open, as ``DiskReader`` gives it without `via`; nil where that must read it. Any
    /// thread; asks no disk.
    func loaded(_ entry: DiskEntry, isUse: Bool = true) -> StoredResponse? {
        guard let response = openFiles.find(entry.name, entry.fileID, isUse: isUse) else { return nil }
        if isUse { noteUse(parts.keyHash(entry.key), entry.name) }
        return response
    }

    /// Prepares the response of an open file for the hot path. Any thread; no disk access.
    /// - Parameters:
    ///   - headFormatID: as ``StoredResponse/headFormatID``; a response prepared for it already stays.
    ///   - make: makes the response without its body, as the memory tier would hold it.
    func makeReady(_ response: StoredResponse, headFormatID: UInt64, _ make: () -> ResidentResponse?) {
        guard let name = response.fileName else { return }
        openFiles.makeReady(name, response, headFormatID: headFormatID) {
            make().flatMap { ReadyFile($0, response, name: name, keyHash: parts.keyHash(response.key)) }
        }
    }

    /// The hot path: the only file of a key, if it is open, prepared, and unchanged since its head was read. Any
    /// thread; no disk access. The caller must check the invalidation rules.
    /// - Parameters:
    ///   - keyBytes: in the form of `CacheKey.bytes`.
    ///   - selects: whether the request selects a response that varies.
    func readyFile(_ keyBytes: UnsafeRawBufferPointer, where selects: (ResidentResponse) -> Bool) -> ReadyFile? {
        let hash = StoredFileName(keyBytes, key: nameKey).low
        let only = parts.state.withLock { $0.isClosed ? nil : $0.table.findOnly(hash) }
        guard let only, let ready = openFiles.findReady(only.name, only.fileID),
            ready.answers(keyBytes, where: selects)
        else { return nil }
        return ready
    }

    /// An answer was given from this file; any thread.
    func noteUse(_ keyHash: UInt64, _ name: StoredFileName) {
        let now = UInt32(clamping: time(nil))
        let news = parts.state.withLock { state in
            state.statistics.hits += 1
            return state.table.use(keyHash, name, now)
        }
        if let news { index.note(.used(name, IndexRow.use(of: news))) }
    }
}
