// Entity tags and modification dates: their comparison, and lists of them (RFC 9110 sections 8.8 and 13.1).

import HTTPWire

/// An entity tag in the bytes of its field: all rules about tags are here. A tag without quotes is compared as it is,
/// since some origins send such tags.
struct BorrowedTag {
    let isWeak: Bool
    // The tag with its quotes; the caller owns the bytes, which are not kept beyond the call.
    let opaque: UnsafeRawBufferPointer

    init?(_ bytes: UnsafeRawBufferPointer) {
        let bytes = bytes.trimmingWhitespace()
        isWeak = bytes.count >= 2 && bytes[0] == UInt8(ascii: "W") && bytes[1] == UInt8(ascii: "/")
        opaque = isWeak ? bytes.part(2..<bytes.count) : bytes
        if opaque.isEmpty { return nil }
    }

    /// Whether the tag is between two quotes, with none inside (RFC 9110 section 8.8.3).
    var isQuoted: Bool {
        opaque.count >= 2 && opaque.first == ASCII.quote && opaque.last == ASCII.quote
            && !opaque.dropFirst().dropLast().contains(ASCII.quote)
    }

    /// Compares by the weak comparison (RFC 9110 section 8.8.3.2).
    func matchesWeakly(_ other: BorrowedTag) -> Bool { opaque.holdsSame(as: other.opaque) }

    /// Compares by the strong comparison (RFC 9110 section 8.8.3.2).
    func matchesStrongly(_ other: BorrowedTag) -> Bool { !isWeak && !other.isWeak && matchesWeakly(other) }

    /// Calls `body` with each member of a list of tags, trimmed. A backslash is an ordinary byte in an entity tag, so a
    /// quoted string ends at the next quote.
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

/// An entity tag as sent, with its own copy of the bytes.
struct EntityTag: Equatable {
    let isWeak: Bool
    /// The tag with its quotes.
    let opaque: [UInt8]
    let isQuoted: Bool

    init(_ tag: BorrowedTag) {
        isWeak = tag.isWeak
        opaque = Array(tag.opaque)
        isQuoted = tag.isQuoted
    }

    /// Compares by the weak comparison (RFC 9110 section 8.8.3.2).
    func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }

    /// Compares by the strong comparison (RFC 9110 section 8.8.3.2).
    func matchesStrongly(_ other: EntityTag) -> Bool { !isWeak && !other.isWeak && opaque == other.opaque }
}

/// The value of If-Match or If-None-Match: `*`, or entity tags.
enum EntityTagList {
    case any
    case tags([EntityTag])

    /// Reads the field; nil if it is absent.
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

    /// Calls `body` with the entity tag in the bytes of its field; with nil if there is none.
    static func withTag<R>(_ fields: Fields, _ body: (BorrowedTag?) -> R) -> R {
        fields.withFirst(.etag) { body(BorrowedTag($0)) } ?? body(nil)
    }

    static func lastModified(_ fields: Fields, now: Int64) -> Int64? {
        fields.withFirst(.lastModified) { HTTPDate.parse($0, now: now) } ?? nil
    }

    /// Whether the fields have an entity tag, or a Last-Modified that is a date.
    static func hasValidator(_ fields: Fields) -> Bool {
        entityTag(fields) != nil || lastModified(fields, now: 0) != nil
    }
}

// MARK: - Validators where they stand

/// The validators of a stored response, borrowed for one call: nothing is copied, and no type is generic, so that the
/// hot path pays for neither.
package struct BorrowedValidators {
    package let status: Int
    /// The time when its head arrived, in Unix seconds.
    package let responseTime: Int64
    // The values of ETag, Last-Modified and Date; nil if there is no such line. The bytes belong to the owner of the
    // response, and are not kept beyond the call.
    package let etag: UnsafeRawBufferPointer?
    package let lastModified: UnsafeRawBufferPointer?
    package let date: UnsafeRawBufferPointer?

    package init(
        status: Int,
        responseTime: Int64,
        etag: UnsafeRawBufferPointer?,
        lastModified: UnsafeRawBufferPointer?,
        date: UnsafeRawBufferPointer?
    ) {
        self.status = status
        self.responseTime = responseTime
        self.etag = etag
        self.lastModified = lastModified
        self.date = date
    }

    var tag: BorrowedTag? { etag.flatMap { BorrowedTag($0) } }

    /// The time in Last-Modified, in Unix seconds; nil if it is not a date.
    var modifiedAt: Int64? { lastModified.flatMap { HTTPDate.parse($0, now: responseTime) } }

    /// The time in Date, or the time of arrival if it does not parse.
    var datedAt: Int64 { date.flatMap { HTTPDate.parse($0, now: responseTime) } ?? responseTime }

    /// The time in Last-Modified if it counts as strong (RFC 9110 section 8.8.2.2): Date is at least one second later.
    var stronglyModifiedAt: Int64? {
        guard let modifiedAt, let date, let dated = HTTPDate.parse(date, now: responseTime), modifiedAt < dated else {
            return nil
        }
        return modifiedAt
    }
}

extension StoredHead {
    /// Calls `body` with the validators of the head, borrowed from its fields.
    package func withValidators<R>(_ body: (BorrowedValidators) -> R) -> R {
        func with(_ field: KnownField, _ next: (UnsafeRawBufferPointer?) -> R) -> R {
            fields.withFirst(field) { next($0) } ?? next(nil)
        }
        return with(.etag) { etag in
            with(.lastModified) { lastModified in
                with(.date) { date in
                    body(
                        BorrowedValidators(
                            status: status,
                            responseTime: responseTime,
                            etag: etag,
                            lastModified: lastModified,
                            date: date
                        )
                    )
                }
            }
        }
    }
}
