// A request that what is stored does not answer, on its way to the origin.

import CacheStore
import HTTPCaching

/// What the origin is to be asked, and what is known before.
struct Question {
    var ask: CacheAsk
    let source: any FetchSource
    /// The stored response that the request selects and that may not be used without asking.
    let stale: StoredResponse?
    /// The newest stored response of the key, whoever selects it.
    let newest: StoredHead?
    let way: Way
    /// When the question was asked, Unix seconds.
    var began = Int64.max
    /// The part to ask for; nil asks for the whole.
    var plan: PartPlan?
    /// A HEAD has failed, and this asks by GET whether the origin has.
    var hasHeadFailed = false
}
