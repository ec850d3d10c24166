// A transport that answers as a test says, without a network and without waiting, and keeps the requests that it has
// got.

public import Drydock
public import FoundationEssentials
public import HTTPTypes
import Synchronization

/// A transport for tests: it answers as its script says, and records what it was asked.
///
/// ```swift
/// let clock = ManualClock()
/// let transport = ScriptedTransport(clock: clock)
/// transport.answer(.get, "/users/1", with: .status(.serviceUnavailable), .json(#"{"name": "Ada"}"#))
/// transport.answer(.post, "/users") { request in .json(request.text, status: .created) }
/// let services = ServiceManager(transport: transport, base: URL(string: "https://example.com"))
/// ```
///
/// The target of an answer is a path such as `/users`, whatever the query is; a path with a query such as `/users?page=2`,
/// which must be the same; or a whole URL. Of several answers that fit, the one that was added last counts. A request
/// without an answer fails with `DownloadError.invalidRequest`. Any thread may use it.
public final class ScriptedTransport: Transport {
    /// Makes the answer to a request.
    public typealias Answering = @Sendable (RecordedRequest) async throws(DownloadError) -> ScriptedAnswer

    private enum Answers {
        /// One after the other; the last one stays.
        case list(ArraySlice<ScriptedAnswer>)
        case closure(Answering)
    }

    private struct Script {
        /// The method that is meant; nil is every method.
        let method: HTTPRequest.Method?
        /// The target that is meant; nil is every target.
        let target: String?
        /// Whether it answers for a stored response that is no longer valid, and for nothing else.
        let isStale: Bool
        var answers: Answers

        func fits(_ request: RecordedRequest, isStale: Bool) -> Bool {
            guard self.isStale == isStale, method == nil || method == request.method else { return false }
            guard let target else { return true }
            if target.contains("://") { return target == request.url }
            return target == (target.contains("?") ? request.target : request.path)
        }
    }

    private struct Waiter {
        let count: Int
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var scripts: [Script] = []
        var requests: [RecordedRequest] = []
        /// The number of the next waiter.
        var next: UInt64 = 0
        var waiters: [UInt64: Waiter] = [:]

        /// The answer that counts for a request, which is used up unless it is the last of its list.
        mutating func take(_ request: RecordedRequest, isStale: Bool) -> Answers? {
            guard let index = scripts.lastIndex(where: { $0.fits(request, isStale: isStale) }) else { return nil }
            let answers = scripts[index].answers
            if case .list(let list) = answers, list.count > 1 { scripts[index].answers = .list(list.dropFirst()) }
            return answers
        }
    }

    private let clock: any Clock<Duration>
    private let state = Mutex(State())

    /// A transport without answers.
    /// - Parameter clock: delays are slept on it; a ``ManualClock`` lets a test decide when they are over.
    public init(clock: any Clock<Duration> = ContinuousClock()) { self.clock = clock }

    // MARK: - The script

    /// Answers such requests, one answer after the other; the last one answers all that follow.
    /// - Parameters:
    ///   - method: nil is every method.
    ///   - target: a path, a path with a query, or a whole URL.
    ///   - first: the first answer.
    ///   - others: the answers after it.
    public func answer(
        _ method: HTTPRequest.Method?,
        _ target: String,
        with first: ScriptedAnswer,
        _ others: ScriptedAnswer...
    ) {
        add(method, target, .list([first] + others))
    }

    /// Answers such requests by a closure.
    /// - Parameters:
    ///   - method: nil is every method.
    ///   - target: a path, a path with a query, or a whole URL.
    ///   - answering: called for each of them; what it throws is the failure of the request.
    public func answer(_ method: HTTPRequest.Method?, _ target: String, by answering: @escaping Answering) {
        add(method, target, .closure(answering))
    }

    /// Answers all requests by a closure, whatever they ask for.
    /// - Parameter answering: called for each of them; what it throws is the failure of the request.
    public func answerAll(by answering: @escaping Answering) { add(nil, nil, .closure(answering)) }

    /// Answers who looks for a stored response that is no longer valid (`yieldsStaleFirst`); without it there is none.
    /// - Parameters:
    ///   - method: nil is every method.
    ///   - target: a path, a path with a query, or a whole URL.
    ///   - answer: what is stored; its outcome is `beingChecked`.
    public func answerStale(_ method: HTTPRequest.Method?, _ target: String, with answer: ScriptedAnswer) {
        add(method, target, .list([answer.from(.beingChecked)]), isStale: true)
    }

    private func add(_ method: HTTPRequest.Method?, _ target: String?, _ answers: Answers, isStale: Bool = false) {
        let script = Script(method: method, target: target, isStale: isStale, answers: answers)
        state.withLock { $0.scripts.append(script) }
    }

    // MARK: - What was asked

    /// All requests that came, in the order in which they came, also those without an answer.
    public var requests: [RecordedRequest] { state.withLock { $0.requests } }

    /// How many requests came for this target.
    /// - Parameters:
    ///   - target: a path, a path with a query, or a whole URL.
    ///   - method: nil, the default, counts every method.
    public func count(_ target: String, method: HTTPRequest.Method? = nil) -> Int {
        let script = Script(method: method, target: target, isStale: false, answers: .list([]))
        return requests.count { script.fits($0, isStale: false) }
    }

