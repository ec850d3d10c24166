// What all parts of the disk tier share: the folder, the index, the table under its lock, and the locks of the files.

import CacheStore
import EventLoop
import HTTPCaching
import Synchronization

/// What the disk tier may use.
package struct DiskLimits: Sendable {
    /// Bytes of all files.
    package var size: Int64
    /// Bytes of one body; nil is one quarter of `size`.
    package var maxObject: Int64?
    /// Bytes that stay free on the file system.
    package var minFree: Int64

    package init(size: Int64 = 10 << 30, maxObject: Int64? = nil, minFree: Int64 = 1 << 30) {
        self.size = max(0, size)
        self.maxObject = maxObject
        self.minFree = max(0, minFree)
    }
}

/// A lock of a whole piece of work, on I/O threads only.
final class FileLock: Sendable {
    private let mutex = Mutex(())

    func withLock<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        try mutex.withLock { _ throws(E) in try body() }
    }
}

/// The parts of the tier know one another by what they do; what they do it with is here.
///
/// Sendable: the state is under its mutex; a file is changed, removed or given its name under its lock, on an I/O
/// thread; everything else never changes.
final class DiskParts: Sendable {
    let folder: DiskFolder
    let index: DiskIndex
    let pool: IOPool
    let limits: DiskLimits
    /// Stored beside the files, so that the rules outlive whatever the files outlive.
    let invalidations: Invalidations
    let troubles: TroubleTeller
    let state = Mutex(DiskState())
    let openFiles = OpenFiles()
    private let locks = (0..<64).map { _ in FileLock() }

    init(
        _ folder: DiskFolder,
        _ index: DiskIndex,
        _ pool: IOPool,
        _ limits: DiskLimits,
        _ invalidations: Invalidations,
        _ troubles: TroubleTeller
    ) {
        self.folder = folder
        self.index = index
        self.pool = pool
        self.limits = limits
        self.invalidations = invalidations
        self.troubles = troubles
    }

    var isSettled: Bool { state.withLock { $0.isSettled } }

    // MARK: - Locks of files

    func lock(_ name: StoredFileName) -> FileLock { locks[Int(name.low & 63)] }

    /// Runs `body` while no file is changed, removed or given its name. The caller must hold none of the locks.
    func withEveryLock<R, E: Error>(_ body: () throws(E) -> R, from first: Int = 0) throws(E) -> R {
        if first == locks.count { return try body() }
        return try locks[first].withLock { () throws(E) in try withEveryLock(body, from: first + 1) }
    }

    /// Takes and releases each lock, so that every change that was in progress has reached the index
    /// when this returns; blocks.
    func passLocks() { for lock in locks { lock.withLock {} } }

    // MARK: - Names

    func keyHash(_ key: CacheKey) -> UInt64 { digest(key).low }

    /// The hash of a key: the name of its file, where it has no selecting fields.
    func digest(_ key: CacheKey) -> StoredFileName { StoredFileName(key.bytes, key: folder.fileNameKey) }

    /// The name of a response's file: a hash of its key and, if it varies, of its selecting fields.
    func name(_ key: CacheKey, _ head: StoredHead) -> StoredFileName {
        StoredFileName(key.bytes + Caching.variantKey(head), key: folder.fileNameKey)
    }

    // MARK: - Reports

    func tell(_ failure: IndexFailure) {
        switch failure {
        case .unwritten(let reason):
            let text = "the index \(folder.index) cannot be written: \(reason): it is made anew at the next start"
            troubles.note(.index, text)
        case .replaced(let reason):
            troubles.note(.index, "the index \(folder.index) is damaged: \(reason): it is made anew from the files")
        }
    }
}
