// The parts of one representation that are stored or arriving, under one strong validator (RFC 9111 section 3.4), and
// the temporary file that they share.

package import EventLoop
import Glibc
import HTTPWire
import Synchronization

/// The parts of one representation. Sendable: the list of parts is under a mutex; bodies are Sendable.
package final class Extents: Sendable {
    /// A segment of a range: a stored or arriving part, or a hole.
    package enum Segment: Sendable {
        /// A range of a body, which may still grow, or fail.
        case present(Body, Range<Int64>)
        case missing(Range<Int64>)
    }

    private struct Part {
        var range: Range<Int64>
        /// The body, whose first byte is the first of the range.
        var body: Body
        var isArriving: Bool
    }

    /// The largest number of parts; further ones are sent to their clients and not kept.
    package static let limit = 256

    /// The length of the whole representation, in bytes.
    package let length: Int64
    /// The file of large parts; nil if all are in memory.
    package let file: SparseFile?
    /// The parts in order of their first bytes; they may overlap.
    private let parts = Mutex<[Part]>([])

    package init(length: Int64, file: SparseFile?) {
        self.length = length
        self.file = file
    }

    // MARK: - What is there

    /// The segments of a range; where parts overlap, a stored one is preferred to an arriving one.
    package func segments(_ range: Range<Int64>) -> [Segment] {
        parts.withLock { parts in
            var result: [Segment] = []
            var position = range.lowerBound
            while position < range.upperBound {
                let here = parts.filter { $0.range.contains(position) && $0.body.canServe }
                let best = here.max { left, right in
                    left.isArriving != right.isArriving
                        ? left.isArriving : left.range.upperBound < right.range.upperBound
                }
                if let best {
                    let end = min(best.range.upperBound, range.upperBound)
                    let start = best.range.lowerBound
                    result.append(.present(best.body, position - start..<end - start))
                    position = end
                } else {
                    let next = parts.first { $0.range.lowerBound > position && $0.body.canServe }?.range.lowerBound
                    let end = min(next ?? range.upperBound, range.upperBound)
                    result.append(.missing(position..<end))
                    position = end
                }
            }
            return result
        }
    }

    /// The first bytes of a range that are neither stored nor arriving.
    package func firstMissing(in range: Range<Int64>) -> Range<Int64>? {
        for case .missing(let hole) in segments(range) { return hole }
        return nil
    }

    /// The first bytes of some ranges, in their order, that are neither stored nor arriving.
    package func firstMissing(in ranges: [Range<Int64>]) -> Range<Int64>? {
        // Each range is evaluated once: a lazy `first` would evaluate it twice, and other threads
        // change the parts in between.
        for range in ranges { if let hole = firstMissing(in: range) { return hole } }
        return nil
    }

    /// The stored ranges in order, with adjacent ones joined.
    package var stored: [Range<Int64>] {
        parts.withLock { parts in
            var result: [Range<Int64>] = []
            for part in parts where !part.isArriving {
                if let last = result.last, part.range.lowerBound <= last.upperBound {
                    result[result.count - 1] = last.lowerBound..<max(last.upperBound, part.range.upperBound)
                } else {
                    result.append(part.range)
                }
            }
            return result
        }
    }

    /// Whether nothing is stored or arriving.
    package var isEmpty: Bool { parts.withLock { $0.isEmpty } }

    /// Whether the whole representation is stored.
    package var isComplete: Bool { length > 0 && stored == [0..<length] }

    /// The bytes of stored parts that are in memory.
    package var heldBytes: Int { parts.withLock { $0.reduce(0) { $1.isArriving ? $0 : $0 + $1.body.heldBytes } } }

    /// Whether some bytes are in the file.
    package var usesFile: Bool {
        parts.withLock { $0.contains { if case .file = $0.body.source { true } else { false } } }
    }

    // MARK: - Changes

    /// Adds a part that begins to arrive, and that others may read from now on.
    package func begin(_ range: Range<Int64>, _ body: Body) { insert(Part(range: range, body: body, isArriving: true)) }

    /// Adds a part that is stored as a whole.
    package func add(_ range: Range<Int64>, _ body: Body) {
        guard !range.isEmpty, body.knownLength == range.upperBound - range.lowerBound else { return }
        guard parts.withLock({ $0.count < Self.limit }) else { return }
        insert(Part(range: range, body: body, isArriving: false))
        mergeFiled()
    }

    /// Removes an arriving part that has ended; its kept bytes were added before.
    package func end(_ body: Body) {
        // The caller holds the body, so that nothing is released under the mutex.
        parts.withLock { $0.removeAll { $0.isArriving && $0.body === body } }
    }

    private func insert(_ part: Part) {
        parts.withLock { parts in
            let index = parts.firstIndex { $0.range.lowerBound > part.range.lowerBound } ?? parts.endIndex
            parts.insert(part, at: index)
        }
    }

    /// Joins adjacent parts of the file, so that reading in order does not fill the list.
    private func mergeFiled() {
        guard let file else { return }
        // The replaced list is released after the mutex.
        var before: [Part] = []
        parts.withLock { parts in
            var merged: [Part] = []
            for part in parts {
                guard !part.isArriving, case .file = part.body.source,
                    let last = merged.lastIndex(where: {
                        if case .file = $0.body.source { !$0.isArriving } else { false }
                    }), part.range.lowerBound <= merged[last].range.upperBound
                else {
                    merged.append(part)
                    continue
                }
                let end = max(merged[last].range.upperBound, part.range.upperBound)
                let range = merged[last].range.lowerBound..<end
                if let body = file.body(range) { merged[last] = Part(range: range, body: body, isArriving: false) }
            }
            swap(&before, &parts)
            parts = merged
        }
        withExtendedLifetime(before) {}
    }
}

