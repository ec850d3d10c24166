// The source of a service's calls, which tells what becomes of each fetch.

import DownloadCore
import EventLoop
import HTTPWire
import Upstream

/// Around the attempts and the mapping of a call, so that all attempts are one call. Loop-bound; it keeps nothing of a
/// request.
final class CallSource: FetchSource {
    private let source: any FetchSource
    private let place: CallPlace
    private let calls: CallsUnderWay
    private let parkable: ParkableCall?

    /// - Parameter parkable: the call, where it may be parked between its fetches.
    init(_ source: any FetchSource, _ place: CallPlace, _ calls: CallsUnderWay, _ parkable: ParkableCall?) {
        self.source = source
        self.place = place
        self.calls = calls
        self.parkable = parkable
    }

    var opensSockets: Bool { source.opensSockets }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let fetch = begin(request, sink)
        do throws(FetchError) {
            fetch.handle = try await source.start(watched(request, fetch), sink: fetch, on: loop)
            return fetch
        } catch {
            fetch.end(.failed(error))
            throw error
        }
    }

    // Apart from the function that waits, which would have all of it in its frame.

    @inline(never) private func begin(_ request: FetchRequest, _ sink: any FetchSink) -> CallFetch {
        var toSend: UInt64?
        if request.body != nil, case .length(let length) = request.framing { toSend = length }
        let record =
            parkable?.begin(request.method, request.path, toSend: toSend)
            ?? CallRecord(place, request.method, request.path, toSend: toSend, in: calls)
        return CallFetch(record, sink)
    }

    @inline(never) private func watched(_ request: FetchRequest, _ fetch: CallFetch) -> FetchRequest {
        guard let body = request.body else { return request }
        var request = request
        let watched = body as? WatchedBody ?? WatchedBody(body)
        watched.onRead = fetch.onRead
        request.body = watched
        return request
    }
}

@available(*, unavailable) extension CallSource: Sendable {}

/// One fetch of a call: it passes all on, and counts. Loop-bound.
final class CallFetch: PassingFetch {
    var handle: (any FetchHandle)?
    private(set) var isEndProven = true
    private(set) var sink: (any FetchSink)?
    private let record: CallRecord
    private let run: Int

    init(_ record: CallRecord, _ sink: any FetchSink) {
        self.record = record
        self.sink = sink
        run = record.run
    }

    deinit { record.end(.cancelled, in: run) }

    /// Counts what of the request's content is sent.
    var onRead: (Int) -> Void { { [run, weak record] in record?.sent(UInt64($0), in: run) } }

    func end(_ end: CallEnd) {
        handle = nil
        sink = nil
        record.end(end, in: run)
    }

    // MARK: - Attempts

    /// - Parameters:
    ///   - wait: nanoseconds.
    ///   - status: of the answer that is not wanted; nil where there was none.
    func retrying(after wait: UInt64, status: Int?, why: String) {
        record.retrying(after: wait, status: status, why: why, in: run)
    }

    func startAgain() { record.startAgain(in: run) }

    func cancel() {
        let handle = handle
        end(.cancelled)
        handle?.cancel()
    }

    // MARK: - FetchSink

    func received(_ head: ResponseHead, framing: BodyFraming) {
        var expected: UInt64?
        if case .length(let length) = framing { expected = length }
        record.answered(head.status, expected: expected, in: run)
        sink?.received(head, framing: framing)
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        record.received(UInt64(bytes.count), in: run)
        return sink?.received(bytes) ?? .continue
    }

    func splice(_ count: Int, from socket: Int32) -> SplicedContent? {
        let content = sink?.splice(count, from: socket)
        if case .bytes(let moved)? = content?.result { record.received(UInt64(moved), in: run) }
        return content
    }

    func finished(trailers: Fields) {
        isEndProven = handle?.isEndProven ?? true
        let sink = sink
        end(.finished)
        sink?.finished(trailers: trailers)
    }

    func failed(_ error: FetchError) {
        let sink = sink
        end(.failed(error))
        sink?.failed(error)
    }
}

@available(*, unavailable) extension CallFetch: Sendable {}

/// Loop-bound; made for one call of a service with `park`.
final class ParkableCall {
    private let place: CallPlace
    private let calls: CallsUnderWay
    private var record: CallRecord?
    private var isSettled = false

    init(_ place: CallPlace, _ calls: CallsUnderWay) {
        self.place = place
        self.calls = calls
    }

    /// A fetch begins: the next attempt of the call that was parked, or a call of its own.
    func begin(_ method: Method, _ path: String, toSend: UInt64?) -> CallRecord {
        if let record, !record.isEnded {
            if record.isParked {
                record.startAgain(in: record.run)
                return record
            }
            // Such as a check of what is stored, which has ended before the fetch.
            record.release()
        }
        let next = CallRecord(place, method, path, toSend: toSend, in: calls, holdsEnd: !isSettled)
        if !isSettled { record = next }
        return next
    }

    /// The call waits for its origin, after a fetch of its own or one that it shared with others.
    /// - Parameter path: what it asks the origin for.
    func park(_ method: Method, _ path: String, why: String) {
        if let record, !record.isEnded { return record.park(why: why) }
        record = CallRecord(
            place,
            method,
            path,
            toSend: nil,
            in: calls,
            phase: .parked,
            holdsEnd: true,
            reason: place.shown(why)
        )
    }

    /// The call is not parked any more, and has its answer.
    /// - Parameters:
    ///   - status: of the answer; nil where there is none.
    ///   - failure: why there is no answer of the origin.
    func settle(_ status: Int?, _ failure: FetchError?) {
        isSettled = true
        guard let record else { return }
        self.record = nil
        guard record.isParked else { return record.release() }
        if let status, failure == nil { return record.answeredByOther(status) }
        record.release()
        record.end(failure.map { .failed($0) } ?? .cancelled, in: record.run)
    }
}

@available(*, unavailable) extension ParkableCall: Sendable {}
