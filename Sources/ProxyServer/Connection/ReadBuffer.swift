// The bytes that a connection has read and not used yet.

import EventLoop

/// A pool of read buffers of one size; loop-bound. Idle connections hold no block.
final class BlockPool {
    let blockSize: Int
    // The first free block; each holds the address of the next in its first word. Owned by the pool until taken; freed
    // in deinit.
    private var free: UnsafeMutableRawPointer?
    private var count = 0
    private static let limit = 64

    init(blockSize: Int) { self.blockSize = blockSize }

    deinit { while count > 0 { take().deallocate() } }

    // Owned by the caller until given back.
    func take() -> UnsafeMutableRawPointer {
        guard let block = free else { return .allocate(byteCount: blockSize, alignment: 16) }
        free = block.load(as: UnsafeMutableRawPointer?.self)
        count -= 1
        return block
    }

    // Ownership comes back to the pool.
    func give(_ block: UnsafeMutableRawPointer) {
        guard count < Self.limit else { return block.deallocate() }
        block.storeBytes(of: free, as: UnsafeMutableRawPointer?.self)
        free = block
        count += 1
    }
}

@available(*, unavailable) extension BlockPool: Sendable {}

/// A window over one block; loop-bound. The owner calls `release` before it goes.
///
/// A class, since a value in a connection would pay for a check of exclusive access with every use.
final class ReadBuffer {
    // A block of the pool, ours from the first `room` to `release`.
    private var block: UnsafeMutableRawPointer?
    private var start = 0
    private var end = 0
    private let pool: BlockPool

    init(pool: BlockPool) { self.pool = pool }

    var count: Int { end - start }
    var isEmpty: Bool { start == end }
    var isFull: Bool { count == pool.blockSize }

    /// The bytes that were read and not consumed; valid until the next mutation.
    var bytes: UnsafeRawBufferPointer {
        // Valid until the next mutation, as said above.
        UnsafeRawBufferPointer(start: block.map { UnsafeRawPointer($0 + start) }, count: count)
    }

    /// Reads once, after the bytes that are there. The buffer must not be full.
    func read(from transport: any ByteTransport) -> IOResult {
        let result = transport.read(into: room())
        if case .bytes(let count) = result { end += count }
        return result
    }

    /// The free space for a read, after the bytes that are there; moves these to the front when little space is left.
    private func room() -> UnsafeMutableRawBufferPointer {
        let block = self.block ?? pool.take()
        self.block = block
        if start == end {
            start = 0
            end = 0
        } else if start > 0, pool.blockSize - end < 8192 {
            block.copyMemory(from: block + start, byteCount: count)
            end -= start
            start = 0
        }
        // The part of the block that holds nothing.
        return UnsafeMutableRawBufferPointer(start: block + end, count: pool.blockSize - end)
    }

    func consume(_ count: Int) {
        start += min(count, self.count)
        if start == end {
            start = 0
            end = 0
        }
    }

    /// Gives the block back to the pool; bytes in it are dropped.
    func release() {
        if let block { pool.give(block) }
        block = nil
        start = 0
        end = 0
    }
}

@available(*, unavailable) extension ReadBuffer: Sendable {}
