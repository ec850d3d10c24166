// The body of a request that may have to be sent again, with a record of whether the origin has had any of it.

import DownloadCore
import Upstream

/// A body that records its use. Loop-bound.
final class WatchedBody: RequestBodySource {
    private var body: any RequestBodySource
    private var isRead = false
    /// Called with the number of bytes after each read.
    var onRead: ((Int) -> Void)?

    init(_ body: any RequestBodySource) { self.body = body }

    /// Whether nothing of the body has been read, or it can be read again.
    var canBeRepeated: Bool { !isRead || body.again != nil }

    /// The number of bytes, if all of the body is in memory.
    var length: Int? { (body as? ContentSource)?.length }

    /// The same body, from its beginning.
    func forAttempt() -> WatchedBody {
        if isRead, let again = body.again {
            body = again
            isRead = false
        }
        return self
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = body.read(into: buffer)
        if result != .wait { isRead = true }
        if let onRead, case .bytes(let count) = result { onRead(count) }
        return result
    }

    var again: (any RequestBodySource)? {
        guard let again = body.again else { return nil }
        let watched = WatchedBody(again)
        watched.onRead = onRead
        return watched
    }
}

@available(*, unavailable) extension WatchedBody: Sendable {}
