// The source of a service's calls, which reports the events of each fetch.

import DownloadCore
import EventLoop
import HTTPWire
import Upstream

/// Wraps the attempts and the mapping of a call, so that all attempts are one call. Loop-bound; it keeps no state of a
/// request.
final class CallSource: FetchSource {
    private let source: any FetchSource
    private let destination: CallDestination
    private let calls: CallsUnderWay
    private let parkable: ParkableCall?

    /// - Parameter parkable: the call if it may be parked between its fetches; nil otherwise.
    init(_ source: any FetchSource, _ destination: CallDestination, _ calls: CallsUnderWay, _ parkable: ParkableCall?) {
        self.source = source
        self.destination = destination
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

    // This function is separate from the one that waits, whose frame would otherwise hold all of it.

    @inline(never) private func begin(_ request: FetchRequest, _ sink: any FetchSink) -> CallFetch {
        var toSend: UInt64?
        if request.body != nil, case .length(let length) = request.framing { toSend = length }
        let record =
            parkable?.begin(request.method, request.path, toSend: toSend)
            ?? CallRecord(destination, request.method, request.path, toSend: toSend, in: calls)
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

/// One fetch of a call, which passes everything on and counts it. Loop-bound.
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

    /// The closure that counts the sent bytes of the request's content.
    var onRead: (Int) -> Void { { [run, weak record] in record?.sent(UInt64($0), in: run) } }

    func end(_ end: CallEnd) {
        handle = nil
        sink = nil
        record.end(end, in: run)
    }

    // MARK: - Attempts

    /// Reports that the attempt has failed, and that another one follows.
    /// - Parameters:
    ///   - wait: nanoseconds until then.
    ///   - status: the status of the failed answer; nil if there was none.
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

    func splice(_ count: Int, from source: SpliceSource) -> SplicedContent? {
        let content = sink?.splice(count, from: source)
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

/// A call of a service with `park`, which has one record for all its fetches. Loop-bound.
final class ParkableCall {
    private let destination: CallDestination
    private let calls: CallsUnderWay
    private var record: CallRecord?
    private var isSettled = false

    init(_ destination: CallDestination, _ calls: CallsUnderWay) {
        self.destination = destination
        self.calls = calls
    }

    /// Begins a fetch: the next attempt of the parked call, or a call of its own.
    func begin(_ method: Method, _ path: String, toSend: UInt64?) -> CallRecord {
        if let record, !record.isEnded {
            if record.isParked {
                record.startAgain(in: record.run)
                return record
            }
            // The previous record is of a fetch that has ended, such as the validation of a stored response.
            record.release()
        }
        let next = CallRecord(destination, method, path, toSend: toSend, in: calls, holdsEnd: !isSettled)
        if !isSettled { record = next }
        return next
    }

    /// Notes that the call waits for its origin, after a fetch of its own or one shared with others.
    /// - Parameter path: the path that the origin is asked for.
    func park(_ method: Method, _ path: String, why: String) {
        if let record, !record.isEnded { return record.park(why: why) }
        record = CallRecord(
            destination,
            method,
            path,
            toSend: nil,
            in: calls,
            phase: .parked,
            holdsEnd: true,
            reason: destination.shown(why)
        )
    }

    /// Notes that the call is not parked any more, and has its answer.
    /// - Parameters:
    ///   - status: the status of the answer; nil if there is none.
    ///   - failure: the reason why there is no answer of the origin; nil if there is one.
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
