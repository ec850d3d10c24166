// What the configuration of an endpoint, a service or forward mode says about storing and reusing responses, and what
// of a request enters the cache key.

package import HTTPWire

/// Whether responses are stored at all.
package enum CacheMode: String, Sendable, CaseIterable {
    /// RFC 9111: nothing is reused that the RFC would not reuse.
    case standard
    /// What the origin says about freshness does not count: a lifetime of the configuration, counted from the
    /// arrival or the last successful check, then a HEAD whose answer is compared. What may not be stored or
    /// shared is as in `standard`.
    case library
    /// Nothing is stored and nothing is looked up.
    case none
}

/// What of a HEAD answer is compared with the stored response in library mode, the most telling first.
package enum CompareRule: String, Sendable, CaseIterable {
    case etag
    case lastModified = "last-modified"
    case length
}

/// What becomes of a stored response when a check answers 404 or 410.
package enum GonePolicy: String, Sendable, CaseIterable {
    /// The answer is forwarded, and the stored response stays, stale.
    case pass
    /// The stored response answers, as it would if the origin had failed.
    case serveStale = "serve-stale"
    /// The answer is forwarded, and the stored response goes.
    case evict
}

/// Whether a variant that the request does not select may answer where the origin fails.
package enum OtherVariantPolicy: String, Sendable, CaseIterable {
    /// The failure is the answer.
    case none
    /// The best one that the request's Accept, Accept-Encoding and Accept-Language do not forbid.
    case serve
}

/// What becomes of responses with Set-Cookie. In every case the client whose request was forwarded gets its cookie, and
/// those who waited for that client's fetch do not.
package enum SetCookiePolicy: String, Sendable, CaseIterable {
    /// They are stored where their freshness is explicit (RFC 9111 section 7.3), without Set-Cookie unless `public` or
    /// `s-maxage` says that they are for everybody.
    case strict
    /// They are stored, cookie and all, where their freshness is explicit (RFC 9111 section 7.3), and not otherwise.
    case explicit
    /// They are stored without Set-Cookie, whatever their freshness.
    case strip
    /// They are not stored.
    case skip
}

/// What becomes of the answers to requests with Cookie, which may be meant for the user of that cookie alone.
package enum CookiePolicy: String, Sendable, CaseIterable {
    /// They are stored where they say themselves how long they are fresh; not by heuristic, by the configured ttl or in
    /// library mode without that.
    case explicit
    /// They are stored like others.
    case any
    /// They are not stored.
    case never
}

/// How a stale stored response is checked with the origin.
package enum RevalidateMethod: String, Sendable, CaseIterable {
    /// HEAD with the conditional fields (RFC 9111 section 4.3.5).
    case head
    /// A conditional GET (RFC 9111 section 4.3.1).
    case conditional
    /// Whichever of the two costs less, judged by what the origin was seen to do and by the length of the body.
    case auto
    /// No check at all: a stale stored response counts as absent, and in library mode none ever becomes stale.
    case never
}

