// The cache key of a request, built twice: as a value on the waiting path, as bytes without an allocation on the hot path.

package import CacheStore
import DemoMode
import EventLoop
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

/// What the hot path found for a request.
struct HotMatch {
    /// What a ready head must have been made for.
    var shape: UInt64
    /// The service; nil in forward mode.
    var route: ServiceRoute?
    /// For the access log.
    var name: String { route?.plan.name ?? "forward" }
    /// What is answered instead of anything stored.
    var demo: (answer: ReadyDemo, rest: UnsafeRawBufferPointer, ordinals: DrawOrdinals)?
}

/// A Host field that has been answered for.
struct KnownHost {
    /// The service that it names; nil where services are found by prefix.
    var route: ServiceRoute?
}

/// What the hot path keeps between requests; loop-bound through its handler. Replaced as a whole with the plan.
final class HotState {
    /// A Host value, and what the waiting path made of it.
    private final class Host {
        let bytes: [UInt8]
        /// The host in lower case, without and with its port.
        let bare: [UInt8]
        let full: [UInt8]
        let port: UInt16?
        /// The service that the host names; nil where services are found by prefix.
        let route: ServiceRoute?

        init(_ text: String, _ authority: Authority, _ route: ServiceRoute?) {
            bytes = Array(text.utf8)
            bare = Array(authority.host.utf8)
            full = Array(authority.description.utf8)
            port = authority.port
            self.route = route
        }
    }

    private let plan: RoutePlan
    let memory: MemoryTier
    let clock: WallClock
    let memoryStatus: HitStatus
    let diskStatus: HitStatus
    /// The Via line of an answer that has no other.
    let via: [UInt8]
    // Room for a cache key and for the lines of one answer; used within one call on the loop, freed in deinit.
    let scratch: UnsafeMutableRawBufferPointer
    private var hosts: [Host] = []
    private var authorities: [[UInt8]] = []
    private static let limit = 16
    static let keyCapacity = 10_240

    init(plan: RoutePlan, memory: MemoryTier, clock: WallClock) {
        self.plan = plan
        self.memory = memory
        self.clock = clock
        memoryStatus = HitStatus(cacheName: plan.name, detail: .memory)
        diskStatus = HitStatus(cacheName: plan.name, detail: .disk)
        via = Array("Via: \(plan.via)\r\n".utf8)
        let longest = max(memoryStatus.maximumLength, diskStatus.maximumLength)
        scratch = .allocate(byteCount: Self.keyCapacity + 64 + longest, alignment: 16)
    }

    deinit { scratch.deallocate() }

    /// Reverse mode answers for a Host field.
    func note(host: String, _ authority: Authority, route: ServiceRoute?) {
        let fresh = Host(host, authority, route)
        guard !hosts.contains(where: { $0.bytes == fresh.bytes }) else { return }
        // Replaced as a whole, so that a look at it on the hot path is no checked access.
        hosts = hosts.suffix(Self.limit - 1) + [fresh]
    }

    /// The service that a Host field names, where reverse mode has answered for it before: it is known to be served then,
    /// and need not be taken apart again.
    func known(host: UnsafeRawBufferPointer) -> KnownHost? {
        hosts.first { host.holds($0.bytes) }.map { KnownHost(route: $0.route) }
    }

    /// Forward mode may ask this origin.
    func note(origin: OriginAddress) {
        let bytes = Array(origin.authority.utf8)
        guard !authorities.contains(bytes) else { return }
        authorities = authorities.suffix(Self.limit - 1) + [bytes]
    }

    /// Writes the key of a GET into `key`, byte for byte as the waiting path makes it; nil where that has to decide.
    /// No allocation.
    /// - Parameter hasOrigin: the request has an Origin field.
    func match(
        target: UnsafeRawBufferPointer,
        host: UnsafeRawBufferPointer?,
        hasOrigin: Bool,
        _ key: inout KeyBuffer
    ) -> HotMatch? {
        guard let first = target.first else { return nil }
        if first != UInt8(ascii: "/") { return matchForward(target, &key) }
        guard let host, let index = hosts.firstIndex(where: { host.holds($0.bytes) }) else { return nil }
        let known = hosts[index]
        guard let route = known.route ?? plan.service(target: target) else { return nil }
        if hasOrigin, route.addsCredentials || !route.corsOrigins.isEmpty { return nil }
        let rest = UnsafeRawBufferPointer(rebasing: target[route.prefix.count...])
        guard rest.first == UInt8(ascii: "/") else { return nil }
        let shape = route.plan.paths.first(for: .get, path: rest).map { $0 + 1 } ?? 0
        switch route.hotKeys[shape] {
        case .none:
            guard let demo = route.readyDemos[shape] else { return nil }
            return HotMatch(shape: 0, route: route, demo: (demo, rest, route.ordinals))
        case .withoutQuery: if rest.contains(UInt8(ascii: "?")) { return nil }
        case .whole: break
        }
        guard key.append(route.keyPrefix) else { return nil }
        if route.keysHost {
            let isDefault = known.port == nil || known.port == route.defaultPort
            guard key.append(isDefault ? known.bare : known.full), key.append(route.address.basePath) else {
                return nil
            }
        }
        guard key.append(rest) else { return nil }
        return HotMatch(shape: route.shapes[shape], route: route)
    }

    private func matchForward(_ target: UnsafeRawBufferPointer, _ key: inout KeyBuffer) -> HotMatch? {
        guard let forward = plan.forward, forward.hotKey != .none, target.count > 7,
            target.prefix(7).elementsEqual("http://".utf8)
        else {
            return nil
        }
        if forward.hotKey == .withoutQuery, target.contains(UInt8(ascii: "?")) { return nil }
        var end = 7
        while end < target.count, target[end] != UInt8(ascii: "/") { end += 1 }
        let authority = UnsafeRawBufferPointer(rebasing: target[7..<end])
        // Known means: allowed by the rules, in lower case and without a default port, so that the target is the key.
        guard end < target.count, authorities.contains(where: { authority.holds($0) }), key.append(0),
            key.append(target)
        else { return nil }
        return HotMatch(shape: forward.shape, route: nil)
    }
}

@available(*, unavailable) extension HotState: Sendable {}

/// A cache key being put together.
struct KeyBuffer {
    // A part of the hot path's scratch memory.
    private let buffer: UnsafeMutableRawBufferPointer
    private var count = 0

    init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<count]) }

    /// False where there is no room.
    mutating func append(_ part: UnsafeRawBufferPointer) -> Bool {
        guard part.count <= buffer.count - count else { return false }
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: part)
        count += part.count
        return true
    }

    mutating func append(_ part: [UInt8]) -> Bool { part.withUnsafeBytes { append($0) } }

    mutating func append(_ part: String) -> Bool {
        for byte in part.utf8 where !append(byte) { return false }
        return true
    }

    mutating func append(_ byte: UInt8) -> Bool {
        guard count < buffer.count else { return false }
        buffer[count] = byte
        count += 1
        return true
    }
}
