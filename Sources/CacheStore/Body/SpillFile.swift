// The temporary file of a growing body that is being stored, filled on the I/O pool, and the file operations that a
// test can make fail.

package import EventLoop
import Glibc
import Synchronization

/// The temporary file of a body. Made without I/O: the file is created with its first bytes, and removed with the
/// object unless it was committed.
///
/// Sendable: the state is under a mutex; the growing body ensures that only one append is under way at a time.
package final class SpillFile: Sendable {
    /// The room for a temporary file in its tier.
    package struct Room: Sendable {
        /// Reserves bytes of the tier, with evictions if needed; false if there is no room. Called on an I/O thread.
        let reserve: @Sendable (_ bytes: Int) -> Bool
        /// Returns reserved bytes.
        let release: @Sendable (_ bytes: Int) -> Void
        /// The most bytes of one body.
        let maxObject: Int64
        /// Whether a failed file operation is worth another attempt, as the maker of the file decides. Called on an I/O
        /// thread.
        let mend: @Sendable (_ error: SystemError, _ attempt: Int, _ bytes: Int) -> Bool

        package init(
            reserve: @escaping @Sendable (_ bytes: Int) -> Bool,
            release: @escaping @Sendable (_ bytes: Int) -> Void,
            maxObject: Int64,
            mend: @escaping @Sendable (_ error: SystemError, _ attempt: Int, _ bytes: Int) -> Bool = { _, _, _ in false
            }
        ) {
            self.reserve = reserve
            self.release = release
            self.maxObject = maxObject
            self.mend = mend
        }

        /// Repeats a file operation as long as that is worth it.
        /// - Parameter bytes: the bytes that are to be written.
        package func retrying<R>(_ bytes: Int, _ body: () throws(BodyError) -> R) throws(BodyError) -> R {
            var attempt = 0
            while true {
                do throws(BodyError) {
                    return try body()
                } catch {
                    guard case .file(let reason) = error, mend(reason, attempt, bytes) else { throw error }
                    attempt += 1
                }
            }
        }
    }

    private struct State {
        var file: SharedFile?
        var sums = BlockSums()
        /// The bytes of the body in the file.
        package var written: Int64 = 0
        var reserved = 0
        /// Whether the file belongs to the tier now.
        var isCommitted = false
    }

    /// The beginning of an error whose cause is a limit, and no system call.
    package static let wantsRoom = "find room for"

    package let path: String
    /// The position of the body's first byte in the file.
    let offset: Int64
    let room: Room
    private let pool: IOPool
    private let calls: FileCalls
    /// Opens the shared file that this part is written to, and whose owner removes it; nil for a file of its own.
    private let openWhole: (@Sendable () throws(BodyError) -> SharedFile)?
    /// The declared length of the body in bytes; zero if there is none.
    private let expected: Int
    private let state = Mutex(State())

    /// Makes a file.
    /// - Parameter expected: the declared length of the body in bytes; zero if there is none.
    package init(path: String, pool: IOPool, room: Room, expected: Int64 = 0, calls: FileCalls = .real) {
        self.calls = calls
        self.expected = Int(clamping: expected)
        self.path = path
        self.pool = pool
        self.room = room
        offset = FileLayout.bodyOffset
        openWhole = nil
    }

    /// Makes a part of a shared file, which is not removed with this object.
    /// - Parameters:
    ///   - position: the position of the part's first byte in the whole body.
    ///   - open: opens the file, and creates it at the first call; called on I/O threads.
    package init(
        partAt position: Int64,
        of path: String,
        pool: IOPool,
        room: Room,
        expected: Int64,
        calls: FileCalls = .real,
        open: @escaping @Sendable () throws(BodyError) -> SharedFile
    ) {
        self.calls = calls
        self.expected = Int(clamping: expected)
        self.path = path
        self.pool = pool
        self.room = room
        offset = FileLayout.bodyOffset + position
        openWhole = open
    }

    /// Makes a file that already has all bytes.
    init(sealed file: SharedFile, path: String, room: Room, length: Int64, sums: BlockSums, reserved: Int) {
        expected = Int(clamping: length)
        self.path = path
        pool = file.pool
        calls = file.calls
        self.room = room
        offset = FileLayout.bodyOffset
        openWhole = nil
        state.withLock { $0 = State(file: file, sums: sums, written: length, reserved: reserved) }
    }

    deinit {
        let (isOpen, reserved) = state.withLock { ($0.file != nil && !$0.isCommitted, $0.reserved) }
        room.release(reserved)
        // A loop may be the last user, and the removal of a large file can take a while.
        let (path, calls) = (path, calls)
        if isOpen, openWhole == nil { pool.submit { _ = calls.unlink(path) } }
    }

    /// The file; nil before the first bytes.
    var file: SharedFile? { state.withLock { $0.file } }
    /// The bytes of the body in the file.
    package var written: Int64 { state.withLock { $0.written } }
    /// The checksums of the blocks of the body so far.
    package var sums: [UInt32] { state.withLock { $0.sums.sums } }
    /// The bytes of the tier's room that the file has taken.
    package var reserved: Int { state.withLock { $0.reserved } }

    /// Appends pieces, in order, on an I/O thread, and calls `done` there.
    func append(_ pieces: [(Chunk, Range<Int>)], done: @escaping @Sendable (Result<Void, BodyError>) -> Void) {
        pool.submit { [self] in
            do throws(BodyError) {
                try appendNow(pieces)
                done(.success(()))
            } catch {
                done(.failure(error))
            }
        }
    }

    /// Appends pieces as ``append(_:done:)`` does, on the calling I/O thread.
    package func appendNow(_ pieces: [(Chunk, Range<Int>)]) throws(BodyError) {
        let count = pieces.reduce(0) { $0 + $1.1.count }
        let file = try open()
        let start = written
        guard start + Int64(count) <= room.maxObject else { throw .source("larger than max_object") }
        // Space for the whole body is reserved at once, so that a body that cannot fit does not evict others first.
        let missing = max(expected, Int(start) + count) - reserved
        if missing > 0 {
            guard room.reserve(missing) else { throw .file(SystemError("\(Self.wantsRoom) \(path)", code: ENOSPC)) }
            state.withLock { $0.reserved += missing }
        }
        var position = offset + start
        var sums = state.withLock { $0.sums }
        for (chunk, range) in pieces {
            try chunk.withBytes { bytes throws(BodyError) in
                let part = UnsafeRawBufferPointer(rebasing: bytes[range])
                try room.retrying(max(expected - Int(start), count)) { () throws(BodyError) in
                    try Self.write(part, to: file.descriptor, at: position, calls)
                }
                sums.update(part)
            }
            position += Int64(range.count)
        }
        state.withLock { state in
            state.sums = sums
            state.written = start + Int64(count)
        }
    }

    /// Calls `use` with the written bytes, which are valid during the call; on an I/O thread.
    /// - Throws: `BodyError` if they cannot be mapped, and the errors of `use`.
    package func withBytes<R>(_ use: (UnsafeRawBufferPointer) throws -> R) throws -> R {
        let (file, written) = state.withLock { ($0.file, Int($0.written)) }
        guard let file, written > 0 else { return try use(UnsafeRawBufferPointer(start: nil, count: 0)) }
        let length = Int(offset) + written
        guard let base = mmap(nil, length, PROT_READ, MAP_SHARED, file.descriptor, 0), base != MAP_FAILED else {
            throw BodyError.file(SystemError("map \(path)"))
        }
        defer { munmap(base, length) }
        return try use(UnsafeRawBufferPointer(start: base + Int(offset), count: written))
    }

    /// Creates the file at the first call; on an I/O thread.
    package func open() throws(BodyError) -> SharedFile {
        if let file { return file }
        let file: SharedFile
        if let openWhole {
            file = try openWhole()
        } else {
            file = try room.retrying(0) { () throws(BodyError) in try Self.create(path, pool: pool, calls) }
        }
        state.withLock { $0.file = file }
        return file
    }

    static func create(_ path: String, pool: IOPool, _ calls: FileCalls) throws(BodyError) -> SharedFile {
        let descriptor = calls.open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        if descriptor < 0 { throw .file(SystemError("create \(path)")) }
        return SharedFile(descriptor: descriptor, pool: pool, calls: calls)
    }

    /// Gives the file away with its reserved space; nil if it is a shared file, or has no bytes.
    func detach() -> (file: SharedFile, reserved: Int)? {
        state.withLock { state in
            guard openWhole == nil, !state.isCommitted, let file = state.file else { return nil }
            defer { state.reserved = 0 }
            state.isCommitted = true
            return (file, state.reserved)
        }
    }

    /// Marks the file as committed, after the reservation has become its size.
    /// - Returns: the bytes that are no longer reserved.
    package func markCommitted() -> Int {
        state.withLock { state in
            defer { state.reserved = 0 }
            state.isCommitted = true
            return state.reserved
        }
    }

    /// Writes all bytes; blocks.
    package static func write(
        _ bytes: UnsafeRawBufferPointer,
        to descriptor: Int32,
        at offset: Int64,
        _ calls: FileCalls
    ) throws(BodyError) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let result = calls.write(descriptor, rest, offset + Int64(done))
            if result < 0 && errno == EINTR { continue }
            if result <= 0 { throw .file(SystemError("write a stored body", code: result == 0 ? ENOSPC : errno)) }
            done += result
        }
    }
}

