// Sends the manager's cookies to an origin, and takes those that it sets.

import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

/// Loop-bound; it keeps nothing of a request. It stands below the redirects, for the origin that was asked alone: each
/// request on the way has the cookies of its own path.
final class CookieSource: FetchSource {
    private let origin: OriginAddress
    private let jar: CookieJar
    private let clock: WallClock
    /// The question's, which the store counts with; nil: none.
    private let expected: String?
    /// The program has set its own, and no others are sent.
    private let isOwn: Bool
    private let policy: CachePolicy
    private let source: any FetchSource

    init(
        _ source: any FetchSource,
        _ origin: OriginAddress,
        _ jar: CookieJar,
        _ clock: WallClock,
        expected: String?,
        isOwn: Bool,
        _ policy: CachePolicy
    ) {
        self.source = source
        self.origin = origin
        self.jar = jar
        self.clock = clock
        self.expected = expected
        self.isOwn = isOwn
        self.policy = policy
    }

    var opensSockets: Bool { source.opensSockets }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        var request = request
        var isExpected = true
        if !isOwn {
            let line = jar.line(for: origin, path: request.path, now: clock.now())
            // What the question had may be outdated, or that of another path.
            request.fields.remove(.cookie)
            if let line { request.fields.set(.cookie, line) }
            isExpected = line == expected || policy.cookies == .any
        }
        let taking = CookieSink(sink, isExpected ? nil : policy) { [jar, origin, clock, path = request.path] fields in
            jar.take(fields, from: origin, target: path, now: clock.now())
        }
        return try await source.start(request, sink: taking, on: loop)
    }
}

@available(*, unavailable) extension CookieSource: Sendable {}

/// Hears of the head before the sink behind it; loop-bound.
private final class CookieSink: PassingSink {
    let sink: (any FetchSink)?
    /// The policy that keeps an answer from being stored, which is for others than those that it would be stored for; nil if it
    /// may be stored.
    private let forbidding: CachePolicy?
    private let take: (Fields) -> Void

    init(_ sink: any FetchSink, _ forbidding: CachePolicy?, take: @escaping (Fields) -> Void) {
        self.sink = sink
        self.forbidding = forbidding
        self.take = take
    }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        take(head.fields)
        guard let forbidding else { return sink?.received(head, framing: framing) ?? () }
        var head = head
        Caching.forbidStoring(&head.fields, policy: forbidding)
        sink?.received(head, framing: framing)
    }
}

@available(*, unavailable) extension CookieSink: Sendable {}
