// A fetch as a head to wait for and a body that flows by itself: into a growing body at the pace of its readers, or to
// nowhere.

import CacheStore
import EventLoop
import HTTPWire
import Upstream

/// A fetch with its head and its flowing body. Loop-bound. States: waiting for the head → head known, bytes held back →
/// flowing into a body → ended.
final class FetchStream: EndSink {
    /// The final head of an answer and the framing of its body.
    final class Head: Sendable {
        let response: ResponseHead
        let framing: BodyFraming

        init(response: ResponseHead, framing: BodyFraming) {
            self.response = response
            self.framing = framing
        }
    }

    /// The destination of the bytes.
    protocol Destination: AnyObject {
        func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow
        func ended(_ result: Result<Fields, FetchError>)
    }

    var onInterim: ((ResponseHead) -> Void)?
    /// The memory budget of the body; while it is short, few bytes are taken at a time.
    var budget: BodyBudget?
    private var handle: (any FetchHandle)?
    private let head = Latch<Result<Head, FetchError>>()
    private var held: [UInt8] = []
    private var end: Result<Fields, FetchError>?
    private var destination: (any Destination)?
    /// Whether the end of the body is proven; false if only the end of a connection delimits it, see
    /// ``FetchHandle/isEndProven``.
    private(set) var isEndProven = true
    /// Whether the fetch is cancelled: no more bytes arrive, and the destination is not called again.
    private(set) var isCancelled = false
    /// Examines the bytes that are held back; returns true when it has seen enough.
    private var examine: ((UnsafeRawBufferPointer) -> Bool)?
    /// Set when ``examine`` has seen enough; exists while a task waits for that.
    private var examined: Latch<Void>?

    /// Starts the fetch and waits for its final head; cancelling the task ends the fetch.
    /// - Parameter timeout: the time for the head after the start of the fetch, in nanoseconds; nil leaves the limit to
    ///   the source.
    /// - Throws: `FetchError`.
    func start(
        _ request: FetchRequest,
        from source: any FetchSource,
        timeout: UInt64? = nil,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> Head {
        try began(try await source.start(request, sink: self, on: loop), request)
        return try headCame(await head.wait(timeout: timeout, on: loop), request.method, timeout)
    }

    // What follows a wait is in separate functions, so that a waiting fetch has none of their variables in its frame.

    @inline(never) private func began(_ handle: any FetchHandle, _ request: FetchRequest) throws(FetchError) {
        if isCancelled {
            handle.cancel()
            throw .cancelled
        }
        self.handle = handle
        request.bindBody? { [weak self] in self?.handle?.bodyAvailable() }
    }

    @inline(never) private func headCame(
        _ result: Result<Head, FetchError>?,
        _ method: HTTPWire.Method,
        _ timeout: UInt64?
    ) throws(FetchError) -> Head {
        guard let result else {
            cancel()
            guard let timeout, !Task.isCancelled else { throw .cancelled }
            let limit = "no answer to \(method.name) within \(timeout / 1_000_000) ms"
            throw .upstream(UpstreamError(.timeout(.firstByte), detail: "\(limit); check what the origin does with it"))
        }
        // The head may have come just before the fetch was cancelled.
        if isCancelled, case .success = result { throw .cancelled }
        return try result.get()
    }

    /// Lets bytes come, and holds them back until `isEnough` has seen enough of them or there are no more.
    /// - Parameter isEnough: called with each byte once.
    /// - Throws: `FetchError` if the fetch failed or was cancelled meanwhile.
    func hold(
        until isEnough: @escaping (UnsafeRawBufferPointer) -> Bool,
        on loop: isolated EventLoop
    ) async throws(FetchError) {
        if isCancelled { throw .cancelled }
        let hasEnough = !held.isEmpty && held.withUnsafeBytes { isEnough($0) }
        if !hasEnough, end == nil {
            examine = isEnough
            let examined = Latch<Void>()
            self.examined = examined
            handle?.resume()
            if await examined.wait(timeout: nil, on: loop) == nil { cancel() }
            examine = nil
        }
        if isCancelled { throw .cancelled }
        if case .failure(let error)? = end { throw error }
    }

    /// The whole body if it arrived with the head, as small ones often do; then the stream has ended. Nil if the body
    /// has to be streamed.
    func takeWhole() -> Chunk? {
        guard case .success(let trailers)? = end, trailers.isEmpty, isEndProven, destination == nil else { return nil }
        defer { held = [] }
        return Chunk(held)
    }

    /// Lets the bytes flow: first those held back, then the others as they come.
    func flow(into destination: any Destination) {
        self.destination = destination
        var flow = TransferFlow.continue
        if !held.isEmpty {
            flow = held.withUnsafeBytes { destination.received($0) }
            held = []
        }
        if let end {
            finish(end)
        } else if flow == .continue {
            handle?.resume()
        }
    }

    /// Whether the bytes are at hand, as ``FetchHandle/isAtHand`` says it.
    var isAtHand: Bool { handle?.isAtHand ?? false }

    /// Pauses the fetch, because the destination has no room.
    func pause() { handle?.pause() }

    /// Resumes the fetch, because the destination has room again.
    func resume() { handle?.resume() }

    /// Ends the fetch. A task that waits for the head gets the error; the destination is not called.
    /// - Parameter error: the error for the waiting task.
    func cancel(_ error: FetchError = .cancelled) {
        guard !isCancelled, end == nil else { return }
        isCancelled = true
        handle?.cancel()
        handle = nil
        destination = nil
        head.set(.failure(error))
        examined?.set(())
    }

    // MARK: - FetchSink

    var maximumAtOnce: Int { budget?.isTight == true ? BodyBudget.minimumWindow : .max }

    func received(interim head: ResponseHead) { onInterim?(head) }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        self.head.set(.success(Head(response: head, framing: framing)))
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        if let destination { return destination.received(bytes) }
        held.append(contentsOf: bytes)
        if let examine {
            guard examine(bytes) else { return .continue }
            self.examine = nil
            examined?.set(())
        }
        return .pause
    }

