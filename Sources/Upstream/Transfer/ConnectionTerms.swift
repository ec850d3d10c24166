// What the fields of a request and its response say about their connection: whether it belongs to one client from then
// on, and how long it may be idle.

import HTTPWire

enum ConnectionTerms {
    /// Schemes that authenticate a connection and not a request (RFC 4559 section 6): later requests on it
    /// count as from the same user.
    private static let schemes: [StaticString] = ["NTLM", "Negotiate", "Kerberos", "Nego2"]

    /// Whether the credentials of a request or the challenges of a response name such a scheme.
    static func authenticateConnection(_ fields: Fields) -> Bool {
        // The usual case: neither the request nor the response has any of them.
        let present = fields.present
        guard
            present.contains(.authorization) || present.contains(.wwwAuthenticate)
                || present.contains(.proxyAuthorization) || present.contains(.proxyAuthenticate)
        else { return false }
        var isFound = false
        for field in [KnownField.authorization, .wwwAuthenticate, .proxyAuthorization, .proxyAuthenticate] {
            fields.forEachValue(field) { if names($0) { isFound = true } }
        }
        return isFound
    }

    /// Whether a value contains one of the schemes as a word, even in a malformed list or a quoted string: closing a
    /// connection too often is only slow.
    private static func names(_ value: UnsafeRawBufferPointer) -> Bool {
        var start = 0
        for position in 0...value.count where position == value.count || !isLetter(value[position]) {
            let word = value.part(start..<position)
            if schemes.contains(where: { word.equalsIgnoringCase($0) }) { return true }
            start = position + 1
        }
        return false
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte | 0x20) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
    }

    /// Nanoseconds before the origin's timeout in which a connection is not reused: a request sent then
    /// would cross with the close.
    static let margin: UInt64 = 1_000_000_000

    /// For how long the connection may lie idle after this response, in nanoseconds, by `Keep-Alive: timeout=N` (RFC
    /// 2068 section 19.7.1.1) less the margin; nil if there is none. The smallest of several is used.
    static func longestIdle(_ fields: Fields) -> UInt64? {
        guard fields.present.contains(.keepAlive) else { return nil }
        var least: UInt64?
        fields.forEachValue(.keepAlive) { value in
            value.forEachMember { member in
                if let seconds = timeout(member) { least = min(least ?? .max, seconds) }
            }
        }
        return least.map { $0 > 1_000_000_000 ? .max >> 2 : max($0 * 1_000_000_000, margin) - margin }
    }

    /// The seconds of `timeout=N`, quoted or not; nil for any other parameter.
    private static func timeout(_ member: UnsafeRawBufferPointer) -> UInt64? {
        guard let equals = member.firstIndex(of: UInt8(ascii: "=")),
            member.part(0..<equals).trimmingWhitespace().equalsIgnoringCase("timeout")
        else { return nil }
        var digits = member.part(equals + 1..<member.count).trimmingWhitespace()
        if digits.count >= 2, digits.first == UInt8(ascii: "\""), digits.last == UInt8(ascii: "\"") {
            digits = digits.part(1..<digits.count - 1)
        }
        guard !digits.isEmpty else { return nil }
        var seconds: UInt64 = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            seconds = min(seconds * 10 + UInt64(digit - 0x30), 1 << 40)
        }
        return seconds
    }
}
