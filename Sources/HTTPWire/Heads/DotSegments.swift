// Dot segments of a path, also as a server behind a proxy may come to see them: percent-encoded, behind a
// backslash, with parameters.

import Glibc

/// The segments `.` and `..` (RFC 3986 section 3.3), by which a path leaves the place that its first bytes name.
public enum DotSegments {
    private static let slash = UInt8(ascii: "/")
    private static let backslash = UInt8(ascii: "\\")
    private static let dot = UInt8(ascii: ".")

    /// Whether a server may find a dot segment in the path of a target; the query, from the
    /// first `?` on, does not count.
    ///
    /// Besides `.` and `..` as they are: with `%2e`, between `%2f`, `\` and `%5c`, encoded more than once or in parts
    /// (`%25%32%65`, `%2%65`), and with parameters or a NUL behind them (`..;x`, `..%00`). A dot segment that some
    /// decoding uncovers stays one in every further decoding, so that the last one shows them all. No allocation up to
    /// a kilobyte, and none without percent signs.
    public static func mayOccur(in target: UnsafeRawBufferPointer) -> Bool {
        guard let base = target.baseAddress else { return false }
        let query = memchr(base, Int32(UInt8(ascii: "?")), target.count).map { UnsafeRawPointer($0) - base }
        let path = UnsafeRawBufferPointer(start: base, count: query ?? target.count)
        guard memchr(base, Int32(UInt8(ascii: "%")), path.count) != nil else {
            // Nearly all paths have nothing that is or may become a dot.
            return memchr(base, Int32(dot), path.count) != nil && occur(in: path)
        }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: path.count) { settled in
            let count = PercentDecoding.settle(path, into: settled)
            return occur(in: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(settled)[..<count]))
        }
    }

    /// - Parameter path: without a query, and decoded.
    private static func occur(in path: UnsafeRawBufferPointer) -> Bool {
        // The number of dots in the segment so far, if it has nothing else; otherwise `other`.
        let other = 3
        var dots = 0
        for byte in path {
            switch byte {
            case slash, backslash:
                if dots == 1 || dots == 2 { return true }
                dots = 0
            case UInt8(ascii: ";"), 0:
                if dots == 1 || dots == 2 { return true }
                dots = other
            case dot: dots = min(dots + 1, other)
            default: dots = other
            }
        }
        return dots == 1 || dots == 2
    }

    public static func mayOccur(in target: String) -> Bool {
        var target = target
        return target.withUTF8 { mayOccur(in: UnsafeRawBufferPointer($0)) }
    }

    /// A reference's path, beginning with a slash, as a browser resolves it (WHATWG URL, RFC 3986 section 5.2.4):
    /// without its dot segments, `%2e` being a dot and a backslash a slash. What follows `?` or `#` stays, and a path
    /// without dot segments stays byte for byte.
    public static func resolved(_ reference: String) -> String {
        let end = reference.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let path = reference.utf8[..<(end ?? reference.utf8.endIndex)]
        let segments = path.split(omittingEmptySubsequences: false) { $0 == slash || $0 == backslash }.dropFirst()
        guard segments.contains(where: { depth($0) != nil }) else { return reference }
        var kept: [Substring.UTF8View] = []
        for (place, segment) in zip(segments.indices, segments) {
            guard let depth = depth(segment) else {
                kept.append(segment)
                continue
            }
            if depth == 2 { _ = kept.popLast() }
            // What ends in a dot segment names a folder.
            if place == segments.endIndex - 1 { kept.append(Substring().utf8) }
        }
        return "/" + kept.map { String(Substring($0)) }.joined(separator: "/")
            + reference[(end ?? reference.endIndex)...]
    }

    /// 1 for `.`, 2 for `..`, each dot as it is or as `%2e`; nil for any other segment.
    private static func depth(_ segment: Substring.UTF8View) -> Int? {
        var rest = segment
        var depth = 0
        while let first = rest.popFirst() {
            if first == UInt8(ascii: "%"), rest.popFirst() == UInt8(ascii: "2"),
                let last = rest.popFirst(), ByteClass.lower(last) == UInt8(ascii: "e")
            {
                depth += 1
            } else if first == dot {
                depth += 1
            } else {
                return nil
            }
        }
        return 1...2 ~= depth ? depth : nil
    }
}
