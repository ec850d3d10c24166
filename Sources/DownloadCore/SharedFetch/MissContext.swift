// A request that no stored response answers, on its way to the origin.

import CacheStore
import HTTPCaching

/// A request for the origin, and the search result that led to it.
struct MissContext {
    var ask: CacheRequest
    let source: any FetchSource
    /// The stored response that the request selects and that may not be used without asking.
    let stale: StoredResponse?
    /// The newest stored response of the key, whether or not this request selects it.
    let newest: StoredHead?
    let forwardReason: ForwardReason
    /// When the request arrived, Unix seconds.
    var began = Int64.max
    /// The part to ask for; nil asks for the whole.
    var plan: RangeFetchPlan?
    /// A HEAD has failed, and this asks by GET whether the origin has.
    var hasHeadFailed = false
}
