// The content of one request on its way to the origin: whether there may be one, how long it is, a source of its bytes
// for each attempt, and how much has been sent.

import CacheStore
import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPTypes
import HTTPWire
import ServiceCore
import Synchronization
import Upstream

/// Made when the request is sent.
///
/// Sendable: nothing in it changes but what is under its mutex.
final class Upload: Sendable {
    let body: RequestBody
    /// Bytes of the whole; nil where nobody knows.
    let length: Int64?
    private let files: IOPool
    private let fault = Mutex<DownloadError?>(nil)

    /// Looks up how long the content is.
    /// - Throws: `DownloadError.requestBody` where that shows that it cannot be sent.
    init(_ body: RequestBody, files: IOPool) async throws(DownloadError) {
        self.body = body
        self.files = files
        do {
            switch body.source {
            case .file(let file): length = try await files.run { try FileContent.length(of: file) }
            case .multipart: length = try await files.run { body.length }
            case .data, .stream: length = body.length
            }
        } catch let error as DownloadError {
            throw error
        } catch {
            throw .requestBody("the content of the request cannot be had: \(error)")
        }
    }

    var framing: BodyFraming { length.map { .length(UInt64($0)) } ?? .chunked }

    /// Why the source could not give all of it; nil where it could.
    var failure: DownloadError? { fault.withLock { $0 } }

    /// The source of its bytes, and what tells it whom to call when there are more.
    func open(on loop: isolated EventLoop) -> (any RequestBodySource, bind: (@escaping () -> Void) -> Void) {
        if let data = body.data { return (DataSource(data), { _ in }) }
        let signal = LoopBox(on: loop) { _ in AvailabilitySignal() }
        let bind: (@escaping () -> Void) -> Void = { available in signal.value(on: loop)?.bind(available) }
        return (PieceSource(self, signal), bind)
    }

    /// Writes all of it.
    fileprivate func write(to queue: PieceQueue) async {
        do {
            let files = BlockingWork(pool: files)
            if let length, !isMeasuredItself {
                let measured = MeasuredContent(queue, length: length, name: "the content of the request")
                try await body.write(to: measured, files: files)
                try await measured.finish()
            } else {
                try await body.write(to: queue, files: files)
            }
            queue.finish(.success(()))
        } catch {
            queue.finish(.failure(error))
        }
    }

    private var isMeasuredItself: Bool { if case .stream = body.source { true } else { false } }

    fileprivate func failed(_ error: any Error) {
        let fault = error as? DownloadError ?? .requestBody("the content of the request could not be read: \(error)")
        self.fault.withLock { $0 = fault }
    }
}

/// Tells the transfer that there is more. Loop-bound.
private final class AvailabilitySignal {
    private var available: (() -> Void)?
    /// Whether there was more before anybody could be told.
    private var isPending = false

    func bind(_ available: @escaping () -> Void) {
        self.available = available
        if isPending { available() }
        isPending = false
    }

    func fire() { if let available { available() } else { isPending = true } }
}

@available(*, unavailable) extension AvailabilitySignal: Sendable {}

/// Gives bytes that are in memory. Loop-bound.
private final class DataSource: RequestBodySource {
    private let data: Data
    private var position = 0

    init(_ data: Data) { self.data = data }

    var again: (any RequestBodySource)? { DataSource(data) }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let count = min(data.count - position, buffer.count)
        guard count > 0 else { return .end }
        let start = data.startIndex + position
        data.copyBytes(to: buffer, from: start..<(start + count))
        position += count
        return .bytes(count)
    }
}

@available(*, unavailable) extension DataSource: Sendable {}

/// Gives the bytes of pieces that a task makes, which begins with the first read. Loop-bound.
private final class PieceSource: RequestBodySource {
    private let upload: Upload
    private let signal: LoopBox<AvailabilitySignal>
    private var making: (queue: PieceQueue, task: Task<Void, Never>)?
    private var piece = Data()
    private var position = 0

    init(_ upload: Upload, _ signal: LoopBox<AvailabilitySignal>) {
        self.upload = upload
        self.signal = signal
    }

    deinit {
        making?.queue.close()
        making?.task.cancel()
    }

    var again: (any RequestBodySource)? {
        upload.body.isRepeatable || making == nil ? PieceSource(upload, signal) : nil
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        if position == piece.count {
            switch begin().next() {
            case .piece(let next): (piece, position) = (next, 0)
            case .nothingYet: return .wait
            case .end: return .end
            case .failed(let error):
                upload.failed(error)
                return .failed
            }
        }
        let count = min(piece.count - position, buffer.count)
        let start = piece.startIndex + position
        piece.copyBytes(to: buffer, from: start..<(start + count))
        position += count
        return .bytes(count)
    }

    private func begin() -> PieceQueue {
        if let making { return making.queue }
        let queue = PieceQueue { [signal] in signal.submit { signal, _ in signal.fire() } }
        let task = Task { @concurrent [upload] in await upload.write(to: queue) }
        making = (queue, task)
        return queue
    }
}

@available(*, unavailable) extension PieceSource: Sendable {}

// MARK: - Requests with a content

extension DownloadRequest {
    /// - Throws: `DownloadError.invalidRequest` for what cannot be sent to anybody.
    static func check(_ request: HTTPRequest, _ body: RequestBody?) throws(DownloadError) {
        let text = request.text
        switch request.method {
        case .connect: throw refuse(text, "CONNECT asks for a tunnel, and a manager has none")
        case .head where body != nil: throw refuse(text, "a HEAD has no content: leave the body out")
        case .trace where body != nil: throw refuse(text, "a TRACE has no content: leave the body out")
        default: break
        }
        guard let body, case .multipart(let form) = body.source else { return }
        if let fault = form.fault { throw refuse(text, fault) }
        if let own = request.headerFields[.contentType], !form.isNamed(by: own) {
            throw refuse(text, "its Content-Type does not name the boundary of its form: leave the field out")
        }
    }

