// Explains what the download core would do with a request, and why. It makes the same decisions as an answer does, and
// changes nothing.

package import CacheStore
package import EventLoop
package import HTTPCaching
package import HTTPWire

/// The explanation of one request by what is known about its key.
package struct StoredExplanation: Sendable {
    /// One stored response, in the order of ``Explanation/variants``.
    package struct Location: Sendable, Equatable {
        /// The tiers that have the response, the fastest first.
        package var tiers: [StoreTier]
        /// Whether a rule has invalidated the response: it will never be used, and is removed when it is found.
        package var isInvalidated: Bool
        /// The stored parts, if the response is incomplete.
        package var parts: Parts?

        package init(tiers: [StoreTier], isInvalidated: Bool) {
            self.tiers = tiers
            self.isInvalidated = isInvalidated
        }
    }

    /// A representation of which only parts are stored.
    package struct Parts: Sendable, Equatable {
        package var stored: [Range<Int64>]
        /// The length of the whole body, in bytes.
        package var length: Int64
    }

    /// The part of the stored response that the client gets.
    package struct Reply: Sendable, Equatable {
        package var status: Int
        /// The ranges of bytes in a 206; empty for another status.
        package var parts: [Range<Int64>] = []
        /// The section of the RFC that gives another status than the stored one, such as `RFC 9110 section 14.2`.
        package var section: String?
    }

    /// The treatment of a request for which nothing is stored as a whole.
    package enum PartOutcome: Sendable, Equatable {
        case answer
        /// The origin is asked with this Range and these conditions, for this reason in Cache-Status.
        case ask(Fields, ForwardReason)
        case refuse
    }

    package var key: CacheKey
    /// The explanation by the rules; its variants are all that is stored, with the invalidated ones last.
    package var rules: Explanation
    package var locations: [Location]
    /// The reply from the store; nil if the answer would come from the origin, or there is none.
    package var reply: Reply?
    /// The effect of stored parts, or of the request's own range, on the decision; nil if they have none.
    package var part: PartOutcome?
    /// The number of fetches of this key under way that other requests may join.
    package var fills: Int
    /// Whether the last answer could not be shared, so that requests do not wait for one another.
    package var isRememberedAsUncacheable: Bool
    /// The observed behaviour of the origin with HEAD and with conditions.
    package var capabilities: OriginCapabilities
    /// The reason why the last answer was not stored; nil if it was, or if there has been none since the start.
    package var unstored: UnstoredAnswer?
    /// The time until which no check is made because the last one failed, Unix seconds; nil if the next one is not
    /// delayed.
    package var checkPause: Int64?
    /// The placeholder that answers while the origin is slow, and whether it would answer this request.
    package var placeholder: Standing?
    /// The fallback that answers if the origin fails.
    package var fallback: Standing?
    /// Whether the answering response is a variant that the request does not select, because the origin may not be
    /// contacted.
    package var isOtherVariant = false
    /// The index of the variant that answers if the origin fails although the request does not select it; nil for none.
    package var otherVariantOnFailure: Int?

    /// A file that replaces an answer.
    package struct Standing: Sendable, Equatable {
        package var path: String
        package var status: Int
        /// The time that it waits for the origin, in nanoseconds; zero for a fallback.
        package var placeholderDelay: UInt64 = 0
        /// Whether the file can answer this request at all.
        package var mayAnswer: Bool
    }
}

extension Lookup {
    /// Explains what ``DownloadCore/answer(_:from:onInterim:instead:on:)`` would decide now.
    package func explain(_ ask: CacheRequest, on loop: isolated EventLoop) async -> StoredExplanation {
        let now = context.clock.now()
        let stored = await context.store.all(ask, on: loop)
        let usable = stored.compactMap { found in
            context.store.judged(found.response).map { (response: $0, tiers: found.tiers) }
        }
        let invalid = stored.filter { context.store.judged($0.response) == nil }
        let explain = { (variants: [StoredHead]) in
            Caching.explain(
                request: ask.request,
                variants: variants,
                policy: ask.policy,
                now: now,
                isOffline: self.context.isOffline,
                capabilities: self.context.notes.capabilities[ask.key, now],
                failedCheck: self.context.notes.failedChecks.check(ask.key, now: now)
            )
        }
        var rules = explain(usable.map(\.response.head))
        if rules.check != nil {
            let stale = rules.chosen.map { usable[$0].response }
            rules.check = RevalidationCandidates(ask, stale, usable.map(\.response)).check(
                capabilities: context.notes.capabilities[ask.key, now]
            )
        }
        let other =
            context.isOffline && rules.chosen == nil && ask.content == nil
            ? Caching.otherVariant(
                among: usable.map(\.response.head),
                request: ask.request,
                policy: ask.policy,
                now: now
            ) : nil
        if let other {
            (rules.chosen, rules.decision) = (other.index, other.decision)
            rules.variants[other.index].isChosen = true
        }
        let partials = context.partials.peek(ask.key).filter { context.invalidations.isUnchanged($0.token) }
        let isChosenGood = rules.chosen.map { rules.variants[$0].ifError.isAllowed } ?? false
        let onFailure =
            context.isOffline || isChosenGood || ask.content != nil
            ? nil
            : Caching.otherVariant(
                among: usable.map(\.response.head),
                request: ask.request,
                policy: ask.policy,
                now: now,
                failed: FailedCheck(errorStatus: nil)
            )
        let (reply, part) = reply(ask, usable.map(\.response), partials, rules)
        let isOpen = reply == nil && !rules.onlyIfCached && part != .refuse
        rules.add(explain(partials.map(\.head)), decides: rules.decision == nil && part != nil)
        // Invalidated variants are listed, but never decide.
        rules.variants += explain(invalid.map(\.response.head)).variants.map { variant in
            var variant = variant
            variant.isChosen = false
            return variant
        }
        var explanation = StoredExplanation(
            key: ask.key,
            rules: rules,
            locations: usable.map { StoredExplanation.Location(tiers: $0.tiers, isInvalidated: false) }
                + partials.map { StoredExplanation.Location($0) }
                + invalid.map { StoredExplanation.Location(tiers: $0.tiers, isInvalidated: true) },
            reply: reply,
            part: part,
            fills: context.inFlight.count(of: ask.key),
            isRememberedAsUncacheable: context.notes.isUncacheable(ask),
            capabilities: context.notes.capabilities[ask.key, now]
        )
        explanation.isOtherVariant = other != nil
        explanation.otherVariantOnFailure = isOpen ? onFailure?.index : nil
        explanation.unstored = unstored(ask)
        explanation.checkPause = context.notes.failedChecks.pause(ask.key, now: now)
        explanation.placeholder = ask.phases?.placeholder.map { file in
            // A placeholder answers only if no stored response could answer or be validated.
            let hasNothing = isOpen && part == nil && explanation.rules.chosen == nil && !context.isOffline
            return StoredExplanation.Standing(
                path: file.path,
                status: file.status,
                placeholderDelay: ask.phases?.placeholderDelay ?? 0,
                mayAnswer: hasNothing && context.placeholderDelay(ask) != nil
            )
        }
        explanation.fallback = ask.phases?.fallback.map { file in
            StoredExplanation.Standing(path: file.path, status: file.status, mayAnswer: isOpen)
        }
        return explanation
    }

