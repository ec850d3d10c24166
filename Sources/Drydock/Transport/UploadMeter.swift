// How much of a request's content has been sent.

import DownloadCore
import EventLoop
import FoundationEssentials
import Synchronization
import Upstream

/// Sendable: its state is under its own mutex.
final class UploadMeter: Sendable {
    private let state = Mutex(DownloadProgress(received: 0))
    private let changed: AsyncStream<Void>.Continuation
    /// An element where more has been sent, several of them as one; it ends with ``finish()``.
    let changes: AsyncStream<Void>

    init() { (changes, changed) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    var progress: DownloadProgress { state.withLock { $0 } }

    /// - Parameter length: bytes of the whole; nil where nobody knows.
    func expect(_ length: Int64?) { state.withLock { $0.expected = length } }

    /// The content is sent from its start, perhaps once more.
    func begin() { state.withLock { $0.received = 0 } }

    func sent(_ count: Int) {
        state.withLock { $0.received += Int64(count) }
        changed.yield()
    }

    /// No more is sent.
    func finish() { changed.finish() }
}

/// A source whose requests tell a meter what of their content is read. Loop-bound.
final class MeteredSource: FetchSource {
    private let source: any FetchSource
    private let meter: UploadMeter

    init(_ source: any FetchSource, _ meter: UploadMeter) {
        self.source = source
        self.meter = meter
    }

    var opensSockets: Bool { source.opensSockets }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        var request = request
        request.body = request.body.map { MeteredBody($0, meter) }
        return try await source.start(request, sink: sink, on: loop)
    }
}

@available(*, unavailable) extension MeteredSource: Sendable {}

/// Loop-bound.
private final class MeteredBody: RequestBodySource {
    private let body: any RequestBodySource
    private let meter: UploadMeter
    private var hasBegun = false

    init(_ body: any RequestBodySource, _ meter: UploadMeter) {
        self.body = body
        self.meter = meter
    }

    var again: (any RequestBodySource)? { body.again.map { MeteredBody($0, meter) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        if !hasBegun { meter.begin() }
        hasBegun = true
        let read = body.read(into: buffer)
        if case .bytes(let count) = read { meter.sent(count) }
        return read
    }
}

@available(*, unavailable) extension MeteredBody: Sendable {}
