// A stored response in the memory tier: one block of memory, from which everything else is made on demand.

package import EventLoop
package import HTTPCaching
import HTTPWire
import Synchronization

/// A stored response with a whole body in memory. The hot path reads it in place; other code makes a
/// ``StoredResponse`` of it.
package struct ResidentResponse: Sendable {
    /// Smaller bodies lie in the block; others are not copied into it, and may be in files of their own.
    static let inlineLimit = Chunk.memfdThreshold
    /// The bytes of an entry in the tables of its shard: a reference to the block, a node of the order, and up to
    /// three places of the index.
    static let tableCost = 48

    let holder: BlockHolder

    /// - Parameter holder: of a block; it is shared.
    init(_ holder: BlockHolder) { self.holder = holder }

    var block: ResidentBlock { holder.block }

    /// - Returns: nil where the body is not one chunk in memory, or a part is longer than 4 GiB.
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
        // Given back with the last reference to the block.
        if !isInline { _ = Unmanaged.passRetained(chunk) }
        holder = BlockHolder(adopting: made)
    }

    /// - Parameters:
    ///   - body: nil where there is a reference to a chunk instead.
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

    /// What keeps its bytes where they are.
    package var owner: AnyObject { holder }

    /// In the form of `CacheKey.bytes`. These and the other bytes are valid as long as the response is held.
    package var keyBytes: UnsafeRawBufferPointer { block.keyBytes }

    /// Status line, stored fields, Content-Length and Via, each line with its CRLF, without the empty line.
    package var readyHead: UnsafeRawBufferPointer { block.readyHead }

    package var body: UnsafeRawBufferPointer { block.body }

    /// The body as a chunk, for readers off the hot path.
    var chunk: Chunk { block.chunk?.takeUnretainedValue() ?? Chunk(of: body, in: holder) }

    var record: ResidentRecord { block.record }

    // MARK: - What it says

    package var status: Int { block.status }
    package var headFormatID: UInt64 { block.headFormatID }
    /// Of the fetch that brought the body.
    package var number: UInt64 { block.number }
    var varies: Bool { block.varies }
    package var hasTag: Bool { block.traits.contains(.hasTag) }
    package var acceptsRanges: Bool { block.traits.contains(.acceptsRanges) }
    /// Names invalidate it, such as tags.
    var hasNames: Bool { block.traits.contains(.hasNames) }

    /// As ``StoredResponse/hot``.
    package var hot: HotPathWindow? {
        let block = block
        guard block.isHot else { return nil }
        return block.window
    }

    /// What the hot path answers with, by one call. Without a reference, so that copies of it cost nothing.
    package struct Ready {
        package let headFormatID: UInt64
        package let status: Int
        package let window: HotPathWindow
        /// Valid as long as the response is held, as `body` is.
        package let head: UnsafeRawBufferPointer
        package let body: UnsafeRawBufferPointer
        /// As ``ResidentResponse/owner``; valid while the response is held: code that needs the
        /// bytes longer must retain it.
        package let owner: Unmanaged<AnyObject>

        /// Whether it answers at this time (Unix seconds) as it is: fresh, and prepared in this format.
        package func answers(at now: Int64, as headFormatID: UInt64) -> Bool {
            window.isFresh(now: now) && self.headFormatID == headFormatID
        }
    }

    /// The memory file of the body; nil if the body is in the heap.
    package var file: MemoryFile? { block.file }

    /// Nil off the hot path.
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

    /// As it was given, made anew.
    package var response: StoredResponse { StoredResponse(self) }

    /// Read out of the ready head and the record.
    package var head: StoredHead {
        record.head(status: status, readyHead: readyHead, number: number, bodyCount: Int64(body.count))
    }

    /// As ``StoredHead/number``.
    var headNumber: UInt64 { record.headNumber(number) }

    /// Bytes of everything that it takes, with its places in the tables.
    package var cost: Int { block.cost + Self.tableCost }

    /// Asked of the rules up to this number.
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
        func value(_ place: ResidentRecord.Place) -> UnsafeRawBufferPointer? {
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

    /// True where both answer the same selecting fields (RFC 9111 section 4.1).
    func isSameVariant(as other: ResidentResponse) -> Bool { record.variantKey.holdsSame(as: other.record.variantKey) }

    /// The lower-case members of Vary, with commas between them.
    package var varyNames: UnsafeRawBufferPointer { record.varyNames }

    /// The lines of the request that brought it, as far as Vary names them.
    package var varyLines: ResidentLines { ResidentLines(whole: record.varyFields) }
}
