// Answers from a stored variant that the request does not select, while nobody can be asked or the origin fails: better
// than nothing, since an operator has said so, and never what the request forbids.

import CacheStore
import Content
import EventLoop
import HTTPCaching
import HTTPWire

/// Sendable: what it holds is.
final class OtherVariants: Sendable {
    /// What the detail of Cache-Status says of such an answer.
    static let detail = CacheStatus.Detail.otherVariant.rawValue
    static let nothingStored = "nothing is stored for this request"
    /// Variants that an error names.
    private static let named = 4

    private let context: FetchContext
    private let answers: AnswerMaker

    init(_ context: FetchContext, _ answers: AnswerMaker) {
        self.context = context
        self.answers = answers
    }

    /// The answer in the place of the origin's failure (`cache.other_variant`); nil where `answer` is none, or where no
    /// variant may stand in for it.
    func answer(_ ask: CacheRequest, insteadOf answer: Answer, on loop: isolated EventLoop) async -> Answer? {
        guard ask.policy.otherVariant == .serve, !answer.isStandIn, let status = answer.cacheStatus, !status.hit,
            status.detail != CacheStatus.Detail.staleIfError.rawValue
        else { return nil }
        let failed = FailedCheck(errorStatus: answer.failure == nil ? status.forwardStatus : nil)
        let isFailure = answer.failure?.isOriginFailure ?? failed.errorStatus.map(ask.policy.countsAsFailure) ?? false
        guard isFailure, var other = await self.answer(ask, Failure(check: failed, status: status), on: loop) else {
            return nil
        }
        other.originTime = answer.originTime
        other.cause = answer.failure?.description ?? "the origin answered \(answer.head.status)"
        return other
    }

    /// A failure of the origin that a variant stands in for, with what Cache-Status says of it.
    struct Failure {
        let check: FailedCheck
        let status: CacheStatus
    }

    /// Nil where no variant may answer. Whoever stores the answer would take it for the one that the request selects.
    /// - Parameter failure: nil where the daemon is offline.
    func answer(_ ask: CacheRequest, _ failure: Failure? = nil, on loop: isolated EventLoop) async -> Answer? {
        guard ask.content == nil, var answer = await stored(ask, failure, on: loop) else { return nil }
        answer.head.fields.remove("CDN-Cache-Control")
        answer.head.fields.set(.cacheControl, "no-store")
        return answer
    }

    private func stored(_ ask: CacheRequest, _ failure: Failure?, on loop: isolated EventLoop) async -> Answer? {
        let variants = await context.store.variants(ask, on: loop)
        let now = context.clock.now()
        let other = Caching.otherVariant(
            among: variants.map(\.head),
            request: ask.request,
            policy: ask.policy,
            now: now,
            failed: failure?.check
        )
        guard let other else { return nil }
        let response = variants[other.place].usable(under: ask.policy)
        var status = failure?.status ?? CacheStatus(cacheName: answers.cacheName)
        // What did not go forward is a hit (RFC 9211 section 2.1).
        (status.hit, status.stored, status.detail) = (status.forward == nil, false, Self.detail)
        status.ttl = -Caching.staleness(response.head, policy: ask.policy, now: now)
        let age = Caching.age(response.head, now: now)
        guard other.isDecoded else { return answers.stored(ask, response, age: age, status, on: loop) }
        let head = Caching.decoded(response.head)
        if case .notModified(let fields) = Caching.answerConditional(request: ask.request, stored: head) {
            return Answer(head: ResponseHead(status: 304, fields: fields), age: age, cacheStatus: status)
        }
        var answer = Answer(
            head: ResponseHead(status: head.status, reason: head.reason, fields: head.fields),
            age: age,
            cacheStatus: status
        )
        guard ask.request.method != .head else { return answer }
        guard let coding = ContentCoding.codings(response.head.fields)?.first,
            let reader = DecodedBody.reader(of: response.body, coding, context.budget, on: loop)
        else { return nil }
        answer.reader = reader
        return answer
    }

    /// Why nothing stored answers a request, with the variants that there are: for the text of an error.
    func refusal(_ ask: CacheRequest, on loop: isolated EventLoop) async -> String {
        let heads = await context.store.heads(ask, on: loop).filter { !$0.varyNames.isEmpty }
        guard !heads.isEmpty else { return Self.nothingStored }
        let more = heads.count > Self.named ? ", and \(heads.count - Self.named) more" : ""
        let list = heads.prefix(Self.named).map(Self.description).joined(separator: "; ")
        return "nothing is stored that this request may get; stored are: \(list)\(more)"
    }

    /// Values of fields that do not negotiate may be secret.
    private static func description(_ head: StoredHead) -> String {
        var parts = [head.fields.first(.contentType) ?? "no media type"]
        if let coding = head.fields.first(.contentEncoding) { parts.append("coded in \(coding)") }
        if let language = head.fields.combined("content-language") { parts.append("in the language \(language)") }
        let asked = head.varyNames.map { name in
            guard name == "accept" || name == "accept-encoding" || name == "accept-language" else { return name }
            return "\(name) \(head.varyFields.combined(name).map { "'\($0.prefix(100))'" } ?? "absent")"
        }
        return "\(parts.joined(separator: ", ")) (varies by \(asked.joined(separator: ", ")))"
    }
}
