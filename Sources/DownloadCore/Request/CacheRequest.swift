// One question to the download core, and the request that is sent to the origin for it.

package import CacheStore
package import HTTPCaching
package import HTTPWire
package import Policies
package import Upstream

/// A GET or HEAD request as the download core sees it: a value in one reference, so that each function that waits for its
/// answer has that alone in its frame.
package struct CacheRequest: Sendable {
    private struct Members: Sendable {
        var key: CacheKey
        var request: RequestHead
        var originFields: Fields
        var path: String
        var policy: CachePolicy
        var headFormatID: UInt64
        var collapse: CollapseLimits
        var phases: PhasePlan?
        var onClientAbort = ClientAbort.finish
        var prepare: @Sendable (StoredHead) -> [UInt8]
        var seed: SeedFolder?
        var content: RequestContent?
        var sharesURL = false
        var shown: (@Sendable (String) -> String)?
        var storeAs: String?
        var urgency: FetchUrgency?
        var isAlone = false
        var mayReadSlowly = false
    }

    /// Sendable: it is changed only while one question alone refers to it.
    private final class Box: @unchecked Sendable {
        // Unchecked: no code runs while a member is changed, and a check would cost instructions with every use.
        @exclusivity(unchecked) var members: Members

        init(_ members: Members) { self.members = members }
    }

    private var box: Box

    private var members: Members {
        get { box.members }
        _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.members) }
            yield &box.members
        }
    }

    package var key: CacheKey {
        get { box.members.key }
        set { members.key = newValue }
    }
    /// The client's request; its fields decide about reuse.
    package var request: RequestHead {
        get { box.members.request }
        _modify { yield &members.request }
    }
    /// The fields that go to the origin: end-to-end, the proxy's own included, conditions still in them.
    package var originFields: Fields {
        get { box.members.originFields }
        _modify { yield &members.originFields }
    }
    /// Path and query on the origin, but for the secret items that the source adds.
    package var path: String {
        get { box.members.path }
        set { members.path = newValue }
    }
    package var policy: CachePolicy {
        get { box.members.policy }
        _modify { yield &members.policy }
    }
    /// Names everything that shapes a ready head: policy, prefix, pseudonym. A stored response prepared under
    /// another is prepared anew.
    package var headFormatID: UInt64 {
        get { box.members.headFormatID }
        set { members.headFormatID = newValue }
    }
    package var collapse: CollapseLimits {
        get { box.members.collapse }
        set { members.collapse = newValue }
    }
    /// The placeholder, the fallback and the expected content; nil for a route without them.
    package var phases: PhasePlan? {
        get { box.members.phases }
        set { members.phases = newValue }
    }
    /// What happens to the fetch when its last client has left; ``ClientAbort/finish`` by default.
    package var onClientAbort: ClientAbort {
        get { box.members.onClientAbort }
        set { members.onClientAbort = newValue }
    }
    /// The lines of a stored head, ready to write for this route.
    package var prepare: @Sendable (StoredHead) -> [UInt8] {
        get { box.members.prepare }
        set { members.prepare = newValue }
    }
    /// A folder of responses that exist before the first fetch; nil where the route has none.
    package var seed: SeedFolder? {
        get { box.members.seed }
        set { members.seed = newValue }
    }
    /// The content of a POST that is answered like a GET, from what is stored under its own key; `request` is a GET
    /// then, without conditions and ranges. Nil: there is none.
    package var content: RequestContent? {
        get { box.members.content }
        set { members.content = newValue }
    }
    /// Answers may be stored under several keys of this URL, which are invalidated together.
    package var sharesURL: Bool {
        get { box.members.sharesURL }
        set { members.sharesURL = newValue }
    }
    /// Removes the secrets of an origin's URL for messages; nil leaves the URL as it is.
    package var shown: (@Sendable (String) -> String)? {
        get { box.members.shown }
        set { members.shown = newValue }
    }
    /// The path under the disk tier's files at which a stored 200 is kept as a plain file; nil for none.
    package var storeAs: String? {
        get { box.members.storeAs }
        set { members.storeAs = newValue }
    }
    /// How urgent a fetch for it is; nil where a client waits.
    package var urgency: FetchUrgency? {
        get { box.members.urgency }
        set { members.urgency = newValue }
    }
    /// It has a fetch of its own: it waits for no other's, and no other request for its.
    package var isAlone: Bool {
        get { box.members.isAlone }
        set { members.isAlone = newValue }
    }
    /// Faults may keep its client from reading: it shares no body whose arrival waits for the slowest reader.
    package var mayReadSlowly: Bool {
        get { box.members.mayReadSlowly }
        set { members.mayReadSlowly = newValue }
    }

    package init(
        key: CacheKey,
        request: RequestHead,
        originFields: Fields,
        path: String,
        policy: CachePolicy,
        headFormatID: UInt64,
        collapse: CollapseLimits,
        prepare: @escaping @Sendable (StoredHead) -> [UInt8]
    ) {
        box = Box(
            Members(
                key: key,
                request: request,
                originFields: originFields,
                path: path,
                policy: policy,
                headFormatID: headFormatID,
                collapse: collapse,
                prepare: prepare
            )
        )
    }
}

