// The field names that Drydock knows: found in wire bytes without allocation, written in canonical spelling, and as a
// set in one machine word.

/// A field name that some rule of the proxy or the cache reads; every other name is `.other`.
public enum KnownField: UInt8, CaseIterable, Sendable {
    case other = 0
    case host, connection, contentLength, transferEncoding, te, trailer, upgrade, expect, via, maxForwards,
        keepAlive, proxyConnection, proxyAuthenticate, proxyAuthorization, date, age, cacheControl, pragma,
        expires, etag, lastModified, vary, ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince, ifRange,
        range, contentRange, acceptRanges, authorization, cookie, setCookie, location, contentLocation,
        contentType, contentEncoding, accept, acceptEncoding, acceptLanguage, origin, referer, userAgent,
        server, retryAfter, cacheStatus, cdnCacheControl, warning, allow, forwarded, xForwardedFor,
        proxyStatus, wwwAuthenticate, accessControlRequestMethod, secWebSocketKey, secFetchSite, clearSiteData,
        serviceWorkerAllowed, strictTransportSecurity

    /// The canonical spelling; empty for `.other`.
    public var name: String { String(decoding: nameBytes, as: UTF8.self) }

    /// The canonical spelling as bytes of static storage, valid for the life of the process; empty for `.other`.
    public var nameBytes: UnsafeRawBufferPointer {
        let row = Self.row(of: self)
        var length = 0
        while row[length] != 0x20 { length += 1 }
        return UnsafeRawBufferPointer(start: row, count: length)
    }

    /// The field with this name, compared without regard to case (RFC 9110 section 5.1), or `.other`.
    public static func find(_ name: UnsafeRawBufferPointer) -> KnownField {
        let count = name.count
        guard let base = name.baseAddress, count >= 2, count < rowLength else { return .other }
        let first = name[0] | 0x20
        let last = name[count - 1] | 0x20
        let middle = name[count / 2] | 0x20
        let field = candidate(UInt8(truncatingIfNeeded: count &+ Int(first) &* 36 &+ Int(last) &* 20 &+ Int(middle)))
        guard field != .other else { return .other }
        let row = UnsafeRawPointer(row(of: field))
        guard row.load(fromByteOffset: count, as: UInt8.self) == 0x20 else { return .other }
        return matches(base, row, count) ? field : .other
    }

    /// Compares `count` bytes, eight at a time, ignoring the case of the letters in the known name only.
    private static func matches(_ name: UnsafeRawPointer, _ row: UnsafeRawPointer, _ count: Int) -> Bool {
        func isSame(_ offset: Int) -> Bool {
            let known = row.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            let given = name.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            // Letters have bit 6 set and `-` has not: only letters get the case bit.
            let caseBits = (known & 0x4040_4040_4040_4040) >> 1
            return (given | caseBits) == (known | caseBits)
        }
        var offset = 0
        while count &- offset >= 8 {
            guard isSame(offset) else { return false }
            offset &+= 8
        }
        // The last eight bytes are compared, some of them again.
        if offset > 0 { return offset == count || isSame(count &- 8) }
        while offset < count {
            let known = row.load(fromByteOffset: offset, as: UInt8.self)
            let caseBit = (known & 0x40) >> 1
            if name.load(fromByteOffset: offset, as: UInt8.self) | caseBit != known | caseBit { return false }
            offset &+= 1
        }
        return true
    }

    private static func row(of field: KnownField) -> UnsafePointer<UInt8> { names + Int(field.rawValue) * rowLength }

    private static let rowLength = 32

    /// Compares raw values; the compiler's own implementation is called through tables from other modules.
    @inlinable public static func == (left: KnownField, right: KnownField) -> Bool { left.rawValue == right.rawValue }

