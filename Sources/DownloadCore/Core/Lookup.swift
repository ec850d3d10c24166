// Finds what is stored for a request, whole, in parts or as another variant, and decides whether it answers: as it is,
// after a validation, or not at all.

import CacheStore
import Content
import EventLoop
import HTTPCaching
import HTTPWire

/// Finds what is stored for a request. Sendable: all members are.
package final class Lookup: Sendable {
    let context: FetchContext
    let answers: AnswerMaker
    private let seeds: SeedAnswers
    let others: OtherVariants

    init(_ context: FetchContext, _ answers: AnswerMaker, _ seeds: SeedAnswers) {
        self.context = context
        self.answers = answers
        self.seeds = seeds
        others = OtherVariants(context, answers)
    }

    /// The search result and the step that follows from it.
    /// - Parameter began: the time of the request's arrival, Unix seconds.
    // A separate function, so that a search that waits for the origin has none of its variables in its frame.
    @inline(never) func step(
        for ask: CacheRequest,
        _ source: any FetchSource,
        since began: Int64,
        on loop: isolated EventLoop
    ) async -> Step {
        var found = await context.store.find(ask, on: loop)
        if found.response == nil, let seed = ask.seed, await seeds.imports(ask, seed) {
            found = await context.store.find(ask, on: loop)
        }
        let parts = partialStep(ask, source, found, since: began, on: loop)
        if asksOthers(parts, found, source), let answer = await others.answer(ask, on: loop) { return .answer(answer) }
        return parts ?? decide(ask, source, found, since: began, on: loop)
    }

    /// Whether another variant may answer, because nothing selected is stored and the origin may not be contacted.
    @inline(never) private func asksOthers(
        _ parts: Step?,
        _ found: TieredStore.Found,
        _ source: any FetchSource
    ) -> Bool {
        if case .answer? = parts { return false }
        return found.newest != nil && found.response == nil && context.isOffline && source.opensSockets
    }

    enum Step {
        case answer(Answer)
        case refreshBehind(Answer, StoredResponse)
        case ask(MissContext)
    }

    @inline(never) private func decide(
        _ ask: CacheRequest,
        _ source: any FetchSource,
        _ found: TieredStore.Found,
        since began: Int64,
        on loop: isolated EventLoop
    ) -> Step {
        func miss(_ stale: StoredResponse?, _ forwardReason: ForwardReason) -> Step {
            .ask(
                MissContext(
                    ask: ask,
                    source: source,
                    stale: stale,
                    newest: found.newest,
                    forwardReason: forwardReason,
                    began: began
                )
            )
        }
        guard let response = found.response else {
            if Caching.onlyIfCached(ask.request) {
                return .answer(answers.gatewayTimeout("nothing is stored for this request"))
            }
            return miss(nil, ForwardReason(found.newest == nil ? .uriMiss : .varyMiss))
        }
        let decision = Caching.lookup(
            request: ask.request,
            stored: response.head,
            policy: ask.policy,
            now: context.clock.now(),
            isOffline: context.isOffline,
            failedCheck: context.notes.failedChecks.check(ask.key, now: context.clock.now())
        )
        switch decision {
        case .fresh(let age, let ttl):
            let status = CacheStatus(cacheName: answers.cacheName, hit: true, ttl: ttl, detail: found.tier.rawValue)
            return .answer(answers.stored(ask, response, age: age, status, on: loop))
        case .staleAllowed(let age, let by, let allowance):
            let status = CacheStatus(cacheName: answers.cacheName, hit: true, ttl: -by, detail: allowance.rawValue)
            let answer = answers.stored(ask, response, age: age, status, on: loop)
            return allowance == .whileRevalidate ? .refreshBehind(answer, response) : .answer(answer)
        case .onlyIfCachedMiss(let reason):
            return .answer(answers.gatewayTimeout("the stored response needs a check (\(reason.rawValue))"))
        case .mismatch:
            if Caching.onlyIfCached(ask.request) {
                return .answer(answers.gatewayTimeout("nothing is stored for this request"))
            }
            return miss(nil, ForwardReason(decision))
        case .stale: return miss(response, ForwardReason(decision))
        }
    }
}

