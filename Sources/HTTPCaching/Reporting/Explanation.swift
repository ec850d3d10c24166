// The explanation of an answer, made by the same functions that decide, with everything that they looked at.

package import HTTPWire

/// The outcome of the caching rules for a request and the responses stored under its URL.
package struct Explanation: Sendable, Equatable {
    /// One request field that Vary names (RFC 9111 section 4.1).
    package struct SelectingField: Sendable, Equatable {
        /// The field's name in lower case; `*` if nothing ever matches.
        package var name: String
        /// The lines of the stored request, joined; nil if it had none.
        package var stored: String?
        /// The lines of the request that is explained, joined; nil if it has none.
        package var asked: String?
        package var matches: Bool
    }

    /// One stored response; variants are in the order in which the caller gave them.
    package struct Variant: Sendable, Equatable {
        package var status: Int
        /// The time of its arrival or last validation, in Unix seconds.
        package var validatedAt: Int64
        package var bodyLength: Int64?
        package var etag: String?
        package var lastModified: String?
        package var groups: [String]
        package var selecting: [SelectingField]
        package var age: AgeArithmetic
        package var lifetime: Lifetime
        /// The time in seconds that is compared with the lifetime: the age, or in library mode the time since arrival
        /// or the last check.
        package var timeInUse: Int64
        /// Whether this variant is the one that answers.
        package var isChosen: Bool
        /// The decision about this variant alone; for one that is not chosen it tells why not, or that a more recent
        /// one is.
        package var decision: ReuseDecision
        /// Whether the variant may stand in for an error of the origin, at its present staleness (RFC 5861 section 4).
        package var ifError: StaleVerdict
    }

    /// The terms of RFC 9111 section 4.2.3; times in Unix seconds, all other values in seconds.
    package struct AgeArithmetic: Sendable, Equatable {
        package var dateValue: Int64
        package var requestTime: Int64
        package var responseTime: Int64
        package var apparentAge: Int64
        /// The Age field; nil if the response had none.
        package var ageValue: Int64?
        package var responseDelay: Int64
        package var correctedInitialAge: Int64
        package var residentTime: Int64
        package var currentAge: Int64
    }

    /// The time for which the explanation holds, in Unix seconds.
    package var now: Int64
    package var isOffline: Bool
    package var variants: [Variant]
    /// The index of the stored response that the decision is about.
    package var chosen: Int?
    /// The decision about the selected response; nil if nothing is stored that the request selects.
    package var decision: ReuseDecision?
    /// True if the request wants a 504 rather than a fetch (RFC 9111 section 5.2.1.7).
    package var onlyIfCached: Bool
    /// The conditional request by which the origin would be asked about the stored response; nil if it is not asked, or
    /// asked without conditions.
    package var check: Revalidation?
    /// The request's own conditions and ranges, if it goes to the origin unchanged because only the origin may refuse
    /// for an If-Match or If-Unmodified-Since; nil otherwise.
    package var passedOn: Fields?

    /// The variant that is chosen.
    package var variant: Variant? { chosen.map { variants[$0] } }

    /// The deciding reason, spelled as `Cache-Status` does in `fwd` or `detail`.
    package var reason: String { decision?.reason ?? (variants.isEmpty ? "uri-miss" : "vary-miss") }

    /// The section behind the reason, such as `RFC 9111 section 4.2`.
    package var section: String {
        if let decision { return decision.section }
        if isOffline { return StaleAllowance.offline.section }
        if onlyIfCached { return "RFC 9111 section 5.2.1.7" }
        return variants.isEmpty ? "RFC 9111 section 4" : MismatchReason.vary.section
    }
}

