// The temporary file that the stored parts of one representation share, each part at its place.

package import EventLoop
import Glibc
import Synchronization

/// It has the layout of a stored file, so that it becomes one when nothing is missing. Made without I/O: the file is
/// created with its first bytes, and removed with the object unless it was sealed.
///
/// Sendable: the state is under a mutex, held for moments; the file is created under another, on I/O threads only.
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

    /// Takes over the file of a body that was cut short; nil if it has none.
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
        // A loop may be the last user: the removal of a large file can take a while.
        let (path, calls) = (path, calls)
        if isOpen { pool.submit { _ = calls.unlink(path) } }
    }

    /// Bytes that are reserved on the disk for this file.
    package var reserved: Int { state.withLock { $0.reserved } }

    /// Where the bytes of a part go while they arrive.
    /// - Parameters:
    ///   - position: of its first byte, in the representation.
    ///   - count: its length in bytes.
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

    /// A part that the file holds; nil before its first bytes.
    package func body(_ range: Range<Int64>) -> Body? {
        guard let file = state.withLock({ $0.file }) else { return nil }
        return .file(
            file,
            offset: FileLayout.bodyOffset + range.lowerBound,
            length: range.upperBound - range.lowerBound
        )
    }

    /// Creates the file at the first call; I/O thread.
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

    /// Asks the tier for room; I/O thread.
    func reserve(_ bytes: Int) -> Bool {
        guard room.reserve(bytes) else { return false }
        state.withLock { $0.reserved += bytes }
        return true
    }

    /// Completes the file, which lacks only the bytes of `extra`, so that the tier can commit it.
    /// - Parameter extra: bytes that are in memory, each with its position.
    /// - Throws: `BodyError` where it cannot be written or read.
    package func seal(length: Int64, extra: [(Int64, Chunk)]) async throws -> SpillFile {
        let file = try await pool.run { [self] in
            let file = try open()
            for (position, chunk) in extra {
                try chunk.withBytes { bytes throws(BodyError) in
                    let place = FileLayout.bodyOffset + position
                    try SpillFile.write(bytes, to: file.descriptor, at: place, file.calls)
                }
            }
            return file
        }
        var sums = BlockSums()
        // In steps, so that a long file does not keep an I/O thread from everybody else.
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
