// Makes the document of an explanation from what the download core says about a request.

import CacheStore
import DownloadCore
import HTTPCaching
import HTTPWire
import ServiceCore
import Upstream

extension AdminExplanation.Route {
    init(_ match: RouteMatch) {
        let route = match.route
        if route.asksTarget {
            self.init(kind: .forward)
        } else {
            let endpoint = match.endpoint.endpoint?.name
            self.init(kind: .service, service: route.plan.name, match: route.place, endpoint: endpoint)
        }
        openAPI = route.plan.examination.map { "\($0.document), \($0.refuses ? "refuse" : "report")" }
        proxy = match.origin.flatMap { route.plan.proxies.proxy(to: $0)?.place }
    }
}

extension AdminExplanation {
    /// Makes the explanation of a request that does not use the cache.
    init(_ request: RequestHead, _ route: Route, now: Int64, isOffline: Bool, bypass: Ruling? = nil) {
        self.init(
            method: request.method.name,
            target: request.target,
            fields: request.fields.lines.map { Field(name: $0.name, value: $0.value) },
            route: route,
            now: now,
            isOffline: isOffline,
            bypass: bypass
        )
    }

    init(_ request: RequestHead, _ route: Route, _ ask: CacheRequest, _ stored: StoredExplanation) {
        self.init(request, route, now: stored.rules.now, isOffline: stored.rules.isOffline)
        let outcome = Outcome(stored)
        cache = Cache(
            service: stored.key.service,
            url: stored.key.description,
            keyLines: stored.key.extras?.split(separator: "\n").map(String.init) ?? [],
            revalidate: ask.policy.revalidate.rawValue,
            variants: zip(stored.rules.variants, stored.places).map { Variant($0, $1) },
            outcome: outcome,
            decision: Ruling(stored, outcome),
            reply: stored.reply.map { reply in
                Reply(status: reply.status, parts: Self.bytes(reply.parts), section: reply.section)
            },
            upstream: outcome == .answer || outcome == .refuse
                ? nil : Upstream(stored, route.asks ?? stored.key.description),
            fills: stored.fills,
            isUncacheable: stored.isRememberedAsUncacheable
        )
        cache?.unstored = stored.unstored.map { unstored in
            let ruling = Ruling(reason: unstored.reason, section: unstored.section)
            return Unstored(ruling: ruling, ago: max(0, now - unstored.time))
        }
        cache?.checkPause = stored.checkPause.map { $0 - now }
        cache?.placeholder = stored.placeholder.map { Standing($0) }
        cache?.fallback = stored.fallback.map { Standing($0) }
        cache?.otherVariant = stored.otherVariantOnFailure
    }

    /// The first and the last byte of each range, as `0-99`.
    fileprivate static func bytes(_ ranges: [Range<Int64>]) -> [String] {
        ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }
    }
}

extension AdminExplanation.Standing {
    fileprivate init(_ standing: StoredExplanation.Standing) {
        self.init(
            path: standing.path,
            status: standing.status,
            afterMilliseconds: Int(clamping: standing.placeholderDelay / 1_000_000),
            mayAnswer: standing.mayAnswer
        )
    }
}

extension AdminExplanation.Ruling {
    /// The reason for the outcome. If no stored response is selected and no origin is asked, it is the reason why no
    /// origin is asked.
    fileprivate init(_ stored: StoredExplanation, _ outcome: AdminExplanation.Outcome) {
        let rules = stored.rules
        self.init(reason: rules.reason, section: rules.section)
        if stored.isOtherVariant {
            (reason, section) = (CacheStatus.Detail.otherVariant.rawValue, "configuration, offline")
            return
        }
        if case .ask(_, let way)? = stored.part {
            // A fresh but incomplete response needs a fetch of the missing bytes (RFC 9111 section 3.3).
            reason = way.reason ?? way.forward.rawValue
            if way == ForwardReason(.partial) { section = "RFC 9111 section 3.3" }
            guard way == ForwardReason(.stale) else { return }
            // Parts that belong to a stale response are validated before they are completed.
            reason = StaleReason.expired.rawValue
            section = StaleReason.expired.section
            return
        }
        guard outcome == .refuse, rules.decision == nil else { return }
        reason = rules.isOffline ? StaleAllowance.offline.rawValue : CacheStatus.Detail.onlyIfCached.rawValue
    }
}

extension AdminExplanation.Upstream {
    fileprivate init(_ stored: StoredExplanation, _ url: String) {
        var fields = stored.rules.check?.conditions ?? stored.rules.passedOn ?? Fields()
        if case .ask(let own, _)? = stored.part { fields = own }
        self.init(
            method: (stored.rules.check?.method ?? .get).name,
            url: url,
            conditions: fields.lines.map { AdminExplanation.Field(name: $0.name, value: $0.value) }
        )
    }
}

