// The hot path: a fresh hit in memory, or in a file that is open, from the read buffer to the socket without a task.

import CacheStore
import DownloadCore
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import ServiceCore

extension ProxyHandler {
    /// With one of these fields a request takes the waiting path.
    private static let slow = HotPathWindow.disqualifying.subtracting(HotPathWindow.selecting)
        .union(FieldSet(.upgrade, .expect))

    package func answerAtOnce(_ request: borrowing HotRequest, on connection: Connection) -> Bool {
        guard case .get = request.method, request.present.isDisjoint(with: Self.slow) else { return false }
        let hot = self.hot
        if request.present.contains(.via), connection.mayHavePassed(plan.name) { return false }
        var key = KeyBuffer(UnsafeMutableRawBufferPointer(rebasing: hot.scratch[..<HotState.keyCapacity]))
        let hasOrigin = request.present.contains(.origin)
        guard let found = hot.match(target: request.target, host: request.host, hasOrigin: hasOrigin, &key) else {
            return false
        }
        if let (demo, rest, ordinals) = found.demo {
            return hot.send(demo, rest, ordinals, route: found.name, date: context.dateText(), on: connection)
        }
        let now = hot.clock.now()
        let hash = CacheKey.hash(key.bytes)
        var stored = hot.memory.hit(key.bytes, hash: hash) { connection.selects($0) }
        var file: ReadyFile?
        if stored == nil {
            file = core.readyFile(key.bytes, hash: hash) { connection.selects($0) }
            stored = file?.held
        }
        guard let response = stored, let ready = response.ready, ready.window.isFresh(now: now),
            ready.shape == found.shape,
            // A fallback may answer in place of a stored error.
            ready.status < 500
        else { return false }
        let hit = HotHit(response: response, ready: ready, file: file, now: now, route: found.name)
        let isAnswered =
            request.present.isDisjoint(with: HotPathWindow.selecting)
            ? hot.send(hit, on: connection)
            : hot.answerSelected(hit, request, connection.borrowedFields, on: connection)
        if isAnswered, let file { core.noteUse(of: file) }
        return isAnswered
    }
}

extension HotState {
    /// The whole response; false where its body has to be waited for.
    func send(_ hit: HotHit, on connection: Connection) -> Bool {
        guard let body = hit.body else { return false }
        var lines = HotLines(UnsafeMutableRawBufferPointer(rebasing: scratch[Self.keyCapacity...]))
        let cacheStatus = append(hit, to: &lines)
        connection.sendAtOnce(
            prepared: hit.ready.head,
            dynamic: lines.bytes,
            body: body,
            owner: hit.response.owner,
            record: HotRecord(
                status: hit.ready.status,
                route: hit.route,
                cacheStatus: cacheStatus,
                cache: .hit
            )
        )
        return true
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these are just those bytes.
    func holds(_ bytes: [UInt8]) -> Bool { count == bytes.count && begins(with: bytes) }

    /// Whether those bytes come first here.
    func begins(with bytes: [UInt8]) -> Bool {
        guard let base = baseAddress, count >= bytes.count else { return bytes.isEmpty }
        return bytes.withUnsafeBytes { wanted in
            // Both lengths have been compared above.
            wanted.baseAddress.map { memcmp(base, $0, wanted.count) == 0 } ?? true
        }
    }
}