extension CacheRequest {
    /// Its answer is for nobody else: it has a fetch of its own, and nothing is stored or looked up.
    package mutating func standAlone() {
        isAlone = true
        policy.mode = .none
    }

    /// The response may be for this request alone (RFC 9111 sections 3.5 and 5.2.1.5). The keys of a private cache tell
    /// its users apart.
    var isPrivateToRequest: Bool {
        policy.isShared && request.fields.contains(.authorization) || CacheControl(request: request.fields).noStore
    }

    /// The response may be for the user of these cookies alone: it is stored only if it has explicit freshness.
    var isCookieBound: Bool { policy.cookies != .any && request.fields.contains(.cookie) }

    /// The response is for this request alone, unless it says otherwise.
    var mayBePrivateToRequest: Bool { isPrivateToRequest || isCookieBound }

    /// Whether a head that a validation has updated may be shared with other requests (RFC 9111
    /// sections 3.5 and 5.2.1.5).
    func shares(_ head: StoredHead) -> Bool {
        Caching.mayShareUpdate(head, request: request, policy: policy)
    }
}

// MARK: - Content of a POST

/// The whole content of a request; it is part of the key, so that the same content gets the same answer.
package struct RequestContent: Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// Gives bytes that are in memory, and then those of another source. Loop-bound.
package final class ContentSource: RequestBodySource {
    private let whole: [UInt8]
    private var bytes: ArraySlice<UInt8>
    private let rest: (any RequestBodySource)?

    /// - Parameter rest: what follows the bytes; nil for nothing.
    package init(_ bytes: [UInt8], then rest: (any RequestBodySource)? = nil) {
        whole = bytes
        self.bytes = bytes[...]
        self.rest = rest
    }

    /// The content from its start; nil if something follows that cannot be read twice.
    package var again: (any RequestBodySource)? { rest == nil ? ContentSource(whole) : nil }

    /// Its bytes in all; nil where something follows that is not in memory.
    package var length: Int? { rest == nil ? whole.count : nil }

    package func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        guard !bytes.isEmpty else { return rest?.read(into: buffer) ?? .end }
        let count = min(bytes.count, buffer.count)
        bytes.prefix(count).withUnsafeBytes { buffer.copyMemory(from: $0) }
        bytes = bytes.dropFirst(count)
        return .bytes(count)
    }
}

@available(*, unavailable) extension ContentSource: Sendable {}

// MARK: - The request to the origin

extension CacheRequest {
    /// The request to the origin for the whole representation; a POST where the request has content.
    /// - Parameter method: used where the request has no content.
    func fetchRequest(_ method: Method, _ fields: Fields) -> FetchRequest {
        var fetch = FetchRequest(
            method: content == nil ? method : .post,
            path: path,
            fields: fields,
            clientHost: request.fields.first(.host),
            framing: content.map { .length(UInt64($0.bytes.count)) } ?? .none,
            body: content.map { ContentSource($0.bytes) }
        )
        fetch.urgency = urgency
        return fetch
    }

    /// The request to the origin for a part.
    func partRequest(_ plan: RangeFetchPlan) -> FetchRequest {
        var fields = originFields
        plan.apply(to: &fields)
        var fetch = FetchRequest(method: .get, path: path, fields: fields, clientHost: request.fields.first(.host))
        fetch.urgency = urgency
        return fetch
    }
}
