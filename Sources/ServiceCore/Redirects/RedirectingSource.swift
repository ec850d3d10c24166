// Follows the redirects of an origin below the download core, so that what they lead to is stored under the URL that
// was asked for.

package import DownloadCore
package import EventLoop
package import HTTPCaching
import HTTPWire

/// How the redirects of one question are followed.
package struct RedirectRules {
    /// Redirects that are followed for one request.
    package var limit: Int
    /// The setting that raises the limit, as errors name it.
    package var limitName: String
    /// Of the question: which answers may be stored, and for how long.
    package var policy: CachePolicy
    package var temporary: RedirectTerms.Temporary
    /// Query items that are for the first origin alone.
    package var secrets: SecretQuery

    package init(
        limit: Int,
        limitName: String,
        policy: CachePolicy,
        temporary: RedirectTerms.Temporary = .unstored,
        secrets: SecretQuery = SecretQuery()
    ) {
        self.limit = limit
        self.limitName = limitName
        self.policy = policy
        self.temporary = temporary
        self.secrets = secrets
    }
}

/// Loop-bound; made for one question, and it keeps nothing of a request. Between two requests the fetch has no slot of
/// its service, and it queues for one like any other.
package final class RedirectingSource: FetchSource {
    private let source: any FetchSource
    private let origin: OriginAddress
    private let rules: RedirectRules
    private let clock: WallClock
    private let elsewhere: (RedirectTarget) throws(FetchError) -> any FetchSource
    private let check: (RedirectTarget, FetchRequest) throws(FetchError) -> Void
    private let onFollow: () -> Void

    /// - Parameters:
    ///   - source: of requests to `origin`.
    ///   - elsewhere: the source of requests to another origin, without credentials; throws the refusal of one that may
    ///     not be asked.
    ///   - check: throws the refusal of a request that must not be made there, at the first origin either.
    ///   - onFollow: called for each redirect that is followed.
    package init(
        _ source: any FetchSource,
        _ origin: OriginAddress,
        _ rules: RedirectRules,
        clock: WallClock,
        elsewhere: @escaping (RedirectTarget) throws(FetchError) -> any FetchSource,
        check: @escaping (RedirectTarget, FetchRequest) throws(FetchError) -> Void = { _, _ in },
        onFollow: @escaping () -> Void = {}
    ) {
        self.source = source
        self.origin = origin
        self.rules = rules
        self.clock = clock
        self.elsewhere = elsewhere
        self.check = check
        self.onFollow = onFollow
    }

    package var opensSockets: Bool { source.opensSockets }

    package func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        let fetch = RedirectedFetch(request, RedirectTarget(origin, path: request.path), rules, clock, sink: sink)
        fetch.handle = try await source.start(fetch.attempt(), sink: fetch, on: loop)
        follow(fetch, on: loop)
        return fetch
    }

    // The parts of a fetch that waits for a redirect are apart, since most fetches wait for one that does not come.

    @inline(never) private func follow(_ fetch: RedirectedFetch, on loop: isolated EventLoop) {
        fetch.task = Task.immediate(executorPreference: loop.taskExecutor) {
            while await fetch.isRedirected(on: loop) { await self.askNext(fetch, on: loop) }
        }
    }

    @inline(never) private func askNext(_ fetch: RedirectedFetch, on loop: isolated EventLoop) async {
        do throws(FetchError) {
            guard let target = fetch.takeTarget() else { return }
            let request = fetch.attempt()
            try check(target, request)
            // An origin that was left gets no credentials again: whoever led back might have chosen the path.
            let next = fetch.hasLeft ? try elsewhere(target) : source
            onFollow()
            fetch.began(try await next.start(request, sink: fetch, on: loop))
        } catch {
            fetch.failed(error)
        }
    }
}

@available(*, unavailable) extension RedirectingSource: Sendable {}