extension AdminExplanation.Outcome {
    fileprivate init(_ stored: StoredExplanation) {
        let rules = stored.rules
        switch stored.part {
        case .answer?:
            self = .answer
            return
        case .ask?:
            self = .part
            return
        case .refuse?:
            self = .refuse
            return
        case nil: break
        }
        switch rules.decision {
        case .fresh: self = .answer
        case .staleAllowed(_, _, let allowance): self = allowance == .whileRevalidate ? .refresh : .answer
        case .onlyIfCachedMiss: self = .refuse
        case .stale, .mismatch, nil:
            if rules.isOffline || rules.onlyIfCached {
                self = .refuse
            } else {
                self = rules.check == nil ? .fetch : .check
            }
        }
    }
}

extension AdminExplanation.Age {
    fileprivate init(_ terms: Explanation.AgeArithmetic) {
        self.init(
            dateValue: terms.dateValue,
            requestTime: terms.requestTime,
            responseTime: terms.responseTime,
            ageValue: terms.ageValue ?? 0,
            apparentAge: terms.apparentAge,
            responseDelay: terms.responseDelay,
            correctedAgeValue: (terms.ageValue ?? 0) + terms.responseDelay,
            correctedInitialAge: terms.correctedInitialAge,
            residentTime: terms.residentTime,
            currentAge: terms.currentAge
        )
    }
}

extension AdminExplanation.Variant {
    fileprivate init(_ variant: Explanation.Variant, _ place: StoredExplanation.Place) {
        let source = variant.lifetime.source
        self.init(
            status: variant.status,
            size: place.parts?.length ?? variant.bodyLength,
            parts: place.parts.map { AdminExplanation.bytes($0.stored) },
            tiers: place.tiers.map(\.rawValue),
            etag: variant.etag,
            lastModified: variant.lastModified,
            groups: variant.groups,
            selecting: variant.selecting.map {
                AdminExplanation.Selecting(name: $0.name, stored: $0.stored, asked: $0.asked, matches: $0.matches)
            },
            age: AdminExplanation.Age(variant.age),
            lifetime: variant.lifetime.seconds,
            timeInUse: variant.timeInUse,
            source: AdminExplanation.Ruling(reason: source.rawValue, section: source.section),
            ttl: variant.lifetime.seconds - variant.timeInUse,
            isChosen: variant.isChosen,
            isInvalidated: place.isInvalidated,
            decision: AdminExplanation.Ruling(reason: variant.decision.reason, section: variant.decision.section)
        )
        switch variant.ifError {
        case .allowed(let limit): staleIfError = limit
        case .refused(let refusal):
            staleRefusal = AdminExplanation.Ruling(reason: refusal.rawValue, section: refusal.section)
        }
    }
}

extension AdminExplanation.Meeting {
    /// The way in which a request would meet its origin if it is not asked at once.
    /// - Parameters:
    ///   - call: the call of a service, which is parked if it is refused and the service parks calls; nil for an
    ///     upgrade, which is never parked.
    ///   - cache: what the cache would do; nil if the request does not use it.
    /// - Returns: nil if the origin is asked at once.
    init?(_ outlook: OriginOutlook, _ call: ServiceCall?, _ cache: AdminExplanation.Cache?) {
        switch outlook {
        case .asked: return nil
        case .waits(let others, let most):
            let wait = "for \(most / 1_000_000) ms at most (configuration, max_queue)"
            let before = others == 0 ? "" : ", behind \(others) others"
            self.init(kind: .waits, reason: "the request waits for a slot of its service\(before), \(wait)")
        case .refused(let error):
            self.init(kind: .refused, reason: error.description)
            let chosen = cache?.variants.first { $0.isChosen }
            if error.isOriginFailure, chosen?.staleIfError != nil {
                instead = .stale
            } else if error.isOriginFailure, cache?.otherVariant != nil {
                instead = .otherVariant
            } else if cache?.fallback?.mayAnswer == true {
                instead = .fallback
            } else {
                instead = .nothing
                (status, retryAfter) = (error.status, error.retryAfter)
                switch call.flatMap({ ParkingOutlook($0, refused: error) }) {
                case .parked(let most):
                    instead = .parked
                    parking = "for \(most / 1_000_000_000) s at most (configuration, park)"
                    (status, retryAfter) = (nil, nil)
                case .notParked(let why): parking = why.text
                case nil: break
                }
            }
        }
    }

    /// The meeting with the origin as lines of text.
    var lines: [String] {
        guard kind == .refused else { return [reason] }
        switch instead {
        case .stale: return [reason, "the stored response answers instead"]
        case .otherVariant: return [reason, "a variant that the request does not select answers instead"]
        case .fallback: return [reason, "the fallback answers instead"]
        case .parked: return [reason, "the request is parked instead, \(parking ?? "")"]
        case .nothing, nil:
            let later = retryAfter.map { ", with Retry-After: \($0)" } ?? ""
            let unparked = parking.map { ", and is not parked, since \($0)" } ?? ""
            return [reason, "the request is answered \(status ?? 503)\(later)\(unparked)"]
        }
    }
}
