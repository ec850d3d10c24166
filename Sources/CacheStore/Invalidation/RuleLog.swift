// The file that keeps the rules over a restart, so that nothing that was purged or invalidated comes back to life, and
// the records that it is made of.

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

// MARK: - Records

/// One rule.
struct RuleRecord: Sendable, Equatable {
    enum What: Sendable, Equatable {
        case name(InvalidationRule)
        case pattern(PurgeRule)
        /// A mark in place of rules that were dropped.
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

    /// The largest record, in bytes; no rule makes longer names.
    static let longest = 128 * 1024
    private static let fixedSize = 18

    // Kinds of records; a pattern's is that of its target.
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

    /// Length, CRC32C of what follows, kind, flags, number, time; then the name, or a pattern's service and text.
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

    /// What every file begins with, so that an empty one is known to have lost something: a rule that concerns nothing.
    static let beginning = RuleRecord(.floor, RuleSet.Mark(number: 0, time: 0))

    /// The records that can be read, without the ``beginning``.
    /// - Returns: and whether that is all that the file has.
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
                    // Behind what is damaged, or torn by an end of the machine, further ones may be whole.
                    isWhole = false
                    position += 1
                }
            }
            return (records, isWhole)
        }
    }

    /// The record that begins at a place, and its length; nil where none does.
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
