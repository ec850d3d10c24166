// The comparison of recordings with the answers that their origins give now.

import DownloadCore
package import EventLoop
package import HTTPWire
package import Policies
import Trees
import Upstream

/// The differences between an answer of now and a recording. Secrets are taken out of both before they are compared,
/// and it has no value of the contents.
package struct RecordingDrift: Sendable, Equatable {
    /// The values of a field in the recording and now; nil if it is absent.
    package struct Field: Sendable, Equatable {
        package let name: String
        package let recorded: String?
        package let now: String?
    }

    /// The fields that are always compared; fields that origins change with each answer are left out.
    package static let comparedFields = ["Content-Type", "Content-Language", "Location"]

    /// The status of now; nil if it is that of the recording.
    package private(set) var status: Int?
    package private(set) var fields: [Field] = []
    /// The differences of the contents, such as `user.roles[2] is missing`.
    package private(set) var content: [String] = []

    package var isEmpty: Bool { status == nil && fields.isEmpty && content.isEmpty }

    /// - Parameters:
    ///   - head: the head of the answer of now.
    ///   - content: the content of the answer of now; nil if it is longer than a recording may be.
    ///   - secrets: the query items that the service adds.
    ///   - names: the names of fields that are compared in addition to ``comparedFields``.
    package init(
        of recording: Recording,
        _ head: ResponseHead,
        _ content: [UInt8]?,
        _ rules: RecordingRules,
        _ secrets: SecretQuery,
        fields names: [String] = []
    ) {
        if head.status != recording.status { status = head.status }
        let then = try? Redaction.apply(to: recording.content, of: recording.fields, rules, secrets)
        let now = content.flatMap { try? Redaction.apply(to: $0, of: head.fields, rules, secrets) }
        let old = then?.fields ?? Redaction.apply(to: recording.fields, rules, secrets)
        let new = now?.fields ?? Redaction.apply(to: head.fields, rules, secrets)
        var seen: Set<String> = []
        for name in Self.comparedFields + names where seen.insert(name.lowercased()).inserted {
            let (recorded, now) = (old.combined(name), new.combined(name))
            if recorded != now { fields.append(Field(name: name, recorded: recorded, now: now)) }
        }
        guard let content else {
            self.content = ["it has more than \(rules.maximumSize) bytes, and had \(recording.content.count)"]
            return
        }
        if content != recording.content {
            // Contents are compared after redaction; if one of them is not JSON, so that secret members cannot be found
            // in it, only the position of the difference is told.
            self.content = Self.differences(then?.content, now?.content, recording.content, content)
        }
    }

    /// The differences between two contents, without values.
    /// - Parameters:
    ///   - then: the recorded content without secrets; nil if they cannot be found in it.
    ///   - now: the content of now without secrets; nil if they cannot be found in it.
    private static func differences(
        _ then: [UInt8]?,
        _ now: [UInt8]?,
        _ recorded: [UInt8],
        _ content: [UInt8]
    ) -> [String] {
        let limits = TreeLimits(depth: 128, values: 1 << 20)
        if let then, let now, then == now { return [] }
        if let then, let old = try? JSONReader.read(then, limits: limits, repeats: true) {
            guard let now, let new = try? JSONReader.read(now, limits: limits, repeats: true) else {
                return ["it is no JSON any more"]
            }
            let found = TreeDifferences(from: old, to: new)
            return found.texts + (found.isCut ? ["there are more differences"] : [])
        }
        let (old, new) = (then ?? recorded, now ?? content)
        let first = zip(old, new).enumerated().first { $1.0 != $1.1 }?.offset
        let position = first ?? min(old.count, new.count)
        return ["it differs from byte \(position), and has \(new.count) bytes of \(old.count)"]
    }
}

/// The outcome of comparing one recording.
package enum DriftOutcome: Sendable, Equatable {
    /// The origin's answer is the recorded one.
    case same
    case changed(RecordingDrift)
    /// The origin has no answer any more; it gives this status.
    case gone(Int)
    /// The origin did not answer, for this reason.
    case unreachable(String)
    /// The origin was not asked, for this reason.
    case leftOut(String)
}

/// Compares recordings with the answers of their origins. Loop-bound, made for one command.
package struct DriftCheck {
    private let services: ServiceClient

    package init(_ services: ServiceClient) { self.services = services }

    /// Asks the origin of a call whether a recording is still its answer: by the recording's validator if it has one,
    /// otherwise by a comparison. Caches on the way are told to validate.
    /// - Parameters:
    ///   - call: a GET.
    ///   - folder: the absolute path of the recording's folder.
    ///   - names: the names of fields that are compared in addition to those that always are.
    /// - Returns: nil if the recording does not answer the call.
    package func outcome(
        of recording: Recording,
        in folder: String,
        for call: ServiceCall,
        comparing names: [String],
        on loop: isolated EventLoop
    ) async -> DriftOutcome? {
        guard let plan = call.match.endpoint.request.recordings, plan.folder.path == folder,
            let (key, path) = RecordedCall.key(of: call, plan.rules), key == recording.key
        else { return nil }
        guard let source = try? services.source(of: call, behind: .recording) else {
            return .leftOut("service \(call.match.route.plan.name) asks no origin for it")
        }
        if services.core.isOffline, source.opensSockets {
            return .unreachable("it is for the origin to answer, \(FetchError.offlineAdvice)")
        }
        let host = call.head.fields.first(.host)
        var request = FetchRequest(method: .get, path: path, fields: call.originFields, clientHost: host)
        for pair in recording.vary ?? [] where pair.count == 2 {
            if pair[1] == Redaction.mark { return .leftOut("its answer depends on \(pair[0]), which no recording has") }
            request.fields.set(pair[0], pair[1])
        }
        request.prepareForRecording()
        request.fields.set(.cacheControl, "no-cache")
        request.urgency = FetchUrgency(.sizeCheck)
        let asksForChange = request.addConditions(of: recording)
        return await Self.outcome(recording, request, asksForChange, source, plan, comparing: names, on: loop)
    }

    private static func outcome(
        _ recording: Recording,
        _ request: FetchRequest,
        _ asksForChange: Bool,
        _ source: any FetchSource,
        _ plan: RecordingPlan,
        comparing names: [String],
        on loop: isolated EventLoop
    ) async -> DriftOutcome {
        let answer: WholeAnswer.Answer
        do throws(FetchError) {
            answer = try await WholeAnswer.fetch(request, from: source, atMost: plan.rules.maximumSize, on: loop)
        } catch {
            return .unreachable(error.told)
        }
        let status = answer.head.status
        if asksForChange, status == 304 { return .same }
        if status == 404 || status == 410, status != recording.status { return .gone(status) }
        // A server error or a 429 says nothing about the answer that the origin has.
        if status >= 500 || status == 429, status != recording.status {
            return .unreachable("the status is \(status)")
        }
        let drift = RecordingDrift(
            of: recording,
            answer.head,
            answer.content,
            plan.rules,
            plan.secrets,
            fields: names
        )
        return drift.isEmpty ? .same : .changed(drift)
    }
}