/// The configured side of every caching decision. The defaults are those of a service that configures nothing.
package struct CachePolicy: Sendable, Equatable {
    package var mode: CacheMode
    /// Freshness in seconds for responses that bring none of their own, with status 200, 203, 204, 301 or 308; in
    /// library mode for every success. nil: none.
    package var ttl: Int64?
    /// The ttl in seconds for exactly these statuses; wins over `ttl`.
    package var ttlByStatus: [Int: Int64]
    /// The configured ttl wins over the response's own freshness and `no-cache`; never over `no-store` and `private`.
    package var overrideOrigin: Bool
    package var revalidate: RevalidateMethod
    /// The longest staleness, in seconds, at which a stored response may stand in for an error (RFC 5861 section 4).
    package var staleIfError: Int64
    /// Default: none.
    package var otherVariant = OtherVariantPolicy.none
    /// The value of the directive of the same name (RFC 5861 section 3) for responses without one, in seconds; default
    /// 0, which allows none.
    package var staleWhileRevalidate: Int64
    /// How many variants of one URL are kept; the one that was stored or validated the longest ago goes. Default 32.
    package var maxVariants: Int
    /// The names of targeted fields (RFC 9213 section 2.1), most specific first. Empty in forward mode.
    package var targetedFields: [String]
    package var memory: Bool
    package var disk: Bool
    /// What a check by HEAD compares in library mode; in `standard` RFC 9111 section 4.3.5 says it.
    package var compare: [CompareRule]
    /// Seconds during which, after a check that failed, a stale stored response that may stand in for the origin
    /// answers without another check; 0: never.
    package var checkPause: Int64
    package var gone: GonePolicy
    /// A 200 or 203 with a shorter body, in bytes, is forwarded and not stored; default 0.
    package var minLength: Int64
    package var setCookie: SetCookiePolicy
    package var cookies: CookiePolicy
    /// The digest of the mapping that responses are stored under; nil: they are stored as they come.
    package var mapping: String?
    /// The statuses that count as success; nil: those below 400.
    package var success: StatusSet?
    /// What the bodies and types of responses must be for them to be stored, as one text that is stored with them; nil:
    /// anything.
    package var expectation: String?
    /// Whether the stored responses answer more than one user (RFC 9111 section 3.5). A private cache stores what is
    /// `private` and what answers Authorization; whoever has one keeps apart, by their keys, the requests of its users.
    package var isShared = true
    /// Failed answers get another document on their way to clients, so that no stored one is sent as it is.
    package var mapsErrors = false

    /// The lifetime in library mode where none is configured, in seconds: two hours.
    package static let libraryTTL: Int64 = 7200

    /// - Parameter staleIfError: nil is a day, and in library mode without a limit.
    package init(
        mode: CacheMode = .standard,
        ttl: Int64? = nil,
        ttlByStatus: [Int: Int64] = [:],
        overrideOrigin: Bool = false,
        revalidate: RevalidateMethod = .head,
        staleIfError: Int64? = nil,
        staleWhileRevalidate: Int64 = 0,
        maxVariants: Int = 32,
        targetedFields: [String] = ["CDN-Cache-Control"],
        memory: Bool = true,
        disk: Bool = true,
        compare: [CompareRule] = CompareRule.allCases,
        checkPause: Int64 = 30,
        gone: GonePolicy = .pass,
        minLength: Int64 = 0,
        setCookie: SetCookiePolicy = .strict,
        cookies: CookiePolicy = .explicit
    ) {
        self.mode = mode
        self.ttl = ttl
        self.ttlByStatus = ttlByStatus
        self.overrideOrigin = overrideOrigin
        self.revalidate = revalidate
        self.staleIfError = staleIfError ?? (mode == .library ? DeltaSeconds.limit : 86400)
        self.staleWhileRevalidate = staleWhileRevalidate
        self.maxVariants = maxVariants
        self.targetedFields = targetedFields
        self.memory = memory
        self.disk = disk
        self.compare = compare
        self.checkPause = checkPause
        self.gone = gone
        self.minLength = minLength
        self.setCookie = setCookie
        self.cookies = cookies
    }

    /// Whether an answer with `status` is a success. A part counts as the whole, and a 304 is about what was a success.
    package func isSuccess(_ status: Int) -> Bool {
        guard let success, status != 304 else { return status < 400 }
        return success.contains(status) || status == 206 && success.contains(200)
    }

    /// Whether a failed check may be answered with what is stored although the origin gave `status`: 500 and above, or
    /// whatever is not among the statuses of `success` where they are set, but for what concerns this client or this
    /// request alone (401, 403, 407, 412, 416); with ``GonePolicy/serveStale`` 404 and 410,
    /// and in library mode any other error.
    package func countsAsFailure(_ status: Int) -> Bool {
        switch status {
        case 404, 410: gone == .serveStale
        // About this client's credentials, or this request's conditions: it says nothing of what is stored.
        case 401, 403, 407, 412, 416: mode == .library && !isSuccess(status)
        case _ where success != nil: !isSuccess(status)
        case 500...: true
        case 400..<500: mode == .library
        default: false
        }
    }

    /// A body of so many bytes is too short to be stored with `status`.
    package func isTooShort(_ length: Int64, status: Int) -> Bool {
        length < minLength && (status == 200 || status == 203)
    }

    /// How long a response is fresh in library mode, from the moment it came or was checked.
    func libraryLifetime(status: Int) -> Lifetime {
        if revalidate == .never { return Lifetime(seconds: DeltaSeconds.limit, source: .forever) }
        if let seconds = ttlByStatus[status] {
            return Lifetime(seconds: DeltaSeconds.clamp(seconds), source: .ttlByStatus)
        }
        if let ttl { return Lifetime(seconds: DeltaSeconds.clamp(ttl), source: .ttl) }
        return Lifetime(seconds: Self.libraryTTL, source: .library)
    }

    /// The configured freshness for one status, with its source; nil where the configuration says nothing about it.
    func configuredLifetime(status: Int) -> Lifetime? {
        if let seconds = ttlByStatus[status] {
            return Lifetime(seconds: DeltaSeconds.clamp(seconds), source: .ttlByStatus)
        }
        if let ttl, StatusCode.takesTTL(status) {
            return Lifetime(seconds: DeltaSeconds.clamp(ttl), source: .ttl)
        }
        return nil
    }
}