// MARK: - System calls

/// The file operations, each as in the manual: a negative result means that `errno` has the reason. All of them block.
package struct FileCalls: Sendable {
    package var open: @Sendable (_ path: String, _ flags: Int32, _ mode: UInt32) -> Int32
    package var read: @Sendable (_ file: Int32, _ room: UnsafeMutableRawBufferPointer, _ offset: Int64) -> Int
    package var write: @Sendable (_ file: Int32, _ bytes: UnsafeRawBufferPointer, _ offset: Int64) -> Int
    package var truncate: @Sendable (_ file: Int32, _ length: Int64) -> Int32
    package var rename: @Sendable (_ from: String, _ to: String) -> Int32
    package var unlink: @Sendable (_ path: String) -> Int32
    package var makeFolder: @Sendable (_ path: String) -> Int32
    /// Removes an empty folder.
    package var removeFolder: @Sendable (_ path: String) -> Int32
    /// The free bytes of a folder's file system; nil if they are unknown.
    package var available: @Sendable (_ folder: String) -> Int64?

    /// The operations of the kernel. They do not follow a symbolic link at the path of a file, and do not wait for a
    /// pipe.
    package static let real = FileCalls(
        open: { Glibc.open($0, $1 | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, $2) },
        read: { pread($0, $1.baseAddress, $1.count, off_t($2)) },
        write: { pwrite($0, $1.baseAddress, $1.count, off_t($2)) },
        truncate: { ftruncate($0, off_t($1)) },
        rename: { Glibc.rename($0, $1) },
        unlink: { Glibc.unlink($0) },
        makeFolder: { mkdir($0, 0o700) },
        removeFolder: { rmdir($0) },
        available: { folder in
            var status = statvfs()
            guard statvfs(folder, &status) == 0 else { return nil }
            let (bytes, overflow) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(
                by: Int64(status.f_frsize)
            )
            return overflow ? .max : bytes
        }
    )
}
