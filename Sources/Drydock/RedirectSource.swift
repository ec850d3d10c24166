// Follows redirects below the download core, so that what they lead to is stored under the URL that was asked for.

import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPWire
import ServiceCore
import Upstream

/// Loop-bound; made for one request. GET and HEAD are followed, whatever has a body is not.
final class RedirectSource: FetchSource {
    private let origin: OriginAddress
    private let limit: Int
    private let isStandard: Bool
    private let make: (OriginAddress) -> any FetchSource

    /// - Parameters:
    ///   - limit: redirects that are followed for one request.
    ///   - isStandard: what a temporary redirect led to is checked before each use: the next one may lead elsewhere
    ///     (RFC 9110 section 15.4).
    ///   - make: the source for an origin.
    init(_ origin: OriginAddress, limit: Int, isStandard: Bool, make: @escaping (OriginAddress) -> any FetchSource) {
        self.origin = origin
        self.limit = limit
        self.isStandard = isStandard
        self.make = make
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        guard limit > 0, request.method == .get || request.method == .head else {
            return try await make(origin).start(request, sink: sink, on: loop)
        }
        let fetch = RedirectFetch(request, origin, limit: limit, isStandard: isStandard, sink: sink)
        fetch.handle = try await make(origin).start(request, sink: fetch, on: loop)
        let make = make
        fetch.task = Task.immediate(executorPreference: loop.taskExecutor) {
            while let (origin, request) = await fetch.nextPlace(on: loop) {
                do throws(FetchError) {
                    fetch.handle = try await make(origin).start(request, sink: fetch, on: loop)
                    fetch.started()
                } catch {
                    fetch.failed(error)
                }
            }
        }
        return fetch
    }
}

@available(*, unavailable) extension RedirectSource: Sendable {}

/// One fetch with the redirects on its way; loop-bound.
///
/// States: asking → answered (the sink hears everything) | redirected (what comes is dropped) → asking | ended.
private final class RedirectFetch: FetchHandle, FetchSink {
    /// Bytes of the body of a redirect that are waited for, so that the connection can be used again.
    private static let drained = 64 * 1024

    var handle: (any FetchHandle)?
    private(set) var isEndProven = true
    var task: Task<Void, Never>?
    private var request: FetchRequest
    private var origin: OriginAddress
    private var sink: (any FetchSink)?
    private let limit: Int
    private let isStandard: Bool
    private var followed = 0
    private var wasTemporary = false
    /// The head of a redirect has come; where it leads.
    private var target: (OriginAddress, path: String)?
    private var dropped = 0
    private let turns = AsyncTurn()

    init(_ request: FetchRequest, _ origin: OriginAddress, limit: Int, isStandard: Bool, sink: any FetchSink) {
        self.request = request
        self.origin = origin
        self.limit = limit
        self.isStandard = isStandard
        self.sink = sink
    }

    /// Waits for a redirect; nil when there is none to come.
    func nextPlace(on loop: isolated EventLoop) async -> (OriginAddress, FetchRequest)? {
        guard await turns.wait(on: loop), let target, sink != nil else { return nil }
        if (target.0.scheme, target.0.authority) != (origin.scheme, origin.authority) {
            // Credentials are for the origin that they were given for, and are not sent to another one (RFC 9110
            // section 15.4).
            request.fields.remove(.authorization)
            request.fields.remove(.cookie)
        }
        (origin, request.path) = target
        request.clientHost = nil
        self.target = nil
        dropped = 0
        return (origin, request)
    }

    /// Cancels the new handle if the fetch was cancelled while its source was starting.
    func started() {
        if sink == nil { handle?.cancel() }
    }

    // MARK: - FetchHandle

    func resume() { handle?.resume() }

    func bodyAvailable() { handle?.bodyAvailable() }

    func cancel() {
        let handle = handle
        end()
        handle?.cancel()
        // The task may be waiting for a slot of the service.
        task?.cancel()
    }

    // MARK: - FetchSink

    func received(interim head: ResponseHead) { sink?.received(interim: head) }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        guard let place = Self.place(head, origin, request.path) else { return answered(head, framing) }
        guard followed < limit else {
            let detail = "\(origin.root)\(request.path) is one redirect more than the \(limit) that are followed"
            let handle = handle
            failed(.inner(detail + ": raise maximumRedirects, unless it leads round in circles"))
            handle?.cancel()
            return
        }
        followed += 1
        if [302, 303, 307].contains(head.status) { wasTemporary = true }
        target = place
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        guard target != nil else { return sink?.received(bytes) ?? .continue }
        dropped += bytes.count
        if dropped > Self.drained, let handle {
            self.handle = nil
            handle.cancel()
            turns.signal(true)
        }
        return .continue
    }

    func finished(trailers: Fields) {
        if target != nil { return turns.signal(true) }
        isEndProven = handle?.isEndProven ?? true
        let sink = sink
        end()
        sink?.finished(trailers: trailers)
    }

    func failed(_ error: FetchError) {
        let sink = sink
        end()
        sink?.failed(error)
    }

    private func answered(_ head: ResponseHead, _ framing: BodyFraming) {
        var head = head
        if wasTemporary, isStandard { head.fields.appendMember(.cacheControl, "no-cache") }
        turns.signal(false)
        sink?.received(head, framing: framing)
    }

    private func end() {
        sink = nil
        handle = nil
        target = nil
        turns.signal(false)
    }

    /// The target of a redirect (RFC 9110 section 10.2.2); nil if the head is no redirect, or its target cannot be
    /// asked for.
    private static func place(
        _ head: ResponseHead,
        _ origin: OriginAddress,
        _ path: String
    ) -> (OriginAddress, path: String)? {
        guard [301, 302, 303, 307, 308].contains(head.status), let location = head.fields.first(.location),
            let base = URL(string: origin.root + path),
            let url = URL(string: location, relativeTo: base)?.absoluteURL
        else { return nil }
        return try? DownloadRequest.place(url.absoluteString)
    }
}

@available(*, unavailable) extension RedirectFetch: Sendable {}

/// Lets one task wait for a value that a callback on the same loop gives; loop-bound.
private final class AsyncTurn {
    private var said: Bool?
    private var waiter: UnsafeContinuation<Bool, Never>?

    /// Resumes the task that waits. If none does, the next one gets the last value; after `false` the value stays
    /// `false`.
    func signal(_ value: Bool) {
        if let waiter {
            self.waiter = nil
            waiter.resume(returning: value)
        } else if said != false {
            said = value
        }
    }

    /// Waits for a value. `false` is the last one: each later call returns it at once.
    func wait(on loop: isolated EventLoop) async -> Bool {
        if let said {
            if said { self.said = nil }
            return said
        }
        return await withUnsafeContinuation { waiter = $0 }
    }
}