extension Caching {
    /// Explains what `lookup` and the related functions decide about `request` at `now` (Unix seconds), given all
    /// responses stored under its URL.
    package static func explain(
        request: RequestHead,
        variants: [StoredHead],
        policy: CachePolicy,
        now: Int64,
        isOffline: Bool = false,
        capabilities: OriginCapabilities = OriginCapabilities(),
        failedCheck: FailedCheck? = nil
    ) -> Explanation {
        let chosen = select(from: variants, request: request, policy: policy)
        let described = variants.indices.map { index in
            describe(variants[index], request, policy, now, isOffline, failedCheck, isChosen: index == chosen)
        }
        let decision = chosen.map { described[$0].decision }
        let others = variants.indices.filter { $0 != chosen }.map { variants[$0] }
        var asks = true
        var goesOn = false
        switch decision {
        case .stale, .mismatch, nil: goesOn = request.method == .get && hasPreconditions(request)
        case .staleAllowed(_, _, .whileRevalidate): break
        case .fresh, .staleAllowed, .onlyIfCachedMiss: asks = false
        }
        var check: Revalidation?
        if asks, !goesOn {
            check = revalidation(
                request: request,
                stored: chosen.map { variants[$0] },
                variants: others,
                policy: policy,
                capabilities: capabilities
            )
        }
        return Explanation(
            now: now,
            isOffline: isOffline,
            variants: described,
            chosen: chosen,
            decision: decision,
            onlyIfCached: onlyIfCached(request),
            check: isOffline ? nil : check,
            passedOn: !goesOn || isOffline || onlyIfCached(request) ? nil : ownConditions(request)
        )
    }

    private static func ownConditions(_ request: RequestHead) -> Fields {
        let known: [KnownField] = [
            .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .range, .ifRange,
        ]
        return Fields(known.flatMap { field in request.fields.all(field).map { (field.name, $0) } })
    }

    private static func describe(
        _ stored: StoredHead,
        _ request: RequestHead,
        _ policy: CachePolicy,
        _ now: Int64,
        _ isOffline: Bool,
        _ failedCheck: FailedCheck?,
        isChosen: Bool
    ) -> Explanation.Variant {
        let staleness = staleness(stored, policy: policy, now: now)
        return Explanation.Variant(
            status: stored.status,
            validatedAt: stored.validatedAt,
            bodyLength: stored.bodyLength,
            etag: stored.fields.first(.etag),
            lastModified: stored.fields.first(.lastModified),
            groups: cacheGroups(stored.fields),
            selecting: stored.varyNames.map { name in
                Explanation.SelectingField(
                    name: name,
                    stored: stored.varyFields.combined(name),
                    asked: request.fields.combined(name),
                    matches: agrees(stored: stored, request: request, in: name)
                )
            },
            age: arithmetic(stored, now: now),
            lifetime: freshnessLifetime(stored, policy: policy),
            timeInUse: timeInUse(stored, policy: policy, now: now),
            isChosen: isChosen,
            decision: lookup(
                request: request,
                stored: stored,
                policy: policy,
                now: now,
                isOffline: isOffline,
                failedCheck: failedCheck
            ),
            ifError: mayServeStale(stored: stored, policy: policy, staleness: staleness, request: request)
        )
    }

    private static func arithmetic(_ stored: StoredHead, now: Int64) -> Explanation.AgeArithmetic {
        var dateValue = date(stored.fields, responseTime: stored.responseTime)
        var apparentAge = DeltaSeconds.elapsed(from: dateValue, to: stored.responseTime)
        // The apparent age exceeds the initial age only if the clock was ahead of the origin's, whose Date counts as
        // that much later.
        if apparentAge > stored.initialAge {
            apparentAge = stored.initialAge
            dateValue = stored.responseTime - apparentAge
        }
        return Explanation.AgeArithmetic(
            dateValue: dateValue,
            requestTime: stored.requestTime,
            responseTime: stored.responseTime,
            apparentAge: apparentAge,
            ageValue: stored.receivedAge,
            responseDelay: DeltaSeconds.elapsed(from: stored.requestTime, to: stored.responseTime),
            correctedInitialAge: stored.initialAge,
            residentTime: DeltaSeconds.elapsed(from: stored.responseTime, to: now),
            currentAge: age(stored, now: now)
        )
    }
}
