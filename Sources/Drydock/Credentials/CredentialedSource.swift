// Shows the manager's credentials to an origin, and makes a request once more where the program has others.

import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

/// Loop-bound; it keeps nothing of a request. It stands below the redirects, for the origin that was asked alone, and is
/// not there where a request brings its own Authorization.
final class CredentialedSource: FetchSource {
    private let origin: OriginAddress
    private let table: CredentialTable
    /// The account whose credentials the question counts with; nil if it counts with nobody's.
    private let expected: String?
    /// Where the request is made.
    private let scope: AskingScope
    private let policy: CachePolicy
    private let source: any FetchSource

    init(
        _ source: any FetchSource,
        _ origin: OriginAddress,
        _ table: CredentialTable,
        expected: String?,
        within scope: AskingScope,
        _ policy: CachePolicy
    ) {
        self.source = source
        self.scope = scope
        self.origin = origin
        self.table = table
        self.expected = expected
        self.policy = policy
    }

    var opensSockets: Bool { source.opensSockets }

    func start(
        _ request: FetchRequest,
        sink: any FetchSink,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> any FetchHandle {
        guard let first = table.account(for: origin) else {
            return try await source.start(request, sink: sink, on: loop)
        }
        let fetch = CredentialedFetch(sink, policy, expected: expected) { request.canRepeat }
        fetch.begin(first)
        fetch.handle = try await source.start(request.shown(first), sink: fetch, on: loop)
        guard first.isAsked else { return fetch }
        let (origin, table, source, scope) = (origin, table, source, scope)
        fetch.task = Task.immediate(executorPreference: loop.taskExecutor) {
            guard let refusal = await fetch.refusal(on: loop) else { return }
            let challenge = AuthenticationChallenge(first, refusal)
            let next = await table.account(after: first, for: origin, challenge, within: scope)
            guard !fetch.isOver else { return }
            // A refusal that was too long to be kept is asked for again.
            guard next != nil || !fetch.tellRefusal() else { return }
            guard request.canRepeat else { return fetch.contentIsGone() }
            let account = next ?? first
            fetch.begin(account)
            do throws(FetchError) {
                fetch.began(try await source.start(request.again.shown(account), sink: fetch, on: loop))
            } catch {
                fetch.failed(error)
            }
        }
        return fetch
    }
}

@available(*, unavailable) extension CredentialedSource: Sendable {}

extension FetchRequest {
    fileprivate func shown(_ account: Account) -> FetchRequest {
        var request = self
        // What the question had may be outdated.
        request.fields.remove(.authorization)
        if let value = account.credentials?.value { request.fields.set(.authorization, value) }
        return request
    }

    fileprivate var canRepeat: Bool { body == nil || body?.again != nil }

    fileprivate var again: FetchRequest {
        var request = self
        request.body = body?.again
        return request
    }
}

/// One request with its one repetition; loop-bound.
///
/// States: asking → answered (the sink hears everything) | holding (a 401, which is kept) → refused (the program is
/// asked) → asking | answered | ended.
private final class CredentialedFetch: PassingFetch {
    private enum State { case asking, holding, refused, answered }

    /// Bytes of the body of a 401 that are kept, so that the request gives its slot free while the program thinks.
    private static let longest = 64 * 1024

    var handle: (any FetchHandle)?
    var task: Task<Void, Never>?
    private(set) var sink: (any FetchSink)?
    private let policy: CachePolicy
    private let expected: String?
    /// Whether its content can be had from the beginning, as things are now.
    private let canRepeat: () -> Bool
    private var account: Account?
    /// Whatever the second request brings is the result.
    private var isRepeated = false
    private var state = State.asking
    private var held: (head: ResponseHead, framing: BodyFraming, bytes: [UInt8], trailers: Fields?)?
    private var waiter: UnsafeContinuation<Void, Never>?
    private var isProven: Bool?

    init(_ sink: any FetchSink, _ policy: CachePolicy, expected: String?, canRepeat: @escaping () -> Bool) {
        self.sink = sink
        self.policy = policy
        self.expected = expected
        self.canRepeat = canRepeat
    }

