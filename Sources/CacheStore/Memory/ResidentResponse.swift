// A stored response in the memory tier: one block of memory with its reference count inside, from which everything else
// is made on demand.

import CProcessor
package import EventLoop
package import HTTPCaching
import HTTPWire
import Synchronization

/// A stored response with a whole body in memory. The hot path reads it in place; other code makes a ``StoredResponse``
/// of it.
package struct ResidentResponse: Sendable {
    /// The size from which bodies are not copied into the block, and may be in memory files of their own.
    static let inlineLimit = Chunk.memfdThreshold
    /// The bytes of an entry in the tables of its shard: a reference to the block, a node of the order, and up to three
    /// slots of the index.
    static let tableCost = 48

    let holder: BlockHolder

    /// Makes a response of a holder's block, which is shared.
    init(_ holder: BlockHolder) { self.holder = holder }

    var block: ResidentBlock { holder.block }

    /// Makes a response.
    /// - Returns: nil if the body is not one chunk in memory, or a part is longer than 4 GiB.
    package init?(_ response: StoredResponse) {
        guard let chunk = response.body.wholeChunk else { return nil }
        let (key, head) = (response.key.bytes, response.preparedHead)
        let isInline = chunk.capacity < Self.inlineLimit
        let bodyCount = isInline ? chunk.capacity : MemoryLayout<UnsafeRawPointer>.size
        let record = ResidentRecord.encode(
            response.head,
            readyHead: head,
            number: response.number,
            bodyCount: Int64(chunk.capacity)
        )
        guard let keySize = UInt32(exactly: key.count), let headSize = UInt32(exactly: head.count),
            let recordSize = UInt32(exactly: record.count)
        else { return nil }
        var traits: ResidentBlock.Traits = []
        if response.hot != nil { traits.insert(.hot) }
        if !response.head.varyNames.isEmpty { traits.insert(.varies) }
        if Caching.hasTag(response.head) { traits.insert(.hasTag) }
        if response.head.fields.contains(.acceptRanges) { traits.insert(.acceptsRanges) }
        if !response.rules.isEmpty { traits.insert(.hasNames) }
        if !isInline { traits.insert(.hasChunk) }
        let header = ResidentBlock.Header(
            status: UInt16(clamping: response.head.status),
            traits: traits,
            rulesSeen: Atomic(response.rulesSeen.load(ordering: .relaxed)),
            start: response.hot?.start ?? 0,
            freshFor: response.hot?.freshFor ?? 0,
            initialAge: response.hot?.initialAge ?? 0,
            headFormatID: response.headFormatID,
            number: response.number,
            keyCount: keySize,
            headCount: headSize,
            bodyCount: UInt32(bodyCount),
            recordCount: recordSize
        )
        let reference = UnsafeRawPointer(Unmanaged.passUnretained(chunk).toOpaque())
        let made = Self.block(header, key, head, isInline ? chunk.bytes : nil, reference, record)
        guard let made else { return nil }
        // The reference is released with the last one to the block.
        if !isInline { _ = Unmanaged.passRetained(chunk) }
        holder = BlockHolder(adopting: made)
    }

    /// Makes a block.
    /// - Parameters:
    ///   - body: the body; nil if the block has a reference to a chunk instead.
    private static func block(
        _ header: consuming ResidentBlock.Header,
        _ key: [UInt8],
        _ head: [UInt8],
        _ body: UnsafeRawBufferPointer?,
        _ reference: UnsafeRawPointer,
        _ record: [UInt8]
    ) -> ResidentBlock? {
        var header = Optional(header)
        return key.withUnsafeBytes { key in
            head.withUnsafeBytes { head in
                withUnsafeBytes(of: reference) { reference in
                    record.withUnsafeBytes { record in
                        guard let header = header.take() else { return nil }
                        return ResidentBlock(header, [key, head, body ?? reference, record])
                    }
                }
            }
        }
    }

    // MARK: - Where it lies

    /// The object that keeps the bytes valid.
    package var owner: AnyObject { holder }

    /// The key in the form of `CacheKey.bytes`. These and the other bytes are valid as long as the response is held.
    package var keyBytes: UnsafeRawBufferPointer { block.keyBytes }

    /// The status line, stored fields, Content-Length and Via, each line with its CRLF, without the empty line.
    package var readyHead: UnsafeRawBufferPointer { block.readyHead }

    package var body: UnsafeRawBufferPointer { block.body }

    /// The body as a chunk, for readers off the hot path.
    var chunk: Chunk { block.chunk?.takeUnretainedValue() ?? Chunk(of: body, in: holder) }

    var record: ResidentRecord { block.record }

    // MARK: - What it says

    package var status: Int { block.status }
    package var headFormatID: UInt64 { block.headFormatID }
    /// The number of the fetch that brought the body.
    package var number: UInt64 { block.number }
    var varies: Bool { block.varies }
    package var hasTag: Bool { block.traits.contains(.hasTag) }
    package var acceptsRanges: Bool { block.traits.contains(.acceptsRanges) }
    /// Whether names, such as tags, may invalidate the response.
    var hasNames: Bool { block.traits.contains(.hasNames) }

    /// The window of the hot path, as ``StoredResponse/hot``.
    package var hot: HotPathWindow? {
        let block = block
        guard block.isHot else { return nil }
        return block.window
    }

    /// The answer of the hot path, got by one call. It has no reference, so that copies of it cost nothing.
    package struct Ready {
        package let headFormatID: UInt64
        package let status: Int
        package let window: HotPathWindow
        /// The head, valid as long as the response is held, like `body`.
        package let head: UnsafeRawBufferPointer
        package let body: UnsafeRawBufferPointer
        /// The object of ``ResidentResponse/owner``, valid while the response is held; code that needs the bytes longer
        /// must retain it.
        package let owner: Unmanaged<AnyObject>

        /// Whether the response answers unchanged at this time (Unix seconds): fresh, and prepared in this format.
        package func answers(at now: Int64, as headFormatID: UInt64) -> Bool {
            window.isFresh(now: now) && self.headFormatID == headFormatID
        }
    }

    /// The memory file of the body; nil if the body is in the heap.
    package var file: MemoryFile? { block.file }

    /// The answer of the hot path; nil if the response is not answered on it.
    package var ready: Ready? {
        guard let hot else { return nil }
        let block = block
        return Ready(
            headFormatID: block.headFormatID,
            status: block.status,
            window: hot,
            head: block.readyHead,
            body: block.body,
            owner: .passUnretained(holder)
        )
    }

    package var key: CacheKey { CacheKey(bytes: Array(keyBytes)) }

    /// The stored response, made anew.
    package var response: StoredResponse { StoredResponse(self) }

    /// The head, decoded from the ready head and the record.
    package var head: StoredHead {
        record.head(status: status, readyHead: readyHead, number: number, bodyCount: Int64(body.count))
    }

    /// The number of the head, as ``StoredHead/number``.
    var headNumber: UInt64 { record.headNumber(number) }

    /// The bytes of everything that the response takes, with its entries in the tables.
    package var cost: Int { block.cost + Self.tableCost }

    /// The number of the latest rule that the response was checked against.
    var rulesSeen: UInt64 {
        get { block.rulesSeen }
        nonmutating set { block.rulesSeen = newValue }
    }

    /// Whether both are the same block.
    package static func === (left: ResidentResponse, right: ResidentResponse) -> Bool { left.block == right.block }
}

