// The state of the hot path between requests, and its search for the route and key of a request, without a
// copy or a reference count.

import CacheStore
import DemoMode
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore

/// What the hot path found for a request. For the length of one call.
struct HotMatch {
    let route: HotRoute
    /// The format that a prepared head must have.
    var headFormatID: UInt64 = 0
    /// The demo answer, which comes before stored responses.
    var demo: HotDemo?
    /// Whether a web page asks, and which one, has a say.
    var addsCredentials = false
}

/// A demo answer that was found for a request. For the length of one call.
struct HotDemo {
    // Of the route that was found, which is held as `HotRoute` says.
    unowned(unsafe) let answer: ReadyDemo
    unowned(unsafe) let ordinals: DrawOrdinals
    /// What follows the service's prefix in the target.
    let rest: UnsafeRawBufferPointer
}

/// What the hot path keeps between requests; loop-bound through its handler. Replaced as a whole with the plan.
final class HotState {
    let plan: RoutePlan
    let memory: MemoryTier
    let clock: WallClock
    let memoryStatus: HitStatus
    let diskStatus: HitStatus
    /// Each request is traced in the log. Then no host and no origin is remembered here, so that no request
    /// is answered on this path.
    let isTraced: Bool
    /// Each request is recorded in the journal. Then none is answered on this path, either.
    let isJournaled: Bool
    /// The Via line of an answer that has no other.
    let via: [UInt8]
    // Room for a cache key and for the lines of one answer behind it; used within one call on
    // the loop, freed in deinit.
    let scratch: UnsafeMutableRawPointer
    /// Bytes of the lines.
    private let lineCapacity: Int
    // The first `hostCount` are held by this object, which lets go of them in deinit.
    private let hosts: UnsafeMutablePointer<Unmanaged<KnownHost>>
    private var hostCount = 0
    private var authorities: [[UInt8]] = []
    private static let limit = 16
    static let keyCapacity = 10_240

    /// - Parameters:
    ///   - isTraced: each request is traced in the log, and takes the waiting path.
    ///   - isJournaled: each request is recorded in the journal, and takes the waiting path.
    init(
        plan: RoutePlan,
        memory: MemoryTier,
        clock: WallClock,
        isTraced: Bool = false,
        isJournaled: Bool = false
    ) {
        self.plan = plan
        self.isTraced = isTraced
        self.isJournaled = isJournaled
        self.memory = memory
        self.clock = clock
        memoryStatus = HitStatus(cacheName: plan.name, detail: .memory)
        diskStatus = HitStatus(cacheName: plan.name, detail: .disk)
        via = Array("Via: \(plan.via)\r\n".utf8)
        let longest = max(memoryStatus.maximumLength, diskStatus.maximumLength)
        lineCapacity = 64 + longest
        scratch = .allocate(byteCount: Self.keyCapacity + lineCapacity, alignment: 16)
        hosts = .allocate(capacity: Self.limit)
    }

    deinit {
        for place in 0..<hostCount { hosts[place].release() }
        hosts.deallocate()
        scratch.deallocate()
    }

    /// Behind the key.
    var lines: HotLines { HotLines(scratch + Self.keyCapacity, lineCapacity) }
    /// In the place of the key, which is not needed any more, and behind it.
    var longLines: HotLines { HotLines(scratch, Self.keyCapacity + lineCapacity) }

    /// Remembers a Host field that reverse mode answers; the oldest one is dropped if there are too many.
    func note(_ fresh: KnownHost) {
        if isTraced { return }
        guard fresh.bytes.withUnsafeBytes({ find($0) }) == nil else { return }
        if hostCount == Self.limit {
            hosts[0].release()
            for place in 1..<hostCount { hosts[place - 1] = hosts[place] }
            hostCount -= 1
        }
        hosts[hostCount] = .passRetained(fresh)
        hostCount += 1
    }

    /// Valid until the next host is noted.
    private func find(_ host: UnsafeRawBufferPointer) -> Unmanaged<KnownHost>? {
        for place in 0..<hostCount where hosts[place]._withUnsafeGuaranteedRef({ host.holds($0.bytes) }) {
            return hosts[place]
        }
        return nil
    }

    /// Finds a Host field that reverse mode has answered before, so that it need not be parsed again.
    func known(host: UnsafeRawBufferPointer) -> KnownHost? { find(host)?.takeUnretainedValue() }

    /// Forward mode may ask this origin, over plain HTTP.
    func note(origin: OriginAddress) {
        if isTraced || isJournaled { return }
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
        guard let host, let known = find(host) else { return nil }
        // This object holds the host, and the host the service: neither changes here.
        return known._withUnsafeGuaranteedRef { known in
            known.borrowedService(target: target)?._withUnsafeGuaranteedRef {
                $0.match(target, known, hasOrigin: hasOrigin, &key)
            }
        }
    }

    private func matchForward(_ target: UnsafeRawBufferPointer, _ key: inout KeyBuffer) -> HotMatch? {
        guard let forward = plan.forward?.route, forward.itself.hotKey != .none, target.count > 7,
            target.prefix(7).elementsEqual("http://".utf8)
        else {
            return nil
        }
        if forward.itself.hotKey == .withoutQuery, target.contains(UInt8(ascii: "?")) { return nil }
        var end = 7
        while end < target.count, target[end] != UInt8(ascii: "/") { end += 1 }
        let authority = UnsafeRawBufferPointer(rebasing: target[7..<end])
        // Known means: allowed by the rules, in lower case and without a default port, so that the target is the key.
        guard end < target.count, authorities.contains(where: { authority.holds($0) }), key.append(0),
            key.append(target)
        else { return nil }
        return HotMatch(route: HotRoute(forward), headFormatID: forward.itself.headFormatID)
    }
}

@available(*, unavailable) extension HotState: Sendable {}

extension ServiceRoute {
    /// As ``HotState/match(target:host:hasOrigin:_:)``, of a request that leads here.
    fileprivate func match(
        _ target: UnsafeRawBufferPointer,
        _ host: KnownHost,
        hasOrigin: Bool,
        _ key: inout KeyBuffer
    ) -> HotMatch? {
        if hasOrigin, addsCredentials || !cors.origins.isEmpty { return nil }
        let rest = target.part(prefix.count..<target.count)
        guard rest.first == UInt8(ascii: "/") else { return nil }
        let endpoint = borrowedEndpoint(for: .get, rest)
        let (hotKey, headFormatID) = endpoint._withUnsafeGuaranteedRef { ($0.hotKey, $0.headFormatID) }
        switch hotKey {
        case .none:
            // A stored response is never found under a path that is refused; a demo answer would be.
            guard let demo = endpoint._withUnsafeGuaranteedRef({ $0.readyDemo }),
                !(guardsPaths && DotSegments.mayOccur(in: rest))
            else { return nil }
            let found = HotDemo(answer: demo, ordinals: ordinals, rest: rest)
            return HotMatch(route: HotRoute(self, endpoint), demo: found, addsCredentials: addsCredentials)
        case .withoutQuery: if rest.contains(UInt8(ascii: "?")) { return nil }
        case .whole: break
        }
        guard key.append(keyPrefix) else { return nil }
        if keysHost {
            let isDefault = host.port == nil || host.port == defaultPort
            guard key.append(isDefault ? host.bare : host.full), key.append(address.basePath) else { return nil }
        }
        guard key.append(rest) else { return nil }
        return HotMatch(route: HotRoute(self, endpoint), headFormatID: headFormatID, addsCredentials: addsCredentials)
    }
}
