// One question to the download core, and its answer.

package import CacheStore
package import HTTPCaching
package import HTTPWire
package import Policies

/// A GET or HEAD request as the download core sees it.
package struct CacheAsk: Sendable {
    package var key: CacheKey
    /// The client's request; its fields decide about reuse.
    package var request: RequestHead
    /// The fields that go to the origin: end-to-end, the proxy's own included, conditions still in them.
    package var originFields: Fields
    /// Path and query on the origin, but for the secret items that the source adds.
    package var path: String
    package var policy: CachePolicy
    /// Names everything that shapes a ready head: policy, prefix, pseudonym. A stored response prepared under another is prepared anew.
    package var shape: UInt64
    package var collapse: CollapseLimits
    /// Nil for a route that answers nothing but what it has.
    package var phases: PhasePlan?
    /// What becomes of the fetch when everybody who waited for it has left; ``ClientAbort/finish`` by default.
    package var onClientAbort = ClientAbort.finish
    /// The lines of a stored head, ready to write for this route.
    package var prepare: @Sendable (StoredHead) -> [UInt8]
    /// Responses that are there before anything was fetched; nil where the route has none.
    package var seed: SeedFolder?
    /// The content of a POST that is answered like a GET, from what is stored under its own key; `request` is a GET then, without
    /// conditions and ranges. Nil: there is none.
    package var content: RequestContent?
    /// Answers may be stored under several keys of this URL, which are invalidated together.
    package var sharesURL = false
    /// A URL of the origin's as it may be told, where it may hold secrets; nil: as it is.
    package var shown: (@Sendable (String) -> String)?
    /// Where under the disk tier's files a stored 200 is kept as a plain file, too; nil: nowhere.
    package var storeAs: String?

    package init(
        key: CacheKey,
        request: RequestHead,
        originFields: Fields,
        path: String,
        policy: CachePolicy,
        shape: UInt64,
        collapse: CollapseLimits,
        prepare: @escaping @Sendable (StoredHead) -> [UInt8]
    ) {
        self.key = key
        self.request = request
        self.originFields = originFields
        self.path = path
        self.policy = policy
        self.shape = shape
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
    /// The length of the body in bytes, also of the one that HEAD leaves out; nil where nobody knows yet.
    package var length: Int64?
    /// In seconds; nil for what came from the origin just now.
    package var age: Int64?
    /// From asking the origin to its head or its failure, in nanoseconds; nil where it was not asked.
    package var originTime: UInt64?
    /// Nil where no cache was asked (a demo answer).
    package var cacheStatus: CacheStatus?
    /// Where it is to be stored: waits until it is, for whoever has read the body. Nil for every other.
    package var storing: Storing?
    /// The origin could not be asked, or broke its word: `head` is nothing to send, an error document is.
    package var failure: FetchError?
    /// Why a fallback answers, for the log.
    package var cause: String?
    /// A placeholder or a fallback: neither from an origin nor from the store.
    package var isStandIn = false
    /// Why it is stored, for the log; nil where it is not, or was before.
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

extension CacheAsk {
    /// What comes may be for this request alone (RFC 9111 sections 3.5 and 5.2.1.5).
    var isForOne: Bool {
        request.fields.contains(.authorization) || CacheControl(request: request.fields).noStore
    }

    /// The answer may be for the user of its cookies alone: it is stored only where it says itself how long it is fresh.
    var isCookieBound: Bool { policy.cookies != .any && request.fields.contains(.cookie) }

    /// What comes is for this request alone, unless the answer says otherwise.
    var mayBeForOne: Bool { isForOne || isCookieBound }

    /// Whether what the answer to a check has made of a stored head may be said to all (RFC 9111 sections 3.5 and
    /// 5.2.1.5).
    func shares(_ head: StoredHead) -> Bool {
        Caching.mayShareUpdate(head, request: request, policy: policy)
    }
}