extension ResidentResponse {
    package var responseTime: Int64 { record.responseTime }

    /// The stored fields; valid as long as the response is held.
    package var lines: ResidentLines { ResidentLines(record.fields, readyHead: readyHead) }

    /// The validators for conditional requests, read in place; valid while the response is held.
    package var validators: BorrowedValidators {
        let (record, head) = (record, readyHead)
        func value(_ range: ResidentRecord.ValueRange) -> UnsafeRawBufferPointer? {
            range.count == 0 ? nil : head.part(range.start..<range.start + range.count)
        }
        if record.isElsewhere { return scannedValidators(record) }
        return BorrowedValidators(
            status: status,
            responseTime: record.responseTime,
            etag: value(record.etag),
            lastModified: value(record.lastModified),
            date: value(record.date)
        )
    }

    /// The validators of a response whose ready head has other lines than the stored ones.
    private func scannedValidators(_ record: ResidentRecord) -> BorrowedValidators {
        var (etag, lastModified, date): (UnsafeRawBufferPointer?, UnsafeRawBufferPointer?, UnsafeRawBufferPointer?)
        lines.forEachLine { _, value, known in
            switch known {
            case .etag: etag = etag ?? value
            case .lastModified: lastModified = lastModified ?? value
            case .date: date = date ?? value
            default: break
            }
        }
        return BorrowedValidators(
            status: status,
            responseTime: record.responseTime,
            etag: etag,
            lastModified: lastModified,
            date: date
        )
    }

