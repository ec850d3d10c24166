// Values of Cache-Control as they mostly are, read where they lie: bare words in lower case, and lifetimes in digits.

import HTTPWire

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
