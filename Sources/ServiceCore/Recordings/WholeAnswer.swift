// One answer of an origin as a whole, for a comparison.

import DownloadCore
import EventLoop
import HTTPWire
import Upstream

/// Collects the content of one answer, within bounds of length and time. Loop-bound.
///
/// States: asking → ended; the end comes from the origin, from a bound, or from the timer.
final class WholeAnswer: FetchSink {
    /// An answer that ended.
    struct Answer: Sendable {
        let head: ResponseHead
        /// Nil where it is longer than the bound.
        let content: [UInt8]?
    }

    /// Nanoseconds until an answer that does not end is given up.
    static let patience: UInt64 = 120_000_000_000

    private let limit: Int
    private var handle: (any FetchHandle)?
    private var head: ResponseHead?
    private var content: [UInt8] = []
    private var result: Result<Answer, FetchError>?
    /// It was given up before its end.
    private var isCut = false
    private var waiter: UnsafeContinuation<Void, Never>?

    private init(atMost limit: Int) { self.limit = limit }

    /// Asks a source, and waits for the end of its answer.
    /// - Parameter limit: bytes of content at most; what is longer is not read on.
    /// - Throws: `FetchError` where there is no answer, or none that ends in time.
    static func fetch(
        _ request: FetchRequest,
        from source: any FetchSource,
        atMost limit: Int,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> Answer {
        let answer = WholeAnswer(atMost: limit)
        let handle = try await source.start(request, sink: answer, on: loop)
        let timer = LoopTimer(on: loop) { [weak answer] in answer?.giveUp() }
        timer.start(after: patience)
        defer { timer.cancel() }
        if answer.result == nil {
            answer.handle = handle
            await withUnsafeContinuation { answer.waiter = $0 }
        } else if answer.isCut {
            handle.cancel()
        }
        return try (answer.result ?? .failure(.cancelled)).get()
    }

    private func giveUp() {
        let detail = "the answer did not end within \(Self.patience / 1_000_000_000) s"
        end(.failure(.upstream(UpstreamError(.timeout(.firstByte), detail: detail))), cancels: true)
    }

    private func end(_ result: Result<Answer, FetchError>, cancels: Bool = false) {
        guard self.result == nil else { return }
        self.result = result
        isCut = cancels
        let (handle, waiter) = (handle, waiter)
        self.handle = nil
        self.waiter = nil
        content = []
        if cancels { handle?.cancel() }
        waiter?.resume()
    }

    // MARK: - FetchSink

    func received(interim head: ResponseHead) {}

    func received(_ head: ResponseHead, framing: BodyFraming) {
        self.head = head
        if case .length(let length) = framing, length > UInt64(limit) { tooLong(head) }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        guard let head, result == nil else { return .continue }
        guard content.count + bytes.count <= limit else {
            tooLong(head)
            return .continue
        }
        content.append(contentsOf: bytes)
        return .continue
    }

    private func tooLong(_ head: ResponseHead) { end(.success(Answer(head: head, content: nil)), cancels: true) }

    func finished(trailers: Fields) {
        guard let head else { return end(.failure(.cancelled)) }
        end(.success(Answer(head: head, content: content)))
    }

    func failed(_ error: FetchError) { end(.failure(error)) }
}

@available(*, unavailable) extension WholeAnswer: Sendable {}
