// The section of a specification behind each reason, for the explanations of decisions.

extension StoreReason {
    /// The section behind the reason, such as `RFC 9111 section 4.2.1`.
    package var section: String {
        switch self {
        case .explicit: "RFC 9111 section 4.2.1"
        case .ttl: "configuration, cache.ttl"
        case .library: "configuration, cache.mode"
        case .heuristic: "RFC 9111 section 4.2.2"
        case .validator: "RFC 9111 section 4.3"
        }
    }
}

extension StoreRefusal {
    /// The section behind the refusal, such as `RFC 9111 section 5.2.2.5`.
    package var section: String {
        switch self {
        case .cacheOff: "configuration, cache.mode"
        case .statusNotSuccessful: "configuration, cache.mode and response.success"
        case .setCookie: "configuration, cache.set_cookie"
        case .requestCookie: "configuration, cache.cookies"
        case .tooShort: "configuration, cache.min_length"
        case .method, .statusNotCacheable: "RFC 9111 section 3"
        case .post: "RFC 9110 section 9.3.3"
        case .interim: "RFC 9110 section 15.2"
        case .status206: "RFC 9111 section 3.3"
        case .status304: "RFC 9111 section 4.3.4"
        case .statusConditional: "RFC 9110 section 13.2.1"
        case .statusNeverStored: "RFC 6585 sections 3 to 6"
        case .mustUnderstand: "RFC 9111 section 5.2.2.3"
        case .noStore: "RFC 9111 section 5.2.2.5"
        case .requestNoStore: "RFC 9111 section 5.2.1.5"
        case .private: "RFC 9111 section 5.2.2.7"
        case .authorization: "RFC 9111 section 3.5"
        case .varyStar: "RFC 9111 section 4.1"
        case .varyInvalid: "RFC 9110 section 12.5.5"
        case .varyUnderscore: "RFC 9111 section 4.1"
        case .setCookieHeuristic: "RFC 9111 section 7.3"
        case .noFreshnessAndNoValidator: "RFC 9111 section 3"
        case .noValidator: "RFC 9111 section 4.3.1"
        case .errorOverStored: "RFC 9111 section 4.3.3"
        case .eventStream: "HTML Standard section 9.2"
        case .oddFraming: "RFC 9112 section 6.3"
        case .statusUnknown: "RFC 9110 section 15"
        }
    }
}

extension StaleReason {
    /// The section behind the reason, such as `RFC 9111 section 4.2`.
    package var section: String {
        switch self {
        case .expired: "RFC 9111 section 4.2"
        case .noFreshness, .invalidFreshness: "RFC 9111 section 4.2.1"
        case .clockSetBack: "RFC 9111 section 4.2.3"
        case .noCache: "RFC 9111 section 5.2.2.4"
        case .requestNoCache: "RFC 9111 section 5.2.1.4"
        case .requestPragma: "RFC 9111 section 5.4"
        case .requestMaxAge: "RFC 9111 section 5.2.1.1"
        case .requestMinFresh: "RFC 9111 section 5.2.1.3"
        case .requestPrecondition: "RFC 9111 section 4.3.2"
        }
    }
}

extension StaleAllowance {
    /// The section behind the allowance, such as `RFC 5861 section 3`.
    package var section: String {
        switch self {
        case .maxStale: "RFC 9111 section 5.2.1.2"
        case .whileRevalidate, .unrefreshed: "RFC 5861 section 3"
        case .offline: "RFC 9111 section 4.2.4"
        case .checkPause: "configuration, cache.check_pause"
        }
    }
}

extension MismatchReason {
    /// The section behind the mismatch, such as `RFC 9111 section 4.1`.
    package var section: String {
        switch self {
        case .cacheOff: "configuration, cache.mode"
        case .method: "RFC 9111 section 4"
        case .vary: "RFC 9111 section 4.1"
        case .authorization: "RFC 9111 section 3.5"
        case .mapping: "configuration, response.map"
        case .expect: "configuration, response.expect, response.type and response.success"
        }
    }
}

extension StaleRefusal {
    /// The section behind the refusal, such as `RFC 9111 section 5.2.2.2`.
    package var section: String {
        switch self {
        case .noCache: "RFC 9111 section 5.2.2.4"
        case .mustRevalidate: "RFC 9111 section 5.2.2.2"
        case .proxyRevalidate: "RFC 9111 section 5.2.2.8"
        case .sMaxAge: "RFC 9111 section 5.2.2.10"
        case .requestNoCache: "RFC 9111 section 5.2.1.4"
        case .requestPrecondition: StaleReason.requestPrecondition.section
        case .tooStale: "RFC 5861 section 4"
        case .status: "RFC 9111 section 4.3.3"
        }
    }
}

extension FreshnessSource {
    /// The section or configuration key that gives the lifetime, such as `RFC 9111 section 5.2.2.10`.
    package var section: String {
        switch self {
        case .sMaxAge: "RFC 9111 section 5.2.2.10"
        case .maxAge: "RFC 9111 section 5.2.2.1"
        case .expires: "RFC 9111 section 5.3"
        case .targeted: "RFC 9213 section 2.2"
        case .ttl: "configuration, cache.ttl"
        case .ttlByStatus: "configuration, cache.ttl_by_status"
        case .library: "configuration, cache.mode"
        case .forever: "configuration, cache.revalidate"
        case .heuristic: "RFC 9111 section 4.2.2"
        case .purge: "RFC 9111 section 4.4"
        case .head: "RFC 9111 section 4.3.5"
        case .none, .invalid: "RFC 9111 section 4.2.1"
        }
    }
}

extension HeadChange {
    /// The section behind the change, such as `RFC 9111 section 4.3.5`.
    package var section: String {
        switch self {
        case .etag, .lastModified, .length, .noValidator: "RFC 9111 section 4.3.5"
        case .status: "RFC 9110 section 9.3.2"
        }
    }
}

extension ReuseDecision {
    /// The deciding reason as diagnostics print it.
    package var reason: String {
        switch self {
        case .fresh: "fresh"
        case .staleAllowed(_, _, let allowance): allowance.rawValue
        case .stale(_, _, let reason), .onlyIfCachedMiss(let reason): reason.rawValue
        case .mismatch(let reason): reason.rawValue
        }
    }

    /// The section behind the deciding reason.
    package var section: String {
        switch self {
        case .fresh: "RFC 9111 section 4.2"
        case .staleAllowed(_, _, let allowance): allowance.section
        case .stale(_, _, let reason): reason.section
        case .mismatch(let reason): reason.section
        case .onlyIfCachedMiss: "RFC 9111 section 5.2.1.7"
        }
    }
}
