// The terms that the fields of a request and its response set for their connection: whether it belongs to one client
// from then on, and for how long it may be idle; and the limits of all connections.

package import EventLoop
import HTTPWire

enum ConnectionTerms {
    /// The schemes that authenticate a connection and not a request (RFC 4559 section 6): later requests on it count as
    /// from the same user.
    private static let schemes: [StaticString] = ["NTLM", "Negotiate", "Kerberos", "Nego2"]

    /// Whether the credentials of a request or the challenges of a response name such a scheme.
    static func authenticateConnection(_ fields: Fields) -> Bool {
        // Usually neither the request nor the response has one of these fields.
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

    /// Whether a value contains one of the schemes as a word, even in a malformed list or a quoted string: to close a
    /// connection without need is only slow.
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

    /// The nanoseconds before the origin's timeout in which a connection is not reused: a request sent then could cross
    /// with the close.
    static let margin: UInt64 = 1_000_000_000

    /// The time in nanoseconds for which the connection may be idle after this response, by `Keep-Alive: timeout=N`
    /// (RFC 2068 section 19.7.1.1) less the margin; nil if the response has none. The smallest of several counts.
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

// MARK: - After a protocol switch

/// A connection to an origin after a protocol switch: its transport, and the bytes that were received already. Handed
/// over after a 101 (RFC 9110 section 7.8); loop-bound. The transport is closed with this object, unless it has been taken.
package final class SwitchedConnection {
    private let transport: any ByteTransport
    private var isTaken = false
    /// The bytes after the head of the 101, until they are taken.
    private var received: [UInt8]

    /// - Parameter transport: taken over; it calls no handler.
    init(_ transport: any ByteTransport, received: [UInt8]) {
        self.transport = transport
        self.received = received
    }

    deinit {
        if !isTaken { transport.close(resets: false) }
    }

    /// Takes the bytes that came after the head of the 101.
    package func takeReceived() -> [UInt8] {
        defer { received = [] }
        return received
    }

    /// Takes the transport, which the caller must close.
    package func take() -> any ByteTransport {
        isTaken = true
        return transport
    }
}

@available(*, unavailable) extension SwitchedConnection: Sendable {}

// MARK: - Limits

/// The limits of one client's connections.
package struct UpstreamLimits: Sendable, Equatable {
    /// The most connections to one host and port at once; more transfers wait within their connect deadline; 0 (the
    /// default) for no limit.
    package var connectionsPerHost: Int
    /// The most idle connections; default 256.
    package var idleConnections: Int
    /// The most bytes of one read, 1 KiB to 512 KiB; default 256 KiB.
    package var bufferSize: Int

    package init(connectionsPerHost: Int = 0, idleConnections: Int = 256, bufferSize: Int = 262_144) {
        self.connectionsPerHost = connectionsPerHost
        self.idleConnections = idleConnections
        self.bufferSize = min(max(bufferSize, 1024), 524_288)
    }
}