    var isOver: Bool { sink == nil }

    /// The next request shows this.
    func begin(_ account: Account) {
        isRepeated = self.account != nil
        self.account = account
        state = .asking
        held = nil
        isProven = nil
    }

    /// A source that took its time may have been given up meanwhile.
    func began(_ handle: any FetchHandle) {
        if isOver { handle.cancel() } else if state != .refused { self.handle = handle }
    }

    /// Waits until the first request is refused.
    /// - Returns: the fields of the 401; nil where there is another answer, or nobody waits for one.
    func refusal(on loop: isolated EventLoop) async -> Fields? {
        if state == .asking || state == .holding, !isOver { await withUnsafeContinuation { waiter = $0 } }
        return state == .refused && !isOver ? held?.head.fields : nil
    }

    private func wake() { waiter.take()?.resume() }

    /// Hands the 401 over.
    /// - Returns: false where it is not there as a whole.
    func tellRefusal() -> Bool {
        guard let held, let trailers = held.trailers else { return false }
        state = .answered
        tell(held.head, held.framing)
        if !held.bytes.isEmpty { held.bytes.withUnsafeBytes { _ = sink?.received($0) } }
        finished(trailers: trailers)
        return true
    }

    /// The request cannot be made again: sending its content, which can be had once, has begun since the 401 came.
    func contentIsGone() {
        if tellRefusal() { return }
        let detail =
            "\(account?.origin ?? "the origin") refused the credentials while it was sent a content that can be had once: "
            + "make the stream anew for each attempt"
        let sink = sink.take()
        sink?.failed(.upstream(UpstreamError(.requestBody, detail: detail)))
    }

    private func tell(_ head: ResponseHead, _ framing: BodyFraming) {
        var head = head
        // It is for others than those that it would be stored for.
        if account?.credentials?.identity != expected { Caching.forbidStoring(&head.fields, policy: policy) }
        sink?.received(head, framing: framing)
    }

    // MARK: - FetchHandle

    var hasContent: Bool { held.map { !$0.bytes.isEmpty } ?? handle?.hasContent ?? false }
    var isEndProven: Bool { isProven ?? handle?.isEndProven ?? true }

    func cancel() {
        sink = nil
        let handle = handle.take()
        handle?.cancel()
        wake()
        // It may wait for the program, or for admission.
        task?.cancel()
    }

    // MARK: - FetchSink

    var acceptsReentrantBytes: Bool { state == .answered && sink?.acceptsReentrantBytes ?? false }
    var supportsSplice: Bool { state == .answered && sink?.supportsSplice ?? false }

    func received(_ head: ResponseHead, framing: BodyFraming) {
        if head.status == 401, !isRepeated, account?.isAsked ?? false, canRepeat() {
            state = .holding
            held = (head, framing, [], nil)
            return
        }
        state = .answered
        wake()
        tell(head, framing)
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        switch state {
        case .answered: return sink?.received(bytes) ?? .continue
        case .holding:
            held?.bytes += bytes
            if held?.bytes.count ?? 0 > Self.longest {
                held?.bytes = []
                refused()
            }
            return .continue
        case .asking, .refused: return .continue
        }
    }

    private func refused() {
        state = .refused
        isProven = handle?.isEndProven
        let handle = handle.take()
        // It has ended where the whole 401 is there.
        if held?.trailers == nil { handle?.cancel() }
        wake()
    }

    func finished(trailers: Fields) {
        switch state {
        case .holding:
            held?.trailers = trailers
            refused()
        case .answered:
            isProven = isProven ?? handle?.isEndProven
            let sink = sink.take()
            handle = nil
            sink?.finished(trailers: trailers)
        case .asking, .refused: break
        }
    }

    func failed(_ error: FetchError) {
        if state == .refused, task != nil, handle == nil, held != nil { return }
        let sink = sink.take()
        handle = nil
        wake()
        sink?.failed(error)
    }
}

@available(*, unavailable) extension CredentialedFetch: Sendable {}
