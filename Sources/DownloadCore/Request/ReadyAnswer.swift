// An answer that memory has and that needs no decision: given at once, on any thread, without a loop and without a task.

package import CacheStore
import EventLoop
import HTTPCaching
package import HTTPWire

/// The whole of a stored response that is fresh for every plain GET that selects it; what the daemon's hot path answers
/// with, as an ``Answer``.
package struct ReadyAnswer {
    /// Without a reader: the body is there.
    package let answer: Answer
    private let response: ResidentResponse

    /// - Parameters:
    ///   - key: of a GET without content, and without a field of `HotPathWindow.disqualifying`.
    ///   - fields: the fields of that request, for what varies.
    ///   - headFormatID: as ``CacheRequest/headFormatID``: what was prepared under another policy is not found.
    /// - Returns: nil where ``DownloadCore/answer(_:from:onInterim:on:)`` has to decide.
    package init?(to key: CacheKey, _ fields: Fields, as headFormatID: UInt64, from core: DownloadCore) {
        guard !core.isOffline else { return nil }
        let found = key.bytes.withUnsafeBytes { bytes in
            core.memory.hit(bytes, hash: key.hash) { held in
                fields.areEndToEnd
                    && Caching.selectsPlainly(names: held.varyNames, stored: held.varyLines, fields)
            }
        }
        let now = core.clock.now()
        guard let found, let ready = found.ready, ready.answers(at: now, as: headFormatID) else { return nil }
        let head = found.head
        answer = Answer(
            head: ResponseHead(status: head.status, reason: head.reason, fields: head.fields),
            length: Int64(ready.body.count),
            age: ready.window.age(now: now),
            cacheStatus: CacheStatus(
                cacheName: core.cacheName,
                hit: true,
                ttl: ready.window.ttl(now: now),
                detail: CacheStatus.Detail.memory.rawValue
            )
        )
        response = found
    }

    /// Bytes of the body.
    package var count: Int { response.body.count }

    /// Calls `read` with the bytes of the body, which are valid during the call.
    package func withBody<Value>(_ read: (UnsafeRawBufferPointer) -> Value) -> Value {
        withExtendedLifetime(response) { read(response.body) }
    }
}
