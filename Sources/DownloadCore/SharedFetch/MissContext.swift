// A request that no stored response answers, on its way to the origin.

import CacheStore
import HTTPCaching

/// A request for the origin, and the search result that led to it; loop-bound. One object, which each function that waits
/// for the origin refers to.
final class MissContext {
    let ask: CacheRequest
    let source: any FetchSource
    /// The stored response that the request selects and that may not be used without asking.
    let stale: StoredResponse?
    /// The newest stored response of the key, whether or not this request selects it.
    let newest: StoredHead?
    let forwardReason: ForwardReason
    /// When the request arrived, Unix seconds.
    let began: Int64
    /// The part to ask for; nil asks for the whole.
    let plan: RangeFetchPlan?
    /// A HEAD has failed, and this asks by GET whether the origin has.
    let hasHeadFailed: Bool

    init(
        ask: CacheRequest,
        source: any FetchSource,
        stale: StoredResponse?,
        newest: StoredHead?,
        forwardReason: ForwardReason,
        began: Int64 = .max,
        plan: RangeFetchPlan? = nil,
        hasHeadFailed: Bool = false
    ) {
        self.ask = ask
        self.source = source
        self.stale = stale
        self.newest = newest
        self.forwardReason = forwardReason
        self.began = began
        self.plan = plan
        self.hasHeadFailed = hasHeadFailed
    }

    /// The same miss of another question.
    func asking(_ ask: CacheRequest, hasHeadFailed: Bool) -> MissContext {
        MissContext(
            ask: ask,
            source: source,
            stale: stale,
            newest: newest,
            forwardReason: forwardReason,
            began: began,
            plan: plan,
            hasHeadFailed: hasHeadFailed
        )
    }
}

@available(*, unavailable) extension MissContext: Sendable {}
