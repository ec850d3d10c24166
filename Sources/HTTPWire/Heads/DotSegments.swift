// Dot segments of a path, also as a server behind a proxy may come to see them: percent-encoded, behind a
// backslash, with parameters.

import Glibc

/// One byte of a URL after decoding, and where what follows it begins.
public struct DecodedByte: Sendable, Equatable {
    public let byte: UInt8
    public let next: Int

    /// Decodes the byte at a position inside `text`. Percent-encoding is decoded however often it was applied: `%2e`,
    /// `%252e` and `%25252E` are all a dot. A percent sign without two hexadecimal digits stands for itself.
    public init(_ text: UnsafeRawBufferPointer, at position: Int) {
        guard text[position] == UInt8(ascii: "%") else {
            (byte, next) = (text[position], position + 1)
            return
        }
        var digits = position + 1
        // The percent sign of `%2e` is encoded itself.
        while digits + 3 < text.count, text[digits] == UInt8(ascii: "2"), text[digits + 1] == UInt8(ascii: "5"),
            Self.value(text, at: digits + 2) != nil
        {
            digits += 2
        }
        if let value = Self.value(text, at: digits) {
            (byte, next) = (value, digits + 2)
        } else {
            (byte, next) = (text[position], position + 1)
        }
    }

    /// Two hexadecimal digits.
    private static func value(_ text: UnsafeRawBufferPointer, at position: Int) -> UInt8? {
        guard position + 1 < text.count, let high = digit(text[position]), let low = digit(text[position + 1]) else {
            return nil
        }
        return high << 4 | low
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        let lower = ByteClass.lower(byte)
        if byte &- 0x30 < 10 { return byte &- 0x30 }
        return lower &- 0x61 < 6 ? lower &- 0x61 &+ 10 : nil
    }
}

/// The segments `.` and `..` (RFC 3986 section 3.3), by which a path leaves the place that its first bytes name.
public enum DotSegments {
    private static let slash = UInt8(ascii: "/")
    private static let backslash = UInt8(ascii: "\\")
    private static let dot = UInt8(ascii: ".")

    /// Whether a server may find a dot segment in the path of a target; the query, from the
    /// first `?` on, does not count.
    ///
    /// Besides `.` and `..` as they are: with `%2e`, between `%2f`, `\` and `%5c`, encoded more than once, and with
    /// parameters or a NUL behind them (`..;x`, `..%00`). No allocation.
    public static func mayOccur(in target: UnsafeRawBufferPointer) -> Bool {
        // Nearly all paths have nothing that is or may become a dot.
        guard let base = target.baseAddress,
            memchr(base, Int32(dot), target.count) != nil || memchr(base, Int32(UInt8(ascii: "%")), target.count) != nil
        else { return false }
        // The number of dots in the segment so far, if it has nothing else; otherwise `other`.
        let other = 3
        var dots = 0
        var position = 0
        while position < target.count {
            let raw = target[position]
            if raw == UInt8(ascii: "?") { break }
            let decoded = DecodedByte(target, at: position)
            position = decoded.next
            switch decoded.byte {
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
