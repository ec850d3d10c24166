// One fetch with the redirects on its way: what each request has of the first one, and what the answer at the end says
// of them.

import Content
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import Policies
import Upstream

/// Loop-bound.
///
/// States: asking → answered (the sink hears everything) | redirected (what comes is dropped) → asking | ended.
final class RedirectedFetch: PassingFetch {
    private enum State { case asking, redirected, answered, ended }

    /// Bytes of the body of a redirect that are waited for, so that the connection can be used again.
    private static let drained = 64 * 1024

    var handle: (any FetchHandle)?
    var task: Task<Void, Never>?
    private(set) var isEndProven = true
    /// A redirect led to another origin than the first.
    private(set) var hasLeft = false
    private var state = State.asking
    private(set) var sink: (any FetchSink)?
    private var request: FetchRequest
    /// As it was asked for first.
    private let method: Method
    private var current: RedirectTarget
    private var body: RememberedBody?
    private let rules: RedirectRules
    private let clock: WallClock
    private var terms: RedirectTerms
    private var askedAt: Int64
    private var followed = 0
    private var visited: Set<String> = []
    private var dropped = 0
    /// The redirect that is to be followed.
    private var next: RedirectTarget?
    private var waiter: UnsafeContinuation<Void, Never>?

    init(
        _ request: FetchRequest,
        _ current: RedirectTarget,
        _ rules: RedirectRules,
        _ clock: WallClock,
        sink: any FetchSink
    ) {
        self.request = request
        method = request.method
        self.current = current
        self.rules = rules
        self.clock = clock
        self.sink = sink
        terms = RedirectTerms(temporary: rules.temporary)
        askedAt = clock.now()
    }

    /// The request as it goes to the present URL.
    func attempt() -> FetchRequest {
        visited.insert(current.url)
        askedAt = clock.now()
        body = request.body.map { RememberedBody($0) }
        var request = request
        request.body = body
        return request
    }

    /// Waits for a redirect.
    /// - Returns: false when there is none to come; else it is the next to be followed.
    func isRedirected(on loop: isolated EventLoop) async -> Bool {
        if next == nil, state == .asking || state == .redirected { await withUnsafeContinuation { waiter = $0 } }
        return hasTarget
    }

    @inline(never) private var hasTarget: Bool { next != nil && !isOver }

    /// Where the redirect leads that is followed now.
    func takeTarget() -> RedirectTarget? {
        defer { next = nil }
        if next != nil { state = .asking }
        return next
    }

    /// The task goes on: to the next URL, or to its end.
    private func wake() { waiter.take()?.resume() }

    /// It has been given up, or has failed.
    var isOver: Bool { state == .ended }

    /// A slow source may have been abandoned meanwhile.
    func began(_ handle: any FetchHandle) {
        if state == .ended { handle.cancel() } else { self.handle = handle }
    }

    func cancel() {
        let handle = handle
        end { _ in }
        handle?.cancel()
        // It may wait for admission.
        task?.cancel()
    }

    // MARK: - FetchSink

