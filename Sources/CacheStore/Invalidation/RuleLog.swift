// The file that keeps the rules over a restart, so that nothing that was purged or invalidated comes back to life.

import EventLoop
import Files
import Glibc
import Synchronization

/// Appends records on an I/O thread, and writes the file anew when most of it is out of date. A record that is written
/// outlives the process, however that ends; one that is synced outlives the machine.
///
/// Sendable: what waits is under one mutex, held for moments; the file is written under another, on I/O threads only.
final class RuleLog: Sendable {
    private struct Waiting {
        var records: [RuleRecord] = []
        /// The file is to be written anew.
        var isOutOfDate = false
    }

    private struct File {
        /// Records in it.
        var count = 0
        /// Records in it at most, before it is written anew.
        var most = RuleLog.least
        /// The last write failed, so the file's content is unknown.
        var isDamaged = false
        /// Something in it may not have reached the disk.
        var isUnsynced = false
        var isClosed = false
        /// The folder is somebody else's: nothing is written into it.
        var isAway = false
    }

    /// A file with fewer records is not written anew for being out of date.
    static let least = 4096
    private let path: String
    private let pool: IOPool
    private let waiting = Mutex(Waiting())
    private let file = Mutex(File())

    private let isOurs: @Sendable () -> Bool

    /// - Parameter isOurs: whether the folder is still the one that was taken; blocks.
    init(path: String, pool: IOPool, isOurs: @escaping @Sendable () -> Bool = { true }) {
        self.path = path
        self.pool = pool
        self.isOurs = isOurs
    }

    /// What the file holds; blocks. What cannot be read is no reason not to start.
    /// - Parameter isExpected: something was stored beside it, so that there must be a file.
    /// - Returns: the records, and what has become of the others; nil where there are none.
    func load(isExpected: Bool) -> (records: [RuleRecord], loss: String?) {
        var bytes: [UInt8] = []
        var loss: String?
        do throws(SystemError) {
            bytes = try WholeFile.readEdited(path)
            if isExpected, bytes.isEmpty { loss = "\(path) is empty" }
        } catch {
            if error.code != ENOENT {
                loss = "\(path) cannot be read (\(error.reason))"
            } else if isExpected {
                loss = "\(path) is gone"
            }
        }
        let (records, isWhole) = RuleRecord.decode(bytes)
        if !isWhole { loss = "\(path) is damaged" }
        file.withLock { $0.count = records.count }
        // Records appended after a torn end would be looked for byte by byte.
        waiting.withLock { $0.isOutOfDate = true }
        return (records, loss)
    }

    /// Returns when the records, and all earlier ones, are on the disk.
    /// - Parameter all: the records for a new file, if it must be rewritten.
    /// - Throws: `SystemError` if they cannot be written.
    func append(_ records: [RuleRecord], all: @escaping @Sendable () -> [RuleRecord]) async throws(SystemError) {
        waiting.withLock { $0.records += records }
        let failure: SystemError?
        do {
            failure = try await pool.run { [self] () -> SystemError? in
                do throws(SystemError) {
                    try write(all, isSynced: false)
                    return nil
                } catch {
                    return error
                }
            }
        } catch {
            failure = SystemError("write \(path)", code: ECANCELED)
        }
        if let failure { throw failure }
    }

    /// Writes the file anew, behind, where most of it is out of date; any thread.
    /// - Parameter count: of the records in force.
    func shrink(to count: Int, _ all: @escaping @Sendable () -> [RuleRecord]) {
        guard file.withLock({ $0.count > 2 * count + 64 }) else { return }
        rewrite(all)
    }

    /// Writes the file anew, behind; any thread.
    func rewrite(_ all: @escaping @Sendable () -> [RuleRecord]) {
        waiting.withLock { $0.isOutOfDate = true }
        pool.submit { [self] in try? write(all, isSynced: true) }
    }

    /// Returns when the records, and those that waited before them, have reached the disk; blocks.
    /// - Throws: `SystemError` where they have not.
    func persist(_ records: [RuleRecord], all: () -> [RuleRecord]) throws(SystemError) {
        waiting.withLock { $0.records += records }
        try write(all, isSynced: true)
    }

    /// Writes the file anew where the last write has failed; blocks. What fails again is tried again with the next call.
    func repeatFailed(_ all: () -> [RuleRecord]) {
        guard file.withLock({ $0.isDamaged }) else { return }
        try? write(all, isSynced: true)
    }

    /// Nothing is written while the folder is somebody else's; afterwards it is written anew (``rewrite(_:)``). Waits
    /// for a write that has begun.
    func setAway(_ isAway: Bool) { file.withLock { $0.isAway = isAway } }

    /// Blocks.
    func close(_ all: () -> [RuleRecord]) {
        waiting.withLock { $0.isOutOfDate = true }
        try? write(all, isSynced: true)
        file.withLock { $0.isClosed = true }
    }

    private func write(_ all: () -> [RuleRecord], isSynced: Bool) throws(SystemError) {
        try file.withLock { file throws(SystemError) in
            guard !file.isClosed else { return }
            if file.isAway || !isOurs() {
                // All of it is written when the folder is ours again.
                waiting.withLock { $0 = Waiting(isOutOfDate: true) }
                return
            }
            let (records, isOutOfDate) = waiting.withLock { waiting in
                defer { waiting = Waiting() }
                return (waiting.records, waiting.isOutOfDate)
            }
            // The records of this call may be among those that another call failed to write, or wrote without syncing.
            guard !records.isEmpty || isOutOfDate || file.isDamaged || isSynced && file.isUnsynced else { return }
            let isWhole = isOutOfDate || file.isDamaged || file.count == 0 || file.count + records.count > file.most
            file.isDamaged = true
            if isWhole {
                try replace(&file, all())
            } else if try WholeFile.append(Self.bytes(records), to: path, isSynced: isSynced) {
                file.count += records.count
                file.isUnsynced = !isSynced
            } else {
                // Somebody has removed it.
                try replace(&file, all())
            }
            file.isDamaged = false
        }
    }

    private func replace(_ file: inout File, _ records: [RuleRecord]) throws(SystemError) {
        try WholeFile.replace(path, with: Self.bytes([RuleRecord.beginning] + records))
        (file.count, file.isUnsynced) = (records.count, false)
        file.most = max(Self.least, 2 * records.count)
    }

    private static func bytes(_ records: [RuleRecord]) -> [UInt8] {
        var bytes: [UInt8] = []
        for record in records { record.encode(into: &bytes) }
        return bytes
    }
}
