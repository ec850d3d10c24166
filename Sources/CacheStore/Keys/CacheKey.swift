// The cache key: the service's name and the absolute URL, with only the authority normalised, and its hash.

/// A cache key: service name, NUL, absolute URL with lower-case scheme and host and without a default port; for a
/// request with a secondary key, another NUL and its lines. A search by the hash must compare these bytes.
package struct CacheKey: Hashable, Sendable, CustomStringConvertible {
    package let bytes: [UInt8]
    /// The hash with a random seed of this process, which must never be stored.
    package let hash: UInt64

    /// Makes a key.
    /// - Parameters:
    ///   - service: the service's name; empty in forward mode.
    ///   - url: an absolute URL; scheme and authority are normalised here, path and query are unchanged.
    ///   - lines: the secondary key, such as the value of a field; without line ends and NUL.
    package init(service: String, url: String, lines: [String] = []) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(service.utf8.count + url.utf8.count + 2)
        bytes.append(contentsOf: service.utf8)
        bytes.append(0)
        Self.appendNormalised(Array(url.utf8), to: &bytes)
        if !lines.isEmpty {
            bytes.append(0)
            bytes.append(contentsOf: lines.joined(separator: "\n").utf8)
        }
        self.init(bytes: bytes)
    }

    /// Makes a key.
    /// - Parameters:
    ///   - root: service, NUL, scheme and authority in the form of ``bytes``.
    ///   - path: path and query, beginning with a slash.
    ///   - lines: the secondary key, as in ``init(service:url:lines:)``.
    package init(root: [UInt8], path: String, lines: [String] = []) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(root.count + path.utf8.count)
        bytes.append(contentsOf: root)
        bytes.append(contentsOf: path.utf8)
        if !lines.isEmpty {
            bytes.append(0)
            bytes.append(contentsOf: lines.joined(separator: "\n").utf8)
        }
        self.init(bytes: bytes)
    }

    /// Makes a key from bytes in the form of ``bytes``.
    package init(bytes: [UInt8]) {
        self.bytes = bytes
        hash = bytes.withUnsafeBytes(Self.hash)
    }

    /// The hash of bytes in the form of ``bytes``, without an allocation.
    package static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 { KeyHash.hash(bytes) }

    package static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.hash == right.hash && left.bytes == right.bytes
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }

    /// The service's name; empty in forward mode.
    package var service: String { String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }

    /// This key with further lines.
    package func adding(lines: [String]) -> CacheKey {
        let all = (extras.map { [$0] } ?? []) + lines
        return all.isEmpty ? self : CacheKey(bytes: plainBytes + [0] + Array(all.joined(separator: "\n").utf8))
    }

    /// The URL.
    package var description: String {
        String(decoding: bytes.drop { $0 != 0 }.dropFirst().prefix { $0 != 0 }, as: UTF8.self)
    }

    /// The lines after the URL; nil if there are none.
    package var extras: String? {
        let rest = bytes.drop { $0 != 0 }.dropFirst().drop { $0 != 0 }
        return rest.isEmpty ? nil : String(decoding: rest.dropFirst(), as: UTF8.self)
    }

    /// Service, NUL and URL, which all keys of one URL have in common.
    package var plainBytes: [UInt8] {
        let url = bytes.drop { $0 != 0 }.dropFirst()
        return Array(bytes[..<(url.firstIndex(of: 0) ?? bytes.endIndex)])
    }

    /// The bytes of the URL, without the secondary key.
    package var urlBytes: ArraySlice<UInt8> {
        guard let start = bytes.firstIndex(of: 0).map({ $0 + 1 }) else { return [] }
        return bytes[start..<(bytes[start...].firstIndex(of: 0) ?? bytes.endIndex)]
    }

    /// Service, scheme and authority, everything up to the third slash; facts about an origin are stored under it.
    package var originBytes: [UInt8] {
        var slashes = 0
        return Array(
            bytes.prefix { byte in
                if byte == UInt8(ascii: "/") { slashes += 1 }
                return slashes < 3
            }
        )
    }

    private static func appendNormalised(_ url: [UInt8], to bytes: inout [UInt8]) {
        let colon = UInt8(ascii: ":")
        let slash = UInt8(ascii: "/")
        guard let schemeEnd = url.firstIndex(of: colon), url[schemeEnd...].starts(with: [colon, slash, slash]) else {
            bytes.append(contentsOf: url)
            return
        }
        let scheme = url[..<schemeEnd].map(lower)
        let rest = url[(schemeEnd + 3)...]
        let authorityEnd = rest.firstIndex { $0 == slash || $0 == UInt8(ascii: "?") } ?? rest.endIndex
        var authority = rest[..<authorityEnd].map(lower)
        let defaultPort = scheme.elementsEqual("https".utf8) ? ":443" : ":80"
        if authority.suffix(defaultPort.utf8.count).elementsEqual(defaultPort.utf8) {
            authority.removeLast(defaultPort.utf8.count)
        } else if authority.last == colon {
            authority.removeLast()
        }
        bytes.append(contentsOf: scheme)
        bytes.append(contentsOf: [colon, slash, slash])
        bytes.append(contentsOf: authority)
        if authorityEnd == url.endIndex || url[authorityEnd] != slash { bytes.append(slash) }
        bytes.append(contentsOf: url[authorityEnd...])
    }

    private static func lower(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }
}

// MARK: - Its hash

/// The hash of keys. The standard library's `Hasher` is the same function, made for values in parts; a whole key takes
/// half of its time here.
enum KeyHash {
    /// The secret, drawn when the process asks for the first hash.
    private static let secret = (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))

    static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 { hash(bytes, secret.0, secret.1) }

    static func hash(_ bytes: UnsafeRawBufferPointer, _ first: UInt64, _ second: UInt64) -> UInt64 {
        var hash = SipHash<QuickRounds>(first, second)
        hash.add(bytes)
        return hash.end()
    }
}