    var acceptsReentrantBytes: Bool { state == .answered && sink?.acceptsReentrantBytes ?? false }
    var supportsSplice: Bool { state == .answered && sink?.supportsSplice ?? false }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        let hasContent = request.body != nil
        let again = hasContent ? body?.again : nil
        let decision = RedirectDecision.decide(
            head,
            to: request.method,
            at: current,
            canRepeat: !hasContent || again != nil
        )
        if decision == .answer {
            request.trail?.noteAnswer(of: followed > 0 ? current.url : nil, head.status, to: request.method)
        } else {
            request.trail?.noteRedirect(of: current.url, head.status, to: request.method)
        }
        switch decision {
        case .answer: answered(head, framing)
        case .refuse(let why): refuse(why)
        case .follow where followed >= rules.limit:
            let isCircle = if case .follow(let target, _, _) = decision { visited.contains(target.url) } else { false }
            let advice =
                isCircle
                ? "they lead round in a circle, whatever \(rules.limitName) is; correct that there"
                : "raise \(rules.limitName) to follow more"
            refuse(
                "\(current.url.withoutQuery) is one redirect more than the \(rules.limit) that are followed: \(advice)"
            )
        case .follow(let target, let method, let keepsContent):
            terms.note(head, to: request.fields, policy: rules.policy, times: times)
            followed += 1
            state = .redirected
            dropped = 0
            turn(to: target, method, keepsContent ? again : nil)
        }
    }

    private var times: ResponseTimes { clock.times(since: askedAt) }

    /// Makes the request that follows the redirect.
    private func turn(to target: RedirectTarget, _ method: Method, _ content: (any RequestBodySource)?) {
        if !hasLeft, !target.isSameOrigin(as: current.origin) {
            hasLeft = true
            // What is for the first origin alone does not go to another one (RFC 9110 section 15.4).
            request.fields.removeAll { name, _ in SecretNames.isForOneOrigin(Latin1.string(name)) }
        }
        var target = target
        if hasLeft {
            request.clientHost = nil
            // An origin that repeats its query in a redirect repeats what was added to it, too.
            target = RedirectTarget(target.origin, path: rules.secrets.removed(from: target.path))
        }
        if request.method.isSafe || method != request.method {
            // They are about what was stored of another resource, which may have the same validators.
            if request.fields.contains(.ifRange) { request.fields.remove(.range) }
            for field in [KnownField.ifModifiedSince, .ifRange] { request.fields.remove(field) }
            if rules.temporary == .unstored { request.fields.remove(.ifNoneMatch) }
        }
        if request.body != nil, content == nil {
            request.framing = .none
            request.fields.removeAll { name, known in
                known == .expect || Latin1.string(name).lowercased().hasPrefix("content-")
            }
        }
        request.body = content
        request.method = method
        request.path = target.path
        current = target
    }

    private func refuse(_ why: String) {
        let handle = handle
        failed(.redirect(why))
        handle?.cancel()
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        guard state == .redirected else { return state == .answered ? sink?.received(bytes) ?? .continue : .continue }
        dropped += bytes.count
        if dropped > Self.drained, let handle {
            self.handle = nil
            handle.cancel()
            follow()
        }
        return .continue
    }

    func finished(trailers: Fields) {
        if state == .redirected { return follow() }
        isEndProven = handle?.isEndProven ?? true
        end { $0.finished(trailers: trailers) }
    }

    /// The redirect itself is of no more use, also where its body was cut short.
    private func follow() {
        guard state == .redirected, next == nil else { return }
        handle = nil
        next = current
        wake()
    }

    func failed(_ error: FetchError) {
        if state == .redirected, next == nil, handle != nil { return follow() }
        let error = followed > 0 && !method.isIdempotent ? spent(error) : error
        end { $0.failed(error) }
    }

    /// The error of a request that its first origin has had, and may have acted on: no retry and no parked call may take
    /// it for one that was never sent (RFC 9110 section 9.2.2).
    private func spent(_ error: FetchError) -> FetchError {
        switch error {
        case .upstream(let error): .upstream(error.afterAnother)
        case .notAdmitted(let why), .unavailable(let why, seconds: _), .offline(let why):
            .redirect(
                "the \(method.name) was sent and redirected to \(current.url.withoutQuery), which was not asked: \(why)"
            )
        default: error
        }
    }

    private func answered(_ head: ResponseHead, _ framing: BodyFraming) {
        state = .answered
        wake()
        guard followed > 0 else { return sink?.received(head, framing: framing) ?? () }
        var head = head
        for field in [KnownField.location, .contentLocation] {
            // They are relative to a URL that the client has not asked for.
            guard let value = head.fields.first(field), let target = current.resolving(value) else { continue }
            head.fields.set(field, target.url)
        }
        // A Location that neither leads on nor names what was made would be read as that of the redirect.
        if head.status != 201, !(300..<400).contains(head.status) { head.fields.remove(.location) }
        if hasLeft {
            // They would become the first origin's.
            for field in [KnownField.setCookie, .clearSiteData, .serviceWorkerAllowed] { head.fields.remove(field) }
        }
        terms.apply(to: &head, policy: rules.policy, times: times)
        sink?.received(head, framing: framing)
    }

    private func end(_ tell: (any FetchSink) -> Void) {
        guard state != .ended else { return }
        state = .ended
        next = nil
        let sink = sink
        self.sink = nil
        handle = nil
        body = nil
        request.body = nil
        wake()
        if let sink { tell(sink) }
    }
}

@available(*, unavailable) extension RedirectedFetch: Sendable {}

/// Loop-bound.
final class RememberedBody: RequestBodySource {
    /// Bytes that are kept; content that is longer is sent once only.
    static let longest = 64 * 1024

    private let body: any RequestBodySource
    /// What was read so far; nil where that is too much, or cannot be had again.
    private var bytes: [UInt8]? = []
    private var isOver = false

    init(_ body: any RequestBodySource) { self.body = body }

    /// The content from its start; nil where it is not there any more.
    var again: (any RequestBodySource)? { body.again ?? bytes.map { ContentSource($0, then: isOver ? nil : body) } }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> BodyRead {
        let result = body.read(into: buffer)
        switch result {
        case .bytes(let count):
            if (bytes?.count ?? 0) + count > Self.longest {
                bytes = nil
            } else {
                bytes?.append(contentsOf: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        case .end: isOver = true
        case .failed: bytes = nil
        case .wait: break
        }
        return result
    }
}

@available(*, unavailable) extension RememberedBody: Sendable {}
