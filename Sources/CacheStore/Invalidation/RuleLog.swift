// The file that keeps the rules over a restart, so that purged and invalidated responses do not return, and its
// records.

import EventLoop
import Files
import Glibc
import Synchronization

/// The file of rules: appends records on an I/O thread, and rewrites the file when most of it is out of date. A written
/// record survives the process, a synced one the machine.
///
/// Sendable: pending records are under one mutex, held for moments; the file is written under another, on I/O threads
/// only.
final class RuleLog: Sendable {
    private struct Waiting {
        var records: [RuleRecord] = []
        /// Whether the file has to be rewritten.
        var isOutOfDate = false
    }

    private struct File {
        /// The number of records in the file.
        var count = 0
        /// The most records in the file before it is rewritten.
        var most = RuleLog.least
        /// Whether the last write failed, so that the file's content is unknown.
        var isDamaged = false
        /// Whether some of the file may not have reached the disk.
        var isUnsynced = false
        var isClosed = false
        /// Whether the folder belongs to another owner, so that nothing is written into it.
        var isAway = false
    }

    /// The number of records up to which a file is not rewritten for being out of date.
    static let least = 4096
    private let path: String
    private let pool: IOPool
    private let waiting = Mutex(Waiting())
    private let file = Mutex(File())

    private let isOurs: @Sendable () -> Bool

    /// Makes a log.
    /// - Parameter isOurs: returns whether the folder is still the locked one; blocks.
    init(path: String, pool: IOPool, isOurs: @escaping @Sendable () -> Bool = { true }) {
        self.path = path
        self.pool = pool
        self.isOurs = isOurs
    }

