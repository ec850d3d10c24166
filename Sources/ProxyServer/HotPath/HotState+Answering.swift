// The hot path: a fresh hit in memory, or in a file that is open, from the read buffer to the socket without a task.

import CacheStore
import DownloadCore
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import ServiceCore

extension HotState {
    /// Answers a GET by what is stored and fresh, or by a demo answer; `.notMine` where the waiting path has to decide.
    func answer(
        _ request: borrowing HotRequest,
        _ core: DownloadCore,
        through sender: any HotSender
    ) -> HotAnswer {
        let present = request.present
        if present.contains(.via), request.mayHavePassed(plan.name) { return .notMine }
        var key = KeyBuffer(scratch, Self.keyCapacity)
        let hasOrigin = present.contains(.origin)
        guard let found = match(target: request.target, host: request.host, hasOrigin: hasOrigin, &key) else {
            return .notMine
        }
        if found.addsCredentials, present.contains(.secFetchSite), request.mayBeForeignFetch { return .notMine }
        if let demo = found.demo {
            // Conditions and ranges count for a demo answer, too; nothing is drawn yet.
            return present.isDisjoint(with: HotPathWindow.selecting)
                ? send(demo, route: found.route, through: sender) : .notMine
        }
        let now = clock.now()
        let hash = CacheKey.hash(key.bytes)
        let (response, file): (ResidentResponse, ReadyFile?)
        if let held = memory.hit(key.bytes, hash: hash, where: { request.selects($0) }) {
            (response, file) = (held, nil)
        } else if let found = core.readyFile(key.bytes, hash: hash, where: { request.selects($0) }) {
            (response, file) = (found.held, found)
        } else {
            return .notMine
        }
        guard let ready = response.ready, ready.answers(at: now, as: found.headFormatID),
            // A fallback may answer in place of a stored error.
            ready.status < 500
        else { return .notMine }
        let hit = HotHit(response: response, ready: ready, file: file, now: now, route: found.route)
        // The hit stays alive until the end of the call; the queue takes a reference of its own.
        defer { withExtendedLifetime(hit) {} }
        let answer =
            present.isDisjoint(with: HotPathWindow.selecting)
            ? send(hit, through: sender) : answerSelected(hit, request, through: sender)
        if let file, answer != .notMine { core.noteUse(of: file) }
        return answer
    }

    /// The whole response; `.notMine` where its body has to be waited for.
    func send(_ hit: borrowing HotHit, through sender: any HotSender) -> HotAnswer {
        guard let body = hit.body else { return .notMine }
        // Behind the key.
        var lines = self.lines
        let cacheStatus = append(hit, to: &lines)
        return sender.sendAtOnce(
            prepared: hit.ready.head,
            dynamic: lines.bytes,
            body: body,
            owner: hit.ready.owner,
            record: HotRecord(status: hit.ready.status, route: hit.route, cacheStatus: cacheStatus, cache: .hit)
        )
    }

    /// Whether there is room for the lines of a ready head, and for those that every answer adds.
    func mayCopy(_ head: UnsafeRawBufferPointer) -> Bool { head.count + via.count + 256 <= Self.keyCapacity }

    /// Age and Cache-Status.
    /// - Returns: the value of Cache-Status, in the buffer.
    func append(_ hit: borrowing HotHit, to lines: inout HotLines) -> UnsafeRawBufferPointer {
        let (age, ttl) = (hit.ready.window.age(now: hit.now), hit.ready.window.ttl(now: hit.now))
        // Not chosen before, since that would copy it.
        return hit.file == nil
            ? lines.append(memoryStatus, age: age, ttl: ttl) : lines.append(diskStatus, age: age, ttl: ttl)
    }
}