    /// The names: one row of 32 bytes per case, in the order of the cases, padded with spaces.
    @inline(__always)
    private static var names: UnsafePointer<UInt8> {
        // The literal lives as long as the process, so the pointer stays valid.
        let rows: StaticString = """
                                            \
            Host                            \
            Connection                      \
            Content-Length                  \
            Transfer-Encoding               \
            TE                              \
            Trailer                         \
            Upgrade                         \
            Expect                          \
            Via                             \
            Max-Forwards                    \
            Keep-Alive                      \
            Proxy-Connection                \
            Proxy-Authenticate              \
            Proxy-Authorization             \
            Date                            \
            Age                             \
            Cache-Control                   \
            Pragma                          \
            Expires                         \
            ETag                            \
            Last-Modified                   \
            Vary                            \
            If-Match                        \
            If-None-Match                   \
            If-Modified-Since               \
            If-Unmodified-Since             \
            If-Range                        \
            Range                           \
            Content-Range                   \
            Accept-Ranges                   \
            Authorization                   \
            Cookie                          \
            Set-Cookie                      \
            Location                        \
            Content-Location                \
            Content-Type                    \
            Content-Encoding                \
            Accept                          \
            Accept-Encoding                 \
            Accept-Language                 \
            Origin                          \
            Referer                         \
            User-Agent                      \
            Server                          \
            Retry-After                     \
            Cache-Status                    \
            CDN-Cache-Control               \
            Warning                         \
            Allow                           \
            Forwarded                       \
            X-Forwarded-For                 \
            Proxy-Status                    \
            WWW-Authenticate                \
            Access-Control-Request-Method   \
            Sec-WebSocket-Key               \
            Sec-Fetch-Site                  \
            Clear-Site-Data                 \
            Service-Worker-Allowed          \
            Strict-Transport-Security       \
            .
            """
        return rows.utf8Start
    }

    /// The only known field whose name can have this hash of length, first, last and middle letter.
    private static func candidate(_ hash: UInt8) -> KnownField {
        switch hash {
        case 0: .contentLocation
        case 3: .acceptLanguage
        case 17: .ifRange
        case 21: .wwwAuthenticate
        case 30: .proxyAuthenticate
        case 31: .accept
        case 32: .secWebSocketKey
        case 33: .ifUnmodifiedSince
        case 34: .ifModifiedSince
        case 36: .acceptEncoding
        case 39: .host
        case 40: .retryAfter
        case 41: .strictTransportSecurity
        case 59: .proxyStatus
        case 61: .warning
        case 65: .cookie
        case 68: .location
        case 71: .contentLength
        case 73: .xForwardedFor
        case 77: .ifMatch
        case 80: .contentType
        case 81: .contentRange
        case 86: .ifNoneMatch
        case 91: .keepAlive
        case 92: .referer
        case 95: .range
        case 97: .allow
        case 103: .cacheStatus
        case 108: .date
        case 109: .contentEncoding
        case 124: .lastModified
        case 125: .serviceWorkerAllowed
        case 129: .secFetchSite
        case 130: .vary
        case 137: .setCookie
        case 144: .server
        case 146: .forwarded
        case 152: .via
        case 154: .transferEncoding
        case 155: .te
        case 160: .expires
        case 161: .origin
        case 165: .etag
        case 168: .trailer
        case 175: .expect
        case 178: .authorization
        case 190: .accessControlRequestMethod
        case 193: .pragma
        case 204: .cacheControl
        case 206: .maxForwards
        case 209: .upgrade
        case 210: .cdnCacheControl
        case 211: .proxyAuthorization
        case 214: .proxyConnection
        case 218: .acceptRanges
        case 239: .userAgent
        case 241: .connection
        case 242: .age
        case 248: .clearSiteData
        default: .other
        }
    }
}

// MARK: - Sets of known fields

/// A set of known fields, which the hot path checks before it reads any line.
public struct FieldSet: OptionSet, Sendable, Hashable {
    public var rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public init(_ fields: KnownField...) {
        rawValue = 0
        for field in fields { insert(field) }
    }

    /// Whether the field is in the set.
    @inlinable @inline(__always)
    public func contains(_ field: KnownField) -> Bool { rawValue & (1 << UInt64(field.rawValue)) != 0 }

    /// Whether no field is in both.
    @inlinable @inline(__always)
    public func isDisjoint(with other: FieldSet) -> Bool { rawValue & other.rawValue == 0 }

    @inlinable @inline(__always)
    public mutating func insert(_ field: KnownField) { rawValue |= 1 << UInt64(field.rawValue) }

    @inlinable @inline(__always)
    public mutating func remove(_ field: KnownField) { rawValue &= ~(1 << UInt64(field.rawValue)) }
}