    /// The request's own fields, with the media type of its content.
    static func fields(of request: HTTPRequest, _ body: RequestBody?) -> HTTPFields {
        var fields = request.headerFields
        if let type = body?.contentType, fields[.contentType] == nil { fields[.contentType] = type }
        return fields
    }

    /// The content of a POST that is a question like a GET: one in memory, whose answer is kept for requests with the
    /// same content. Nil: the request is another one. Preconditions are for the origin to judge.
    static func storedContent(
        of request: HTTPRequest,
        _ body: RequestBody?,
        _ configuration: DownloadConfiguration,
        _ options: DownloadOptions
    ) -> [UInt8]? {
        guard request.method == .post, options.cachePolicy != .bypass,
            configuration.storedMethods(for: options).contains(.post)
        else { return nil }
        let conditions: [HTTPField.Name] = [
            .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
        ]
        guard conditions.allSatisfy({ request.headerFields[$0] == nil }) else { return nil }
        guard let body else { return [] }
        return body.data.map { Array($0) }
    }

    /// The request as it is passed on, and what its success makes invalid.
    /// - Parameters:
    ///   - ask: the question that a GET of the target would be, but for its method.
    ///   - upload: its content; nil where it has none.
    func passed(_ ask: CacheRequest, _ upload: Upload?, on loop: isolated EventLoop) -> UncachedRequest {
        var fetch = FetchRequest(method: method, path: path, fields: sent, framing: framing(upload))
        if let upload { (fetch.body, fetch.bindBody) = upload.open(on: loop) }
        let url = origin.root + path
        let trail = FetchTrail()
        fetch.trail = trail
        return UncachedRequest(fetch, ask, url: url) { answer in
            (trail.urls(named: answer, url) + trail.changed).map { CacheKey(service: "", url: $0) }
        }
    }

    private func framing(_ upload: Upload?) -> BodyFraming {
        if let upload { return upload.framing }
        // RFC 9110 section 8.6: these say that they have no content.
        switch method {
        case .post, .put, .patch: return .length(0)
        default: return .none
        }
    }
}

extension DownloadRequest {
    /// The content as it is sent; nil where the request has none, or is not passed on.
    /// - Throws: `DownloadError.requestBody`.
    func upload(_ files: IOPool, _ meter: UploadMeter?) async throws(DownloadError) -> Upload? {
        guard let body else {
            meter?.expect(content.map { Int64($0.count) })
            return nil
        }
        let upload = try await Upload(body, files: files)
        meter?.expect(upload.length)
        return upload
    }

    /// Why its content kept the request from being answered; nil where it did not.
    func failure(
        of head: DownloadSession.Head,
        _ upload: Upload?,
        _ configuration: DownloadConfiguration
    ) -> DownloadError? {
        guard let upload else { return nil }
        if case .upstream(let error)? = head.failure, error.kind == .requestBody, let failure = upload.failure {
            return failure
        }
        // A redirect that would have been followed with the content, had that been there once more.
        guard options.maximumRedirects ?? configuration.maximumRedirects > 0, !upload.body.isRepeatable,
            head.failure == nil,
            let location = head.response.headerFields[.location]
        else { return nil }
        let answer = ResponseHead(status: head.response.status.code, fields: Fields([("Location", location)]))
        let asked = RedirectTarget(origin, path: path)
        guard
            case .follow(let target, _, keepsContent: true) =
                RedirectDecision.decide(answer, to: method, at: asked, canRepeat: true)
        else { return nil }
        return .requestBody(
            "\(url) redirects to \(target.url), which needs the content again, and that can be sent once: ask there, "
                + "or make the stream anew for each attempt"
        )
    }
}

// MARK: - How much has been sent

/// Sendable: its state is under its own mutex.
final class UploadMeter: Sendable {
    private let state = Mutex(DownloadProgress(completed: 0))
    private let changed: AsyncStream<Void>.Continuation
    /// An element where more has been sent, several of them as one; it ends with ``finish()``.
    let changes: AsyncStream<Void>

    init() { (changes, changed) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

    var progress: DownloadProgress { state.withLock { $0 } }

    /// - Parameter length: bytes of the whole; nil where nobody knows.
    func expect(_ length: Int64?) { state.withLock { $0.total = length } }

    /// The content is sent from its start, perhaps once more.
    func begin() { state.withLock { $0.completed = 0 } }

    func sent(_ count: Int) {
        state.withLock { $0.completed += Int64(count) }
        changed.yield()
    }

    /// Ends the changes: no more of the content is sent.
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

// MARK: - A request that tells of it

/// A request under way whose content is sent: what of it is out, and then its response. It is given up with the last
/// reference to this.
final class MeteredAsking: Sendable {
    enum Event {
        case uploaded(DownloadProgress)
        case asked(Result<DownloadSession.Head, DownloadError>)
    }

    private let meter = UploadMeter()
    private let task: Task<Result<DownloadSession.Head, DownloadError>, Never>

    init(_ session: DownloadSession) {
        let meter = meter
        task = Task {
            defer { meter.finish() }
            do throws(DownloadError) {
                return .success(try await session.ask(meter: meter))
            } catch {
                return .failure(error)
            }
        }
    }

    deinit { task.cancel() }

    /// The next event; the response is the last one.
    func next() async -> Event {
        var changes = meter.changes.makeAsyncIterator()
        if await changes.next() != nil { return .uploaded(meter.progress) }
        return await withTaskCancellationHandler {
            .asked(await task.value)
        } onCancel: {
            task.cancel()
        }
    }
}
