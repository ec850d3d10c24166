// The hot path: a fresh hit in memory, from the read buffer to one writev, without a task or an allocation.

import CacheStore
import DownloadCore
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import ServiceCore

/// What the hot path keeps between requests; loop-bound through its handler. Replaced as a whole with the plan.
final class HotState {
    fileprivate let plan: RoutePlan
    fileprivate let status: HitStatus
    // Room for a cache key and for the lines of one answer; used within one call on the loop, freed in deinit.
    fileprivate let scratch: UnsafeMutableRawBufferPointer
    /// Host values and authorities that the waiting path has found good, each with the service that the host names.
    private var hosts: [(bytes: [UInt8], route: ServiceRoute?)] = []
    private var authorities: [[UInt8]] = []
    private static let limit = 8
    fileprivate static let keyCapacity = 10_240

    init(plan: RoutePlan) {
        self.plan = plan
        status = HitStatus(cacheName: plan.name, detail: .memory)
        scratch = .allocate(byteCount: Self.keyCapacity + 64 + status.maximumLength, alignment: 16)
    }

    deinit { scratch.deallocate() }

    func note(host: String, route: ServiceRoute?) {
        let bytes = Array(host.utf8)
        guard !hosts.contains(where: { $0.bytes == bytes }) else { return }
        if hosts.count == Self.limit { hosts.removeFirst() }
        hosts.append((bytes, route))
    }

    func note(authority: String) {
        let bytes = Array(authority.utf8)
        guard !authorities.contains(bytes) else { return }
        if authorities.count == Self.limit { authorities.removeFirst() }
        authorities.append(bytes)
    }

    /// The service of a request that names `host`; nil where the host has not been seen yet, or nothing serves the target.
    fileprivate func route(host: UnsafeRawBufferPointer, target: UnsafeRawBufferPointer) -> ServiceRoute? {
        guard let known = hosts.firstIndex(where: { host.holds($0.bytes) }) else { return nil }
        return hosts[known].route ?? plan.service(target: target)
    }

    fileprivate func knows(authority: UnsafeRawBufferPointer) -> Bool {
        authorities.contains { authority.holds($0) }
    }
}

@available(*, unavailable) extension HotState: Sendable {}

extension ProxyHandler {
    /// With one of these fields a request takes the waiting path.
    private static let slow: FieldSet = HotPathWindow.disqualifying.union(FieldSet(.via, .upgrade, .expect, .te))

    package func answerAtOnce(_ request: borrowing HotRequest, on connection: Connection) -> Bool {
        guard case .get = request.method, request.present.isDisjoint(with: Self.slow) else { return false }
        let hot = self.hot
        var key = KeyBuffer(UnsafeMutableRawBufferPointer(rebasing: hot.scratch[..<HotState.keyCapacity]))
        guard let found = hot.findKey(request, &key) else { return false }
        let now = core.clock.now()
        guard let response = core.memory.hit(key.bytes, hash: CacheKey.hash(key.bytes)),
            let window = response.hot, window.isFresh(now: now), response.shape == found.shape,
            let chunk = response.body.wholeChunk
        else { return false }
        hot.send(response, chunk, window, now, route: found.name, on: connection)
        return true
    }
}

extension HotState {
    /// Writes the cache key of a request into `key`; nil where the waiting path has to find it.
    fileprivate func findKey(_ request: borrowing HotRequest, _ key: inout KeyBuffer) -> (shape: UInt64, name: String)?
    {
        let target = request.target
        guard let first = target.first else { return nil }
        if first != UInt8(ascii: "/") { return findForwardKey(target, &key) }
        guard let host = request.host, let route = route(host: host, target: target), route.isPlain else { return nil }
        let rest = UnsafeRawBufferPointer(rebasing: target[route.prefix.count...])
        guard rest.first == UInt8(ascii: "/") else { return nil }
        var endpoint: Int?
        if !route.plan.endpoints.isEmpty {
            endpoint = route.plan.endpoint(for: .get, path: rest)
            if endpoint == nil, route.listedOnly { return nil }
            if let endpoint, route.endpointDemos[endpoint] != nil { return nil }
        }
        guard key.append(route.keyPrefix), key.append(rest) else { return nil }
        return (route.shapes[endpoint.map { $0 + 1 } ?? 0], route.plan.name)
    }

    private func findForwardKey(
        _ target: UnsafeRawBufferPointer,
        _ key: inout KeyBuffer
    ) -> (shape: UInt64, name: String)? {
        guard let forward = plan.forward, target.count > 7, target.prefix(7).elementsEqual("http://".utf8) else {
            return nil
        }
        var end = 7
        while end < target.count, target[end] != UInt8(ascii: "/") { end += 1 }
        let authority = UnsafeRawBufferPointer(rebasing: target[7..<end])
        // Known means: allowed by the rules, in lower case and without a default port.
        guard end < target.count, knows(authority: authority), key.append(0), key.append(target) else { return nil }
        return (forward.shape, "forward")
    }

    fileprivate func send(
        _ response: StoredResponse,
        _ chunk: Chunk,
        _ window: HotPathWindow,
        _ now: Int64,
        route: String,
        on connection: Connection
    ) {
        let lines = UnsafeMutableRawBufferPointer(rebasing: scratch[Self.keyCapacity...])
        var end = lines.append("Age: ", at: 0)
        end = Serializer.appendDecimal(window.age(now: now), into: lines, at: end)
        end = lines.append("\r\nCache-Status: ", at: end)
        let start = end
        end += status.write(ttl: window.ttl(now: now), into: UnsafeMutableRawBufferPointer(rebasing: lines[end...]))
        let status = UnsafeRawBufferPointer(rebasing: lines[start..<end])
        end = lines.append("\r\n", at: end)
        connection.sendAtOnce(
            prepared: response.preparedHead,
            dynamic: UnsafeRawBufferPointer(rebasing: lines[..<end]),
            body: chunk,
            range: 0..<chunk.capacity,
            owner: response,
            record: HotRecord(status: response.head.status, route: route, cacheStatus: status, cache: .hit)
        )
    }
}

/// A cache key being put together.
private struct KeyBuffer {
    // A part of the hot path's scratch memory.
    private let buffer: UnsafeMutableRawBufferPointer
    private var count = 0

    init(_ buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<count]) }

    mutating func append(_ part: UnsafeRawBufferPointer) -> Bool {
        guard part.count <= buffer.count - count else { return false }
        UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: part)
        count += part.count
        return true
    }

    mutating func append(_ part: [UInt8]) -> Bool { part.withUnsafeBytes { append($0) } }

    mutating func append(_ byte: UInt8) -> Bool {
        guard count < buffer.count else { return false }
        buffer[count] = byte
        count += 1
        return true
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Copies a literal and returns the position behind it.
    fileprivate func append(_ text: StaticString, at position: Int) -> Int {
        // A literal of more than one scalar is stored as UTF-8 that lives as long as the process.
        let bytes = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        UnsafeMutableRawBufferPointer(rebasing: self[position...]).copyMemory(from: bytes)
        return position + bytes.count
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these are just those bytes.
    fileprivate func holds(_ bytes: [UInt8]) -> Bool { count == bytes.count && begins(with: bytes) }

    /// Whether those bytes come first here.
    func begins(with bytes: [UInt8]) -> Bool {
        guard let base = baseAddress, count >= bytes.count else { return bytes.isEmpty }
        return bytes.withUnsafeBytes { wanted in
            // Both lengths have been compared above.
            wanted.baseAddress.map { memcmp(base, $0, wanted.count) == 0 } ?? true
        }
    }
}
