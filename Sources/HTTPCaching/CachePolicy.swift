// What the configuration of an endpoint, a service or forward mode says about storing and reusing responses.

/// Whether responses are stored at all.
package enum CacheMode: String, Sendable {
    /// RFC 9111: nothing is reused that the RFC would not reuse.
    case standard
    /// Nothing is stored and nothing is looked up.
    case none
}

/// How a stale stored response is checked with the origin.
package enum RevalidateMethod: String, Sendable {
    /// By HEAD with the conditional fields (RFC 9111 section 4.3.5).
    case head
    /// By a conditional GET (RFC 9111 section 4.3.1).
    case conditional
    /// By whichever of the two costs less, judged by what the origin was seen to do and by the length of the body.
    case auto
    /// Not at all: a stale stored response counts as absent.
    case never
}

/// The configured side of every caching decision. The defaults are those of a service that configures nothing.
package struct CachePolicy: Sendable, Equatable {
    package var mode: CacheMode
    /// Freshness in seconds for responses that bring none of their own; it applies to the heuristically cacheable
    /// statuses (RFC 9110 section 15.1). nil: none.
    package var ttl: Int64?
    /// As `ttl`, in seconds, for exactly these statuses; wins over `ttl`.
    package var ttlByStatus: [Int: Int64]
    /// The configured ttl wins over the response's own freshness and `no-cache`; never over `no-store` and `private`.
    package var overrideOrigin: Bool
    package var revalidate: RevalidateMethod
    /// The longest staleness, in seconds, at which a stored response may stand in for an error (RFC 5861 section 4).
    package var staleIfError: Int64
    /// As the directive of the same name (RFC 5861 section 3), in seconds, for responses without one; default 0: none.
    package var staleWhileRevalidate: Int64
    /// How many variants of one URL are kept; the one that was stored or validated the longest ago goes. Default 32.
    package var maxVariants: Int
    /// The names of targeted fields (RFC 9213 section 2.1), most specific first. Empty in forward mode.
    package var targetedFields: [String]
    package var memory: Bool
    package var disk: Bool

    package init(
        mode: CacheMode = .standard,
        ttl: Int64? = nil,
        ttlByStatus: [Int: Int64] = [:],
        overrideOrigin: Bool = false,
        revalidate: RevalidateMethod = .head,
        staleIfError: Int64 = 86400,
        staleWhileRevalidate: Int64 = 0,
        maxVariants: Int = 32,
        targetedFields: [String] = ["CDN-Cache-Control"],
        memory: Bool = true,
        disk: Bool = true
    ) {
        self.mode = mode
        self.ttl = ttl
        self.ttlByStatus = ttlByStatus
        self.overrideOrigin = overrideOrigin
        self.revalidate = revalidate
        self.staleIfError = staleIfError
        self.staleWhileRevalidate = staleWhileRevalidate
        self.maxVariants = maxVariants
        self.targetedFields = targetedFields
        self.memory = memory
        self.disk = disk
    }

    /// The configured freshness for one status, with its source; nil where the configuration says nothing about it.
    func configuredLifetime(status: Int) -> Lifetime? {
        if let seconds = ttlByStatus[status] {
            return Lifetime(seconds: DeltaSeconds.clamp(seconds), source: .ttlByStatus)
        }
        if let ttl, Status.isHeuristicallyCacheable(status) {
            return Lifetime(seconds: DeltaSeconds.clamp(ttl), source: .ttl)
        }
        return nil
    }
}
