// Moves the bytes of a fetch into a growing body, at the pace of the body's readers.

import CacheStore
import EventLoop
import HTTPWire
import Upstream

/// Loop-bound. The stream owns it while bytes flow; it owns the writer.
final class BodyPump: FetchStream.Destination {
    private let stream: FetchStream
    private let body: Body
    private var writer: BodyWriter?
    private let observe: ((UnsafeRawBufferPointer) -> Void)?
    private let whole: (_ trailers: Fields, BodyWriter) -> Void
    private let broken: () -> Void
    private let continuesWithoutReaders: () -> Bool
    /// The body has been without readers and without a file. If it is so again when its window is full, nothing drains
    /// the window: the pump does not pause then, but goes on or gives up.
    private var isUnread: Bool

    /// - Parameters:
    ///   - body: what `writer` fills.
    ///   - isUnread: the body starts without readers and without a file.
    ///   - continuesWithoutReaders: called when the body has neither readers nor a file; if it
    ///     answers false, the fetch ends.
    ///   - observe: called with the bytes before the body gets them.
    ///   - whole: called when the framing says that the body is complete; it finishes the writer.
    ///   - broken: called when the fetch failed or was abandoned; the body has failed already.
    init(
        stream: FetchStream,
        body: Body,
        writer: BodyWriter,
        isUnread: Bool = false,
        continuesWithoutReaders: @escaping () -> Bool = { false },
        observe: ((UnsafeRawBufferPointer) -> Void)? = nil,
        whole: @escaping (_ trailers: Fields, BodyWriter) -> Void,
        broken: @escaping () -> Void = {}
    ) {
        self.stream = stream
        self.body = body
        self.writer = writer
        self.isUnread = isUnread
        self.continuesWithoutReaders = continuesWithoutReaders
        self.observe = observe
        self.whole = whole
        self.broken = broken
        writer.onDrain = { [weak stream] in stream?.resume() }
        writer.onSuspended = { [weak stream] in stream?.pause() }
        writer.onAbandoned = { [weak self] in self?.abandoned() }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        observe?(bytes)
        guard let writer else { return .continue }
        guard writer.append(bytes) == .pause else { return .continue }
        // A file makes room by itself.
        guard isUnread, body.readerCount == 0, !body.isFiling else { return .pause }
        if !continuesWithoutReaders() { giveUp(.abandoned) }
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
        guard continuesWithoutReaders() else { return giveUp(.abandoned) }
        isUnread = true
        stream.resume()
    }

    /// Checks again whether the fetch may go on: a waiting request left without reading, or the reason to
    /// fetch without readers is gone.
    func checkReaders() { if writer != nil, body.readerCount == 0 { abandoned() } }

    /// Ends the fetch: readers get the bytes that have arrived, then the error.
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
        writer?.onSuspended = nil
        writer?.onAbandoned = nil
        return writer
    }
}

@available(*, unavailable) extension BodyPump: Sendable {}
