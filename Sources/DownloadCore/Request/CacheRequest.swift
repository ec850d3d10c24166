// One question to the download core, and its answer.

package import CacheStore
package import HTTPCaching
package import HTTPWire
package import Policies

/// A GET or HEAD request as the download core sees it.
package struct CacheRequest: Sendable {
    package var key: CacheKey
    /// The client's request; its fields decide about reuse.
    package var request: RequestHead
    /// The fields that go to the origin: end-to-end, the proxy's own included, conditions still in them.
    package var originFields: Fields
    /// Path and query on the origin, but for the secret items that the source adds.
    package var path: String
    package var policy: CachePolicy
    /// Names everything that shapes a ready head: policy, prefix, pseudonym. A stored response prepared under
    /// another is prepared anew.
    package var headFormatID: UInt64
    package var collapse: CollapseLimits
    /// Nil for a route without substitutes and without expected content.
    package var phases: PhasePlan?
    /// What happens to the fetch when its last client has left; ``ClientAbort/finish`` by default.
    package var onClientAbort = ClientAbort.finish
    /// The lines of a stored head, ready to write for this route.
    package var prepare: @Sendable (StoredHead) -> [UInt8]
    /// A folder of responses that exist before the first fetch; nil where the route has none.
    package var seed: SeedFolder?
    /// The content of a POST that is answered like a GET, from what is stored under its own key; `request` is a GET
    /// then, without conditions and ranges. Nil: there is none.
    package var content: RequestContent?
    /// Answers may be stored under several keys of this URL, which are invalidated together.
    package var sharesURL = false
    /// Removes the secrets of an origin's URL for messages; nil leaves the URL as it is.
    package var shown: (@Sendable (String) -> String)?
    /// Where under the disk tier's files a stored 200 is kept as a plain file, too; nil: nowhere.
    package var storeAs: String?
    /// How urgent a fetch for it is; nil where a client waits.
    package var urgency: FetchUrgency?
    /// It has a fetch of its own: it waits for no other's, and no other request for its.
    package var isAlone = false
    /// Faults may keep its client from reading: it shares no body whose arrival waits for the slowest reader.
    package var mayReadSlowly = false

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
        self.key = key
        self.request = request
        self.originFields = originFields
        self.path = path
        self.policy = policy
        self.headFormatID = headFormatID
        self.collapse = collapse
        self.prepare = prepare
    }
}

/// What to send to the client; loop-bound, because its reader is.
package struct Answer {
    /// Status and end-to-end fields, as the origin or the store has them.
    package var head: ResponseHead
    /// Nil where the answer has no body (HEAD, 304, 204, an error).
    package var reader: BodyReader?
    /// The length of the body in bytes, for HEAD too; nil while it is unknown.
    package var length: Int64?
    /// The age in seconds; nil for a response that has just come from the origin.
    package var age: Int64?
    /// Nanoseconds from sending the request to the origin's head or failure; nil where the origin was not contacted.
    package var originTime: UInt64?
    /// Nil where the cache had no part in the answer (a demo answer).
    package var cacheStatus: CacheStatus?
    /// For an answer that is being stored: lets a reader of its body wait until it is. Nil for other answers.
    package var storing: StoreCompletion?
    /// The origin could not be contacted, or its response broke off: send an error document in place of `head`.
    package var failure: FetchError?
    /// Why a fallback answers, for the log.
    package var cause: String?
    /// A placeholder or a fallback: neither from an origin nor from the store.
    package var isStandIn = false
    /// The origin was to be asked, and was not: whoever asked has an answer of its own.
    package var isUnasked = false
    /// A 416 that was made of what is stored, or of what arrives: the origin has not said it.
    package var isUnsatisfiable = false
    /// Why the response is stored, for the log; nil where it is not stored, or was stored before.
    package var storeReason: StoreReason?

    package init(
        head: ResponseHead,
        reader: BodyReader? = nil,
        length: Int64? = nil,
        age: Int64? = nil,
        cacheStatus: CacheStatus?,
        failure: FetchError? = nil
    ) {
        self.head = head
        self.reader = reader
        self.length = length
        self.age = age
        self.cacheStatus = cacheStatus
        self.failure = failure
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
