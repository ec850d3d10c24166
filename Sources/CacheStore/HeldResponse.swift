// A stored response as the memory tier holds it: one block of memory, from which everything else is made when it is asked for.

package import EventLoop
package import HTTPCaching
import HTTPWire
import Synchronization

/// A stored response with a whole body in memory. The hot path reads it where it lies; whoever needs more makes a
/// ``StoredResponse`` of it.
///
/// Sendable: nothing in it changes after it is made but the number of the rules that it has been held against, which is atomic.
package struct HeldResponse: @unchecked Sendable {
    /// What has a place of its own. Behind it come the number of the rules, the key, the ready head, the body, and the record.
    ///
    /// Of whole words, so that the number of the rules is aligned.
    struct Header {
        var freshUntil: Int64 = 0
        var ageBase: Int64 = 0
        var shape: UInt64
        var number: UInt64
        var bodyCount: Int
        var keyCount: UInt32
        var headCount: UInt32
        var recordCount: UInt32
        var status: UInt16
        var traits: Traits
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

    final class Block: ManagedBuffer<Header, UInt8> {
        deinit { HeldResponse.chunk(self)?.release() }
    }

    /// Smaller bodies lie in the block; others are not copied into it, and may be in files of their own.
    static let inlineLimit = Chunk.leastFile
    /// What an entry takes in the tables of its shard: a reference, a node of the order, and up to three places of the index.
    static let tableCost = 48
    private static let seenCount = MemoryLayout<Atomic<UInt64>>.size

    let block: Block

    /// - Returns: nil where the body is not one chunk in memory, or a part is longer than 4 GiB.
    package init?(_ response: StoredResponse) {
        guard let chunk = response.body.wholeChunk else { return nil }
        let (key, head) = (response.key.bytes, response.preparedHead)
        let isInline = chunk.capacity < Self.inlineLimit
        let bodyCount = isInline ? chunk.capacity : MemoryLayout<UnsafeRawPointer>.size
        let record = HeldRecord.encode(
            response.head,
            readyHead: head,
            number: response.number,
            bodyCount: Int64(chunk.capacity)
        )
        guard let keySize = UInt32(exactly: key.count), let headSize = UInt32(exactly: head.count),
            let recordSize = UInt32(exactly: record.count)
        else { return nil }
        var header = Header(
            shape: response.shape,
            number: response.number,
            bodyCount: bodyCount,
            keyCount: keySize,
            headCount: headSize,
            recordCount: recordSize,
            status: UInt16(clamping: response.head.status),
            traits: []
        )
        if let hot = response.hot {
            header.traits.insert(.hot)
            (header.freshUntil, header.ageBase) = (hot.freshUntil, hot.ageBase)
        }
        if !response.head.varyNames.isEmpty { header.traits.insert(.varies) }
        if Caching.hasTag(response.head) { header.traits.insert(.hasTag) }
        if response.head.fields.contains(.acceptRanges) { header.traits.insert(.acceptsRanges) }
        if !response.rules.isEmpty { header.traits.insert(.hasNames) }
        if !isInline { header.traits.insert(.hasChunk) }
        let count = Self.seenCount + key.count + head.count + bodyCount + record.count
        // The class is the one that it is asked of.
        block = unsafeDowncast(Block.create(minimumCapacity: count) { _ in header }, to: Block.self)
        block.withUnsafeMutablePointerToElements { start in
            // Just allocated, as large as the sum of the parts, and nobody else has it yet.
            let room = UnsafeMutableRawBufferPointer(start: start, count: count)
            room.baseAddress?.initializeMemory(
                as: Atomic<UInt64>.self,
                to: Atomic(response.rulesSeen.load(ordering: .relaxed))
            )
            var end = Self.seenCount
            func append(_ bytes: UnsafeRawBufferPointer) {
                UnsafeMutableRawBufferPointer(rebasing: room[end...]).copyMemory(from: bytes)
                end += bytes.count
            }
            key.withUnsafeBytes { append($0) }
            head.withUnsafeBytes { append($0) }
            if isInline {
                append(chunk.bytes)
            } else {
                // Given back by the block's deinit.
                let reference = UnsafeRawPointer(Unmanaged.passRetained(chunk).toOpaque())
                withUnsafeBytes(of: reference) { append($0) }
            }
            record.withUnsafeBytes { append($0) }
        }
    }

    // MARK: - Where it lies

    // The block is never moved, and its header and bytes never change: the pointers are valid as long as it is held.
    private var header: UnsafePointer<Header> { block.withUnsafeMutablePointerToHeader { UnsafePointer($0) } }

    private var start: UnsafeRawPointer { block.withUnsafeMutablePointerToElements { UnsafeRawPointer($0) } }

    private static func chunk(_ block: Block) -> Unmanaged<Chunk>? {
        block.withUnsafeMutablePointers { header, start in
            guard header.pointee.traits.contains(.hasChunk) else { return nil }
            let offset = seenCount + Int(header.pointee.keyCount) + Int(header.pointee.headCount)
            return .fromOpaque(UnsafeRawPointer(start).loadUnaligned(fromByteOffset: offset, as: UnsafeRawPointer.self))
        }
    }

    private func bytes(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: start + Self.seenCount + offset, count: count)
    }

    /// What keeps its bytes where they are.
    package var owner: AnyObject { block }

    /// In the form of `CacheKey.bytes`. These and the other bytes are valid as long as the response is held.
    package var keyBytes: UnsafeRawBufferPointer { bytes(0, Int(header.pointee.keyCount)) }

    /// Status line, stored fields, Content-Length and Via, each line with its CRLF, without the empty line.
    package var readyHead: UnsafeRawBufferPointer {
        bytes(Int(header.pointee.keyCount), Int(header.pointee.headCount))
    }

    package var body: UnsafeRawBufferPointer {
        if let chunk = Self.chunk(block) { return chunk._withUnsafeGuaranteedRef { $0.bytes } }
        let header = header.pointee
        return bytes(Int(header.keyCount) + Int(header.headCount), header.bodyCount)
    }

    private var file: MemoryFile? { Self.chunk(block)?._withUnsafeGuaranteedRef { $0.file } }

    /// The body for whoever reads it at leisure.
    var chunk: Chunk { Self.chunk(block)?.takeUnretainedValue() ?? Chunk(of: body, in: block) }

    var record: HeldRecord {
        let header = header.pointee
        let offset = Int(header.keyCount) + Int(header.headCount) + header.bodyCount
        return HeldRecord(bytes(offset, Int(header.recordCount)))
    }

    // MARK: - What it says

    package var status: Int { Int(header.pointee.status) }
    package var shape: UInt64 { header.pointee.shape }
    /// Of the fetch that brought the body.
    package var number: UInt64 { header.pointee.number }
    var varies: Bool { header.pointee.traits.contains(.varies) }
    package var hasTag: Bool { header.pointee.traits.contains(.hasTag) }
    package var acceptsRanges: Bool { header.pointee.traits.contains(.acceptsRanges) }
    /// Names invalidate it, such as tags.
    var hasNames: Bool { header.pointee.traits.contains(.hasNames) }
    var isHot: Bool { header.pointee.traits.contains(.hot) }

    /// As ``StoredResponse/hot``.
    package var hot: HotPathWindow? {
        let header = header.pointee
        guard header.traits.contains(.hot) else { return nil }
        return HotPathWindow(freshUntil: header.freshUntil, ageBase: header.ageBase)
    }

    /// What the hot path answers with, by one call.
    package struct Ready {
        package let shape: UInt64
        package let status: Int
        package let window: HotPathWindow
        /// Valid as long as the response is held, as `body` is.
        package let head: UnsafeRawBufferPointer
        package let body: UnsafeRawBufferPointer
        /// What the body lies in; nil where that is the heap.
        package let file: MemoryFile?
    }

    /// Nil off the hot path.
    package var ready: Ready? {
        guard let hot else { return nil }
        return Ready(shape: shape, status: status, window: hot, head: readyHead, body: body, file: file)
    }

    package var key: CacheKey { CacheKey(bytes: Array(keyBytes)) }

    /// As it was given, made anew.
    package var response: StoredResponse { StoredResponse(self) }

    /// Read out of the ready head and the record.
    var head: StoredHead {
        record.head(status: status, readyHead: readyHead, number: number, bodyCount: Int64(body.count))
    }

    /// As ``StoredHead/number``.
    var headNumber: UInt64 { record.headNumber(number) }

    /// Bytes of everything that it takes: the block with its object's header, what malloc adds, and its places in the tables.
    package var cost: Int {
        let header = header.pointee
        let parts = Int(header.keyCount) + Int(header.headCount) + header.bodyCount + Int(header.recordCount)
        let object = 2 * MemoryLayout<Int>.size + MemoryLayout<Header>.size + Self.seenCount
        let own = (object + parts + 8 + 15) & ~15
        return own + Self.tableCost + (Self.chunk(block) == nil ? 0 : body.count + 64)
    }

    /// Asked of the rules up to this number.
    var rulesSeen: UInt64 {
        get { seen.pointee.load(ordering: .relaxed) }
        nonmutating set { seen.pointee.store(newValue, ordering: .relaxed) }
    }

    // Initialised with the block; an atomic may be used from any thread.
    private var seen: UnsafeMutablePointer<Atomic<UInt64>> {
        UnsafeMutableRawPointer(mutating: start).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    /// Whether both are the same block.
    package static func === (left: HeldResponse, right: HeldResponse) -> Bool { left.block === right.block }
}

extension HeldResponse {
    package var responseTime: Int64 { record.responseTime }

    /// The stored fields; valid as long as the response is held.
    package var lines: HeldLines { HeldLines(record.fields, readyHead: readyHead) }

    /// What conditions are held against, where it stands; valid as long as the response is held.
    package var validators: BorrowedValidators {
        let (record, head) = (record, readyHead)
        func value(_ place: HeldRecord.Place) -> UnsafeRawBufferPointer? {
            place.count == 0 ? nil : head.part(place.start..<place.start + place.count)
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

    /// The same where the ready head has other lines than the stored ones.
    private func scannedValidators(_ record: HeldRecord) -> BorrowedValidators {
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

    /// The lower-case members of Vary, with commas between them.
    package var varyNames: UnsafeRawBufferPointer { record.varyNames }

    /// The lines of the request that brought it, as far as Vary names them.
    package var varyLines: HeldLines { HeldLines(whole: record.varyFields) }
}
