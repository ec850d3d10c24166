// A stored response, ready to be answered from: immutable, shared by all loops.

package import HTTPCaching
import HTTPWire
import Synchronization

/// Which tier an answer came from.
package enum StoreTier: String, Sendable {
    case seed, memory, disk
}

/// Sendable: nothing in it changes after it is made but `rulesSeen`, which is atomic.
package final class StoredResponse: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    package let body: Body
    /// Status line, stored fields, Content-Length and Via, each line with its CRLF, without the empty line.
    package let preparedHead: [UInt8]
    /// Until when a plain GET that selects it may be answered without any further decision; nil where other fields could matter.
    package let hot: HotPathWindow?
    /// The body of an answer on the hot path.
    package let hotChunk: Chunk?
    /// Bytes of everything that the response holds in memory.
    package let cost: Int
    package let tier: StoreTier
    /// It has selecting fields: a request has to agree in them.
    let varies: Bool
    /// The file it was loaded from.
    package let diskEntry: DiskEntry?
    /// Names what ``preparedHead`` was made for, such as a route; whoever wants another shape makes the head anew.
    package let shape: UInt64
    /// Of the fetch that brought the body, whatever head it has by now; 0 where nobody counts.
    package let number: UInt64
    /// The rules that would invalidate it; without any there is nothing to look at when it is found.
    package let rules: [InvalidationRule]
    /// All rules up to this number have been asked about it.
    let rulesSeen = Atomic<UInt64>(0)

    /// What the bookkeeping of one entry costs besides its bytes: objects, arrays, slots.
    package static let overhead = 768

    /// - Parameters:
    ///   - via: the value of the Via line to add (RFC 9110 section 7.6.3), such as `1.1 drydock`; nil for none.
    ///   - policy: decides about the hot path.
    package convenience init(
        key: CacheKey,
        head: StoredHead,
        body: Body,
        tier: StoreTier,
        via: String?,
        policy: CachePolicy,
        diskEntry: DiskEntry? = nil
    ) {
        self.init(
            key: key,
            head: head,
            body: body,
            preparedHead: Self.prepare(head, length: body.knownLength, via: via),
            hot: Caching.hotPath(stored: head, policy: policy),
            tier: tier,
            diskEntry: diskEntry,
            number: diskEntry?.fileID ?? 0
        )
    }

    /// - Parameter hot: dropped where the body is not one chunk in memory, a group may invalidate the response, or a purge has made it stale.
    package init(
        key: CacheKey,
        head: StoredHead,
        body: Body,
        preparedHead: [UInt8],
        hot: HotPathWindow?,
        tier: StoreTier,
        diskEntry: DiskEntry? = nil,
        shape: UInt64 = 0,
        number: UInt64 = 0
    ) {
        self.key = key
        self.head = head
        self.body = body
        self.preparedHead = preparedHead
        rules = InvalidationRule.concerning(head, key)
        hotChunk = rules.contains(where: \.isGroup) || head.staleSince != nil || hot == nil ? nil : body.wholeChunk
        self.hot = hotChunk == nil ? nil : hot
        self.tier = tier
        varies = !head.varyNames.isEmpty
        self.diskEntry = diskEntry
        self.shape = shape
        self.number = number
        let fields = head.fields.wireLength + head.varyFields.wireLength
        let lines = (head.fields.count + head.varyFields.count) * 16 + head.varyNames.count * 16
        let names = rules.reduce(0) { $0 + $1.bytes.count + 32 }
        cost = body.heldBytes + preparedHead.count + key.bytes.count + fields + lines + names + Self.overhead
    }

    /// The same response, stale since then (Unix seconds), whatever its lifetime.
    package func stale(since time: Int64) -> StoredResponse {
        var head = head
        head.staleSince = min(head.staleSince ?? .max, time)
        return StoredResponse(
            key: key,
            head: head,
            body: body,
            preparedHead: preparedHead,
            hot: nil,
            tier: tier,
            diskEntry: diskEntry,
            shape: shape,
            number: number
        )
    }

    /// True where both answer the same selecting fields (RFC 9111 section 4.1): the newer replaces the older.
    package func isSameVariant(as other: StoredResponse) -> Bool { head.isSameVariant(as: other.head) }

    /// The lines that ``preparedHead`` holds.
    package static func prepare(_ head: StoredHead, length: Int64?, via: String?) -> [UInt8] {
        var fields = head.fields
        if let length = head.bodyLength ?? length, head.status != 204, head.status != 304 {
            fields.set(.contentLength, String(length))
        }
        if let via { fields.appendMember(.via, via) }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fields.wireLength + 64)
        let response = ResponseHead(status: head.status, reason: head.reason, version: .http11, fields: fields)
        Serializer.writeStatusLine(response, into: &bytes)
        Serializer.write(fields, into: &bytes)
        return bytes
    }
}

extension StoredHead {
    /// True where both answer the same selecting fields (RFC 9111 section 4.1).
    package func isSameVariant(as other: StoredHead) -> Bool {
        varyNames == other.varyNames && varyFields == other.varyFields
            || Caching.variantKey(self) == Caching.variantKey(other)
    }
}
