// Reads a body to its end and drops it, so that the origin's connection can be used again.

import HTTPWire
import Upstream

/// Loop-bound. Takes the bytes within a bound, so that the connection can be used again.
final class BodyDrain: FetchStream.Destination {
    private static let limit = 65_536

    // Weak: the stream owns its destination.
    private weak var stream: FetchStream?
    private var taken = 0

    init(_ stream: FetchStream) { self.stream = stream }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        taken += bytes.count
        if taken > Self.limit { stream?.cancel() }
        return .continue
    }

    func ended(_ result: Result<Fields, FetchError>) {}
}

@available(*, unavailable) extension BodyDrain: Sendable {}
