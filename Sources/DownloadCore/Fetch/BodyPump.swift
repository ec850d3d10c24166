// Moves the bytes of a fetch into a growing body, at the pace of the body's readers.

internal import CacheStore
internal import EventLoop
internal import HTTPWire
internal import Upstream

/// Loop-bound. The stream owns it while bytes flow; it owns the writer.
final class BodyPump: FetchStream.Destination {
    private let stream: FetchStream
    private let body: Body
    private var writer: BodyWriter?
    private let observe: ((UnsafeRawBufferPointer) -> Void)?
    private let whole: (_ trailers: Fields, BodyWriter) -> Void
    private let broken: () -> Void
    private let goesOnUnread: () -> Bool
    /// Nobody reads, and no file takes the bytes: a pause would never end.
    private var isUnread: Bool

    /// - Parameters:
    ///   - body: what `writer` fills.
    ///   - isUnread: nobody reads from the start, and no file takes the bytes.
    ///   - goesOnUnread: asked when nobody reads and no file takes the bytes: whether they are wanted all the same; the
    ///     fetch ends where they are not.
    ///   - observe: sees the bytes before the body has them.
    ///   - whole: the origin's framing says that all bytes came; it finishes the writer.
    ///   - broken: the fetch failed or nobody reads; the body has failed already.
    init(
        stream: FetchStream,
        body: Body,
        writer: BodyWriter,
        isUnread: Bool = false,
        goesOnUnread: @escaping () -> Bool = { false },
        observe: ((UnsafeRawBufferPointer) -> Void)? = nil,
        whole: @escaping (_ trailers: Fields, BodyWriter) -> Void,
        broken: @escaping () -> Void = {}
    ) {
        self.stream = stream
        self.body = body
        self.writer = writer
        self.isUnread = isUnread
        self.goesOnUnread = goesOnUnread
        self.observe = observe
        self.whole = whole
        self.broken = broken
        writer.onDrain = { [weak stream] in stream?.resume() }
        writer.onAbandoned = { [weak self] in self?.abandoned() }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        observe?(bytes)
        guard let writer else { return .continue }
        guard writer.append(bytes) == .pause else { return .continue }
        // A file makes room by itself.
        guard isUnread, body.readerCount == 0, !body.isFiling else { return .pause }
        if !goesOnUnread() { giveUp(.abandoned) }
        return .continue
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
        guard goesOnUnread() else { return giveUp(.abandoned) }
        isUnread = true
        stream.resume()
    }

    /// Somebody who might have become a reader has not, or what unread bytes were wanted for is off.
    func checkReaders() { if writer != nil, body.readerCount == 0 { abandoned() } }

    /// Ends the fetch: readers get what there is, then the error.
    func stop(_ error: FetchError) { giveUp(.source(error.description)) }

    private func giveUp(_ error: BodyError) {
        guard let writer = release() else { return }
        stream.cancel()
        writer.fail(error)
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
