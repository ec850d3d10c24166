// The content of one request on its way to the origin: how long it is, and a source of its bytes for each attempt.

import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPWire
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
    /// There was more before anybody could be told.
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