// MARK: - Answers from an incomplete response

extension Lookup {
    /// The next step for a request that no complete response answers; nil if no incomplete one matters.
    /// - Parameter stored: the complete stored responses of the key.
    @inline(never) func partialStep(
        _ ask: CacheRequest,
        _ source: any FetchSource,
        _ stored: TieredStore.Found,
        since began: Int64,
        on loop: isolated EventLoop
    ) -> Step? {
        if stored.response != nil { return nil }
        // Ranges are defined for GET alone (RFC 9110 section 14.2).
        if ask.content != nil { return nil }
        // A part of a document cannot be mapped.
        if ask.policy.mapping != nil { return nil }
        let found = context.partials.variants(ask.key).filter { partial in
            if context.invalidations.isUnchanged(partial.token) { return true }
            context.partials.remove(partial)
            return false
        }
        switch partStep(ask, among: found, hasOtherVariants: stored.newest != nil) {
        case .none: return nil
        case .refuse(let reason): return .answer(answers.gatewayTimeout(reason))
        case .use(let partial, let status, let age):
            return .answer(IncompleteResponseReader(context, ask, source, partial).make(status, age: age, on: loop))
        case .ask(let forwardReason, let plan):
            return .ask(
                MissContext(
                    ask: ask,
                    source: source,
                    stale: nil,
                    newest: stored.newest,
                    forwardReason: forwardReason,
                    began: began,
                    plan: plan
                )
            )
        }
    }

    /// The part that incomplete responses have in the answer.
    enum PartStep {
        case none
        /// The answer is 504 to `only-if-cached`, for this reason.
        case refuse(String)
        /// All bytes that the request wants are stored or arriving.
        case use(IncompleteResponse, CacheStatus, age: Int64)
        case ask(ForwardReason, RangeFetchPlan)
    }

    /// Decides what incomplete responses do for a request, and changes nothing.
    /// - Parameter found: the incomplete responses of the key that have not been invalidated.
    func partStep(_ ask: CacheRequest, among found: [IncompleteResponse], hasOtherVariants: Bool) -> PartStep {
        // Range applies to GET alone, and an incomplete response answers nothing but ranges (RFC 9111 section 3.3).
        guard ask.request.method == .get else { return .none }
        if let chosen = Caching.select(from: found.map(\.head), request: ask.request, policy: ask.policy) {
            let partial = found[chosen]
            let decision = Caching.lookup(
                request: ask.request,
                stored: partial.head,
                policy: ask.policy,
                now: context.clock.now(),
                isOffline: context.isOffline,
                failedCheck: context.notes.failedChecks.check(ask.key, now: context.clock.now())
            )
            switch decision {
            case .mismatch: break
            case .onlyIfCachedMiss(let reason):
                return .refuse("the stored parts need a check (\(reason.rawValue))")
            case .fresh(let age, let ttl): return usable(ask, partial, age: age, ttl: ttl)
            case .staleAllowed(let age, let by, let allowance) where allowance != .whileRevalidate:
                return usable(ask, partial, age: age, ttl: -by, allowance: allowance)
            // A refresh in the background fetches a complete response, so an incomplete one is
            // validated before it answers.
            case .staleAllowed: return check(ask, partial, ForwardReason(.stale))
            case .stale: return check(ask, partial, ForwardReason(decision))
            }
        }
        guard let ranges = ByteRanges.parse(ask.request.fields), !Caching.onlyIfCached(ask.request) else {
            return .none
        }
        let plan = RangeFetchPlan(partial: nil, asked: ranges.specs[0], isOwn: ranges.specs.count == 1)
        return .ask(ForwardReason(hasOtherVariants ? .varyMiss : .uriMiss), plan)
    }

