// The stored responses of one key that a check may confirm, and what the answer to the check does to them.

internal import CacheStore
internal import EventLoop
internal import HTTPCaching
internal import HTTPWire

/// What a check may confirm, for one request.
struct Variants {
    let ask: CacheAsk
    /// The response that the request selects; nil on a Vary miss.
    let stale: StoredResponse?
    /// Those that the request selects, the stale one first, then those of other requests that a strong tag can name: a
    /// weak one may stand for another coding of the same thing (RFC 9111 section 4.3.4).
    let all: [StoredResponse]

    init(_ ask: CacheAsk, _ stale: StoredResponse?, _ stored: [StoredResponse]) {
        self.ask = ask
        self.stale = stale
        let others = stored.filter { other in stale.map { !other.isSameVariant(as: $0) } ?? true }
        // What is said to one user stays out of what is said about the others.
        let isOwn = ask.request.fields.contains(.authorization)
        let selected = others.filter { Caching.selects(stored: $0.head, request: ask.request) }
        let named = others.filter {
            !isOwn && !Caching.selects(stored: $0.head, request: ask.request)
                && $0.head.fields.first(.etag).map { !$0.hasPrefix("W/") } ?? false
        }
        all = (stale.map { [$0] } ?? []) + selected + named
    }

    /// The one that an origin most probably means.
    var likeliest: StoredResponse? { all.first }

    func isSelected(_ response: StoredResponse) -> Bool {
        response === stale || Caching.selects(stored: response.head, request: ask.request)
    }

    /// - Parameter byGet: a HEAD would not do.
    func check(habits: OriginHabits, byGet: Bool = false) -> Revalidation? {
        // What a POST has brought is brought again: it has neither HEAD nor conditions.
        if ask.content != nil { return nil }
        return Caching.revalidation(
            request: ask.request,
            stored: stale?.head,
            variants: all.filter { $0 !== stale }.map(\.head),
            policy: ask.policy,
            habits: habits,
            forceConditional: byGet
        )
    }
}

/// The answer to a check at work on what is stored.
struct VariantUpdate {
    let context: FetchContext
    let known: Variants
    let token: GenerationToken
    let answer: ResponseHead
    /// Of the answer.
    let times: ResponseTimes

    init(
        _ context: FetchContext,
        _ known: Variants,
        _ token: GenerationToken,
        _ answer: ResponseHead,
        _ times: ResponseTimes
    ) {
        self.context = context
        self.known = known
        self.token = token
        self.answer = answer
        self.times = times
    }

    private var ask: CacheAsk { known.ask }

    /// Updates what a 304 is about (RFC 9111 section 4.3.4).
    /// - Returns: the response to answer with; nil where the 304 is about nothing that is stored.
    func by304(_ check: Revalidation, on loop: isolated EventLoop) async -> StoredResponse? {
        let updated = Caching.variantsUpdated(
            by: answer.fields,
            among: known.all.map(\.head),
            asked: check
        ).map { known.all[$0] }
        var chosen: StoredResponse?
        var other: StoredResponse?
        for response in updated {
            let isSelected = known.isSelected(response)
            let fresh = await freshen(response, freshened(response, check, isSelected: isSelected), on: loop)
            if isSelected, chosen == nil || response === known.stale { chosen = fresh }
            other = other ?? fresh
        }
        if chosen != nil { return chosen }
        guard let other else { return nil }
        // Another request's response is this one's, too: stored once more under what selects it now.
        var head = freshened(other, check, isSelected: true)
        head.varyFields = head.selectingFields(of: ask.request)
        return await freshen(other, head, isOther: true, on: loop)
    }

    /// Updates, or makes stale, what the answer to a HEAD is about (RFC 9111 section 4.3.5): each stored response that the
    /// request selects.
    /// - Returns: a response that is current; nil where none was shown to be.
    func byHead(_ check: Revalidation?, on loop: isolated EventLoop) async -> StoredResponse? {
        if answer.status == 304 {
            guard let check else { return nil }
            return await by304(check, on: loop)
        }
        var chosen: StoredResponse?
        for response in known.all where known.isSelected(response) {
            let verdict = Caching.judgeHead(
                stored: response.head,
                headAnswer: answer,
                times: times,
                request: ask.request,
                policy: ask.policy
            )
            switch verdict {
            case .unchanged(let head):
                let fresh = await freshen(response, head, on: loop)
                chosen = chosen ?? fresh
            case .changed(.etag), .changed(.lastModified), .changed(.length):
                // A check keeps the one it is for: should the fetch fail, it may still be answered.
                if check == nil || response !== known.stale { await outdate(response, check, on: loop) }
            case .gone where check == nil && ask.policy.gone == .evict: await outdate(response, check, on: loop)
            case .changed, .gone, .unsupported, .failed: break
            }
        }
        return chosen
    }

    private func outdate(_ response: StoredResponse, _ check: Revalidation?, on loop: isolated EventLoop) async {
        // What is on its way to the disk must not come after this; a check's own fetch is to be stored.
        if check == nil { context.generations.bump(response.key) }
        await context.store.outdate(response, ask, since: times.responseTime, on: loop)
    }

    private func freshened(_ response: StoredResponse, _ check: Revalidation, isSelected: Bool) -> StoredHead {
        Caching.freshened(
            stored: response.head,
            by: answer,
            times: times,
            request: isSelected ? ask.request : nil,
            policy: ask.policy,
            byHead: check.kind == .head
        )
    }

    private func freshen(
        _ response: StoredResponse,
        _ head: StoredHead,
        isOther: Bool = false,
        on loop: isolated EventLoop
    ) async -> StoredResponse {
        await context.store.freshen(response, head: head, ask: ask, token: token, isOther: isOther, on: loop)
    }
}