    /// The reason why the answer would not be stored; a prohibition by the request itself comes first.
    private func unstored(_ ask: CacheRequest) -> UnstoredAnswer? {
        guard CacheControl(request: ask.request.fields).noStore else { return context.notes.refusals.last(ask.key) }
        let refusal = StoreRefusal.requestNoStore
        return UnstoredAnswer(reason: refusal.rawValue, section: refusal.section, time: context.clock.now())
    }

    /// The reply that ``stored(_:_:age:_:on:)`` or the parts would give.
    private func reply(
        _ ask: CacheRequest,
        _ usable: [StoredResponse],
        _ partials: [IncompleteResponse],
        _ rules: Explanation
    ) -> (StoredExplanation.Reply?, StoredExplanation.PartOutcome?) {
        guard let chosen = rules.chosen else {
            switch partStep(ask, among: partials, hasOtherVariants: !usable.isEmpty) {
            case .none: return (nil, nil)
            case .refuse: return (nil, .refuse)
            case .use(let partial, _, _): return (reply(ask, partial.head, partial.extents.length), .answer)
            case .ask(let forwardReason, let plan):
                let isAlone = plan.needsKeeping && CacheControl(request: ask.request.fields).noStore
                if context.isOffline || isAlone || context.isUnstored(plan, ask) { return (nil, nil) }
                var fields = ask.request.fields
                plan.apply(to: &fields)
                let own: [KnownField] = [.range, .ifRange, .ifNoneMatch, .ifModifiedSince]
                let lines = own.compactMap { field in fields.first(field).map { (field.name, $0) } }
                return (nil, .ask(Fields(lines), forwardReason))
            }
        }
        switch rules.decision {
        case .fresh, .staleAllowed: return (reply(ask, usable[chosen].head, usable[chosen].body.knownLength), nil)
        default: return (nil, nil)
        }
    }

    private func reply(_ ask: CacheRequest, _ head: StoredHead, _ length: Int64?) -> StoredExplanation.Reply {
        if case .notModified = Caching.answerConditional(request: ask.request, stored: head) {
            return StoredExplanation.Reply(status: 304, section: "RFC 9111 section 4.3.2")
        }
        let whole = StoredExplanation.Reply(status: head.status)
        guard let length else { return whole }
        switch Caching.rangeAnswer(request: ask.request, stored: head, length: length) {
        case .whole: return whole
        case .parts(let parts):
            return StoredExplanation.Reply(status: 206, parts: parts, section: "RFC 9110 section 14.2")
        case .unsatisfiable: return StoredExplanation.Reply(status: 416, section: "RFC 9110 section 15.5.17")
        }
    }
}

extension StoredExplanation.Location {
    fileprivate init(_ partial: IncompleteResponse) {
        self.init(tiers: [partial.extents.usesFile ? .disk : .memory], isInvalidated: false)
        parts = StoredExplanation.Parts(stored: partial.extents.stored, length: partial.extents.length)
    }
}

extension Explanation {
    /// Appends the rulings on incomplete responses to those on complete ones.
    /// - Parameter decides: whether no complete response answers, so that the incomplete one which the request selects
    ///   decides.
    fileprivate mutating func add(_ parts: Explanation, decides: Bool) {
        let first = variants.count
        variants += parts.variants.map { variant in
            var variant = variant
            variant.isChosen = decides && variant.isChosen
            return variant
        }
        guard decides, let chosen = parts.chosen else { return }
        self.chosen = first + chosen
        decision = parts.decision
        check = nil
    }
}