    func finished(trailers: Fields) {
        isEndProven = handle?.isEndProven ?? true
        ended(.success(trailers))
    }

    func failed(_ error: FetchError) {
        head.set(.failure(error))
        ended(.failure(error))
    }

    private func ended(_ result: Result<Fields, FetchError>) {
        guard !isCancelled else { return }
        end = result
        handle = nil
        examined?.set(())
        if destination != nil { finish(result) }
    }

    private func finish(_ result: Result<Fields, FetchError>) {
        let destination = destination
        self.destination = nil
        onInterim = nil
        destination?.ended(result)
    }
}

@available(*, unavailable) extension FetchStream: Sendable {}

// MARK: - Into a growing body

/// Moves the bytes of a stream into a body. Loop-bound. The stream owns the pump while bytes flow; the pump owns the
/// writer.
final class BodyPump: FetchStream.Destination {
    private let stream: FetchStream
    private let body: Body
    private var writer: BodyWriter?
    private let observe: ((UnsafeRawBufferPointer) -> Void)?
    private let whole: (_ trailers: Fields, BodyWriter) -> Void
    private let broken: () -> Void
    private let continuesWithoutReaders: () -> Bool
    /// Whether the body has been without readers and without a file. If it is so again when its window is full, nothing
    /// empties the window: the pump does not pause then, but goes on or gives up.
    private var isUnread: Bool

    /// Makes a pump.
    /// - Parameters:
    ///   - body: the body that `writer` fills.
    ///   - isUnread: whether the body starts without readers and without a file.
    ///   - continuesWithoutReaders: called when the body has neither readers nor a file; if it
    ///     returns false, the fetch ends.
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

    /// Checks whether the fetch may go on, after a waiting request left without reading, or the reason to fetch without
    /// readers has ended.
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

// MARK: - To nowhere

/// Discards the bytes of a body up to a limit, so that its connection can be used again. Loop-bound.
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
