// Entity tags and modification dates: comparing them, and reading lists of them (RFC 9110 sections 8.8 and 13.1).

internal import HTTPWire

/// An entity tag as sent. One without quotes is kept and compared as it is: some origins send such tags.
struct EntityTag: Equatable {
    var isWeak: Bool
    /// With its quotes.
    var opaque: [UInt8]

    init?(_ bytes: some Collection<UInt8>) {
        var opaque = Array(ASCII.trim(Array(bytes)[...]))
        isWeak = opaque.starts(with: [UInt8(ascii: "W"), UInt8(ascii: "/")])
        if isWeak { opaque.removeFirst(2) }
        guard !opaque.isEmpty else { return nil }
        self.opaque = opaque
    }

    /// Between two quotes, with none inside (RFC 9110 section 8.8.3).
    var isQuoted: Bool {
        opaque.count >= 2 && opaque.first == ASCII.quote && opaque.last == ASCII.quote
            && !opaque.dropFirst().dropLast().contains(ASCII.quote)
    }

    /// RFC 9110 section 8.8.3.2.
    func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }

    /// RFC 9110 section 8.8.3.2.
    func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }
}

/// The value of If-Match or If-None-Match: `*`, or entity tags.
enum EntityTagList {
    case any
    case tags([EntityTag])

    /// nil where the field is absent.
    init?(_ fields: Fields, _ field: KnownField) {
        let values = fields.values(field)
        guard !values.isEmpty else { return nil }
        // A backslash is an ordinary byte in an entity tag, so that a quoted string ends at the next quote.
        var tags: [EntityTag] = []
        for value in values {
            for member in Self.members(value) {
                if member.elementsEqual([UInt8(ascii: "*")]) {
                    self = .any
                    return
                }
                if let tag = EntityTag(member) { tags.append(tag) }
            }
        }
        self = .tags(tags)
    }

    private static func members(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
        var members: [ArraySlice<UInt8>] = []
        var start = 0
        var quoted = false
        for index in bytes.indices {
            if bytes[index] == ASCII.quote { quoted.toggle() }
            if bytes[index] == ASCII.comma, !quoted {
                members.append(ASCII.trim(bytes[start..<index]))
                start = index + 1
            }
        }
        members.append(ASCII.trim(bytes[start...]))
        return members
    }
}

extension Caching {
    static func entityTag(_ fields: Fields) -> EntityTag? { fields.values(.etag).first.flatMap { EntityTag($0) } }

    static func lastModified(_ fields: Fields, now: Int64) -> Int64? {
        fields.first(.lastModified).flatMap { HTTPDate.parse($0, now: now) }
    }

    /// An entity tag, or a Last-Modified that is a date.
    static func hasValidator(_ fields: Fields) -> Bool {
        entityTag(fields) != nil || lastModified(fields, now: 0) != nil
    }
}
