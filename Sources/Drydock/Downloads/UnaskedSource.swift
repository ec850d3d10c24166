// The source of a download that wants a stored response only: it fails every request, so that the origin is never
// asked.

import DownloadCore
import EventLoop

/// Loop-bound, like every source.
final class UnaskedSource: FetchSource {
    var opensSockets: Bool { false }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        throw .onlyIfCached("only what is stored was wanted, and nothing that is stored may be used")
    }
}

@available(*, unavailable) extension UnaskedSource: Sendable {}
