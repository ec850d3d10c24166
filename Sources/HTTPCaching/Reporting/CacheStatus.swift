// Cache-Status (RFC 9211): what Drydock did with a request. The lines of hits that no task answers are `HitStatus`'s.

package import HTTPWire

/// One member of Cache-Status: how this cache handled one request. It has no `key` (RFC 9211 section 2.8): keys have
/// query items and request fields in them that are nobody else's business.
package struct CacheStatus: Sendable, Equatable {
    /// Why a request went to the origin (RFC 9211 section 2.2).
    package enum Forward: String, Sendable, CaseIterable {
        case bypass
        case method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss
        case request
        case stale
        case partial
    }

    /// What `detail` says of answers; refusals, allowances and reasons print their own raw values.
    package enum Detail: String, Sendable, CaseIterable {
        case memory
        case disk
        case seed
        case revalidated
        case replaced
        case staleIfError = "stale-if-error"
        case refreshing
        case fallback
        case placeholder
        case recording
        /// A fault has answered, and the origin was not asked.
        case fault
        case onlyIfCached = "only-if-cached"
        /// A variant that the request does not select, and does not forbid either, while the daemon is offline or the origin
        /// fails.
        case otherVariant = "other-variant"
        /// It could be stored, and the one before could not: the next one will be.
        case uncacheable = "remembered-uncacheable"
    }

    /// The name of this cache.
    package var cacheName: String
    package var hit: Bool
    package var forward: Forward?
    package var forwardStatus: Int?
    /// The freshness left, in seconds; below 0 the staleness.
    package var ttl: Int64?
    package var stored: Bool
    package var collapsed: Bool
    package var detail: String?

    package init(
        cacheName: String,
        hit: Bool = false,
        forward: Forward? = nil,
        forwardStatus: Int? = nil,
        ttl: Int64? = nil,
        stored: Bool = false,
        collapsed: Bool = false,
        detail: String? = nil
    ) {
        self.cacheName = cacheName
        self.hit = hit
        self.forward = forward
        self.forwardStatus = forwardStatus
        self.ttl = ttl
        self.stored = stored
        self.collapsed = collapsed
        self.detail = detail
    }

    /// The member as it stands in the field.
    package var value: String {
        var value = Self.tokenOrString(cacheName)
        if hit { value += "; hit" }
        // hit and fwd exclude each other (RFC 9211 section 2.2).
        if let forward, !hit { value += "; fwd=\(forward.rawValue)" }
        if let forwardStatus, !hit { value += "; fwd-status=\(forwardStatus)" }
        if let ttl { value += "; ttl=\(ttl)" }
        if stored, !hit { value += "; stored" }
        if collapsed, !hit { value += "; collapsed" }
        if let detail { value += "; detail=\(Self.tokenOrString(detail))" }
        return value
    }

    /// Adds the member behind those of the caches nearer to the origin (RFC 9211 section 2).
    package func append(to fields: inout Fields) { fields.append(.cacheStatus, value) }

    /// A structured-field token where `text` is one, else a string (RFC 9651 sections 3.3.3 and 3.3.4).
    static func tokenOrString(_ text: String) -> String {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, ASCII.isAlpha(first) || first == UInt8(ascii: "*"),
            bytes.allSatisfy({ ASCII.isTokenByte($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") })
        else { return StructuredText.string(text) }
        return text
    }
}

extension ReuseDecision {
    /// Why the request goes to the origin, where this decision sends it there.
    package var forward: CacheStatus.Forward? {
        switch self {
        case .fresh, .staleAllowed, .onlyIfCachedMiss: nil
        case .stale(_, let by, let reason): reason.isFromRequest && by < 0 ? .request : .stale
        case .mismatch(.cacheOff), .mismatch(.authorization): .bypass
        case .mismatch(.method): .method
        case .mismatch(.vary): .varyMiss
        case .mismatch(.mapping), .mismatch(.expect): .miss
        }
    }
}
