// The source of a route's fetches that answers from recordings, and records the answers of the origin, below the shared
// fetch.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

/// Replays and records the answers of one route. Loop-bound; it keeps no state of a request.
final class RecordingSource: FetchSource {
    /// The most bytes of a request's content that are read to find its recording; a request with more is refused.
    static let longestContent = 1 << 20

    /// The source of the origin; nil if no origin may be asked.
    private let origin: (any FetchSource)?
    private let plan: RecordingPlan
    private let expectation: SeedExpectation?
    private let clock: WallClock
    private let budget: BodyBudget
    private let service: String
    private let isOffline: () -> Bool

    /// - Parameters:
    ///   - origin: the source of the origin; nil with `source: replay`, so that nothing can open a socket.
    ///   - expectation: the expectation on recorded answers; nil for none.
    ///   - budget: counts the content of recordings while it arrives.
    ///   - service: the name of the service, for messages.
    ///   - isOffline: returns whether the daemon is offline at the moment.
    init(
        _ origin: (any FetchSource)?,
        _ plan: RecordingPlan,
        _ expectation: SeedExpectation?,
        clock: WallClock,
        budget: BodyBudget,
        service: String,
        isOffline: @escaping () -> Bool
    ) {
        self.origin = origin
        self.plan = plan
        self.expectation = expectation
        self.clock = clock
        self.budget = budget
        self.service = service
        self.isOffline = isOffline
    }

    /// False, although the origin's source may open sockets: a recording may answer offline, and this source itself
    /// checks before it asks the origin.
    var opensSockets: Bool { false }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        var request = request
        let content = try await content(of: &request, on: loop)
        let key = RecordingKey(request.method, path: request.path, request.fields, content: content, plan.rules)
        let isAnsweredFirst = plan.source != .record
        let found =
            isAnsweredFirst || plan.rules.onFailure == .replay ? await plan.folder.find(key, request.fields) : nil
        let head = RequestHead(method: request.method, target: request.path, fields: request.fields)
        if isAnsweredFirst, let found { return replay(found, head, sink, on: loop) }
        guard let origin else {
            let near = await plan.folder.nearest(to: key, request.fields).map { "the nearest: \($0); " } ?? ""
            throw .unrecorded(
                "service \(service) has no recording of '\(key.request)' in \(plan.folder.path); \(near)"
                    + "record it with 'source: record' or 'replay-or-record', or put one there"
            )
        }
        if isOffline(), origin.opensSockets {
            if let found { return replay(found, head, sink, on: loop) }
            throw .offline("there is no recording of '\(key.request)', \(FetchError.offlineAdvice)")
        }
        let fetch = RecordedFetch(head, key, plan, expectation, clock, budget, standIn: found, sink: sink, on: loop)
        request.prepareForRecording()
        do throws(FetchError) {
            fetch.handle = try await origin.start(request, sink: fetch, on: loop)
        } catch {
            guard let found, error.isOriginFailure else { throw error }
            return replay(found, head, sink, on: loop)
        }
        fetch.task = Task.immediate(executorPreference: loop.taskExecutor) { await fetch.save(on: loop) }
        return fetch
    }

    /// Reads the content of a request if the key needs it; the origin gets it all the same.
    private func content(
        of request: inout FetchRequest,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> [UInt8] {
        guard plan.rules.matchesBody, let body = request.body else { return [] }
        let content = try await PostedContent.read(
            body,
            bind: request.bindBody,
            atMost: Self.longestContent,
            on: loop
        )
        guard content.isWhole else {
            throw .unrecorded(
                "the request's content has more than \(Self.longestContent) bytes, and tells recordings of service "
                    + "\(service) apart; set recordings.match.body: false, or send less"
            )
        }
        request.body = ContentSource(content.bytes)
        request.bindBody = nil
        return content.bytes
    }

    private func replay(
        _ recording: OpenRecording,
        _ request: RequestHead,
        _ sink: any FetchSink,
        on loop: isolated EventLoop
    ) -> ReplayedFetch {
        let fetch = ReplayedFetch(recording, request, now: clock.now(), sink: sink, on: loop)
        Task.immediate(executorPreference: loop.taskExecutor) {
            // The fetch runs after `start` has returned, when the owner of the sink has the handle.
            await Task.yield()
            await fetch.run(on: loop)
        }
        return fetch
    }
}

@available(*, unavailable) extension RecordingSource: Sendable {}

extension FetchRequest {
    /// Asks for the whole representation without content codings: a recording answers all clients, and people read it.
    mutating func prepareForRecording() {
        fields.set(.acceptEncoding, "identity")
        guard method == .get || method == .head else { return }
        for field in [KnownField.range, .ifRange] { fields.remove(field) }
        fields.removeConditions()
    }
}
