// Stored files that stay open for a while, each with the response that was read from it: the next answer reads no head.

import EventLoop
import Glibc
import Synchronization

/// What a file said when its head was read; a file that says something else has been changed, cut or removed since.
struct FileStamp: Equatable {
    /// In bytes.
    private let size: Int64
    private let links, changed, changedNanoseconds, written, writtenNanoseconds: Int

    /// Nil where the kernel does not say. Asks no disk: the descriptor is open.
    init?(_ descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        (size, links) = (Int64(status.st_size), Int(status.st_nlink))
        (changed, changedNanoseconds) = (status.st_ctim.tv_sec, status.st_ctim.tv_nsec)
        (written, writtenNanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}

/// A bounded number of files; whoever removes or replaces one says so, since an open file keeps its room on the disk.
///
/// Sendable: everything is under the mutex.
final class OpenFiles: Sendable {
    private struct Opened {
        let response: StoredResponse
        let file: SharedFile
        let stamp: FileStamp
        var lastUse: UInt64
    }

    private struct State {
        var files: [Digest: Opened] = [:]
        var uses: UInt64 = 0
    }

    /// A sixteenth of the descriptors that the process may have (RLIMIT_NOFILE), 256 at most.
    static let limit = min(256, DescriptorLimit.current / 16)

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int = OpenFiles.limit) { self.limit = limit }

    var count: Int { state.withLock { $0.files.count } }

    /// The response of a file that is as it was when it was read. Any thread; asks no disk.
    /// - Parameters:
    ///   - fileID: what has replaced it since is another.
    ///   - isUse: it stays the longer for it.
    func find(_ name: Digest, _ fileID: UInt64, isUse: Bool = true) -> StoredResponse? {
        let found = state.withLock { state -> Opened? in
            guard state.files[name]?.response.number == fileID else { return nil }
            if isUse {
                state.uses += 1
                state.files[name]?.lastUse = state.uses
            }
            return state.files[name]
        }
        guard let found else { return nil }
        if FileStamp(found.file.descriptor) == found.stamp { return found.response }
        remove(name)
        return nil
    }

    /// Keeps a file open; the one that was not used for the longest makes room.
    /// - Parameters:
    ///   - stamp: of the file as it was read.
    ///   - isStored: asked afterwards, so that a file that is removed meanwhile does not stay.
    func keep(
        _ name: Digest,
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
    func remove(_ name: Digest) {
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
