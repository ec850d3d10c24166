// A request to the download core, and the request that it sends to the origin.

package import CacheStore
package import HTTPCaching
package import HTTPWire
package import Policies
package import Upstream

/// A GET or HEAD request as the download core sees it: a value in one reference, so that each function that waits for
/// its answer has only that in its frame.
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
        var onClientAbort = AbandonmentPolicy.finish
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

    private var box: CopyOnWrite<Members>

    package var key: CacheKey {
        get { box.members.key }
        set { box.members.key = newValue }
    }
    /// The client's request; its fields decide about reuse.
    package var request: RequestHead {
        get { box.members.request }
        _modify { yield &box.members.request }
    }
    /// The fields for the origin: end-to-end fields and those of the proxy, with the client's conditions.
    package var originFields: Fields {
        get { box.members.originFields }
        _modify { yield &box.members.originFields }
    }
    /// The path and query on the origin, without the secret query items that the source adds.
    package var path: String {
        get { box.members.path }
        set { box.members.path = newValue }
    }
    package var policy: CachePolicy {
        get { box.members.policy }
        _modify { yield &box.members.policy }
    }
    /// The identity of everything that shapes a prepared head: policy, prefix and the name in Cache-Status. A stored
    /// response that was prepared under another one is prepared anew.
    package var headFormatID: UInt64 {
        get { box.members.headFormatID }
        set { box.members.headFormatID = newValue }
    }
    package var collapse: CollapseLimits {
        get { box.members.collapse }
        set { box.members.collapse = newValue }
    }
    /// The placeholder, the fallback and the expected content; nil for a route without them.
    package var phases: PhasePlan? {
        get { box.members.phases }
        set { box.members.phases = newValue }
    }
    /// What happens to the fetch when its last client has left; ``AbandonmentPolicy/finish`` by default.
    package var onClientAbort: AbandonmentPolicy {
        get { box.members.onClientAbort }
        set { box.members.onClientAbort = newValue }
    }
    /// Makes the lines of a stored head, ready to be written for this route.
    package var prepare: @Sendable (StoredHead) -> [UInt8] {
        get { box.members.prepare }
        set { box.members.prepare = newValue }
    }
    /// The folder of responses that exist before the first fetch; nil if the route has none.
    package var seed: SeedFolder? {
        get { box.members.seed }
        set { box.members.seed = newValue }
    }
    /// The content of a POST that is answered like a GET, from what is stored under a key with this content; `request`
    /// is a GET then, without conditions and ranges. Nil if there is none.
    package var content: RequestContent? {
        get { box.members.content }
        set { box.members.content = newValue }
    }
    /// Whether answers may be stored under several keys of this URL, which are invalidated together.
    package var sharesURL: Bool {
        get { box.members.sharesURL }
        set { box.members.sharesURL = newValue }
    }
    /// Removes the secrets of an origin's URL for messages; if nil, the URL stays as it is.
    package var shown: (@Sendable (String) -> String)? {
        get { box.members.shown }
        set { box.members.shown = newValue }
    }
    /// The path under the disk tier's files at which a stored 200 is kept as a plain file; nil for none.
    package var storeAs: String? {
        get { box.members.storeAs }
        set { box.members.storeAs = newValue }
    }
    /// The priority of its fetch; nil if a client waits.
    package var urgency: FetchUrgency? {
        get { box.members.urgency }
        set { box.members.urgency = newValue }
    }
    /// Whether the request has a fetch of its own: it waits for no other one, and no other request waits for its fetch.
    package var isAlone: Bool {
        get { box.members.isAlone }
        set { box.members.isAlone = newValue }
    }
    /// Whether faults may keep the client from reading: then it shares no body whose arrival waits for the slowest
    /// reader.
    package var mayReadSlowly: Bool {
        get { box.members.mayReadSlowly }
        set { box.members.mayReadSlowly = newValue }
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
        box = CopyOnWrite(
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
    /// Makes the answer one for this request alone: it has a fetch of its own, and nothing is stored or looked up.
    package mutating func standAlone() {
        isAlone = true
        policy.mode = .none
    }

    /// Whether the response may be for this request alone (RFC 9111 sections 3.5 and 5.2.1.5). The keys of a private
    /// cache distinguish its users.
    var isPrivateToRequest: Bool {
        policy.isShared && request.fields.contains(.authorization) || CacheControl(request: request.fields).noStore
    }

    /// Whether the response may be for the user of the request's cookies alone: it is stored only if it has explicit
    /// freshness.
    var isCookieBound: Bool { policy.cookies != .any && request.fields.contains(.cookie) }

    /// Whether the response is for this request alone, unless it says otherwise.
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

/// A request body of bytes in memory, followed by those of another source. Loop-bound.
package final class ContentSource: RequestBodySource {
    private let whole: [UInt8]
    private var bytes: ArraySlice<UInt8>
    private let rest: (any RequestBodySource)?

    /// Makes a source.
    /// - Parameter rest: the bytes that follow; nil for none.
    package init(_ bytes: [UInt8], then rest: (any RequestBodySource)? = nil) {
        whole = bytes
        self.bytes = bytes[...]
        self.rest = rest
    }

    /// The content from its start; nil if something follows that cannot be read twice.
    package var again: (any RequestBodySource)? { rest == nil ? ContentSource(whole) : nil }

    /// The length in bytes; nil if something follows that is not in memory.
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
    /// The request to the origin for the whole representation; a POST if the request has content.
    /// - Parameter method: the method if the request has no content.
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