    /// Reads the file; blocks. An unreadable file does not keep the daemon from starting.
    /// - Parameter isExpected: whether something was stored beside it, so that there must be a file.
    /// - Returns: the records, and a text about lost ones; nil if there are none.
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
        // Records after a torn end would have to be looked for byte by byte.
        waiting.withLock { $0.isOutOfDate = true }
        return (records, loss)
    }

    /// Appends records; returns when they, and all earlier ones, are on the disk.
    /// - Parameter all: returns the records for a new file, if it must be rewritten.
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

    /// Rewrites the file in the background if most of it is out of date; any thread.
    /// - Parameter count: the number of records in force.
    func shrink(to count: Int, _ all: @escaping @Sendable () -> [RuleRecord]) {
        guard file.withLock({ $0.count > 2 * count + 64 }) else { return }
        rewrite(all)
    }

    /// Rewrites the file in the background; any thread.
    func rewrite(_ all: @escaping @Sendable () -> [RuleRecord]) {
        waiting.withLock { $0.isOutOfDate = true }
        pool.submit { [self] in try? write(all, isSynced: true) }
    }

    /// Appends records; returns when they, and those that waited before them, have reached the disk; blocks.
    /// - Throws: `SystemError` if they have not.
    func persist(_ records: [RuleRecord], all: () -> [RuleRecord]) throws(SystemError) {
        waiting.withLock { $0.records += records }
        try write(all, isSynced: true)
    }

    /// Rewrites the file if the last write has failed; blocks. After another failure the next call tries again.
    func repeatFailed(_ all: () -> [RuleRecord]) {
        guard file.withLock({ $0.isDamaged }) else { return }
        try? write(all, isSynced: true)
    }

    /// Sets whether the folder belongs to another owner: nothing is written then; afterwards ``rewrite(_:)`` is needed.
    /// Waits for a write that has begun.
    func setAway(_ isAway: Bool) { file.withLock { $0.isAway = isAway } }

    /// Writes pending records, and closes the file. Blocks.
    func close(_ all: () -> [RuleRecord]) {
        waiting.withLock { $0.isOutOfDate = true }
        try? write(all, isSynced: true)
        file.withLock { $0.isClosed = true }
    }

    private func write(_ all: () -> [RuleRecord], isSynced: Bool) throws(SystemError) {
        try file.withLock { file throws(SystemError) in
            guard !file.isClosed else { return }
            if file.isAway || !isOurs() {
                // The whole file is written when the folder is ours again.
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
                // The file was removed.
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

// MARK: - Records

/// The record of one rule.
struct RuleRecord: Sendable, Equatable {
    enum What: Sendable, Equatable {
        case name(InvalidationRule)
        case pattern(PurgeRule)
        /// A mark that replaces dropped rules.
        case floor
    }

    var what: What
    var mark: RuleSet.Mark
    var isSoft: Bool

    init(_ what: What, _ mark: RuleSet.Mark, isSoft: Bool = false) {
        self.what = what
        self.mark = mark
        self.isSoft = isSoft
    }

    /// The most bytes of a record; no rule has a longer name.
    static let longest = 128 * 1024
    private static let fixedSize = 18

    // The kinds of records; a pattern's kind is that of its target.
    private enum Kind {
        static let name: UInt8 = 1
        static let floor: UInt8 = 2
        static let url: UInt8 = 3
        static let prefix: UInt8 = 4
        static let glob: UInt8 = 5
        static let tag: UInt8 = 6
        static let olderThan: UInt8 = 7
        static let all: UInt8 = 8
    }

    /// Appends the record: length, CRC32C of the rest, kind, flags, number, time; then the name, or a pattern's service
    /// and text.
    func encode(into bytes: inout [UInt8]) {
        var payload: [UInt8] = []
        let (kind, service, text) = parts
        payload.append(kind)
        payload.append((isSoft ? 1 : 0) | (service == nil ? 0 : 2))
        payload.add(mark.number)
        payload.add(UInt64(bitPattern: mark.time))
        if let service {
            payload.add(UInt32(truncatingIfNeeded: service.count))
            payload += service
        }
        payload += text
        bytes.add(UInt32(truncatingIfNeeded: payload.count))
        bytes.add(payload.withUnsafeBytes(CRC32C.of))
        bytes += payload
    }

    private var parts: (kind: UInt8, service: [UInt8]?, text: [UInt8]) {
        switch what {
        case .name(let name): return (Kind.name, nil, name.bytes)
        case .floor: return (Kind.floor, nil, [])
        case .pattern(let rule):
            let service = rule.service.map { Array($0.utf8) }
            switch rule.target {
            case .url(let url): return (Kind.url, service, Array(url.utf8))
            case .prefix(let prefix): return (Kind.prefix, service, Array(prefix.utf8))
            case .glob(let pattern): return (Kind.glob, service, Array(pattern.utf8))
            case .tag(let tag): return (Kind.tag, service, Array(tag.utf8))
            case .olderThan(let time):
                var bytes: [UInt8] = []
                bytes.add(UInt64(bitPattern: time))
                return (Kind.olderThan, service, bytes)
            case .all: return (Kind.all, service, [])
            }
        }
    }

    /// The first record of every file, a rule without an effect, so that an empty file is recognized as incomplete.
    static let beginning = RuleRecord(.floor, RuleSet.Mark(number: 0, time: 0))

    /// Decodes the readable records, without the ``beginning``.
    /// - Returns: the records, and whether the file has no others.
    static func decode(_ bytes: [UInt8]) -> (records: [RuleRecord], isWhole: Bool) {
        bytes.withUnsafeBytes { bytes in
            var records: [RuleRecord] = []
            var isWhole = true
            var position = 0
            while position < bytes.count {
                if let (record, length) = record(at: position, bytes) {
                    if record != beginning { records.append(record) }
                    position += length
                } else {
                    // Whole records may follow one that is damaged, or torn by a crash of the machine.
                    isWhole = false
                    position += 1
                }
            }
            return (records, isWhole)
        }
    }

    /// The record that begins at a position, and its length; nil if there is none.
    private static func record(at position: Int, _ bytes: UnsafeRawBufferPointer) -> (RuleRecord, length: Int)? {
        guard bytes.count - position >= 8 else { return nil }
        let length = Int(bytes.number(at: position, UInt32.self))
        guard length >= fixedSize, length <= longest, length <= bytes.count - position - 8 else { return nil }
        let payload = UnsafeRawBufferPointer(rebasing: bytes[(position + 8)..<(position + 8 + length)])
        guard bytes.number(at: position + 4, UInt32.self) == CRC32C.of(payload), let record = RuleRecord(payload) else {
            return nil
        }
        return (record, 8 + length)
    }

    /// Decodes bytes that the caller has checked: the checksum is right, and they are at least
    /// as long as the fixed part.
    private init?(_ bytes: UnsafeRawBufferPointer) {
        let flags = bytes[1]
        mark = RuleSet.Mark(
            number: bytes.number(at: 2, UInt64.self),
            time: Int64(bitPattern: bytes.number(at: 10, UInt64.self))
        )
        isSoft = flags & 1 != 0
        var rest = Array(bytes[Self.fixedSize...])
        var service: String?
        if flags & 2 != 0 {
            guard rest.count >= 4 else { return nil }
            let length = Int(rest.withUnsafeBytes { $0.number(at: 0, UInt32.self) })
            guard length <= rest.count - 4 else { return nil }
            service = String(decoding: rest[4..<(4 + length)], as: UTF8.self)
            rest.removeFirst(4 + length)
        }
        let text = String(decoding: rest, as: UTF8.self)
        let target: PurgeRule.Target
        switch bytes[0] {
        case Kind.name:
            what = .name(InvalidationRule(bytes: rest))
            return
        case Kind.floor:
            what = .floor
            return
        case Kind.url: target = .url(text)
        case Kind.prefix: target = .prefix(text)
        case Kind.glob: target = .glob(text)
        case Kind.tag: target = .tag(text)
        case Kind.olderThan:
            guard rest.count == 8 else { return nil }
            target = .olderThan(Int64(bitPattern: rest.withUnsafeBytes { $0.number(at: 0, UInt64.self) }))
        case Kind.all: target = .all
        default: return nil
        }
        what = .pattern(PurgeRule(target, service: service, isSoft: isSoft))
    }
}
