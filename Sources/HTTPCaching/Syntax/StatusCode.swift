// Properties of status codes for caching (RFC 9110 section 15), and sets of them, such as those that count as success.

enum StatusCode {
    /// Whether the status is heuristically cacheable (RFC 9110 section 15.1). 206 is left out: partial responses are
    /// not stored as they are.
    static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether `cache.ttl` applies to a status. The other heuristically cacheable statuses report an error or an
    /// absence, which a lifetime for contents would keep for as long.
    static func takesTTL(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 301, 308: true
        default: false
        }
    }

    /// The final statuses whose meaning for a cache is implemented, for `must-understand` (RFC 9111 section 5.2.2.3).
    static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...205, 300...303, 307, 308, 400...411, 413...415, 417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    static func isSuccessful(_ status: Int) -> Bool { (200..<300).contains(status) }
}

// MARK: - Sets of statuses

/// A set of statuses, which a configuration writes as `[200, 3xx, 404..410]`.
package struct StatusSet: Sendable, Equatable {
    package let ranges: [ClosedRange<Int>]

    package init(_ ranges: [ClosedRange<Int>]) { self.ranges = ranges }

    package func contains(_ status: Int) -> Bool { ranges.contains { $0 ~= status } }

    /// The set as text, such as `200..200, 404..410`.
    package var text: String { ranges.map { "\($0.lowerBound)..\($0.upperBound)" }.joined(separator: ", ") }

    /// The statuses that one word names: `204`, `2xx` or `200..206`; nil if it names none of 200 to 599.
    package static func range(_ word: String) -> ClosedRange<Int>? {
        let bytes = Array(word.utf8)
        if bytes.count == 3, bytes[1] == UInt8(ascii: "x"), bytes[2] == UInt8(ascii: "x") {
            let first = Int(bytes[0]) - 48
            return 2...5 ~= first ? first * 100...first * 100 + 99 : nil
        }
        guard let first = status(bytes.prefix(3)) else { return nil }
        if bytes.count == 3 { return first...first }
        guard bytes.count == 8, bytes[3...4].elementsEqual("..".utf8), let last = status(bytes[5...]), first <= last
        else { return nil }
        return first...last
    }

    private static func status(_ digits: ArraySlice<UInt8>) -> Int? {
        guard digits.count == 3, digits.allSatisfy(ASCII.isDigit) else { return nil }
        let status = digits.reduce(0) { $0 * 10 + Int($1) - 48 }
        return 200...599 ~= status ? status : nil
    }
}
