// Moves the bytes of a fetch into a growing body, at the pace of the body's readers.

internal import CacheStore
internal import EventLoop
internal import HTTPWire
internal import Upstream

/// Loop-bound. The stream owns it while bytes flow; it owns the writer.
final class BodyPump: FetchStream.Destination {
    private let stream: FetchStream
    private var writer: BodyWriter?
    private let observe: ((UnsafeRawBufferPointer) -> Void)?
    private let whole: (_ trailers: Fields, BodyWriter) -> Void
    private let broken: () -> Void
    private let endsUnread: Bool

    /// - Parameters:
    ///   - endsUnread: whether the fetch ends when the last reader has left and no file takes the bytes.
    ///   - observe: sees the bytes before the body has them.
    ///   - whole: the origin's framing says that all bytes came; it finishes the writer.
    ///   - broken: the fetch failed or nobody reads; the body has failed already.
    init(
        stream: FetchStream,
        writer: BodyWriter,
        endsUnread: Bool = true,
        observe: ((UnsafeRawBufferPointer) -> Void)? = nil,
        whole: @escaping (_ trailers: Fields, BodyWriter) -> Void,
        broken: @escaping () -> Void
    ) {
        self.stream = stream
        self.writer = writer
        self.endsUnread = endsUnread
        self.observe = observe
        self.whole = whole
        self.broken = broken
        writer.onDrain = { [weak stream] in stream?.resume() }
        writer.onAbandoned = { [weak self] in self?.abandoned() }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        observe?(bytes)
        guard let writer else { return .continue }
        return writer.append(bytes) == .pause ? .pause : .continue
    }

    func ended(_ result: Result<Fields, FetchError>) {
        guard let writer = release() else { return }
        switch result {
        case .success(let trailers): whole(trailers, writer)
        case .failure(let error):
            writer.fail(.source(error.description))
            broken()
        }
    }

    private func abandoned() {
        guard endsUnread, let writer = release() else { return }
        stream.cancel()
        writer.fail(.abandoned)
        broken()
    }

    private func release() -> BodyWriter? {
        defer { writer = nil }
        writer?.onDrain = nil
        writer?.onAbandoned = nil
        return writer
    }
}

@available(*, unavailable) extension BodyPump: Sendable {}
