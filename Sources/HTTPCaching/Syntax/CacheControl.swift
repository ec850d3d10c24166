// The directives of Cache-Control in requests and responses (RFC 9111 section 5.2, RFC 5861, RFC 8246) as one value,
// and the reading of a field value into it.

package import HTTPWire

/// The cache directives of a message. Of duplicates that differ the strictest counts; unknown
/// directives change nothing.
package struct CacheControl: Sendable, Equatable {
    /// The staleness that a request accepts (RFC 9111 section 5.2.1.2).
    package enum MaxStale: Sendable, Equatable {
        case none
        case any
        /// Staleness up to this many seconds is accepted.
        case seconds(Int64)
    }

    /// The `max-age` in seconds; 0 if the value does not parse.
    package var maxAge: Int64?
    /// The `s-maxage` in seconds; 0 if the value does not parse.
    package var sMaxAge: Int64?
    /// True if a freshness directive has a value that is not delta-seconds: the response is stale, never fresh.
    package var hasInvalidFreshness = false
    package var noStore = false
    /// True if `no-cache` is there without field names.
    package var noCache = false
    /// True if `noCache` comes from a request's Pragma.
    package var isPragma = false
    /// The field names of `no-cache="…"` in lower case.
    package var noCacheFields: [String] = []
    /// True if `private` is there without field names.
    package var `private` = false
    /// The field names of `private="…"` in lower case.
    package var privateFields: [String] = []
    package var `public` = false
    package var mustRevalidate = false
    package var proxyRevalidate = false
    package var mustUnderstand = false
    package var immutable = false
    package var noTransform = false
    package var onlyIfCached = false
    package var maxStale = MaxStale.none
    /// The `min-fresh` in seconds.
    package var minFresh: Int64?
    /// The `stale-while-revalidate` in seconds (RFC 5861 section 3).
    package var staleWhileRevalidate: Int64?
    /// The `stale-if-error` in seconds (RFC 5861 section 4).
    package var staleIfError: Int64?

    package init() {}

    /// Reads the directives of every line of `field`.
    package init(_ fields: borrowing Fields, field: KnownField = .cacheControl) {
        self.init()
        Self.read(fields, field, into: &self)
    }

    /// Reads one field. It is not part of the initializer, in which a closure would copy `self` for each change.
    private static func read(_ fields: borrowing Fields, _ field: KnownField, into control: inout CacheControl) {
        fields.forEachValue(field) { value in
            guard !control.takePlain(value) else { return }
            for directive in Directive.parse(Array(value.trimmingWhitespace())) { control.apply(directive) }
        }
    }

    /// Reads a request's directives; `Pragma: no-cache` counts only if there is no Cache-Control (RFC 9111 section
    /// 5.4).
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
        // A directive that allows something counts only if it is well-formed, that is without an argument (RFC 9111
        // section 5.2).
        case "public": self.public = self.public || directive.argument == .none
        case "must-understand": mustUnderstand = mustUnderstand || directive.argument == .none
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        // The arguments of immutable are ignored (RFC 8246 section 2).
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

    /// Removes the directives for shared caches only (RFC 9111 sections 5.2.2.7, 5.2.2.8 and 5.2.2.10).
    mutating func dropShared() {
        // A max-age that cannot be parsed is 0: if it is another one, the invalid value is that of s-maxage.
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
        // A list of names that cannot be parsed applies to the whole response.
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

// MARK: - Plain values

/// A set of directives without an argument, as one value holds them.
private struct PlainWords: OptionSet {
    let rawValue: UInt16

    static let noStore = PlainWords(rawValue: 1)
    static let noCache = PlainWords(rawValue: 2)
    static let `private` = PlainWords(rawValue: 4)
    static let `public` = PlainWords(rawValue: 8)
    static let mustRevalidate = PlainWords(rawValue: 16)
    static let proxyRevalidate = PlainWords(rawValue: 32)
    static let mustUnderstand = PlainWords(rawValue: 64)
    static let immutable = PlainWords(rawValue: 128)
    static let noTransform = PlainWords(rawValue: 256)

    /// The directive that the word spells; empty for any other word.
    static func find(_ word: UnsafeRawBufferPointer) -> PlainWords {
        // The switch over lengths compares each word with two others at most.
        switch word.count {
        case 6: word.spells("public") ? .public : []
        case 7: word.spells("private") ? .private : []
        case 8:
            if word.spells("no-store") {
                .noStore
            } else {
                word.spells("no-cache") ? .noCache : []
            }
        case 9: word.spells("immutable") ? .immutable : []
        case 12: word.spells("no-transform") ? .noTransform : []
        case 15:
            if word.spells("must-revalidate") {
                .mustRevalidate
            } else {
                word.spells("must-understand") ? .mustUnderstand : []
            }
        case 16: word.spells("proxy-revalidate") ? .proxyRevalidate : []
        default: []
        }
    }
}

extension CacheControl {
    /// Reads a value that holds only well-known words in lower case, and `max-age` and `s-maxage` in digits. Allocates
    /// nothing. False for any other value, which changes nothing: ``Directive/parse(_:)`` reads that.
    mutating func takePlain(_ value: UnsafeRawBufferPointer) -> Bool {
        var words: PlainWords = []
        var (maxAge, sMaxAge) = (self.maxAge, self.sMaxAge)
        var isPlain = true
        value.forEachMember { member in
            guard isPlain, !member.isEmpty else { return }
            let word = PlainWords.find(member)
            if !word.isEmpty {
                words.formUnion(word)
            } else if let seconds = Self.seconds(member, of: "max-age=") {
                maxAge = strictest(maxAge, seconds)
            } else if let seconds = Self.seconds(member, of: "s-maxage=") {
                sMaxAge = strictest(sMaxAge, seconds)
            } else {
                isPlain = false
            }
        }
        guard isPlain else { return false }
        self.maxAge = maxAge
        self.sMaxAge = sMaxAge
        take(words)
        return true
    }

    private mutating func take(_ words: PlainWords) {
        if words.contains(.noStore) { noStore = true }
        if words.contains(.noCache) { noCache = true }
        if words.contains(.private) { `private` = true }
        if words.contains(.public) { `public` = true }
        if words.contains(.mustRevalidate) { mustRevalidate = true }
        if words.contains(.proxyRevalidate) { proxyRevalidate = true }
        if words.contains(.mustUnderstand) { mustUnderstand = true }
        if words.contains(.immutable) { immutable = true }
        if words.contains(.noTransform) { noTransform = true }
    }

    /// The seconds of a directive if it has this name and its argument consists of digits; nil otherwise.
    private static func seconds(_ member: UnsafeRawBufferPointer, of name: StaticString) -> Int64? {
        let length = name.utf8CodeUnitCount
        guard member.count > length, member.part(0..<length).spells(name) else { return nil }
        return DeltaSeconds.parse(member.part(length..<member.count))
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes are this ASCII word.
    fileprivate func spells(_ word: StaticString) -> Bool {
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        holdsSame(as: UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
}

// MARK: - Directives

/// One cache directive: its name in lower case, and the argument after its `=`.
struct Directive: Equatable {
    enum Argument: Equatable {
        case none
        case value([UInt8])
        /// The argument does not follow the grammar.
        case malformed
    }

    var name: String
    var argument: Argument

    static func parse(_ value: [UInt8]) -> [Directive] {
        var directives: [Directive] = []
        for member in ASCII.listMembers(value) {
            if let directive = strict(member) {
                directives.append(directive)
            } else {
                // A member that does not parse still forbids what its words forbid, and never allows anything.
                let words = member.split { byte in
                    ASCII.isSpace(byte) || byte == ASCII.semicolon || byte == ASCII.equals || byte == ASCII.quote
                }
                for word in words {
                    directives.append(Directive(name: ASCII.lowercased(word), argument: .malformed))
                }
            }
        }
        return directives
    }

    /// Reads a member by the grammar, token [ "=" ( token / quoted-string ) ]; nil if it does not follow it.
    private static func strict(_ member: ArraySlice<UInt8>) -> Directive? {
        guard let equals = member.firstIndex(of: ASCII.equals) else {
            return ASCII.isToken(member) ? Directive(name: ASCII.lowercased(member), argument: .none) : nil
        }
        let name = member[..<equals]
        let argument = member[(equals + 1)...]
        guard ASCII.isToken(name) else { return nil }
        let value: [UInt8]
        if argument.first == ASCII.quote {
            guard let unquoted = unquote(Array(argument)) else { return nil }
            value = unquoted
        } else {
            guard ASCII.isToken(argument) else { return nil }
            value = Array(argument)
        }
        return Directive(name: ASCII.lowercased(name), argument: .value(value))
    }

    private static func unquote(_ bytes: [UInt8]) -> [UInt8]? {
        guard ASCII.endOfQuotedString(bytes, from: 0) == bytes.count else { return nil }
        var result: [UInt8] = []
        var escaped = false
        for byte in bytes[1..<(bytes.count - 1)] {
            if byte == ASCII.backslash, !escaped {
                escaped = true
            } else {
                result.append(byte)
                escaped = false
            }
        }
        return result
    }
}

// MARK: - Lifetimes

/// Non-negative counts of seconds (delta-seconds of RFC 9111 section 1.2.2): digits only, saturating at 2^31.
package enum DeltaSeconds {
    /// The largest count, in seconds: a greater one means this much.
    package static let limit: Int64 = 1 << 31

    /// The seconds that `bytes` spell, or nil if they are anything but one or more digits (no sign, no fraction).
    package static func parse(_ bytes: some Collection<UInt8>) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard ASCII.isDigit(byte) else { return nil }
            value = min(value * 10 + Int64(byte - 0x30), limit)
        }
        return value
    }

    /// `seconds`, limited to 0 to the limit.
    static func clamp(_ seconds: Int64) -> Int64 { min(max(seconds, 0), limit) }

    /// The whole seconds from `start` to `end` (both Unix times), 0 if the clock went back, at most the limit.
    static func elapsed(from start: Int64, to end: Int64) -> Int64 {
        let (difference, overflow) = end.subtractingReportingOverflow(start)
        if overflow { return end > start ? limit : 0 }
        return clamp(difference)
    }

    /// `time` (Unix seconds), limited to 1970 to the year 9999, which an HTTP-date can express.
    static func clampTime(_ time: Int64) -> Int64 { min(max(time, 0), 253_402_300_799) }
}
