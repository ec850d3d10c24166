// Caching as the configuration of an endpoint, a service or forward mode sets it: what is stored and reused, and what
// of a request enters the cache key.

package import HTTPWire
// Whoever imports the rules of caching sees the policies that they obey.
@_exported public import Policies

/// Whether responses are stored at all.
package enum CacheMode: String, Sendable, CaseIterable {
    /// Caching as RFC 9111 has it: nothing is reused that the RFC would not reuse.
    case standard
    /// Responses have a lifetime that the configuration gives, counted from the arrival or the last successful check,
    /// whatever the origin says about freshness. A stale one is checked by a HEAD whose answer is compared. What may
    /// not be stored or shared is as in `standard`.
    case library
    /// Nothing is stored and nothing is looked up.
    case none
}

/// Whether a variant that the request does not select may answer if the origin fails.
package enum OtherVariantPolicy: String, Sendable, CaseIterable {
    /// No other variant answers: the client gets the failure.
    case none
    /// The best variant answers of those that the request's Accept, Accept-Encoding and Accept-Language do not forbid.
    case serve
}

/// The configured side of every caching decision. The defaults are those of a service that configures nothing.
package struct CachePolicy: Sendable, Equatable {
    package var mode: CacheMode
    /// The freshness in seconds of responses that bring none of their own, with status 200, 203, 204, 301 or 308, and
    /// in library mode of every success; nil for none.
    package var ttl: Int64?
    /// The ttl in seconds for exactly these statuses; wins over `ttl`.
    package var ttlByStatus: [Int: Int64]
    /// Whether the configured ttl wins over the response's own freshness and `no-cache`. It never wins over `no-store`
    /// and `private`.
    package var overrideOrigin: Bool
    package var revalidate: ValidationMethod
    /// The longest staleness, in seconds, at which a stored response may stand in for an error (RFC 5861 section 4).
    package var staleIfError: Int64
    /// Whether another variant may answer if the origin fails; by default none does.
    package var otherVariant = OtherVariantPolicy.none
    /// The `stale-while-revalidate` (RFC 5861 section 3) of responses without one, in seconds; default 0, which allows
    /// no staleness.
    package var staleWhileRevalidate: Int64
    /// The most variants of one URL that are kept; beyond it the one that was stored or validated the longest ago is
    /// removed. Default 32.
    package var maxVariants: Int
    /// The names of the targeted fields (RFC 9213 section 2.1) that count, most specific first. Empty in forward mode.
    package var targetedFields: [String]
    package var memory: Bool
    package var disk: Bool
    /// The fields that a check by HEAD compares in library mode; in `standard` RFC 9111 section 4.3.5 defines the
    /// comparison.
    package var compare: [ComparisonRule]
    /// The seconds after a failed check during which a stale stored response that may stand in for the origin answers
    /// without another check; 0 for none.
    package var checkPause: Int64
    package var gone: MissingRule
    /// The shortest body, in bytes, of a 200 or 203 that is stored; a shorter one is only forwarded. Default 0.
    package var minLength: Int64
    package var setCookie: SetCookiePolicy
    package var cookies: CookiePolicy
    /// The digest of the mapping that responses are stored under; nil if they are stored as they come.
    package var mapping: String?
    /// The statuses that count as success; nil: those below 400.
    package var success: StatusSet?
    /// The expectations that bodies and types of responses must meet to be stored, as one text that is stored with
    /// them; nil if there are none.
    package var expectation: String?
    /// Whether the stored responses answer more than one user (RFC 9111 section 3.5). A private cache stores `private`
    /// responses and answers to requests with Authorization; its owner must give the requests of different users
    /// different keys.
    package var isShared = true
    /// Whether clients get another document in place of failed answers, so that no stored error is sent as it is.
    package var mapsErrors = false

    /// The lifetime in library mode if none is configured, in seconds: two hours.
    package static let libraryTTL: Int64 = 7200

    /// - Parameter staleIfError: the longest staleness in seconds; nil for a day, and in library mode for no limit.
    package init(
        mode: CacheMode = .standard,
        ttl: Int64? = nil,
        ttlByStatus: [Int: Int64] = [:],
        overrideOrigin: Bool = false,
        revalidate: ValidationMethod = .head,
        staleIfError: Int64? = nil,
        staleWhileRevalidate: Int64 = 0,
        maxVariants: Int = 32,
        targetedFields: [String] = ["CDN-Cache-Control"],
        memory: Bool = true,
        disk: Bool = true,
        compare: [ComparisonRule] = ComparisonRule.allCases,
        checkPause: Int64 = 30,
        gone: MissingRule = .fail,
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

    /// Whether an answer with `status` is a success. A 206 counts as a 200, and a 304 always counts, since it confirms
    /// a success.
    package func isSuccess(_ status: Int) -> Bool {
        guard let success, status != 304 else { return status < 400 }
        return success.contains(status) || status == 206 && success.contains(200)
    }

    /// Whether a failed check may be answered with the stored response although the origin gave `status`: 500 and
    /// above, or any status outside of `success` if that is set, but never one that concerns this client or this
    /// request alone (401, 403, 407, 412, 416). With ``MissingRule/useStored`` 404 and 410 count, too, and in library
    /// mode any other error.
    package func countsAsFailure(_ status: Int) -> Bool {
        switch status {
        case 404, 410: gone == .useStored
        // These statuses are about the client's credentials or the request's conditions, not the stored response.
        case 401, 403, 407, 412, 416: mode == .library && !isSuccess(status)
        case _ where success != nil: !isSuccess(status)
        case 500...: true
        case 400..<500: mode == .library
        default: false
        }
    }

    /// Whether a body of this length, in bytes, is too short to be stored with `status`.
    package func isTooShort(_ length: Int64, status: Int) -> Bool {
        length < minLength && (status == 200 || status == 203)
    }

    /// The freshness lifetime in library mode, counted from the arrival or the last check.
    func libraryLifetime(status: Int) -> Lifetime {
        if revalidate == .never { return Lifetime(seconds: DeltaSeconds.limit, source: .forever) }
        if let seconds = ttlByStatus[status] {
            return Lifetime(seconds: DeltaSeconds.clamp(seconds), source: .ttlByStatus)
        }
        if let ttl { return Lifetime(seconds: DeltaSeconds.clamp(ttl), source: .ttl) }
        return Lifetime(seconds: Self.libraryTTL, source: .library)
    }

    /// The configured freshness for one status, with its source; nil if the configuration sets none for it.
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

/// The rules by which a service's configuration changes the cache keys of its requests. Without rules the key is the
/// URL.
package struct KeyRules: Sendable, Hashable {
    /// Patterns of names; query items with such a name do not enter the key, and the origin gets them only if the
    /// response may not be stored. `*` stands for any run of characters; names are compared as they are sent,
    /// percent-encoding and case included.
    package var ignoreQuery: [String]
    /// Lower-case names of request fields whose values enter the key.
    package var fields: [String]

    package init(ignoreQuery: [String] = [], fields: [String] = []) {
        self.ignoreQuery = ignoreQuery
        self.fields = fields.map { $0.lowercased() }
    }

    /// The path, and the query if it has one, without the items that are ignored; the others stay byte for byte and in
    /// their order. An item with a semicolon is never ignored: some origins split there, and find items of other names
    /// in it.
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

    /// The lines that the request's fields add to the key, one for each name: `name: value` with the field's lines
    /// joined, or `name` alone if the request has none.
    package func lines(_ request: Fields) -> [String] {
        fields.map { name in request.combined(name).map { "\(name): \($0)" } ?? name }
    }

    /// Whether the field of this name, in any case, enters the key.
    package func names(_ name: UnsafeRawBufferPointer) -> Bool {
        fields.contains { ASCII.equalIgnoringCase($0.utf8, name) }
    }

    /// Whether a field of this name differs from one that enters the key, but is the same if `_` and `-` count as one
    /// character (CGI, WSGI, Rack).
    package func hasTwin(of name: UnsafeRawBufferPointer) -> Bool { fields.contains { ASCII.isTwin($0.utf8, name) } }

    /// The lines that a POST adds to the key of its URL: the digest of its content, and the fields that describe the
    /// content.
    /// - Parameter content: the whole content.
    package static func lines(post content: [UInt8], _ request: Fields) -> [String] {
        let about: [KnownField] = [.contentType, .contentEncoding]
        // Without a digest the content itself enters the key.
        let name = ContentDigest.sha256.hex(content).map { "sha-256=\($0)" } ?? "content=\(content)"
        return ["POST \(name)"]
            + about.compactMap { field in request.combined(field).map { "\(field.name.lowercased()): \($0)" } }
    }
}
