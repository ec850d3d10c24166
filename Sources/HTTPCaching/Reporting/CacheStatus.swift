// The Cache-Status field (RFC 9211), also as bytes for hits on the hot path, where nothing may be allocated.

package import HTTPWire

/// One member of Cache-Status: how this cache handled one request. It has no `key` (RFC 9211 section 2.8), since keys
/// contain query items and request fields that other parties must not see.
package struct CacheStatus: Sendable, Equatable {
    /// The reason why a request went to the origin (RFC 9211 section 2.2).
    package enum Forward: String, Sendable, CaseIterable {
        case bypass
        case method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss
        case request
        case stale
        case partial
    }

    /// The values of `detail` for answers; refusals, allowances and reasons print their own raw values.
    package enum Detail: String, Sendable, CaseIterable {
        case memory
        case disk
        case seed
        case revalidated
        case replaced
        case staleIfError = "stale-if-error"
        case refreshing
        case fallback
        case placeholder
        case recording
        /// A fault rule answered, and the origin was not asked.
        case fault
        case onlyIfCached = "only-if-cached"
        /// A variant answered that the request neither selects nor forbids, while the daemon is offline or the origin
        /// fails.
        case otherVariant = "other-variant"
        /// The response could be stored, but the previous one could not, so this one was not; the next one will be.
        case uncacheable = "remembered-uncacheable"
    }

    /// The name of this cache.
    package var cacheName: String
    package var hit: Bool
    package var forward: Forward?
    package var forwardStatus: Int?
    /// The remaining freshness in seconds; a negative number is the staleness.
    package var ttl: Int64?
    package var stored: Bool
    package var collapsed: Bool
    package var detail: String?

    package init(
        cacheName: String,
        hit: Bool = false,
        forward: Forward? = nil,
        forwardStatus: Int? = nil,
        ttl: Int64? = nil,
        stored: Bool = false,
        collapsed: Bool = false,
        detail: String? = nil
    ) {
        self.cacheName = cacheName
        self.hit = hit
        self.forward = forward
        self.forwardStatus = forwardStatus
        self.ttl = ttl
        self.stored = stored
        self.collapsed = collapsed
        self.detail = detail
    }

    /// The member as the field spells it.
    package var value: String {
        var value = Self.tokenOrString(cacheName)
        if hit { value += "; hit" }
        // hit and fwd exclude each other (RFC 9211 section 2.2).
        if let forward, !hit { value += "; fwd=\(forward.rawValue)" }
        if let forwardStatus, !hit { value += "; fwd-status=\(forwardStatus)" }
        if let ttl { value += "; ttl=\(ttl)" }
        if stored, !hit { value += "; stored" }
        if collapsed, !hit { value += "; collapsed" }
        if let detail { value += "; detail=\(Self.tokenOrString(detail))" }
        return value
    }

    /// Adds the member after those of the caches nearer to the origin (RFC 9211 section 2).
    package func append(to fields: inout Fields) { fields.append(.cacheStatus, value) }

    /// `text` as a structured-field token if it is one, or else as a string (RFC 9651 sections 3.3.3 and 3.3.4).
    static func tokenOrString(_ text: String) -> String {
        let bytes = Array(text.utf8)
        guard let first = bytes.first, ASCII.isAlpha(first) || first == UInt8(ascii: "*"),
            bytes.allSatisfy({ ASCII.isTokenByte($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") })
        else { return StructuredText.string(text) }
        return text
    }
}

extension ReuseDecision {
    /// The reason to forward the request, if this decision sends it to the origin.
    package var forward: CacheStatus.Forward? {
        switch self {
        case .fresh, .staleAllowed, .onlyIfCachedMiss: nil
        case .stale(_, let by, let reason): reason.isFromRequest && by < 0 ? .request : .stale
        case .mismatch(.cacheOff), .mismatch(.authorization): .bypass
        case .mismatch(.method): .method
        case .mismatch(.vary): .varyMiss
        case .mismatch(.mapping), .mismatch(.expect): .miss
        }
    }
}

// MARK: - Hits

/// Writes the lines `Age: N` and `Cache-Status: NAME; hit; ttl=N; detail=WHERE` for one cache name and one detail.
package struct HitStatus: Sendable {
    private static let first = Array("Age: ".utf8)
    /// The bytes between the age and the remaining seconds; the value of Cache-Status begins at `valueStart` in them.
    private let middle: [UInt8]
    private let valueStart: Int
    /// The bytes after the remaining seconds, up to the end of the line.
    private let last: [UInt8]

    /// The most bytes that `write` fills.
    package let maximumLength: Int

    package init(cacheName: String, detail: CacheStatus.Detail) {
        let name = Array("\r\nCache-Status: ".utf8)
        middle = name + Array((CacheStatus(cacheName: cacheName, hit: true).value + "; ttl=").utf8)
        valueStart = name.count
        last = Array("; detail=\(detail.rawValue)\r\n".utf8)
        // The longest Int64 has 20 characters.
        maximumLength = Self.first.count + 20 + middle.count + 20 + last.count
    }

    /// Writes the lines at the start of `buffer`. Allocates nothing.
    /// - Parameters:
    ///   - age: the age in seconds; `ttl` is in seconds, too.
    ///   - buffer: the memory to fill; if it is smaller than `maximumLength`, nothing is written.
    /// - Returns: the number of bytes written, and the range of the value of Cache-Status in them.
    package func write(
        age: Int64,
        ttl: Int64,
        into buffer: UnsafeMutableRawBufferPointer
    ) -> (count: Int, value: Range<Int>) {
        guard buffer.count >= maximumLength, let start = buffer.baseAddress else { return (0, 0..<0) }
        // This cannot overflow: maximumLength counts all parts, and the longest numbers.
        var end = Self.copy(Self.first, to: start, 0)
        end = Serializer.appendDecimal(age, into: buffer, at: end)
        let value = end &+ valueStart
        end = Self.copy(middle, to: start, end)
        end = Serializer.appendDecimal(ttl, into: buffer, at: end)
        end = Self.copy(last, to: start, end)
        // The range of the value excludes the CRLF.
        return (end, value..<end &- 2)
    }

    @inline(__always)
    private static func copy(_ part: [UInt8], to start: UnsafeMutableRawPointer, _ offset: Int) -> Int {
        part.withUnsafeBytes { part in
            if let source = part.baseAddress { (start + offset).copyMemory(from: source, byteCount: part.count) }
        }
        return offset &+ part.count
    }
}
