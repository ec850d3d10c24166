// The content of a request that may have to be sent to another place: what was read of it is kept, as long as it is
// short.

import DownloadCore
import Upstream

/// Loop-bound.
final class RememberedBody: RequestBodySource {
    /// Bytes that are kept; content that is longer is sent once only.
    static let longest = 64 * 1024

    private let body: any RequestBodySource
    /// What was read so far; nil where that is too much, or cannot be had again.
    private var bytes: [UInt8]? = []
    private var isOver = false

    init(_ body: any RequestBodySource) { self.body = body }

    /// The content from its start; nil where it is not there any more.
    var again: (any RequestBodySource)? { body.again ?? bytes.map { ContentSource($0, then: isOver ? nil : body) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = body.read(into: buffer)
        switch result {
        case .bytes(let count):
            if (bytes?.count ?? 0) + count > Self.longest {
                bytes = nil
            } else {
                bytes?.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        case .end: isOver = true
        case .failed: bytes = nil
        case .wait: break
        }
        return result
    }
}

@available(*, unavailable) extension RememberedBody: Sendable {}
