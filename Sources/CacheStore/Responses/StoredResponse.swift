// A stored response with everything that decisions need: immutable. The memory tier has a smaller form: see
// `ResidentResponse`.

package import HTTPCaching
import HTTPWire
import Synchronization

/// The tier that an answer came from.
package enum StoreTier: String, Sendable {
    case seed, memory, disk
    /// A tier that several stores share.
    case shared
}

/// A stored response. Sendable: it never changes, except for `rulesSeen`, which is atomic.
package final class StoredResponse: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    package let body: Body
    private let ownHead: [UInt8]
    /// The window in which a plain GET that selects the response may be answered without a further decision; nil if
    /// other fields could matter.
    package let hot: HotPathWindow?
    package let tier: StoreTier
    /// The name of the file that it was loaded from, which may stay open.
    package let fileName: StoredFileName?
    /// The resident response, if it came from the memory tier.
    private let held: ResidentResponse?
    /// The number of the format of ``preparedHead``, such as a route's; for another format the head is made again.
    package let headFormatID: UInt64
    /// The number of the fetch that brought the body, independently of the present head; 0 if there is none.
    package let number: UInt64
    /// The names by which rules may invalidate it; if there are none, it needs no check when it is found.
    package let rules: [InvalidationRule]
    /// The response was checked against all rules up to this number.
    let rulesSeen = Atomic<UInt64>(0)

    /// Makes a response.
    /// - Parameters:
    ///   - via: the value of the Via line to add (RFC 9110 section 7.6.3), such as `1.1 drydock`; nil for none.
    ///   - policy: the policy that decides about the hot path.
    package convenience init(
        key: CacheKey,
        head: StoredHead,
        body: Body,
        tier: StoreTier,
        via: String?,
        policy: CachePolicy,
        fileName: StoredFileName? = nil,
        number: UInt64 = 0
    ) {
        self.init(
            key: key,
            head: head,
            body: body,
            preparedHead: Self.prepare(head, length: body.knownLength, via: via),
            hot: Caching.hotPath(stored: head, policy: policy),
            tier: tier,
            fileName: fileName,
            number: number
        )
    }

    /// Makes a response.
    /// - Parameter hot: the window of the hot path; dropped if the body is not one chunk in memory, a group may
    ///   invalidate the response, or a purge or a HEAD has made it stale.
    package init(
        key: CacheKey,
        head: StoredHead,
        body: Body,
        preparedHead: [UInt8],
        hot: HotPathWindow?,
        tier: StoreTier,
        fileName: StoredFileName? = nil,
        headFormatID: UInt64 = 0,
        number: UInt64 = 0
    ) {
        self.key = key
        self.head = head
        self.body = body
        ownHead = preparedHead
        rules = InvalidationRule.concerning(head, key)
        let isStale = head.staleSince != nil || head.changedSince != nil
        let mayBeHot = !rules.contains(where: \.isGroup) && !isStale && body.wholeChunk != nil
        self.hot = mayBeHot ? hot : nil
        self.tier = tier
        self.fileName = fileName
        held = nil
        self.headFormatID = headFormatID
        self.number = number
    }

    /// Decodes a response of the memory tier.
    init(_ held: ResidentResponse) {
        self.held = held
        key = held.key
        body = .complete(held.chunk)
        head = held.head
        ownHead = []
        hot = held.hot
        tier = .memory
        fileName = nil
        headFormatID = held.headFormatID
        number = held.number
        rules = held.hasNames ? InvalidationRule.concerning(head, key) : []
        rulesSeen.store(held.rulesSeen, ordering: .relaxed)
    }

    /// The status line, stored fields, Content-Length and Via, each line with its CRLF, without the empty line.
    package var preparedHead: [UInt8] { held.map { Array($0.readyHead) } ?? ownHead }

    /// Whether both are the same entry of the memory tier, or the same object.
    package func isSame(as other: StoredResponse) -> Bool {
        if let held, let others = other.held { return held === others }
        return self === other
    }

    /// Notes that no rule up to this number matches it; the entry of the memory tier gets the note, too.
    func noteRules(upTo number: UInt64) {
        rulesSeen.store(number, ordering: .relaxed)
        held?.rulesSeen = number
    }

    /// The same response, stale since this time (Unix seconds) regardless of its freshness lifetime.
    package func stale(since time: Int64) -> StoredResponse {
        var head = head
        head.staleSince = min(head.staleSince ?? .max, time)
        return with(head, preparedHead)
    }

    /// The same response, for which a HEAD has shown at this time (Unix seconds) that the resource has changed.
    package func changed(since time: Int64) -> StoredResponse {
        var head = head
        head.changedSince = min(head.changedSince ?? .max, time)
        return with(head, preparedHead)
    }

    /// The same response with the fields that the policy allows in answers, which are nearly always its own.
    package func usable(under policy: CachePolicy) -> StoredResponse {
        let usable = Caching.usable(head, policy: policy)
        if usable.fields.contains(.setCookie) == head.fields.contains(.setCookie) { return self }
        return with(usable, Self.prepare(usable, length: body.knownLength, via: nil))
    }

    /// The same response with the numbers of another store's order: that of its fetch, and that of its last validation.
    package func renumbered(_ number: UInt64, _ headNumber: UInt64) -> StoredResponse {
        var head = head
        head.number = headNumber
        return with(head, preparedHead, number)
    }

    private func with(_ head: StoredHead, _ preparedHead: [UInt8], _ number: UInt64? = nil) -> StoredResponse {
        StoredResponse(
            key: key,
            head: head,
            body: body,
            preparedHead: preparedHead,
            hot: nil,
            tier: tier,
            fileName: fileName,
            headFormatID: headFormatID,
            number: number ?? self.number
        )
    }

    /// Whether both responses are for the same selecting fields (RFC 9111 section 4.1), so that the newer replaces the
    /// older.
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
    /// Whether both heads are for the same selecting fields (RFC 9111 section 4.1).
    package func isSameVariant(as other: StoredHead) -> Bool {
        Caching.variantKey(self) == Caching.variantKey(other)
    }
}
