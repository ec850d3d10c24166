// Entity tags and modification dates: comparing them, and reading lists of them (RFC 9110 sections 8.8 and 13.1).

import HTTPWire

/// An entity tag where it stands: all rules about tags are here. One without quotes is compared as it is:
/// some origins send such tags.
struct BorrowedTag {
    let isWeak: Bool
    // Of whoever calls: never kept beyond the call.
    /// With its quotes.
    let opaque: UnsafeRawBufferPointer

    init?(_ bytes: UnsafeRawBufferPointer) {
        let bytes = bytes.trimmingWhitespace()
        isWeak = bytes.count >= 2 && bytes[0] == UInt8(ascii: "W") && bytes[1] == UInt8(ascii: "/")
        opaque = isWeak ? bytes.part(2..<bytes.count) : bytes
        if opaque.isEmpty { return nil }
    }

    /// Between two quotes, with none inside (RFC 9110 section 8.8.3).
    var isQuoted: Bool {
        opaque.count >= 2 && opaque.first == ASCII.quote && opaque.last == ASCII.quote
            && !opaque.dropFirst().dropLast().contains(ASCII.quote)
    }

    /// RFC 9110 section 8.8.3.2.
    func matchesWeakly(_ other: BorrowedTag) -> Bool { opaque.holdsSame(as: other.opaque) }

    /// RFC 9110 section 8.8.3.2.
    func matchesStrongly(_ other: BorrowedTag) -> Bool { !isWeak && !other.isWeak && matchesWeakly(other) }

    /// Calls `body` for each member of a list of tags, trimmed. A backslash is an ordinary byte in an entity tag, so
    /// that a quoted string ends at the next quote.
    static func forEachMember(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
        var start = 0
        var quoted = false
        for index in 0..<bytes.count {
            if bytes[index] == ASCII.quote { quoted.toggle() }
            if bytes[index] == ASCII.comma, !quoted {
                body(bytes.part(start..<index).trimmingWhitespace())
                start = index + 1
            }
        }
        body(bytes.part(start..<bytes.count).trimmingWhitespace())
    }

    static func isAny(_ member: UnsafeRawBufferPointer) -> Bool { member.count == 1 && member[0] == UInt8(ascii: "*") }
}

/// An entity tag as sent, to be kept.
struct EntityTag: Equatable {
    let isWeak: Bool
    /// With its quotes.
    let opaque: [UInt8]
    let isQuoted: Bool

    init(_ tag: BorrowedTag) {
        isWeak = tag.isWeak
        opaque = Array(tag.opaque)
        isQuoted = tag.isQuoted
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
        guard fields.contains(field) else { return nil }
        var tags: [EntityTag] = []
        var isAny = false
        fields.forEachValue(field) { value in
            BorrowedTag.forEachMember(value) { member in
                isAny = isAny || BorrowedTag.isAny(member)
                if let tag = BorrowedTag(member) { tags.append(EntityTag(tag)) }
            }
        }
        self = isAny ? .any : .tags(tags)
    }
}

extension Caching {
    static func entityTag(_ fields: Fields) -> EntityTag? { withTag(fields) { $0.map { EntityTag($0) } } }

    /// Calls `body` with the entity tag where it stands; with nil where there is none.
    static func withTag<R>(_ fields: Fields, _ body: (BorrowedTag?) -> R) -> R {
        fields.withFirst(.etag) { body(BorrowedTag($0)) } ?? body(nil)
    }

    static func lastModified(_ fields: Fields, now: Int64) -> Int64? {
        fields.withFirst(.lastModified) { HTTPDate.parse($0, now: now) } ?? nil
    }

    /// An entity tag, or a Last-Modified that is a date.
    static func hasValidator(_ fields: Fields) -> Bool {
        entityTag(fields) != nil || lastModified(fields, now: 0) != nil
    }
}