    /// Whether both responses are for the same selecting fields (RFC 9111 section 4.1).
    func isSameVariant(as other: ResidentResponse) -> Bool { record.variantKey.holdsSame(as: other.record.variantKey) }

    /// The lower-case members of Vary, with commas between them.
    package var varyNames: UnsafeRawBufferPointer { record.varyNames }

    /// The lines of the request that Vary names.
    package var varyLines: ResidentLines { ResidentLines(whole: record.varyFields) }
}

// MARK: - The block

/// The address of a resident response. The tables of a shard hold blocks, so that an entry needs no object; all other
/// code has a ``ResidentResponse``.
///
/// Sendable: it never changes, except for the two atomic numbers.
struct ResidentBlock: @unchecked Sendable {
    /// The fixed part of a block. The key, the prepared head, the body, and the record follow.
    struct Header: ~Copyable {
        let references = Atomic<UInt32>(1)
        var status: UInt16
        var traits: Traits
        /// The number of the latest rule that the response was checked against.
        let rulesSeen: Atomic<UInt64>
        /// The beginning of the window of the hot path, as ``HotPathWindow`` has it.
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
        /// Names, such as tags, may invalidate the response.
        static let hasNames = Traits(rawValue: 16)
        /// The body is a chunk of its own, of which the block has a reference.
        static let hasChunk = Traits(rawValue: 32)
    }

    /// The bytes that are prefetched; the processor fetches the following ones by itself.
    private static let prefetched = 512

    // The block belongs to the heap until the last reference is released; a user of the block has a reference, or the
    // mutex of a shard that has one.
    private let header: UnsafeMutablePointer<Header>

    /// Makes a value for a block that exists.
    /// - Parameter address: the address of the block.
    init(_ address: UnsafeMutableRawPointer) { header = address.assumingMemoryBound(to: Header.self) }

    var address: UnsafeMutableRawPointer { UnsafeMutableRawPointer(header) }

    /// Makes a block with one reference, which is the caller's.
    /// - Parameter parts: the key, the ready head, the body or the reference to its chunk, and the record.
    /// - Returns: nil if there is no memory.
    init?(_ header: consuming Header, _ parts: [UnsafeRawBufferPointer]) {
        let count = MemoryLayout<Header>.size + parts.reduce(0) { $0 + $1.count }
        guard let start = BlockHeap.shared.allocate(count) else { return nil }
        self.header = start.assumingMemoryBound(to: Header.self)
        self.header.initialize(to: header)
        // The memory was just allocated, has the size of all parts, and is not shared yet.
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

    /// The position depends on the lengths of key and head, so that it is not aligned.
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

    /// The bytes of everything that the response takes, without its entries in the tables.
    var cost: Int { BlockHeap.cost(byteCount) + (chunk == nil ? 0 : body.count + 64) }
}

/// Keeps a block alive for the users of a response.
///
/// Sendable: the block changes only while the holder has a single owner, and its address is atomic.
final class BlockHolder: @unchecked Sendable {
    private let address: Atomic<UnsafeMutableRawPointer>

    var block: ResidentBlock { ResidentBlock(address.load(ordering: .acquiring)) }

    /// Makes a holder that takes over a reference.
    /// - Parameter block: the block with that reference.
    init(adopting block: ResidentBlock) { address = Atomic(block.address) }

    init(_ block: ResidentBlock) {
        block.retain()
        address = Atomic(block.address)
    }

    /// Replaces the block of the holder; only for its single owner.
    func hold(_ other: ResidentBlock) {
        other.retain()
        let last = block
        address.store(other.address, ordering: .releasing)
        last.release()
    }

    deinit { block.release() }
}
