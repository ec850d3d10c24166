// The memory of a resident response: one block of the heap, with its reference count inside.

import CProcessor
import EventLoop
import HTTPCaching
import Synchronization

/// Where a held response lies. The tables of a shard hold blocks, so that an entry takes no object besides; everybody
/// else has a ``ResidentResponse``.
///
/// Sendable: nothing in it changes after it is made but the two atomic numbers.
struct ResidentBlock: @unchecked Sendable {
    /// The fixed part of a block. The key, the prepared head, the body, and the record follow.
    struct Header: ~Copyable {
        let references = Atomic<UInt32>(1)
        var status: UInt16
        var traits: Traits
        /// The number of the latest rule that the response was checked against.
        let rulesSeen: Atomic<UInt64>
        /// As in ``HotPathWindow``.
        var start: Int64 = 0
        var freshFor: UInt32 = 0
        var initialAge: UInt32 = 0
        var headFormatID: UInt64
        var number: UInt64
        var keyCount: UInt32
        var headCount: UInt32
        var bodyCount: UInt32
        var recordCount: UInt32
    }

    struct Traits: OptionSet {
        let rawValue: UInt16
        static let hot = Traits(rawValue: 1)
        static let varies = Traits(rawValue: 2)
        static let hasTag = Traits(rawValue: 4)
        static let acceptsRanges = Traits(rawValue: 8)
        /// Names invalidate it, such as tags.
        static let hasNames = Traits(rawValue: 16)
        /// The body is a chunk of its own, of which the block holds a reference.
        static let hasChunk = Traits(rawValue: 32)
    }

    /// Bytes; what follows the processor fetches by itself.
    private static let prefetched = 512

    // Of the heap, until the last reference is released; a user of the block has a reference, or the
    // mutex of a shard that has one.
    private let header: UnsafeMutablePointer<Header>

    /// - Parameter address: of a block that has been made.
    init(_ address: UnsafeMutableRawPointer) { header = address.assumingMemoryBound(to: Header.self) }

    var address: UnsafeMutableRawPointer { UnsafeMutableRawPointer(header) }

    /// A block with one reference, the caller's.
    /// - Parameter parts: the key, the ready head, the body or the reference to its chunk, and the record.
    /// - Returns: nil where there is no memory.
    init?(_ header: consuming Header, _ parts: [UnsafeRawBufferPointer]) {
        let count = MemoryLayout<Header>.size + parts.reduce(0) { $0 + $1.count }
        guard let start = BlockHeap.shared.allocate(count) else { return nil }
        self.header = start.assumingMemoryBound(to: Header.self)
        self.header.initialize(to: header)
        // Just allocated, as large as the sum of the parts, and not shared yet.
        var room = UnsafeMutableRawBufferPointer(start: start, count: count)[MemoryLayout<Header>.size...]
        for part in parts {
            UnsafeMutableRawBufferPointer(rebasing: room).copyMemory(from: part)
            room = room.dropFirst(part.count)
        }
    }

    // MARK: - References

    func retain() { header.pointee.references.wrappingAdd(1, ordering: .relaxed) }

    func release() {
        // All reads of other threads come before the block is freed.
        let left = header.pointee.references.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue
        guard left == 0 else { return }
        chunk?.release()
        let count = byteCount
        header.deinitialize(count: 1)
        BlockHeap.shared.free(header, count)
    }

    static func == (left: ResidentBlock, right: ResidentBlock) -> Bool { left.header == right.header }

    // MARK: - Where it lies

    /// Prefetches the cache lines that a hit reads, so that they load at the same time.
    func prefetch() {
        for offset in stride(from: 0, to: Self.prefetched, by: 64) { c_processor_prefetch(address + offset) }
    }

    private var start: UnsafeRawPointer { UnsafeRawPointer(header + 1) }
    private var keyCount: Int { Int(header.pointee.keyCount) }
    private var headCount: Int { Int(header.pointee.headCount) }
    private var bodyCount: Int { Int(header.pointee.bodyCount) }
    private var recordCount: Int { Int(header.pointee.recordCount) }
    private var byteCount: Int { MemoryLayout<Header>.size + keyCount + headCount + bodyCount + recordCount }

    /// Its position depends on the lengths of key and head, so it is not aligned.
    var chunk: Unmanaged<Chunk>? {
        guard header.pointee.traits.contains(.hasChunk) else { return nil }
        let offset = keyCount + headCount
        return .fromOpaque(start.loadUnaligned(fromByteOffset: offset, as: UnsafeRawPointer.self))
    }

    private func bytes(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: start + offset, count: count)
    }

    var keyBytes: UnsafeRawBufferPointer { bytes(0, keyCount) }
    var readyHead: UnsafeRawBufferPointer { bytes(keyCount, headCount) }

    var body: UnsafeRawBufferPointer {
        if let chunk { return chunk._withUnsafeGuaranteedRef { $0.bytes } }
        return bytes(keyCount + headCount, bodyCount)
    }

    var file: MemoryFile? { chunk?._withUnsafeGuaranteedRef { $0.file } }

    var record: ResidentRecord { ResidentRecord(bytes(keyCount + headCount + bodyCount, recordCount)) }

    // MARK: - What it says

    var status: Int { Int(header.pointee.status) }
    var headFormatID: UInt64 { header.pointee.headFormatID }
    var number: UInt64 { header.pointee.number }
    var traits: Traits { header.pointee.traits }
    var varies: Bool { traits.contains(.varies) }
    var isHot: Bool { traits.contains(.hot) }
    var window: HotPathWindow {
        HotPathWindow(
            start: header.pointee.start,
            freshFor: header.pointee.freshFor,
            initialAge: header.pointee.initialAge
        )
    }

    var rulesSeen: UInt64 {
        get { header.pointee.rulesSeen.load(ordering: .relaxed) }
        nonmutating set { header.pointee.rulesSeen.store(newValue, ordering: .relaxed) }
    }

    /// Bytes of everything that it takes, without its places in the tables.
    var cost: Int { BlockHeap.cost(byteCount) + (chunk == nil ? 0 : body.count + 64) }
}

/// Keeps a block alive for the users of a response.
///
/// Sendable: the block changes only while the holder has a single owner, and is atomic besides.
final class BlockHolder: @unchecked Sendable {
    private let address: Atomic<UnsafeMutableRawPointer>

    var block: ResidentBlock { ResidentBlock(address.load(ordering: .acquiring)) }

    /// - Parameter block: with a reference that becomes the holder's.
    init(adopting block: ResidentBlock) { address = Atomic(block.address) }

    init(_ block: ResidentBlock) {
        block.retain()
        address = Atomic(block.address)
    }

    /// Puts another block into the holder; only for its single owner.
    func hold(_ other: ResidentBlock) {
        other.retain()
        let last = block
        address.store(other.address, ordering: .releasing)
        last.release()
    }

    deinit { block.release() }
}
