// The directives of Cache-Control in requests and responses (RFC 9111 section 5.2, RFC 5861, RFC 8246) as one value,
// and how a field value is read into it.

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

    /// Reads one field. It is not part of the initialiser, in which a closure would copy `self` for each change.
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

// MARK: - Plain values

/// The directives without an argument that stand in one value.
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

    /// Empty for any other word.
    static func find(_ word: UnsafeRawBufferPointer) -> PlainWords {
        // By their lengths, so that each is compared with two words at most.
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
    /// Takes a value that holds only well-known words in lower case, and `max-age` and `s-maxage` in digits. Allocates
    /// nothing. False for any other value, of which it has taken nothing: ``Directive/parse(_:)`` reads that.
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

    /// The argument of a directive, where it is that one and the argument is digits.
    private static func seconds(_ member: UnsafeRawBufferPointer, of name: StaticString) -> Int64? {
        let length = name.utf8CodeUnitCount
        guard member.count > length, member.part(0..<length).spells(name) else { return nil }
        return DeltaSeconds.parse(member.part(length..<member.count))
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these are the bytes of an ASCII word.
    fileprivate func spells(_ word: StaticString) -> Bool {
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        holdsSame(as: UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }
}

// MARK: - Directives

/// One cache directive: a lower-case name with what stood behind its `=`.
struct Directive: Equatable {
    enum Argument: Equatable {
        case none
        case value([UInt8])
        /// Something stood there that the grammar does not allow.
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

    /// token [ "=" ( token / quoted-string ) ], or nil.
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

    /// `seconds` within 0 and the limit.
    static func clamp(_ seconds: Int64) -> Int64 { min(max(seconds, 0), limit) }

    /// The whole seconds from `start` to `end` (both Unix times), 0 where the clock went back, at most the limit.
    static func elapsed(from start: Int64, to end: Int64) -> Int64 {
        let (difference, overflow) = end.subtractingReportingOverflow(start)
        if overflow { return end > start ? limit : 0 }
        return clamp(difference)
    }

    /// `time` (Unix seconds) within 1970 and the year 9999, which is what an HTTP-date can say.
    static func clampTime(_ time: Int64) -> Int64 { min(max(time, 0), 253_402_300_799) }
}
