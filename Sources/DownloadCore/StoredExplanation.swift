// What the download core would do with a request, and why: everything that it looks at, and nothing changed.

package import CacheStore
package import EventLoop
package import HTTPCaching

/// What is known about one key, for one request.
package struct StoredExplanation: Sendable {
    /// One stored response, in the order of ``Explanation/variants``.
    package struct Place: Sendable, Equatable {
        /// The tiers that hold it, the fastest first.
        package var tiers: [StoreTier]
        /// A rule has invalidated it: it will never be used, and goes when it is met.
        package var isInvalidated: Bool

        package init(tiers: [StoreTier], isInvalidated: Bool) {
            self.tiers = tiers
            self.isInvalidated = isInvalidated
        }
    }

    /// What the client gets of the stored response that answers.
    package struct Reply: Sendable, Equatable {
        package var status: Int
        /// Of a 206, the bytes in it.
        package var parts: [Range<Int64>] = []
        /// The section behind another status than the stored one, such as `RFC 9110 section 14.2`.
        package var section: String?
    }

    package var key: CacheKey
    /// What the rules say; its variants are all that is stored, those that have been invalidated behind the others.
    package var rules: Explanation
    package var places: [Place]
    /// Nil where the origin is asked, or nobody answers.
    package var reply: Reply?
    /// Fetches of this key that are under way and that others may join.
    package var fills: Int
    /// The last answer could not be shared, so that requests do not wait for one another.
    package var isRememberedAsUncacheable: Bool
    /// What the origin was seen to do with HEAD and with conditions.
    package var habits: OriginHabits
}

extension DownloadCore {
    /// What ``answer(_:from:onInterim:on:)`` would decide now.
    package func explain(_ ask: CacheAsk, on loop: isolated EventLoop) async -> StoredExplanation {
        let now = clock.now()
        let stored = await store.all(ask, on: loop)
        let isValid = { (response: StoredResponse) in
            !self.generations.isInvalid(response.rules, validatedAt: response.head.validatedAt)
        }
        let usable = stored.filter { isValid($0.response) }
        let invalid = stored.filter { !isValid($0.response) }
        let explain = { (variants: [StoredHead]) in
            Caching.explain(
                request: ask.request,
                variants: variants,
                policy: ask.policy,
                now: now,
                isOffline: self.isOffline,
                habits: self.habits[ask.key]
            )
        }
        var rules = explain(usable.map(\.response.head))
        if rules.check != nil {
            let stale = rules.chosen.map { usable[$0].response }
            rules.check = Variants(ask, stale, usable.map(\.response)).check(habits: habits[ask.key])
        }
        // What has been invalidated is shown, and is never what decides.
        rules.variants += explain(invalid.map(\.response.head)).variants.map { variant in
            var variant = variant
            variant.isChosen = false
            return variant
        }
        return StoredExplanation(
            key: ask.key,
            rules: rules,
            places: usable.map { StoredExplanation.Place(tiers: $0.tiers, isInvalidated: false) }
                + invalid.map { StoredExplanation.Place(tiers: $0.tiers, isInvalidated: true) },
            reply: reply(ask, usable.map(\.response), rules),
            fills: fills.count(of: ask.key),
            isRememberedAsUncacheable: uncacheable.contains(ask.key, now: now),
            habits: habits[ask.key]
        )
    }

    /// What ``stored(_:_:age:_:on:)`` makes of it.
    private func reply(_ ask: CacheAsk, _ usable: [StoredResponse], _ rules: Explanation) -> StoredExplanation.Reply? {
        guard let chosen = rules.chosen else { return nil }
        switch rules.decision {
        case .fresh, .staleAllowed: break
        default: return nil
        }
        let response = usable[chosen]
        if case .notModified = Caching.answerConditional(request: ask.request, stored: response.head) {
            return StoredExplanation.Reply(status: 304, section: "RFC 9111 section 4.3.2")
        }
        let whole = StoredExplanation.Reply(status: response.head.status)
        guard let length = response.body.knownLength else { return whole }
        switch Caching.rangeAnswer(request: ask.request, stored: response.head, length: length) {
        case .whole: return whole
        case .parts(let parts):
            return StoredExplanation.Reply(status: 206, parts: parts, section: "RFC 9110 section 14.2")
        case .unsatisfiable: return StoredExplanation.Reply(status: 416, section: "RFC 9110 section 15.5.17")
        }
    }
}
