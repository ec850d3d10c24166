// What a store and its tiers say to each other: questions, findings, commits, refusals, and what
// was invalidated elsewhere.

package import HTTPCaching

/// Why a tier has not done what it was asked for. Each of them is a miss for whoever finds, and
/// is answered all the same.
package enum TierError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The response has gone since it was found.
    case absent
    /// It did not match its checksums and has been removed.
    case damaged
    /// Its key, or a name of it, was invalidated since its fetch began.
    case invalidated
    /// A later response of the same variant is stored already.
    case outdated
    /// Its body is too long, cannot be read, or there is no room for it.
    case refused(BodyError)
    /// The tier cannot be reached, has failed or is closed; the text says how.
    case unavailable(String)

    package var description: String {
        switch self {
        case .absent: "no such stored response"
        case .damaged: "the stored response was damaged and has been removed"
        case .invalidated: "the key was invalidated while the response arrived"
        case .outdated: "a later response is stored already"
        case .refused(let error): "the response was not stored: \(error)"
        case .unavailable(let reason): reason
        }
    }
}

/// What a tier knows of one variant without waiting.
package enum TierKnowledge: Sendable, Equatable {
    /// - `number`: of the fetch that brought it.
    /// - `storedAt`: when it arrived or was last confirmed, Unix seconds.
    case holds(number: UInt64, storedAt: Int64)
    case lacks
    /// It would have to ask somebody.
    case unknown
}

/// Why a tier would not take a body now.
package enum TierRefusal: Sendable, Equatable {
    /// It cannot be written, or not be reached.
    case fails
    case noRoom
}

/// What is asked of a tier.
package struct TierQuestion: Sendable {
    package let key: CacheKey
    /// Variants that the store has already: they are left out.
    package let heads: [StoredHead]
    package let policy: CachePolicy
    /// False for whoever looks without answering: that is not counted, and keeps nothing from being evicted.
    package let isUse: Bool
    /// A body is wanted, so that a response which is found alone comes with it.
    package let wantsBody: Bool

    package init(
        _ key: CacheKey,
        besides heads: [StoredHead] = [],
        policy: CachePolicy,
        isUse: Bool = true,
        wantsBody: Bool = true
    ) {
        self.key = key
        self.heads = heads
        self.policy = policy
        self.isUse = isUse
        self.wantsBody = wantsBody
    }
}

/// What a tier has of a key.
package struct TierAnswer: Sendable {
    /// The newest first.
    package var findings: [TierFinding]
    /// Of a shared tier: everything that was changed up to this moment is in the answer. 0 elsewhere.
    package var moment: UInt64

    package init(_ findings: [TierFinding], moment: UInt64 = 0) {
        self.findings = findings
        self.moment = moment
    }
}

/// One stored response of a tier.
package struct TierFinding: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    /// Of the fetch that brought its body, as the tier was told.
    package let number: UInt64
    /// With its body, where the tier had it at hand.
    package let response: StoredResponse?

    package init(_ key: CacheKey, _ head: StoredHead, number: UInt64, response: StoredResponse? = nil) {
        self.key = key
        self.head = head
        self.number = number
        self.response = response
    }

    package init(_ response: StoredResponse) {
        self.init(response.key, response.head, number: response.number, response: response)
    }
}

/// Which stored response a change is about: the variant that `head` is, up to one that is later.
package struct TierReference: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    /// Of its fetch, in the order of the store that changes it.
    package let number: UInt64
    /// The last moment of a shared tier that the store knew when it had the response; 0 elsewhere.
    package let moment: UInt64

    package init(_ key: CacheKey, _ head: StoredHead, number: UInt64, moment: UInt64 = 0) {
        self.key = key
        self.head = head
        self.number = number
        self.moment = moment
    }
}

/// A complete response on its way into a tier.
package struct TierCommit: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    package let body: Body
    /// The file that holds the body, where this tier gave it; nil for a body in memory.
    package let spill: SpillFile?
    /// Keeps invalidations of this store waiting while `token` is looked at.
    package let invalidations: Invalidations
    /// Noted when the fetch began: nothing is stored that was invalidated since.
    package let token: InvalidationToken
    /// Responses of one key at most, at least 1; the one that was stored longest ago goes.
    package let maxVariants: Int
    /// Of a shared tier: the last one that the store had been told when the fetch began. 0 elsewhere.
    package let moment: UInt64

    package init(
        _ key: CacheKey,
        _ head: StoredHead,
        _ body: Body,
        spill: SpillFile? = nil,
        invalidations: Invalidations,
        token: InvalidationToken,
        maxVariants: Int,
        moment: UInt64 = 0
    ) {
        self.key = key
        self.head = head
        self.body = body
        self.spill = spill
        self.invalidations = invalidations
        self.token = token
        self.maxVariants = maxVariants
        self.moment = moment
    }
}

/// What other stores have invalidated in a tier that they share.
package enum TierNews: Sendable {
    case keys([CacheKey])
    case rules([InvalidationRule])
    /// It cannot be told what: the tier was out of reach for a while.
    case everything
}

/// What a tier has done and holds. What a tier does not have stays zero.
package struct TierStatistics: Sendable, Equatable {
    package var objects = 0
    /// Bytes of what is stored.
    package var bytes: Int64 = 0
    /// Bytes at most.
    package var limit: Int64 = 0
    package var hits = 0
    package var misses = 0
    package var evictions = 0
    package var commits = 0
    /// Responses that were not stored for want of room, or because they are too large.
    package var refusals = 0
    /// Stored responses that were removed because they did not match their checksums, or could not be read.
    package var damaged = 0
    /// It does not know everything yet that it holds: an index is being loaded, or folders are walked.
    package var isRebuilding = false
    /// Bytes of memory that its index takes.
    package var indexBytes = 0
    /// Files that stay open for the next answer.
    package var openFiles = 0
    /// What has gone wrong, logged or not.
    package var troubles = 0

    package init() {}
}

/// A row of a listing: what a tier reads the head of when it is wanted.
package struct TierRow: Sendable {
    /// Names the stored response within its tier.
    package let name: String
    package let url: String

    package init(name: String, url: String) {
        self.name = name
        self.url = url
    }
}

/// What a row is about.
package struct TierListing: Sendable {
    package let key: CacheKey
    package let head: StoredHead
    /// Bytes of the body.
    package let length: Int64
    package let number: UInt64

    package init(_ key: CacheKey, _ head: StoredHead, length: Int64, number: UInt64) {
        self.key = key
        self.head = head
        self.length = length
        self.number = number
    }
}
