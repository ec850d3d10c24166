// The origin of a download that wants what is stored and nothing else: whatever the way to it, it is never asked.

internal import DownloadCore
internal import EventLoop

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
