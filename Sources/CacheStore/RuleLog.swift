// The file that keeps the rules over a restart, so that nothing that was purged or invalidated comes back to life.

import EventLoop
import Synchronization

/// Appends records on an I/O thread, and writes the file anew when most of it is out of date.
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
        /// The last write failed: what it holds is not known.
        var isDamaged = false
        var isClosed = false
    }

    /// Records in the file at most, before it is written anew.
    private static let most = 2 * (RuleSet.mostNames + RuleSet.mostPatterns)
    private let path: String
    private let pool: IOPool
    private let waiting = Mutex(Waiting())
    private let file = Mutex(File())

    init(path: String, pool: IOPool) {
        self.path = path
        self.pool = pool
    }

    /// What the file holds; blocks. What cannot be read is no reason not to start.
    func load() -> [RuleRecord] {
        let bytes = WholeFile.read(path)
        let records = RuleRecord.decode(bytes)
        file.withLock { $0.count = records.count }
        // A torn end would hide what is appended behind it.
        if !bytes.isEmpty { waiting.withLock { $0.isOutOfDate = true } }
        return records
    }

    /// Writes behind; any thread.
    /// - Parameter all: what the file shall hold where it is written anew.
    func append(_ records: [RuleRecord], all: @escaping @Sendable () -> [RuleRecord]) {
        waiting.withLock { $0.records += records }
        pool.submit { [self] in try? write(all) }
    }

    /// Writes the file anew, behind; any thread.
    func rewrite(_ all: @escaping @Sendable () -> [RuleRecord]) {
        waiting.withLock { $0.isOutOfDate = true }
        pool.submit { [self] in try? write(all) }
    }

    /// Returns when the records, and those that waited before them, have reached the disk; blocks.
    /// - Throws: `SystemError` where they have not.
    func persist(_ records: [RuleRecord], all: () -> [RuleRecord]) throws(SystemError) {
        waiting.withLock { $0.records += records }
        try write(all)
    }

    /// Blocks.
    func close(_ all: () -> [RuleRecord]) {
        waiting.withLock { $0.isOutOfDate = true }
        try? write(all)
        file.withLock { $0.isClosed = true }
    }

    private func write(_ all: () -> [RuleRecord]) throws(SystemError) {
        try file.withLock { file throws(SystemError) in
            guard !file.isClosed else { return }
            let (records, isOutOfDate) = waiting.withLock { waiting in
                defer { waiting = Waiting() }
                return (waiting.records, waiting.isOutOfDate)
            }
            guard !records.isEmpty || isOutOfDate else { return }
            let isWhole = isOutOfDate || file.isDamaged || file.count + records.count > Self.most
            let written = isWhole ? all() : records
            file.isDamaged = true
            if isWhole {
                try WholeFile.replace(path, with: Self.bytes(written))
            } else {
                try WholeFile.append(Self.bytes(written), to: path)
            }
            file.isDamaged = false
            file.count = isWhole ? written.count : file.count + written.count
        }
    }

    private static func bytes(_ records: [RuleRecord]) -> [UInt8] {
        var bytes: [UInt8] = []
        for record in records { record.encode(into: &bytes) }
        return bytes
    }
}
