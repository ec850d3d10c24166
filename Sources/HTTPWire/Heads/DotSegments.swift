// The forms that a path or another text may take for a server behind a proxy: dot segments resolved, and
// percent-encoding decoded more than once.

import Glibc

/// The segments `.` and `..` (RFC 3986 section 3.3), by which a path leaves the folder that its first bytes name.
public enum DotSegments {
    private static let slash = UInt8(ascii: "/")
    private static let backslash = UInt8(ascii: "\\")
    private static let dot = UInt8(ascii: ".")

    /// Whether a server may find a dot segment in the path of a target; the query, from the first `?` on, does not
    /// count.
    ///
    /// It finds `.` and `..` as they are, with `%2e`, between `%2f`, `\` and `%5c`, encoded more than once or in parts
    /// (`%25%32%65`, `%2%65`), and with parameters or a NUL behind them (`..;x`, `..%00`). A dot segment that appears
    /// in one decoding stays one in every further decoding, so that the last one shows them all. Allocates nothing up
    /// to a kilobyte, and never without percent signs.
    public static func mayOccur(in target: UnsafeRawBufferPointer) -> Bool {
        guard let base = target.baseAddress else { return false }
        let query = memchr(base, Int32(UInt8(ascii: "?")), target.count).map { UnsafeRawPointer($0) - base }
        let path = UnsafeRawBufferPointer(start: base, count: query ?? target.count)
        guard memchr(base, Int32(UInt8(ascii: "%")), path.count) != nil else {
            // Nearly all paths have no byte that is or may become a dot.
            return memchr(base, Int32(dot), path.count) != nil && occur(in: path)
        }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: path.count) { settled in
            let count = PercentDecoding.settle(path, into: settled)
            return occur(in: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(settled)[..<count]))
        }
    }

    /// - Parameter path: the path without a query, decoded.
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

    /// The path of a reference, which begins with a slash, resolved as by a browser (WHATWG URL, RFC 3986 section
    /// 5.2.4): without its dot segments, with `%2e` read as a dot and a backslash as a slash. The part after `?` or `#`
    /// stays, and a path without dot segments stays byte for byte.
    public static func resolved(_ reference: String) -> String {
        let end = reference.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let path = reference.utf8[..<(end ?? reference.utf8.endIndex)]
        let segments = path.split(omittingEmptySubsequences: false) { $0 == slash || $0 == backslash }.dropFirst()
        guard segments.contains(where: { depth($0) != nil }) else { return reference }
        var kept: [Substring.UTF8View] = []
        for (index, segment) in zip(segments.indices, segments) {
            guard let depth = depth(segment) else {
                kept.append(segment)
                continue
            }
            if depth == 2 { _ = kept.popLast() }
            // A path that ends in a dot segment names a folder.
            if index == segments.endIndex - 1 { kept.append(Substring().utf8) }
        }
        return "/" + kept.map { String(Substring($0)) }.joined(separator: "/")
            + reference[(end ?? reference.endIndex)...]
    }

    /// The number of dots of a dot segment, each written as it is or as `%2e`: 1 for `.`, 2 for `..`; nil for any other
    /// segment.
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

// MARK: - Percent-encoding

/// The decoding of percent-encodings for every rule that no spelling may bypass.
///
/// An encoding is decoded at any position, also if only another decoding completes it: `%2e`, `%252e`, `%25%32%65`,
/// `%%32%65` and `%2%65` all become a dot. A percent sign that two hexadecimal digits never follow stays. The order of
/// the steps does not matter, since no two encodings overlap and each step makes the text shorter: there is one result,
/// and it is reached in linear time.
public enum PercentDecoding {
    /// Decodes a text until no encoding is left. Allocates nothing.
    /// - Parameters:
    ///   - result: takes the bytes, and has room for as many as the text has.
    ///   - starts: takes the offset in the text at which each byte begins; it ends where the next one begins. It
    ///     has room for as many, too.
    /// - Returns: the number of bytes.
    public static func settle(
        _ text: UnsafeRawBufferPointer,
        into result: UnsafeMutableBufferPointer<UInt8>,
        starts: UnsafeMutableBufferPointer<Int>? = nil
    ) -> Int {
        var count = 0
        for position in text.indices {
            result[count] = text[position]
            starts?[count] = position
            count += 1
            // The decoded byte may be a digit of an encoding that began before it.
            while count >= 3, result[count - 3] == UInt8(ascii: "%"),
                let value = value(result[count - 2], result[count - 1])
            {
                result[count - 3] = value
                count -= 2
            }
        }
        return count
    }

    /// The text, decoded until no encoding is left.
    public static func settled(_ text: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: text.count) { result, count in
            count = text.withUnsafeBytes { settle($0, into: result) }
        }
    }

    /// The text, decoded once, as most servers do.
    public static func once(_ text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var position = 0
        while position < text.count {
            if text[position] == UInt8(ascii: "%"), position + 2 < text.count,
                let value = value(text[position + 1], text[position + 2])
            {
                result.append(value)
                position += 3
            } else {
                result.append(text[position])
                position += 1
            }
        }
        return result
    }

    /// The byte for two hexadecimal digits.
    private static func value(_ high: UInt8, _ low: UInt8) -> UInt8? {
        guard let high = digit(high), let low = digit(low) else { return nil }
        return high << 4 | low
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        let lower = ByteClass.lower(byte)
        if byte &- 0x30 < 10 { return byte &- 0x30 }
        return lower &- 0x61 < 6 ? lower &- 0x61 &+ 10 : nil
    }
}
