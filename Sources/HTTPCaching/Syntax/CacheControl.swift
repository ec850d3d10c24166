// The directives of Cache-Control in requests and responses (RFC 9111 section 5.2, RFC 5861, RFC 8246) as one value.

package import HTTPWire

/// The cache directives of a message. Of duplicates that differ the strictest counts; unknown
/// directives change nothing.
package struct CacheControl: Sendable, Equatable {
    /// How much staleness a request accepts (RFC 9111 section 5.2.1.2).
    package enum MaxStale: Sendable, Equatable {
        case none
        case any
        /// In seconds.
        case seconds(Int64)
    }

    /// In seconds; 0 where the value did not parse.
    package var maxAge: Int64?
    /// In seconds; 0 where the value did not parse.
    package var sMaxAge: Int64?
    /// A freshness directive had a value that is not delta-seconds: the response is stale, never fresh.
    package var hasInvalidFreshness = false
    package var noStore = false
    /// `no-cache` without field names.
    package var noCache = false
    /// `noCache` comes from a request's Pragma.
    package var isPragma = false
    /// The lower-case names of `no-cache="…"`.
    package var noCacheFields: [String] = []
    /// `private` without field names.
    package var `private` = false
    /// The lower-case names of `private="…"`.
    package var privateFields: [String] = []
    package var `public` = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var mustUnderstand = false
    package var immutable = false
    package var noTransform = false
    package var onlyIfCached = false
    package var maxStale = MaxStale.none
    /// In seconds.
    package var minFresh: Int64?
    /// In seconds (RFC 5861 section 3).
    package var staleWhileRevalidate: Int64?
    /// In seconds (RFC 5861 section 4).
    package var staleIfError: Int64?

    package init() {}

    /// The directives of every line of `field`.
    package init(_ fields: borrowing Fields, field: KnownField = .cacheControl) {
        self.init()
        Self.read(fields, field, into: &self)
    }

    /// Not in the initialiser, in which a closure would copy `self` for each change.
    private static func read(_ fields: borrowing Fields, _ field: KnownField, into control: inout CacheControl) {
        fields.forEachValue(field) { value in
            guard !control.takePlain(value) else { return }
            for directive in Directive.parse(Array(value.trimmingWhitespace())) { control.apply(directive) }
        }
    }

    /// A request's directives; `Pragma: no-cache` counts only where there is no Cache-Control (RFC 9111 section 5.4).
    package init(request fields: Fields) {
        self.init(fields)
        guard !fields.contains(.cacheControl), fields.contains(.pragma) else { return }
        noCache = fields.values(.pragma).contains { value in
            Directive.parse(value).contains { $0.name == "no-cache" }
        }
        isPragma = noCache
    }

    mutating func apply(_ directive: Directive) {
        switch directive.name {
        case "max-age": maxAge = freshness(maxAge, directive.argument)
        case "s-maxage": sMaxAge = freshness(sMaxAge, directive.argument)
        case "no-store": noStore = true
        case "no-cache": applyNames(directive.argument, whole: \.noCache, names: \.noCacheFields)
        case "private": applyNames(directive.argument, whole: \.private, names: \.privateFields)
        // What allows something counts only where it is well-formed, and that is without an
        // argument (RFC 9111 section 5.2).
        case "public": self.public = self.public || directive.argument == .none
        case "must-understand": mustUnderstand = mustUnderstand || directive.argument == .none
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        // Its arguments are ignored (RFC 8246 section 2).
        case "immutable": immutable = immutable || directive.argument != .malformed
        case "no-transform": noTransform = true
        case "only-if-cached": onlyIfCached = true
        case "max-stale": applyMaxStale(directive.argument)
        case "min-fresh": minFresh = max(minFresh ?? 0, seconds(directive.argument) ?? DeltaSeconds.limit)
        case "stale-while-revalidate":
            staleWhileRevalidate = strictest(staleWhileRevalidate, seconds(directive.argument) ?? 0)
        case "stale-if-error": staleIfError = strictest(staleIfError, seconds(directive.argument) ?? 0)
        default: break
        }
    }

    /// Takes out what is for shared caches alone (RFC 9111 sections 5.2.2.7, 5.2.2.8 and 5.2.2.10).
    mutating func dropShared() {
        // A max-age that cannot be read is 0: with any other one, it is s-maxage that cannot be.
        if maxAge != 0 { hasInvalidFreshness = false }
        sMaxAge = nil
        proxyRevalidate = false
        `private` = false
        privateFields = []
    }

    private func seconds(_ argument: Directive.Argument) -> Int64? {
        guard case .value(let bytes) = argument else { return nil }
        return DeltaSeconds.parse(bytes)
    }

    func strictest(_ old: Int64?, _ new: Int64) -> Int64 { min(old ?? new, new) }

    private mutating func freshness(_ old: Int64?, _ argument: Directive.Argument) -> Int64 {
        guard let new = seconds(argument) else {
            hasInvalidFreshness = true
            return 0
        }
        return strictest(old, new)
    }

    private mutating func applyMaxStale(_ argument: Directive.Argument) {
        let new: MaxStale
        switch argument {
        case .none: new = .any
        case .value(let bytes): new = .seconds(DeltaSeconds.parse(bytes) ?? 0)
        case .malformed: new = .seconds(0)
        }
        switch (maxStale, new) {
        case (.none, _), (.any, _): maxStale = new
        case (.seconds(let old), .seconds(let new)): maxStale = .seconds(min(old, new))
        case (.seconds, _): break
        }
    }

    private mutating func applyNames(
        _ argument: Directive.Argument,
        whole: WritableKeyPath<CacheControl, Bool>,
        names: WritableKeyPath<CacheControl, [String]>
    ) {
        // Names that cannot be read mean the whole response.
        guard case .value(let bytes) = argument else {
            self[keyPath: whole] = true
            return
        }
        let members = ASCII.listMembers(bytes)
        guard !members.isEmpty, members.allSatisfy(ASCII.isToken) else {
            self[keyPath: whole] = true
            return
        }
        for name in members.map(ASCII.lowercased) where !self[keyPath: names].contains(name) {
            self[keyPath: names].append(name)
        }
    }
}
