// Stored files that stay open for a while, each with the response that was read from it: the next answer reads no head.

import CacheStore
import EventLoop
import Glibc
import Synchronization

/// The state of a file when its head was read; a file in another state was changed, cut or removed since. Two changes
/// within one tick of the kernel's clock of files, some milliseconds, look like one.
struct FileStamp: Hashable {
    /// In bytes.
    let size: Int64
    private let file: UInt64
    private let links, changed, changedNanoseconds, written, writtenNanoseconds: Int

    /// Nil where the kernel does not say. Asks no disk: the descriptor is open.
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

    /// Another one in each process: never zero, and its lowest bit is clear.
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
        /// What the hot path answers with.
        var ready: ReadyFile?
    }

    private struct State {
        var files: [StoredFileName: Opened] = [:]
        var uses: UInt64 = 0
    }

    /// A sixteenth of the descriptors that the process may have (RLIMIT_NOFILE), 256 at most.
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

    /// The same, ready for the hot path; nil where ``makeReady(_:_:headFormatID:_:)`` has made nothing of it.
    func findReady(_ name: StoredFileName, _ fileID: UInt64) -> ReadyFile? { opened(name, fileID, isUse: true)?.ready }

    private func opened(_ name: StoredFileName, _ fileID: UInt64, isUse: Bool) -> Opened? {
        let found = state.withLock { state -> Opened? in
            guard let place = state.files.index(forKey: name), state.files.values[place].response.number == fileID
            else { return nil }
            if isUse {
                state.uses += 1
                state.files.values[place].lastUse = state.uses
            }
            return state.files.values[place]
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
        // Closed here, outside the mutex.
        withExtendedLifetime(closed) {}
        if !isStored() { remove(name) }
    }

    /// Any thread.
    func remove(_ name: StoredFileName) {
        let removed = state.withLock { $0.files.removeValue(forKey: name) }
        withExtendedLifetime(removed) {}
    }

    /// Any thread.
    func removeAll() {
        let removed = state.withLock { state in
            defer { state.files = [:] }
            return state.files
        }
        withExtendedLifetime(removed) {}
    }
}
