// An open file that several readers share: its pieces go to sendfile once they are verified and in the page cache.

package import EventLoop
import Glibc
import Synchronization

/// An open file of a body. Sendable: the descriptor never changes and is closed with the last user; the set of verified
/// blocks is under a mutex.
package final class SharedFile: Sendable {
    /// The checksums of a stored body: one for each block of 256 KiB, counted from `bodyOffset`.
    package struct Verification: Sendable {
        let bodyOffset: Int64
        let bodyLength: Int64
        let sums: [UInt32]
        /// Called on the I/O thread that finds a block that is damaged, or cannot be read.
        let onDamage: @Sendable (BodyError) -> Void
        /// Called on the I/O thread that verifies the last block.
        let onVerified: @Sendable () -> Void

        package init(
            bodyOffset: Int64,
            bodyLength: Int64,
            sums: [UInt32],
            onDamage: @escaping @Sendable (BodyError) -> Void,
            onVerified: @escaping @Sendable () -> Void
        ) {
            self.bodyOffset = bodyOffset
            self.bodyLength = bodyLength
            self.sums = sums
            self.onDamage = onDamage
            self.onVerified = onVerified
        }
    }

    private struct Progress {
        var isVerified: [Bool]
        var remaining: Int
        /// The times at which pieces were last found in the page cache, in monotonic nanoseconds.
        var resident: [Range<Int64>: UInt64] = [:]
    }

    package let descriptor: Int32
    /// The most bytes in one piece of a file that is not completely verified, or needs no verification.
    package static let pieceSize = BlockSums.blockSize
    /// The most bytes in one piece of a completely verified file.
    private static let maximumPiece: Int64 = 1 << 20
    /// Nanoseconds for which a piece counts as in the page cache after it was found there. The kernel seldom drops
    /// pages that were just read; if it does, a loop once blocks for one read.
    private static let residencyTime: UInt64 = 1_000_000_000
    /// The most pieces whose residency is remembered.
    private static let maximumResident = 64
    let pool: IOPool
    let calls: FileCalls
    private let verification: Verification?
    private let progress: Mutex<Progress>

    /// Makes a shared file that owns the descriptor.
    package convenience init(descriptor: Int32, pool: IOPool, calls: FileCalls = .real) {
        self.init(descriptor: descriptor, pool: pool, calls: calls, verification: nil)
    }

    /// Makes a shared file.
    /// - Parameter isVerified: whether this process has verified the blocks before.
    package init(
        descriptor: Int32,
        pool: IOPool,
        calls: FileCalls,
        verification: Verification?,
        isVerified: Bool = false
    ) {
        self.descriptor = descriptor
        self.pool = pool
        self.calls = calls
        self.verification = verification
        let blocks = verification?.sums.count ?? 0
        progress = Mutex(
            Progress(isVerified: Array(repeating: isVerified, count: blocks), remaining: isVerified ? 0 : blocks)
        )
    }

    /// Opens a file for reading; blocks, so not on a loop.
    /// - Throws: `SystemError` that names the path.
    package static func open(_ path: String, pool: IOPool) throws(SystemError) -> SharedFile {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { throw SystemError("open \(path)") }
        return SharedFile(descriptor: descriptor, pool: pool)
    }

    deinit { close(descriptor) }

    /// The length of a piece at `offset`, at most `count` bytes: it ends with its block while that is not verified.
    package func pieceCount(at offset: Int64, count: Int64) -> Int {
        if verification != nil, progress.withLock({ $0.remaining == 0 }) { return Int(min(count, Self.maximumPiece)) }
        let start = offset - (verification?.bodyOffset ?? 0)
        let blockEnd = (start / Int64(Self.pieceSize) + 1) * Int64(Self.pieceSize)
        return Int(min(count, blockEnd - start))
    }

    /// Whether the piece may go to sendfile at once. Any thread; never waits for the disk.
    package func isReady(offset: Int64, count: Int) -> Bool {
        if let verification {
            let block = Int((offset - verification.bodyOffset) / Int64(Self.pieceSize))
            guard progress.withLock({ $0.isVerified[block] }) else { return false }
        }
        return isResident(offset: offset, count: count)
    }

    /// Verifies the block of a piece, unless this process has done so, and brings the piece into the page cache.
    func prepare(offset: Int64, count: Int) async throws(BodyError) {
        do {
            try await pool.run { [self] in try prepareNow(offset: offset, count: count) }
        } catch let error as BodyError {
            throw error
        } catch {
            throw .source("\(error)")
        }
    }

    /// Prepares a piece as ``prepare(offset:count:)`` does, on the calling I/O thread.
    func prepareNow(offset: Int64, count: Int) throws(BodyError) {
        guard let verification else {
            _ = try read(offset: offset, count: count)
            return
        }
        let block = Int((offset - verification.bodyOffset) / Int64(Self.pieceSize))
        if progress.withLock({ $0.isVerified[block] }) {
            _ = try read(offset: offset, count: count)
            return
        }
        let start = Int64(block) * Int64(Self.pieceSize)
        let length = Int(min(Int64(Self.pieceSize), verification.bodyLength - start))
        do throws(BodyError) {
            let bytes = try read(offset: verification.bodyOffset + start, count: length)
            guard bytes.withBytes(CRC32C.of) == verification.sums[block] else { throw .damaged(block: block) }
        } catch {
            verification.onDamage(error)
            throw error
        }
        let isLast = progress.withLock { progress in
            if progress.isVerified[block] { return false }
            progress.isVerified[block] = true
            progress.remaining -= 1
            return progress.remaining == 0
        }
        if isLast { verification.onVerified() }
    }

    /// Prepares the blocks of the first `count` bytes of a body of `length` bytes; on an I/O thread.
    package func prepareNow(first count: Int64, of length: Int64) throws(BodyError) {
        let start = verification?.bodyOffset ?? 0
        for position in stride(from: 0, to: min(count, length), by: Self.pieceSize) {
            let offset = start + position
            try prepareNow(offset: offset, count: pieceCount(at: offset, count: length - position))
        }
    }

    /// Reads exactly `count` bytes; blocks.
    /// - Parameter isKept: whether they are a whole stored body.
    package func read(offset: Int64, count: Int, isKept: Bool = false) throws(BodyError) -> Chunk {
        let chunk = Chunk(capacity: count, isKept: isKept)
        var done = 0
        while done < count {
            let room = chunk.room(done..<count)
            let result = calls.read(descriptor, room, offset + Int64(done))
            if result < 0 && errno == EINTR { continue }
            if result < 0 { throw .file(SystemError("read a stored body")) }
            if result == 0 { throw .truncated }
            done += result
        }
        return chunk
    }

    private func isResident(offset: Int64, count: Int) -> Bool {
        let piece = offset..<offset + Int64(count)
        let now = Monotonic.coarse()
        let isKnown = progress.withLock { progress in
            progress.resident[piece].map { now &- $0 < Self.residencyTime } ?? false
        }
        if isKnown { return true }
        guard isInPageCache(offset: offset, count: count) else { return false }
        progress.withLock { progress in
            if progress.resident.count >= Self.maximumResident { progress.resident.removeAll(keepingCapacity: true) }
            progress.resident[piece] = now
        }
        return true
    }

    /// Whether every page of the piece is in the page cache, by mincore on a mapping that is never accessed: a few
    /// microseconds.
    private func isInPageCache(offset: Int64, count: Int) -> Bool {
        let page = Int64(4096)
        let start = offset / page * page
        let length = Int(offset - start) + count
        // The mapping is removed below, and never read: it only serves to ask for residency.
        let mapping = mmap(nil, length, PROT_READ, MAP_SHARED, descriptor, off_t(start))
        guard let mapping, mapping != UnsafeMutableRawPointer(bitPattern: -1) else { return false }
        defer { munmap(mapping, length) }
        let pages = (length + 4095) / 4096
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: pages) { residency in
            mincore(mapping, length, residency.baseAddress) == 0 && residency.allSatisfy { $0 & 1 == 1 }
        }
    }
}
