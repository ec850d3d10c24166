// The cache key of a request, built twice: as a value on the waiting path, as bytes without an allocation on the hot path.

package import CacheStore
import HTTPCaching
package import HTTPWire
package import ServiceCore

extension ServiceRoute {
    /// The key of a path that the origin is asked for.
    /// - Parameters:
    ///   - path: path and query on the origin.
    ///   - host: the client's Host; it counts only where it reaches an origin, which may answer by it.
    ///   - lines: what else tells requests apart.
    package func key(path: String, host: String?, lines: [String] = []) -> CacheKey {
        if let keyRoot, path.utf8.first == UInt8(ascii: "/") {
            return CacheKey(root: keyRoot, path: path, lines: lines)
        }
        guard keysHost, let authority = host.flatMap({ Authority.parse($0) }) else {
            return CacheKey(service: plan.name, url: address.root + path, lines: lines)
        }
        let scheme = Self.keyScheme(address, keysHost: true)
        return CacheKey(service: plan.name, url: "\(scheme)://\(authority)" + path, lines: lines)
    }

    /// The key of a request, as the rules of its plan have it.
    func key(path: String, _ fields: Fields, _ plan: RequestPlan) -> CacheKey {
        // Host is read only where it may be part of the key.
        let host = keysHost ? fields.first(.host) : nil
        return key(path: plan.key.path(path), host: host, lines: plan.key.lines(fields))
    }

    /// The key that a GET of `rest` is stored under, as far as its URL says.
    package func key(rest: String, host: String?) -> CacheKey {
        var text = rest
        let endpoint = text.withUTF8 { plan.paths.first(for: .get, path: UnsafeRawBufferPointer($0)) }
        let asked = request(endpoint).plan
        return key(path: asked.key.path(path(rest, asked)), host: host)
    }

    /// With the client's Host in its place, the service that stands in for an origin moves into the scheme.
    static func keyScheme(_ address: OriginAddress, keysHost: Bool) -> String {
        keysHost && address.scheme == "service" ? "service.\(address.host)".lowercased() : address.scheme
    }

    var defaultPort: UInt16 { address.scheme == "https" ? 443 : 80 }
}

extension ForwardPlan {
    package func key(_ origin: OriginAddress, path: String, _ request: RequestHead) -> CacheKey {
        let rules = self.request.key
        return CacheKey(service: "", url: origin.root + rules.path(path), lines: rules.lines(request.fields))
    }
}

/// Which targets say all of a key, so that the hot path may look it up.
enum HotKey {
    case none
    /// Those without a query: some items of it do not enter the key.
    case withoutQuery
    case whole

    init(_ rules: KeyRules) {
        self = !rules.fields.isEmpty ? .none : rules.ignoreQuery.isEmpty ? .whole : .withoutQuery
    }
}

/// A cache key being put together.
struct KeyBuffer {
    // A part of the hot path's scratch memory, `capacity` bytes.
    private let start: UnsafeMutableRawPointer
    private let capacity: Int
    private var count = 0

    init(_ start: UnsafeMutableRawPointer, _ capacity: Int) {
        self.start = start
        self.capacity = capacity
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// False where there is no room.
    mutating func append(_ part: UnsafeRawBufferPointer) -> Bool {
        guard let source = part.baseAddress else { return true }
        guard part.count <= capacity &- count else { return false }
        (start + count).copyMemory(from: source, byteCount: part.count)
        count &+= part.count
        return true
    }

    mutating func append(_ part: [UInt8]) -> Bool { part.withUnsafeBytes { append($0) } }

    mutating func append(_ part: String) -> Bool {
        for byte in part.utf8 where !append(byte) { return false }
        return true
    }

    mutating func append(_ byte: UInt8) -> Bool { withUnsafeBytes(of: byte) { append($0) } }
}
