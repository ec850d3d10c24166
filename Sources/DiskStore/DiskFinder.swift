// The lookups of the disk tier without disk access: files in its table, and recently used files that stay open.

import CacheStore
import EventLoop
import Glibc
import HTTPCaching
import Synchronization

/// Finds stored files. It holds what it uses itself, because the fast path asks it.
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

    /// The files of a key, newest first; any thread. While the folders are walked, the result may name a file that does
    /// not exist, which its reader finds out.
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

    /// The file of the same variant as `head`; nil if there is none. Any thread.
    func entry(_ key: CacheKey, _ head: StoredHead) -> DiskEntry? {
        let name = parts.name(key, head)
        return lookup(key, isCounted: false).first { $0.name == name }
    }

    /// The file of the same variant as `head`, if it has this number.
    func entry(_ key: CacheKey, _ head: StoredHead, number: UInt64) -> DiskEntry? {
        entry(key, head).flatMap { $0.fileID == number ? $0 : nil }
    }

    /// Whether the tier is known to hold such a response, as for ``ResponseTier/isKnownToHold(_:since:besides:)``.
    func isKnownToHold(_ key: CacheKey, since time: Int64, besides heads: [StoredHead]) -> Bool {
        // The names of variants cost more to compute than their number.
        let newer = lookup(key, isCounted: false).filter { $0.storedAt >= time }
        guard newer.count > heads.count(where: { $0.responseTime >= time }) else { return false }
        let names = heads.map { parts.name(key, $0) }
        return newer.contains { !names.contains($0.name) }
    }

    // MARK: - Open files

    /// The response of an open file, as ``DiskReader`` gives it without `via`; nil if ``DiskReader`` must read it. Any
    /// thread; no disk access.
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

    /// Records that a file has answered a request; any thread.
    func noteUse(_ keyHash: UInt64, _ name: StoredFileName) {
        let now = UInt32(clamping: time(nil))
        let news = parts.state.withLock { state in
            state.statistics.hits += 1
            return state.table.use(keyHash, name, now)
        }
        if let news { index.note(.used(name, IndexRow.use(of: news))) }
    }
}

// MARK: - Open files

/// The state of a file when its head was read; a different stamp means that the file was changed, truncated or removed
/// since. Two changes within one tick of the kernel's file clock, some milliseconds, cannot be told apart.
struct FileStamp: Hashable {
    /// The size of the file, in bytes.
    let size: Int64
    private let file: UInt64
    private let links, changed, changedNanoseconds, written, writtenNanoseconds: Int

    /// The stamp of an open file; nil if the kernel gives none. No disk access, because the descriptor is open.
    init?(_ descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    init(_ status: stat) {
        (size, links, file) = (Int64(status.st_size), Int(status.st_nlink), UInt64(status.st_ino))
        (changed, changedNanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
        (written, writtenNanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }

    /// The digest of the stamp, which differs between processes; it is never zero, and its lowest bit is clear.
    var digest: UInt64 {
        var hasher = Hasher()
        hash(into: &hasher)
        return max(2, UInt64(bitPattern: Int64(hasher.finalize())) & ~1)
    }
}

/// A bounded number of open files. Code that removes or replaces a file must say so here, because an open file
/// keeps its space on the disk.
///
/// Sendable: everything is under the mutex.
final class OpenFiles: Sendable {
    private struct Opened {
        let response: StoredResponse
        let file: SharedFile
        let stamp: FileStamp
        var lastUse: UInt64
        /// The prepared response for the hot path; nil if none is prepared.
        var ready: ReadyFile?
    }

    private struct State {
        var files: [StoredFileName: Opened] = [:]
        var uses: UInt64 = 0
    }

    /// The most open files: a sixteenth of the descriptors that the process may have (RLIMIT_NOFILE), and 256 at most.
    static let limit = DescriptorLimit.current.storedFiles

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int = OpenFiles.limit) { self.limit = limit }

    var count: Int { state.withLock { $0.files.count } }

    /// The response of an open file that has not changed since it was read. Any thread; no disk access.
    /// - Parameters:
    ///   - fileID: a file that has replaced it has another id.
    ///   - isUse: counts as a use, so that the file stays open longer.
    func find(_ name: StoredFileName, _ fileID: UInt64, isUse: Bool = true) -> StoredResponse? {
        opened(name, fileID, isUse: isUse)?.response
    }

    /// An open file, ready for the hot path; nil if ``makeReady(_:_:headFormatID:_:)`` has prepared nothing for it.
    func findReady(_ name: StoredFileName, _ fileID: UInt64) -> ReadyFile? { opened(name, fileID, isUse: true)?.ready }

    private func opened(_ name: StoredFileName, _ fileID: UInt64, isUse: Bool) -> Opened? {
        let found = state.withLock { state -> Opened? in
            guard let position = state.files.index(forKey: name), state.files.values[position].response.number == fileID
            else { return nil }
            if isUse {
                state.uses += 1
                state.files.values[position].lastUse = state.uses
            }
            return state.files.values[position]
        }
        guard let found else { return nil }
        if FileStamp(found.file.descriptor) == found.stamp { return found }
        remove(name)
        return nil
    }

    /// Stores a response prepared for the hot path with its open file. Any thread.
    /// - Parameters:
    ///   - headFormatID: as ``StoredResponse/headFormatID``: if no response is prepared for it, `make` is called.
    ///   - make: called outside the mutex.
    func makeReady(_ name: StoredFileName, _ response: StoredResponse, headFormatID: UInt64, _ make: () -> ReadyFile?) {
        func isWanted(_ state: State) -> Bool {
            state.files[name].map { $0.response === response && $0.ready?.held.headFormatID != headFormatID } ?? false
        }
        guard state.withLock({ isWanted($0) }), let ready = make() else { return }
        let replaced = state.withLock { state -> ReadyFile? in
            guard isWanted(state) else { return nil }
            let replaced = state.files[name]?.ready
            state.files[name]?.ready = ready
            return replaced
        }
        withExtendedLifetime(replaced) {}
    }

    /// Keeps a file open, and closes the least recently used one if there are too many.
    /// - Parameters:
    ///   - stamp: of the file as it was read.
    ///   - isStored: called afterwards, so that a file that was removed in the meantime is closed.
    func keep(
        _ name: StoredFileName,
        _ response: StoredResponse,
        _ file: SharedFile,
        _ stamp: FileStamp,
        isStored: () -> Bool
    ) {
        guard limit > 0 else { return }
        let closed = state.withLock { state -> [Opened?] in
            var evicted: Opened?
            if state.files[name] == nil, state.files.count >= limit,
                let oldest = state.files.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                evicted = state.files.removeValue(forKey: oldest.key)
            }
            state.uses += 1
            let opened = Opened(response: response, file: file, stamp: stamp, lastUse: state.uses)
            return [evicted, state.files.updateValue(opened, forKey: name)]
        }
        // The file is closed here, outside the mutex.
        withExtendedLifetime(closed) {}
        if !isStored() { remove(name) }
    }

    /// Closes a file. Any thread.
    func remove(_ name: StoredFileName) {
        let removed = state.withLock { $0.files.removeValue(forKey: name) }
        withExtendedLifetime(removed) {}
    }

    /// Closes all files. Any thread.
    func removeAll() {
        let removed = state.withLock { state in
            defer { state.files = [:] }
            return state.files
        }
        withExtendedLifetime(removed) {}
    }
}
