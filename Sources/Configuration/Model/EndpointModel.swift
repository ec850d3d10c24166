// One endpoint of a service, and the cache settings that services and endpoints share.

package import HTTPCaching
package import Policies

/// An endpoint: a method and a path pattern of a service, with everything it inherited.
@dynamicMemberLookup
package struct EndpointConfiguration: Sendable, Equatable {
    /// Unique within the service.
    package var name: String
    /// Default: GET.
    package var method: String
    /// The pattern, below the service's prefix or host.
    package var path: EndpointPath
    package var settings: RouteSettings
    /// What is made of a request; nil: nothing.
    package var request: RequestConfiguration?
    /// Instead of the service's; nil: the service's.
    package var auth: AuthConfiguration?
}

/// A path pattern such as `/users/:id` or `/files/*`.
package struct EndpointPath: Sendable, Hashable, CustomStringConvertible {
    package enum Segment: Sendable, Hashable {
        /// Compared byte for byte.
        case literal(String)
        /// One segment that is not empty.
        case parameter(String)
        /// The rest of the path, with slashes; it may be empty. Only at the end of a pattern.
        case rest
    }

    /// As the file writes it.
    package let description: String
    /// `/` has none.
    package let segments: [Segment]

    /// The names of its parameters.
    var parameters: [String] {
        segments.compactMap { if case .parameter(let name) = $0 { name } else { nil } }
    }

    /// Two patterns with the same shape match the same paths, whatever their parameters are called.
    var shape: String {
        segments.map { segment in
            switch segment {
            case .literal(let text): "/" + text
            case .parameter: "/:"
            case .rest: "/*"
            }
        }.joined()
    }
}

/// How responses are stored and reused.
package struct CacheConfiguration: Sendable, Equatable {
    package enum StoredMethod: String, Sendable, CaseIterable {
        case post = "POST"
        case get = "GET"
    }

    package var mode: CacheMode
    /// The freshness lifetime of responses without explicit freshness, in seconds; nil is none. In library mode it
    /// applies to all responses, and is two hours by default.
    package var ttl: Int64?
    /// The same by status; wins over `ttl`.
    package var ttlByStatus: [Int: Int64] = [:]
    /// Whether `ttl` and `ttl_by_status` win over what the origin says.
    package var overrideOrigin: Bool
    package var revalidate: RevalidateMethod
    /// Seconds past its freshness that a response may serve while a fetch behind it refreshes it, where it has no
    /// directive of its own (RFC 5861 section 3). Default: 0, none.
    package var staleWhileRevalidate: Int64
    /// Seconds past its freshness that a response may serve while the origin fails. Default: 1 day;
    /// in library mode 36500 days.
    package var staleIfError: Int64
    /// Whether another variant answers while the origin fails. Default: none.
    package var otherVariant: OtherVariantPolicy
    /// What a check by HEAD compares in library mode. Default: all of it.
    package var compare: [CompareRule]
    /// Seconds before the next check after one that failed. Default: 30.
    package var checkPause: Int64
    /// Default: pass.
    package var gone: GonePolicy
    /// The methods whose responses are stored. Default: GET.
    package var methods: [StoredMethod]
    /// Patterns of query names that do not enter the key.
    package var ignoreQuery: [String]
    /// Request fields whose values are part of the cache key.
    package var keyFields: [String]
    /// Default: strict.
    package var setCookie: SetCookiePolicy
    /// Default: explicit.
    package var cookies: CookiePolicy
    /// Bytes that a body must have to be stored. Default: 0.
    package var minLength: Int
    /// Variants of one URL that are kept. Default: 32.
    package var maxVariants: Int
    package var memory: Bool
    package var disk: Bool
    /// Waiting for a fetch that another request began.
    package var collapse: CollapseLimits
    /// Where responses are before anything was fetched; nil: nowhere.
    package var seed: SeedConfiguration?
    /// Where under the disk tier's `files` the latest stored response is kept as a plain file;
    /// nil: nowhere. Endpoints only.
    package var storeAs: String?
    /// What answers while there is nothing yet; nil: nothing.
    package var placeholder: PlaceholderConfiguration?
    /// What answers when there will be nothing; nil: a problem document.
    package var fallback: StandInConfiguration?
    package var onClientAbort: ClientAbort
}