@available(*, unavailable) extension DriftCheck: Sendable {}

enum RecordedCall {
    /// The key of a call without content, and its path and query on the origin; nil if the request would be refused.
    static func key(of call: ServiceCall, _ rules: RecordingRules) -> (key: RecordingKey, path: String)? {
        let match = call.match
        guard (try? ServiceClient.admit(call.head, match.rest, match.route)) != nil, let rest = try? call.target()
        else {
            return nil
        }
        let path = match.route.path(rest, match.endpoint, behind: call.hidden)
        return (RecordingKey(call.head.method, path: path, call.originFields, content: [], rules), path)
    }
}

extension FetchRequest {
    /// Makes the request conditional on the recording's validator.
    /// - Returns: false if it has none.
    fileprivate mutating func addConditions(of recording: Recording) -> Bool {
        guard recording.status == 200 else { return false }
        if let tag = recording.fields.first(.etag), tag != Redaction.mark {
            fields.set(.ifNoneMatch, tag)
        } else if let date = recording.fields.first(.lastModified), date != Redaction.mark {
            fields.set(.ifModifiedSince, date)
        } else {
            return false
        }
        return true
    }
}

/// Collects the content of one answer, within limits of length and time. Loop-bound.
///
/// States: asking → ended; the end comes from the origin, from the limit, or from the timer.
final class WholeAnswer: EndSink {
    /// An answer that has ended.
    struct Answer: Sendable {
        let head: ResponseHead
        /// The content; nil if it is longer than the limit.
        let content: [UInt8]?
    }

    /// Nanoseconds after which an answer that does not end is given up.
    static let patience: UInt64 = 120_000_000_000

    private let limit: Int
    private var handle: (any FetchHandle)?
    private var head: ResponseHead?
    private var content: [UInt8] = []
    private var result: Result<Answer, FetchError>?
    /// True if the answer was given up before its end.
    private var isCut = false
    private var waiter: UnsafeContinuation<Void, Never>?

    private init(atMost limit: Int) { self.limit = limit }

    /// Asks a source, and waits for the end of its answer.
    /// - Parameter limit: the most bytes of content; a longer content is not read to its end.
    /// - Throws: `FetchError` if there is no answer, or none that ends in time.
    static func fetch(
        _ request: FetchRequest,
        from source: any FetchSource,
        atMost limit: Int,
        on loop: isolated EventLoop
    ) async throws(FetchError) -> Answer {
        let answer = WholeAnswer(atMost: limit)
        let handle = try await source.start(request, sink: answer, on: loop)
        let timer = LoopTimer(on: loop) { [weak answer] in answer?.giveUp() }
        timer.start(after: patience)
        defer { timer.cancel() }
        if answer.result == nil {
            answer.handle = handle
            await withUnsafeContinuation { answer.waiter = $0 }
        } else if answer.isCut {
            handle.cancel()
        }
        return try (answer.result ?? .failure(.cancelled)).get()
    }

    private func giveUp() {
        let detail = "the answer did not end within \(Self.patience / 1_000_000_000) s"
        end(.failure(.upstream(UpstreamError(.timeout(.firstByte), detail: detail))), cancels: true)
    }

    private func end(_ result: Result<Answer, FetchError>, cancels: Bool = false) {
        guard self.result == nil else { return }
        self.result = result
        isCut = cancels
        let (handle, waiter) = (handle, waiter)
        self.handle = nil
        self.waiter = nil
        content = []
        if cancels { handle?.cancel() }
        waiter?.resume()
    }

    // MARK: - FetchSink

    func received(interim head: ResponseHead) {}

    func received(_ head: ResponseHead, framing: BodyFraming) {
        self.head = head
        if case .length(let length) = framing, length > UInt64(limit) { tooLong(head) }
    }

    func received(_ bytes: UnsafeRawBufferPointer) -> TransferFlow {
        guard let head, result == nil else { return .continue }
        guard content.count + bytes.count <= limit else {
            tooLong(head)
            return .continue
        }
        content.append(contentsOf: bytes)
        return .continue
    }

    private func tooLong(_ head: ResponseHead) { end(.success(Answer(head: head, content: nil)), cancels: true) }

    func finished(trailers: Fields) {
        guard let head else { return end(.failure(.cancelled)) }
        end(.success(Answer(head: head, content: content)))
    }

    func failed(_ error: FetchError) { end(.failure(error)) }
}

@available(*, unavailable) extension WholeAnswer: Sendable {}
