// What the redirects on the way to a response say about storing it: under the URL that was asked for, it may not be
// stored or used for longer than each of them.

package import HTTPWire

/// What the redirects so far allow. A value; one for each request that is redirected.
package struct RedirectTerms: Sendable, Equatable {
    /// What becomes of a response that a redirect led to which says nothing of its own lifetime and is temporary (RFC
    /// 9110 section 15.4: the next one may lead elsewhere).
    package enum Temporary: Sendable {
        /// It is not stored.
        case unstored
        /// It is stored, and checked before each use, by its entity tag.
        case checked
    }

    private let temporary: Temporary
    private var isStorable = true
    private var needsCheck = false
    private var mustRevalidate = false
    /// Unix seconds; nil: no redirect sets an end.
    private var freshUntil: Int64?
    private var vary: [String] = []

    package init(temporary: Temporary = .unstored) { self.temporary = temporary }

    /// Takes a redirect into account.
    /// - Parameter fields: of the request that it answers.
    package mutating func note(_ redirect: ResponseHead, to fields: Fields, policy: CachePolicy, times: ResponseTimes) {
        vary += redirect.fields.all(.vary)
        guard policy.mode != .none, isStorable else { return }
        let isPermanent = redirect.status == 301 || redirect.status == 308
        var (policy, judged) = (policy, redirect)
        policy.minLength = 0
        // Library mode keeps what succeeds, and the redirect is a part of that.
        if policy.mode == .library { judged.status = 200 }
        switch Caching.decideStore(.get, fields, response: judged, policy: policy, times: times) {
        case .store: break
        case .refuse(let refusal):
            let isSilent = refusal == .noFreshnessAndNoValidator || refusal == .statusNotCacheable
            guard isSilent, !fields.contains(.cookie) || policy.cookies == .any, isPermanent || temporary == .checked
            else {
                isStorable = false
                return
            }
            if !isPermanent { needsCheck = true }
        }
        if policy.mode == .standard { limit(redirect, isPermanent: isPermanent, policy, times) }
    }

    private mutating func limit(
        _ redirect: ResponseHead,
        isPermanent: Bool,
        _ policy: CachePolicy,
        _ times: ResponseTimes
    ) {
        let control = ResponseControl(redirect.fields, policy: policy)
        if control.requiresValidation(status: redirect.status, policy: policy) { needsCheck = true }
        if control.staleProhibition(status: redirect.status, policy: policy) != nil { mustRevalidate = true }
        let lifetime = Caching.lifetime(
            control,
            status: redirect.status,
            fields: redirect.fields,
            responseTime: times.responseTime,
            policy: policy
        )
        // What moved for good, and says no more, leaves it to the answer how long that is fresh.
        if isPermanent || needsCheck, lifetime.source == .none || lifetime.source == .heuristic { return }
        let left = max(0, lifetime.seconds - Caching.initialAge(redirect.fields, times))
        freshUntil = min(freshUntil ?? .max, times.responseTime + left)
    }

    /// Has the answer to the last of the requests say what the redirects allow: so this store obeys it, and every
    /// other one behind it.
    package func apply(to answer: inout ResponseHead, policy: CachePolicy, times: ResponseTimes) {
        for names in vary { answer.fields.appendMember(.vary, names) }
        guard policy.mode != .none else { return }
        if !isStorable { return Caching.forbidStoring(&answer.fields, policy: policy) }
        guard policy.mode == .standard else { return }
        if needsCheck { Self.say("no-cache", in: &answer.fields, policy) }
        if mustRevalidate { Self.say("must-revalidate", in: &answer.fields, policy) }
        guard let freshUntil else { return }
        // The age makes up for what the redirect takes from the lifetime, whichever directive that comes from.
        let lifetime = Caching.lifetime(
            ResponseControl(answer.fields, policy: policy),
            status: answer.status,
            fields: answer.fields,
            responseTime: times.responseTime,
            policy: policy
        )
        let age = lifetime.seconds - max(0, freshUntil - times.responseTime)
        if age > Caching.initialAge(answer.fields, times) { answer.fields.set(.age, String(age)) }
    }

    /// Adds a directive to Cache-Control, and to the targeted fields that stand in for it.
    private static func say(_ directive: String, in fields: inout Fields, _ policy: CachePolicy) {
        fields.appendMember(.cacheControl, directive)
        for name in policy.targetedFields {
            if let value = fields.combined(name) { fields.set(name, "\(value), \(directive)") }
        }
    }
}

extension Caching {
    /// Has an answer say that it is not to be stored, so that this store obeys it, and every other one behind it.
    package static func forbidStoring(_ fields: inout Fields, policy: CachePolicy) {
        // `must-understand` would lift a `no-store` beside it.
        let lifts = ResponseControl(fields, policy: policy).directives.mustUnderstand
        let added = lifts ? "private, no-store" : "no-store"
        fields.appendMember(.cacheControl, added)
        for name in policy.targetedFields {
            if let value = fields.combined(name) { fields.set(name, "\(value), \(added)") }
        }
        // A private cache stores what is private.
        if lifts, !policy.isShared { fields.appendMember(.vary, "*") }
    }
}
