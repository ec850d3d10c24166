// The file that keeps invalidation rules over a restart, so that no member of an invalidated group comes back to life.

import EventLoop
import Glibc
import Synchronization

/// One rule as the file has it.
struct InvalidationRecord: Sendable, Equatable {
    var rule: InvalidationRule
    /// Unix seconds.
    var time: Int64

    static let longest = 64 * 1024

    /// Length of the name, time, name, CRC32C of all before it; little-endian.
    func encode(into bytes: inout [UInt8]) {
        let start = bytes.count
        let name = rule.bytes.prefix(Self.longest)
        withUnsafeBytes(of: UInt32(name.count).littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: time.littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: name)
        let sum = bytes[start...].withUnsafeBytes { Checksum.of($0) }
        withUnsafeBytes(of: sum.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// The records up to the first that is torn or damaged.
    static func decode(_ bytes: [UInt8]) -> [InvalidationRecord] {
        bytes.withUnsafeBytes { bytes in
            var records: [InvalidationRecord] = []
            var position = 0
            while bytes.count - position >= 16 {
                let length = Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self)))
                let end = position + 12 + length
                guard length <= longest, end + 4 <= bytes.count else { break }
                let sum = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: end, as: UInt32.self))
                guard sum == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[position..<end])) else { break }
                let time = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: position + 4, as: Int64.self))
                let name = Array(bytes[(position + 12)..<end])
                records.append(InvalidationRecord(rule: InvalidationRule(bytes: name), time: time))
                position = end + 4
            }
            return records
        }
    }
}

/// Appends records on an I/O thread, and writes the file anew when most of it is out of date.
///
/// Sendable: the file is written under the mutex only.
final class InvalidationLog: Sendable {
    private struct State {
        /// Records in the file.
        var count = 0
        /// The last write failed, or a rewrite is wanted: the file is written anew next time.
        var isDirty = false
        var isClosed = false
        var pending: [InvalidationRecord] = []
    }

    private let path: String
    private let pool: IOPool
    private let file = Mutex(State())

    init(path: String, pool: IOPool) {
        self.path = path
        self.pool = pool
    }

    /// What the file holds; blocks. What cannot be read is no reason not to start.
    func load() -> [InvalidationRecord] {
        let bytes = Self.read(path)
        let records = InvalidationRecord.decode(bytes)
        file.withLock { state in
            state.count = records.count
            // A torn end would hide what is appended behind it.
            state.isDirty = !bytes.isEmpty
        }
        return records
    }

    /// - Parameter all: what the file shall hold where it is written anew.
    func append(_ records: [InvalidationRecord], all: @escaping @Sendable () -> [InvalidationRecord]) {
        file.withLock { $0.pending += records }
        pool.submit { [self] in write(all) }
    }

    func rewrite(_ all: @escaping @Sendable () -> [InvalidationRecord]) {
        file.withLock { $0.isDirty = true }
        pool.submit { [self] in write(all) }
    }

    /// Blocks.
    func close(_ all: () -> [InvalidationRecord]) {
        write(all)
        file.withLock { $0.isClosed = true }
    }

    private func write(_ all: () -> [InvalidationRecord]) {
        file.withLock { state in
            guard !state.isClosed, !state.pending.isEmpty || state.isDirty else { return }
            state.count += state.pending.count
            if state.isDirty || state.count > 2 * Generations.mostRules {
                let records = all()
                state.count = records.count
                state.isDirty = !replace(records)
            } else {
                state.isDirty = !append(state.pending)
            }
            state.pending = []
        }
    }

    private func append(_ records: [InvalidationRecord]) -> Bool {
        write(records, to: open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600))
    }

    private func replace(_ records: [InvalidationRecord]) -> Bool {
        let temporary = "\(path).new"
        let isWritten = write(records, to: open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600))
        return isWritten && rename(temporary, path) == 0
    }

    private func write(_ records: [InvalidationRecord], to descriptor: Int32) -> Bool {
        if descriptor < 0 { return false }
        defer { Glibc.close(descriptor) }
        var bytes: [UInt8] = []
        for record in records { record.encode(into: &bytes) }
        var done = 0
        while done < bytes.count {
            let result = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if result < 0 && errno == EINTR { continue }
            if result <= 0 { return false }
            done += result
        }
        return true
    }

    private static func read(_ path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { return [] }
        defer { Glibc.close(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let result = Glibc.read(descriptor, &part, part.count)
            if result < 0 && errno == EINTR { continue }
            if result <= 0 { return bytes }
            bytes += part[..<result]
        }
    }
}
