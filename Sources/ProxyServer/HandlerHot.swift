// The hot path: a fresh hit in memory, from the read buffer to one writev, without a task or an allocation.

import CacheStore
import DownloadCore
import EventLoop
import Glibc
import HTTPCaching
import HTTPWire
import ServiceCore

extension ProxyHandler {
    /// With one of these fields a request takes the waiting path.
    private static let slow: FieldSet = HotPathWindow.disqualifying.union(FieldSet(.via, .upgrade, .expect, .te))

    package func answerAtOnce(_ request: borrowing HotRequest, on connection: Connection) -> Bool {
        guard case .get = request.method, request.present.isDisjoint(with: Self.slow) else { return false }
        let hot = self.hot
        var key = KeyBuffer(UnsafeMutableRawBufferPointer(rebasing: hot.scratch[..<HotState.keyCapacity]))
        let hasOrigin = request.present.contains(.origin)
        guard let found = hot.match(target: request.target, host: request.host, hasOrigin: hasOrigin, &key) else {
            return false
        }
        let now = core.clock.now()
        guard let response = core.memory.hit(key.bytes, hash: CacheKey.hash(key.bytes)),
            let window = response.hot, window.isFresh(now: now), response.shape == found.shape,
            let chunk = response.body.wholeChunk,
            // A fallback may answer in place of a stored error.
            response.head.status < 500
        else { return false }
        hot.send(response, chunk, window, now, route: found.name, on: connection)
        return true
    }
}

extension HotState {
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
