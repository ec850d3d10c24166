// The source of what is to be answered without an origin.

import DownloadCore
import EventLoop

/// Loop-bound. It has no answer, and opens no socket.
final class NobodySource: FetchSource {
    private let service: String

    /// - Parameter service: its name, for messages.
    init(service: String) { self.service = service }

    var opensSockets: Bool { false }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        throw .unanswered("service \(service) asks no origin for it")
    }
}

@available(*, unavailable) extension NobodySource: Sendable {}