// MARK: - Completion

extension Extents {
    /// Gathers all bytes into one body for the memory tier, and reads those in the file.
    /// - Parameter budget: the budget that counts the bytes.
    /// - Throws: `BodyError` if bytes are missing or cannot be read.
    package func gather(_ budget: BodyBudget? = nil) async throws -> Body {
        let whole = Chunk(capacity: Int(length), isKept: true, budget: budget)
        for segment in segments(0..<length) {
            guard case .present(let body, let range) = segment, let origin = origin(of: body) else {
                throw BodyError.truncated
            }
            for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.step) {
                let part = try await bytes(of: body, start..<min(range.upperBound, start + Int64(Self.step)))
                part.chunk.withBytes {
                    whole.fill(at: Int(origin + start), with: UnsafeRawBufferPointer(rebasing: $0[part.range]))
                }
            }
        }
        return .complete(whole)
    }

    /// The bytes that are read from the file at a time.
    private static let step = 1 << 20

    /// Makes a file of all bytes for the disk tier, and the body that reads it.
    /// - Throws: `BodyError` if bytes are missing, or cannot be written or read.
    package func seal() async throws -> (body: Body, spill: SpillFile) {
        guard let file, isComplete else { throw BodyError.truncated }
        let extra: [(Int64, Chunk)] = parts.withLock { parts in
            parts.compactMap { part in part.body.wholeChunk.map { (part.range.lowerBound, $0) } }
        }
        let spill = try await file.seal(length: length, extra: extra)
        guard let body = file.body(0..<length) else { throw BodyError.abandoned }
        return (body, spill)
    }

    /// The position of a part's first byte in the representation.
    private func origin(of body: Body) -> Int64? {
        parts.withLock { parts in parts.first { $0.body === body }?.range.lowerBound }
    }

    private func bytes(of body: Body, _ range: Range<Int64>) async throws -> (chunk: Chunk, range: Range<Int>) {
        switch body.source {
        case .chunk(let chunk): return (chunk, Int(range.lowerBound)..<Int(range.upperBound))
        case .file(let file, let offset, _):
            let count = Int(range.upperBound - range.lowerBound)
            let chunk = try await file.load(offset: offset + range.lowerBound, count: count)
            return (chunk, 0..<count)
        case .growing: throw BodyError.truncated
        }
    }
}

extension Body {
    /// Whether a reader that begins now can get every byte, unless the source fails later.
    fileprivate var canServe: Bool {
        guard case .growing(let growing) = source else { return true }
        return growing.canServe
    }

    /// The received bytes of a truncated body.
    /// - Returns: the number of bytes in the file, and the chunk in memory that follows them.
    package func salvage() -> (filed: Int64, rest: Chunk?) {
        guard case .growing(let growing) = source else { return (0, nil) }
        return growing.salvage()
    }

    /// Waits until the file has all bytes of a complete body.
    /// - Throws: `BodyError` if it cannot be written.
    package func flush() async throws {
        guard case .growing(let growing) = source else { return }
        try await growing.flush()
    }
}

// MARK: - The file