    private func usable(
        _ ask: CacheRequest,
        _ partial: IncompleteResponse,
        age: Int64,
        ttl: Int64,
        allowance: StaleAllowance? = nil
    ) -> PartStep {
        let tier: CacheStatus.Detail = partial.extents.usesFile ? .disk : .memory
        let detail = allowance?.rawValue ?? tier.rawValue
        let status = CacheStatus(cacheName: answers.cacheName, hit: true, ttl: ttl, detail: detail)
        guard let hole = IncompleteResponseReader.missing(ask, partial) else { return .use(partial, status, age: age) }
        if Caching.onlyIfCached(ask.request) { return .refuse("only parts of it are stored") }
        return .ask(ForwardReason(.partial), RangeFetchPlan(partial: partial, asked: hole.spec))
    }

    private func check(_ ask: CacheRequest, _ partial: IncompleteResponse, _ forwardReason: ForwardReason) -> PartStep {
        let wanted = IncompleteResponseReader.wanted(ask, partial)
        if let hole = partial.extents.firstMissing(in: wanted) {
            return .ask(
                ForwardReason(.partial, forwardReason.reason),
                RangeFetchPlan(partial: partial, asked: hole.spec)
            )
        }
        let specs = ByteRanges.parse(ask.request.fields)?.specs ?? []
        // The range lies beyond the stored length: the client's own range is sent, so that the origin's
        // answer shows a changed length.
        let asked = wanted.first?.spec ?? specs.first ?? .from(0, through: nil)
        let isOwn = specs.count == 1 && wanted.count <= 1
        return .ask(forwardReason, RangeFetchPlan(partial: partial, asked: asked, isCheck: true, isOwn: isOwn))
    }
}

extension Range<Int64> {
    /// The member of a Range field that requests just these bytes; the range is not empty.
    var spec: ByteRanges.Spec { .from(lowerBound, through: upperBound - 1) }
}

// MARK: - Answers from another variant

/// Finds variants that a request does not select. Sendable: all members are.
final class OtherVariants: Sendable {
    /// The detail in Cache-Status of an answer from another variant.
    static let detail = CacheStatus.Detail.otherVariant.rawValue
    static let nothingStored = "nothing is stored for this request"
    /// The largest number of variants that an error names.
    private static let named = 4

    private let context: FetchContext
    private let answers: AnswerMaker

    init(_ context: FetchContext, _ answers: AnswerMaker) {
        self.context = context
        self.answers = answers
    }

    /// The answer from another variant in place of the origin's failure (`cache.other_variant`); nil if `answer` is no
    /// failure, or if no variant may replace it.
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

    /// A failure of the origin that a variant replaces, with its members of Cache-Status.
    struct Failure {
        let check: FailedCheck
        let status: CacheStatus
    }

    /// The answer from another variant; nil if none may answer. It is never stored, because it would count as the
    /// variant that the request selects.
    /// - Parameter failure: the failure of the origin; nil if the daemon is offline.
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
        let response = variants[other.index].usable(under: ask.policy)
        var status = failure?.status ?? CacheStatus(cacheName: answers.cacheName)
        // A request that was not forwarded is a hit (RFC 9211 section 2.1).
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

    /// The reason why no stored response answers a request, with the stored variants, for the text of an error.
    func refusal(_ ask: CacheRequest, on loop: isolated EventLoop) async -> String {
        let heads = await context.store.heads(ask, on: loop).filter { !$0.varyNames.isEmpty }
        guard !heads.isEmpty else { return Self.nothingStored }
        let more = heads.count > Self.named ? ", and \(heads.count - Self.named) more" : ""
        let list = heads.prefix(Self.named).map(Self.description).joined(separator: "; ")
        return "nothing is stored that this request may get; stored are: \(list)\(more)"
    }

    /// Only fields of content negotiation are shown, because others may be secret.
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
