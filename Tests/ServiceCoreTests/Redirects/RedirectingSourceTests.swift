// A fetch with redirects on its way, over a source that does what the test says: what is sent again, and what is not.

import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import LoopSupport
import Policies
import TestSupport
import Testing
import Upstream

@testable import ServiceCore

private let address = OriginAddress(scheme: "http", host: "origin.test", port: nil, basePath: "")

/// Answers each request as the test says. Used on the loop only.
private final class PlayedSource: FetchSource, @unchecked Sendable {
    enum Turn: Sendable {
        /// A redirect, with its whole body.
        case redirect(Int, String)
        case fails(FetchError)
        case isNotBegun(FetchError)
    }

    private final class Handle: EndHandle {
        func resume() {}
        func bodyAvailable() {}
        func cancel() {}
    }

    let asked = Monitor<[String]>([])
    private var turns: [Turn]
    /// Tells the sink what the turn says, once the fetch has begun.
    private var next: (() -> Void)?

    init(_ turns: [Turn]) { self.turns = turns }

    func play() {
        let next = next
        self.next = nil
        next?()
    }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        asked.update { $0.append("\(request.method.name) \(request.path)") }
        guard !turns.isEmpty else { throw .inner("nothing more is expected") }
        switch turns.removeFirst() {
        case .isNotBegun(let error): throw error
        case .fails(let error): next = { sink.failed(error) }
        case .redirect(let status, let location):
            next = {
                let head = ResponseHead(status: status, fields: Fields([("Location", location)]))
                sink.received(head, framing: .length(0))
                sink.finished(trailers: Fields())
            }
        }
        return Handle()
    }
}

/// Writes down the error of a fetch; loop-bound.
private final class Ear: EndSink {
    let error = Monitor<FetchError?>(nil)

    func received(interim head: ResponseHead) {}
    func received(_ head: ResponseHead, framing: BodyFraming) {}
    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow { .continue }
    func finished(trailers: Fields) {}
    func failed(_ error: FetchError) { self.error.update { $0 = error } }
}

@available(*, unavailable) extension Ear: Sendable {}

/// The fetch of a test. Used on the loop only.
private final class Under: @unchecked Sendable {
    var handle: (any FetchHandle)?
}

@Suite(.timeLimit(.minutes(5)))
struct RedirectingSourceTests {
    private static let refused = FetchError.upstream(UpstreamError(.connectionRefused, detail: "refused"))

    /// Makes a request that is redirected, and plays what follows.
    private static func error(
        _ method: HTTPWire.Method,
        _ turns: [PlayedSource.Turn],
        retry: RetryPolicy = RetryPolicy(count: 2, delay: .zero, jitter: 0)
    ) async throws -> (error: FetchError?, asked: [String]) {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let source = PlayedSource(turns)
        let resilience = Resilience(now: Monotonic.now)
        let under = Under()
        let error = await begin(on: loop) { loop in
            let rules = RedirectRules(limit: 3, limitName: "", policy: CachePolicy())
            let redirecting = RedirectingSource(
                source,
                address,
                rules,
                clock: WallClock(),
                elsewhere: { (_: RedirectTarget) throws(FetchError) -> any FetchSource in source }
            )
            let retrying = RetryingSource(redirecting, retry, resilience: resilience, clock: WallClock())
            let ear = Ear()
            let request = FetchRequest(
                method: method,
                path: "/a",
                fields: Fields(),
                framing: .length(1),
                body: ContentSource([1])
            )
            under.handle = try? await retrying.start(request, sink: ear, on: loop)
            return ear.error
        }.value
        // The source plays on the loop, whenever it has been asked.
        #expect(
            await eventually {
                loop.submit { _ in source.play() }
                return error.read { $0 != nil }
            }
        )
        return (error.read { $0 }, source.asked.read { $0 })
    }

    @Test("whether content is at hand is for the origin to say that was asked last")
    func atHand() {
        final class File: EndHandle {
            let isAtHand = true
            func resume() {}
            func bodyAvailable() {}
            func cancel() {}
        }
        let request = FetchRequest(method: .get, path: "/a", fields: Fields())
        let rules = RedirectRules(limit: 3, limitName: "", policy: CachePolicy())
        let target = RedirectTarget(address, path: "/a")
        let fetch = RedirectedFetch(request, target, rules, WallClock(), sink: Ear())
        #expect(!fetch.isAtHand)
        fetch.handle = File()
        #expect(fetch.isAtHand)
    }

    @Test(
        "a POST whose redirect leads nowhere is not sent again: its origin has had it",
        arguments: [
            [.redirect(303, "/b"), .fails(refused)], [.redirect(303, "/b"), .isNotBegun(refused)],
            [.redirect(307, "http://other.test/b"), .fails(refused)],
            [.redirect(303, "/b"), .isNotBegun(.notAdmitted("full"))],
            [.redirect(303, "/b"), .isNotBegun(.unavailable("open", seconds: 1))],
        ] as [[PlayedSource.Turn]]
    )
    fileprivate func spent(_ turns: [PlayedSource.Turn]) async throws {
        let (error, asked) = try await Self.error(.post, turns)
        #expect(asked.count == 2 && asked.first == "POST /a")
        // Neither a retry nor a parked call may take it for unsent.
        let told = try #require(error)
        #expect(!AttemptEnd.failed(told).isUnsent)
        let isOfFirst = if case .upstream = told { true } else if case .redirect = told { true } else { false }
        #expect(isOfFirst, "\(told)")
    }

    @Test("a GET is made again, from its first URL on")
    func again() async throws {
        let refused = Self.refused
        let (error, asked) = try await Self.error(
            .get,
            [.redirect(302, "/b"), .fails(refused), .redirect(302, "/b"), .fails(refused), .fails(refused)]
        )
        #expect(error == refused)
        #expect(asked == ["GET /a", "GET /b", "GET /a", "GET /b", "GET /a"])
    }

    @Test("what is cancelled as its redirect comes asks nobody any more")
    func cancelled() async throws {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let source = PlayedSource([.redirect(307, "/b"), .redirect(307, "/c")])
        let under = Under()
        await begin(on: loop) { loop in
            let rules = RedirectRules(limit: 3, limitName: "", policy: CachePolicy())
            let redirecting = RedirectingSource(
                source,
                address,
                rules,
                clock: WallClock(),
                elsewhere: { (_: RedirectTarget) throws(FetchError) -> any FetchSource in source }
            )
            let request = FetchRequest(method: .get, path: "/a", fields: Fields())
            under.handle = try? await redirecting.start(request, sink: Ear(), on: loop)
        }.value
        await begin(on: loop) { _ in
            source.play()
            under.handle?.cancel()
        }.value
        // Whatever the redirect had set going has run by now.
        for _ in 0..<3 { await begin(on: loop) { _ in await Task.yield() }.value }
        #expect(source.asked.read { $0 } == ["GET /a"])
    }
}