/// The file of parts. It has the layout of a stored file, so that it becomes one when nothing is missing. Made without
/// I/O: the file is created with its first bytes, and removed with the object unless it was sealed.
///
/// Sendable: the state is under a mutex that is held for moments; the file is created under another, on I/O threads
/// only.
package final class SparseFile: Sendable {
    private struct State {
        var file: SharedFile?
        var reserved = 0
        var isTaken = false
    }

    let path: String
    let pool: IOPool
    let calls: FileCalls
    let room: SpillFile.Room
    private let state: Mutex<State>
    private let creation = Mutex(())

    package init(path: String, pool: IOPool, room: SpillFile.Room, calls: FileCalls = .real) {
        self.path = path
        self.calls = calls
        self.pool = pool
        self.room = room
        state = Mutex(State())
    }

    /// Takes over the file of a truncated body; nil if it has none.
    package init?(of spill: SpillFile) {
        guard let (file, reserved) = spill.detach() else { return nil }
        path = spill.path
        pool = file.pool
        calls = file.calls
        room = spill.room
        state = Mutex(State(file: file, reserved: reserved))
    }

    deinit {
        let (isOpen, reserved) = state.withLock { ($0.file != nil && !$0.isTaken, $0.reserved) }
        room.release(reserved)
        // A loop may be the last user, and the removal of a large file can take a while.
        let (path, calls) = (path, calls)
        if isOpen { pool.submit { _ = calls.unlink(path) } }
    }

    /// The bytes that are reserved on the disk for this file.
    package var reserved: Int { state.withLock { $0.reserved } }

    /// The spill file for an arriving part.
    /// - Parameters:
    ///   - position: the position of the part's first byte in the representation.
    ///   - count: the length of the part in bytes.
    package func part(at position: Int64, count: Int64) -> SpillFile {
        SpillFile(
            partAt: position,
            of: path,
            pool: pool,
            // The reserved space belongs to this file.
            room: SpillFile.Room(
                reserve: { [self] in reserve($0) },
                release: { _ in },
                maxObject: room.maxObject - position,
                mend: { [self] in room.mend($0, $1, $2) }
            ),
            expected: count,
            calls: calls
        ) { [self] () throws(BodyError) in try open() }
    }

    /// The body of a part in the file; nil before its first bytes.
    package func body(_ range: Range<Int64>) -> Body? {
        guard let file = state.withLock({ $0.file }) else { return nil }
        return .file(
            file,
            offset: FileLayout.bodyOffset + range.lowerBound,
            length: range.upperBound - range.lowerBound
        )
    }

    /// Creates the file at the first call; on an I/O thread.
    func open() throws(BodyError) -> SharedFile {
        try room.retrying(0) { () throws(BodyError) in
            try creation.withLock { _ throws(BodyError) in
                if let file = state.withLock({ $0.file }) { return file }
                let file = try SpillFile.create(path, pool: pool, calls)
                state.withLock { $0.file = file }
                return file
            }
        }
    }

    /// Reserves bytes in the tier; false if there is no room. On an I/O thread.
    func reserve(_ bytes: Int) -> Bool {
        guard room.reserve(bytes) else { return false }
        state.withLock { $0.reserved += bytes }
        return true
    }

    /// Completes the file, which lacks only the bytes of `extra`, so that the tier can commit it.
    /// - Parameter extra: the bytes in memory, each chunk with its position.
    /// - Throws: `BodyError` if it cannot be written or read.
    package func seal(length: Int64, extra: [(Int64, Chunk)]) async throws -> SpillFile {
        let file = try await pool.run { [self] in
            let file = try open()
            for (position, chunk) in extra {
                try chunk.withBytes { bytes throws(BodyError) in
                    let offset = FileLayout.bodyOffset + position
                    try SpillFile.write(bytes, to: file.descriptor, at: offset, file.calls)
                }
            }
            return file
        }
        var sums = BlockSums()
        // The file is read in steps, so that a long one does not occupy an I/O thread.
        for start in stride(from: Int64(0), to: length, by: 16 << 20) {
            sums = try await pool.run { [sums] in
                var sums = sums
                var position = start
                while position < min(length, start + 16 << 20) {
                    let count = Int(min(256 << 10, length - position))
                    let block = try file.read(offset: FileLayout.bodyOffset + position, count: count)
                    block.withBytes { sums.update($0) }
                    position += Int64(count)
                }
                return sums
            }
        }
        let reserved = state.withLock { state in
            state.isTaken = true
            defer { state.reserved = 0 }
            return state.reserved
        }
        return SpillFile(sealed: file, path: path, room: room, length: length, sums: sums, reserved: reserved)
    }
}
