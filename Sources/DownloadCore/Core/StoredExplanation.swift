// What the download core would do with a request, and why. It makes the same decisions as an answer
// does, and changes nothing.

package import CacheStore
package import EventLoop
package import HTTPCaching
package import HTTPWire

/// What is known about one key, for one request.
package struct StoredExplanation: Sendable {
    /// One stored response, in the order of ``Explanation/variants``.
    package struct Place: Sendable, Equatable {
        /// The tiers that hold it, the fastest first.
        package var tiers: [StoreTier]
        /// A rule has invalidated it: it will never be used, and goes when it is met.
        package var isInvalidated: Bool
        /// The stored parts of an incomplete response.
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

    /// What the client gets of the stored response that answers.
    package struct Reply: Sendable, Equatable {
        package var status: Int
        /// The ranges of bytes in a 206.
        package var parts: [Range<Int64>] = []
        /// The section behind another status than the stored one, such as `RFC 9110 section 14.2`.
        package var section: String?
    }

    /// What becomes of a request for which nothing whole is stored.
    package enum PartOutcome: Sendable, Equatable {
        case answer
        /// With this Range and these conditions; `ForwardReason` is what Cache-Status says.
        case ask(Fields, ForwardReason)
        case refuse
    }

    package var key: CacheKey
    /// What the rules say; its variants are all that is stored, those that have been invalidated behind the others.
    package var rules: Explanation
    package var places: [Place]
    /// The reply from the store; nil if the answer would come from the origin, or there is none.
    package var reply: Reply?
    /// What stored parts, or the request's own range, make of the decision; nil where they have nothing to do with it.
    package var part: PartOutcome?
    /// Fetches of this key that are under way and that others may join.
    package var fills: Int
    /// The last answer could not be shared, so that requests do not wait for one another.
    package var isRememberedAsUncacheable: Bool
    /// What the origin was seen to do with HEAD and with conditions.
    package var capabilities: OriginCapabilities
    /// Why the last answer was not stored; nil where it was, or where none has come since the start.
    package var unstored: UnstoredAnswer?
    /// Until when no check is made, since the last one failed, Unix seconds; nil where the next one is not held back.
    package var checkPause: Int64?
    /// What answers while the origin takes its time, and whether it would for this request.
    package var placeholder: Standing?
    /// What answers where the origin fails.
    package var fallback: Standing?
    /// The request does not select what answers it: nobody can be asked for what it would select.
    package var isOtherVariant = false
    /// Among the variants, the one that answers where the origin fails although the request does not select it.
    package var otherVariantOnFailure: Int?

    /// A file that stands in for an answer.
    package struct Standing: Sendable, Equatable {
        package var path: String
        package var status: Int
        /// Nanoseconds that it waits for the origin; zero for a fallback.
        package var placeholderDelay: UInt64 = 0
        /// Whether the placeholder can answer this request at all.
        package var mayAnswer: Bool
    }
}

extension Lookup {
    /// What ``DownloadCore/answer(_:from:onInterim:instead:on:)`` would decide now.
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
            (rules.chosen, rules.decision) = (other.place, other.decision)
            rules.variants[other.place].isChosen = true
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
            places: usable.map { StoredExplanation.Place(tiers: $0.tiers, isInvalidated: false) }
                + partials.map { StoredExplanation.Place($0) }
                + invalid.map { StoredExplanation.Place(tiers: $0.tiers, isInvalidated: true) },
            reply: reply,
            part: part,
            fills: context.inFlight.count(of: ask.key),
            isRememberedAsUncacheable: context.notes.isUncacheable(ask),
            capabilities: context.notes.capabilities[ask.key, now]
        )
        explanation.isOtherVariant = other != nil
        explanation.otherVariantOnFailure = isOpen ? onFailure?.place : nil
        explanation.unstored = unstored(ask)
        explanation.checkPause = context.notes.failedChecks.pause(ask.key, now: now)
        explanation.placeholder = ask.phases?.placeholder.map { file in
            // A placeholder answers only where no stored response could answer or be validated.
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

    /// What the request itself forbids comes first.
    private func unstored(_ ask: CacheRequest) -> UnstoredAnswer? {
        guard CacheControl(request: ask.request.fields).noStore else { return context.notes.refusals.last(ask.key) }
        let refusal = StoreRefusal.requestNoStore
        return UnstoredAnswer(reason: refusal.rawValue, section: refusal.section, time: context.clock.now())
    }

    /// What ``stored(_:_:age:_:on:)`` or parts make of it.
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

extension StoredExplanation.Place {
    fileprivate init(_ partial: IncompleteResponse) {
        self.init(tiers: [partial.extents.usesFile ? .disk : .memory], isInvalidated: false)
        parts = StoredExplanation.Parts(stored: partial.extents.stored, length: partial.extents.length)
    }
}

extension Explanation {
    /// Appends the rulings on incomplete responses to those on complete ones.
    /// - Parameter decides: no complete response answers, so that the incomplete one that the request selects decides.
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