    /// Waits until so many requests have come, in all.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    public func waitForRequests(_ count: Int = 1) async throws {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // A task that is cancelled from here on is found in the table.
                let (isSeen, isCancelled) = state.withLock { state -> (Bool, Bool) in
                    if Task.isCancelled { return (false, true) }
                    if state.requests.count >= count { return (true, false) }
                    state.waiters[number] = Waiter(count: count, continuation: continuation)
                    return (false, false)
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
                if isSeen { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: number) }?
                .continuation.resume(throwing: CancellationError())
        }
    }

    // MARK: - As a transport

    /// Answers as the script says. The content of the request is read to its end, and its `onUpload` hears of all of it at
    /// once.
    /// - Throws: `DownloadError`: what the script says, `.invalidRequest` where it says nothing, and `.requestBody` where
    ///   the content cannot be had.
    public func send(_ request: TransportRequest) async throws(DownloadError) -> TransportResponse {
        if Task.isCancelled { throw .cancelled }
        let recorded = try await record(request)
        note(recorded)
        if let body = recorded.body, let onUpload = request.onUpload {
            onUpload(DownloadProgress(completed: Int64(body.count), total: Int64(body.count)))
        }
        guard let answers = state.withLock({ $0.take(recorded, isStale: false) }) else {
            throw .invalidRequest(
                "the test has no answer to \(recorded.method) \(recorded.url): add one with answer(_:_:with:)"
            )
        }
        return try await response(answers, recorded)
    }

    /// What ``answerStale(_:_:with:)`` says; nil where it says nothing, and for a request with content or with another
    /// method than GET and HEAD, as of a manager. It is no request, and is not recorded.
    public func staleResponse(to request: TransportRequest) async throws(DownloadError) -> TransportResponse? {
        if Task.isCancelled { throw .cancelled }
        guard request.body == nil, request.head.method == .get || request.head.method == .head else { return nil }
        let recorded = try await record(request)
        guard let answers = state.withLock({ $0.take(recorded, isStale: true) }) else { return nil }
        return try await response(answers, recorded)
    }

    private func record(_ request: TransportRequest) async throws(DownloadError) -> RecordedRequest {
        RecordedRequest(
            head: request.head,
            body: try await request.body?.collect(upTo: .max),
            contentType: request.body?.contentType,
            options: request.options
        )
    }

    private func note(_ request: RecordedRequest) {
        let satisfied = state.withLock { state -> [Waiter] in
            state.requests.append(request)
            let numbers = state.waiters.filter { $0.value.count <= state.requests.count }.keys.sorted()
            return numbers.compactMap { state.waiters.removeValue(forKey: $0) }
        }
        for waiter in satisfied { waiter.continuation.resume() }
    }

    private func response(_ answers: Answers, _ request: RecordedRequest) async throws(DownloadError)
        -> TransportResponse
    {
        let answer: ScriptedAnswer
        switch answers {
        case .list(let list):
            guard let first = list.first else { throw .invalidRequest("the test has an empty list of answers") }
            answer = first
        case .closure(let answering): answer = try await answering(request)
        }
        if answer.delay > .zero {
            do {
                try await clock.sleep(for: answer.delay)
            } catch {
                throw .cancelled
            }
        }
        if Task.isCancelled { throw .cancelled }
        return try answer.response(toHead: request.method == .head)
    }
}

// MARK: - Requests

/// A request that a ``ScriptedTransport`` has got.
public struct RecordedRequest: Sendable {
    /// Method, scheme, authority, path and fields.
    public let head: HTTPRequest
    /// The bytes of its content, read to their end; nil where it has none.
    public let body: Data?
    /// The media type of the content where the content has one of its own.
    public let contentType: String?
    /// How the cache was to be used.
    public let options: DownloadOptions

    /// Its method.
    public var method: HTTPRequest.Method { head.method }
    /// Path and query, as they were asked for.
    public var target: String { head.path.map { $0.isEmpty ? "/" : $0 } ?? "/" }
    /// The path without the query.
    public var path: String { String(target.prefix { $0 != "?" }) }
    /// What follows the `?`; nil where there is none.
    public var query: String? { target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) } }
    /// The whole URL.
    public var url: String { "\(head.scheme ?? "http")://\(head.authority ?? "")\(target)" }
    /// The content as UTF-8, broken bytes replaced; empty where there is none.
    public var text: String { String(decoding: body ?? Data(), as: UTF8.self) }
}

// MARK: - Bodies

/// Sendable: what is left is under a mutex.
final class ScriptedBody: Sendable {
    private let rest: Mutex<ArraySlice<Data>>
    private let interruption: DownloadError?
    /// Bytes of the whole.
    private let count: Int

    init(_ pieces: [Data], _ interruption: DownloadError?) {
        rest = Mutex(pieces[...])
        self.interruption = interruption
        count = pieces.reduce(0) { $0 + $1.count }
    }

    /// Its length is known where it comes whole.
    var body: ResponseBody {
        ResponseBody(expected: interruption == nil ? Int64(count) : nil) { () throws(DownloadError) in try self.next() }
    }

    private func next() throws(DownloadError) -> Data? {
        if Task.isCancelled { throw .cancelled }
        if let piece = rest.withLock({ $0.popFirst() }) { return piece }
        if let interruption { throw interruption }
        return nil
    }
}