// MARK: - The cache key

/// How the configuration changes the key of a service's requests. Without rules the key is the URL.
package struct KeyRules: Sendable, Hashable {
    /// Patterns of names; query items with such a name do not enter the key, and the origin gets them only where
    /// nothing may be stored. `*` stands for any run of characters; names are compared as they are sent,
    /// percent-encoding and case included.
    package var ignoreQuery: [String]
    /// Lower-case names of request fields whose values enter the key.
    package var fields: [String]

    package init(ignoreQuery: [String] = [], fields: [String] = []) {
        self.ignoreQuery = ignoreQuery
        self.fields = fields.map { $0.lowercased() }
    }

    /// `path`, which may have a query, without the items that do not count; the others stay byte for byte and in their
    /// order. An item with a semicolon always counts: some origins split there, and find items of other names in it.
    package func path(_ path: String) -> String {
        guard !ignoreQuery.isEmpty, let mark = path.utf8.firstIndex(of: UInt8(ascii: "?")) else { return path }
        let items = path.utf8[path.utf8.index(after: mark)...].split(
            separator: UInt8(ascii: "&"),
            omittingEmptySubsequences: false
        )
        let kept = items.filter { item in
            if item.contains(UInt8(ascii: ";")) { return true }
            let name = item.prefix { $0 != UInt8(ascii: "=") }
            return !ignoreQuery.contains { StarPattern.matches(Array($0.utf8)[...], Array(name)[...]) }
        }
        if kept.count == items.count { return path }
        let base = String(path[..<mark])
        return kept.isEmpty ? base : base + "?" + kept.map { String($0) ?? "" }.joined(separator: "&")
    }

    /// What the request's fields add to the key, a line for each name: `name: value`, its lines joined, or `name` alone
    /// where the request has none.
    package func lines(_ request: Fields) -> [String] {
        fields.map { name in request.combined(name).map { "\(name): \($0)" } ?? name }
    }

    /// Whether the field of this name, in any case, enters the key.
    package func names(_ name: UnsafeRawBufferPointer) -> Bool {
        fields.contains { ASCII.equalIgnoringCase($0.utf8, name) }
    }

    /// Whether a field of this name reads like one that enters the key where `_` and `-` are the same (CGI, WSGI,
    /// Rack), and is another one.
    package func hasTwin(of name: UnsafeRawBufferPointer) -> Bool { fields.contains { ASCII.isTwin($0.utf8, name) } }

    /// What a POST adds to the key of its URL: the digest of its content, and what says how to read it.
    /// - Parameter content: the whole of it.
    package static func lines(post content: [UInt8], _ request: Fields) -> [String] {
        let about: [KnownField] = [.contentType, .contentEncoding]
        // Without a digest the content itself names itself.
        let name = ContentDigest.sha256.hex(content).map { "sha-256=\($0)" } ?? "content=\(content)"
        return ["POST \(name)"]
            + about.compactMap { field in request.combined(field).map { "\(field.name.lowercased()): \($0)" } }
    }
}
