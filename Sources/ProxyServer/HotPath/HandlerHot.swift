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
        guard request.isGet, request.present.isDisjoint(with: Self.slow) else { return false }
        return hot.answer(request, core, on: connection)
    }
}

extension HotState {
    fileprivate func answer(_ request: borrowing HotRequest, _ core: DownloadCore, on connection: Connection) -> Bool {
        let present = request.present
        if present.contains(.via), connection.mayHavePassed(plan.name) { return false }
        var key = KeyBuffer(scratch, Self.keyCapacity)
        let hasOrigin = present.contains(.origin)
        guard let found = match(target: request.target, host: request.host, hasOrigin: hasOrigin, &key) else {
            return false
        }
        if found.addsCredentials, present.contains(.secFetchSite), connection.mayBeForeignFetch { return false }
        if let demo = found.demo {
            // Conditions and ranges count for a demo answer, too; nothing is drawn yet.
            return present.isDisjoint(with: HotPathWindow.selecting)
                && send(demo, route: found.route, on: connection)
        }
        let now = clock.now()
        let hash = CacheKey.hash(key.bytes)
        let (response, file): (HeldResponse, ReadyFile?)
        if let held = memory.hit(key.bytes, hash: hash, where: { connection.selects($0) }) {
            (response, file) = (held, nil)
        } else if let found = core.readyFile(key.bytes, hash: hash, where: { connection.selects($0) }) {
            (response, file) = (found.held, found)
        } else {
            return false
        }
        guard let ready = response.ready, ready.window.isFresh(now: now), ready.shape == found.shape,
            // A fallback may answer in place of a stored error.
            ready.status < 500
        else { return false }
        let hit = HotHit(response: response, ready: ready, file: file, now: now, route: found.route)
        // What is sent lives until the end of the call; the queue takes a reference of its own.
        defer { withExtendedLifetime(hit) {} }
        guard
            present.isDisjoint(with: HotPathWindow.selecting)
                ? send(hit, on: connection)
                : answerSelected(hit, request, connection.borrowedFields, on: connection)
        else { return false }
        if let file { core.noteUse(of: file) }
        return true
    }

    /// The whole response; false where its body has to be waited for.
    func send(_ hit: borrowing HotHit, on connection: Connection) -> Bool {
        guard let body = hit.body else { return false }
        // Behind the key.
        var lines = self.lines
        let cacheStatus = append(hit, to: &lines)
        connection.sendAtOnce(
            prepared: hit.ready.head,
            dynamic: lines.bytes,
            body: body,
            owner: hit.ready.owner,
            record: HotRecord(status: hit.ready.status, route: hit.route, cacheStatus: cacheStatus, cache: .hit)
        )
        return true
    }
}
