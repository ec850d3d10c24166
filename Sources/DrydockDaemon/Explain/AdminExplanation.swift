// The document of `GET /v1/explain`: the route of a request, the stored responses, the decision, and the rule behind
// it; made from the values that the server gives.

import CacheStore
import Configuration
package import DownloadCore
import HTTPCaching
import HTTPWire
import Policies
package import ProxyServer
import ServiceCore

/// The explanation of a request. Durations are seconds, times seconds since 1970, sizes bytes; reasons are those of
/// Cache-Status.
package struct AdminExplanation: Codable, Sendable, Equatable {
    package struct Field: Codable, Sendable, Equatable {
        package var name: String
        package var value: String
    }

    package struct Route: Codable, Sendable, Equatable {
        package enum Kind: String, Codable, Sendable {
            case service, forward
            /// A demo answer is played from a file.
            case demo
            /// The request upgrades: bytes go through a tunnel, and nothing is stored.
            case tunnel
        }

        package var kind: Kind
        /// The name of the service; nil in forward mode.
        package var service: String?
        package var match: String?
        package var endpoint: String?
        /// The URL that the origin is asked for; nil for a demo answer.
        package var asks: String?
        /// The proxy on the way to the origin, as `HOST:PORT`; nil if there is none.
        package var proxy: String?
        /// The OpenAPI document that requests are checked by, and how violations are treated: `pets.yaml, refuse`.
        package var openAPI: String?
    }

    /// A reason, and the section of the specification behind it.
    package struct Ruling: Codable, Sendable, Equatable {
        package var reason: String
        package var section: String
    }

    /// A rule of demo mode; the rules are listed in the order in which they are tried.
    package struct DemoRule: Codable, Sendable, Equatable {
        /// The name of the rule; nil for the answer of the endpoint or the service itself.
        package var rule: String?
        /// True if the rule answers the request.
        package var answers: Bool
        /// The reasons why the rule does not answer: what the request has, and what the rule wants; empty for rules
        /// behind the one that answers.
        package var differences: [String]
    }

    /// A source of the route's answers.
    package struct Rung: Codable, Sendable, Equatable {
        /// The name of the source in `from`.
        package var rung: String
        /// True if the source would answer if it were asked now; for `live`, if it would be asked.
        package var answers: Bool
        /// A description of the answer, or the reason why there is none.
        package var reason: String
    }

    /// The obstacle on the way to the origin, if it is not asked at once.
    package struct Meeting: Codable, Sendable, Equatable {
        package enum Kind: String, Codable, Sendable {
            /// The request waits for a slot of its service.
            case waits
            /// The request is refused: the origin may not be asked now, or too many requests wait already.
            case refused
        }

        /// The answer to a refused request.
        package enum Instead: String, Codable, Sendable {
            /// A stored response answers, or the fallback does.
            case stale, fallback
            /// A stored response answers although the request does not select it.
            case otherVariant = "other-variant"
            /// The request waits until the origin is back.
            case parked
            /// The refusal is the answer.
            case nothing
        }

        package var kind: Kind
        /// The reason in the words of the answer.
        package var reason: String
        package var instead: Instead?
        /// The reason why the request is not parked, or the longest time for which it is.
        package var parking: String?
        /// The status of the refusal; nil if another answer takes its place.
        package var status: Int?
        package var retryAfter: Int?
    }

    /// A rule about requests to the proxy; the rules are listed in the order in which they are asked.
    package struct Proxied: Codable, Sendable, Equatable {
        /// The rule: the daemon's own address, a service by host, or forward mode.
        package var rule: String
        /// True if the rule takes the request.
        package var takes: Bool
        package var reason: String
    }

    package struct Way: Codable, Sendable, Equatable {
        package var service: String
        package var url: String
    }

    package var method: String
    package var target: String
    package var fields: [Field]
    package var route: Route
    /// The rules up to the one that takes a request to the proxy; nil for other requests.
    package var proxied: [Proxied]?
    package var now: Int64
    package var isOffline: Bool
    /// The reason why nothing is stored or looked up; nil if ``cache`` has the stored responses.
    package var bypass: Ruling?
    package var cache: Cache?
    /// The obstacle on the way to the origin; nil if the origin would be asked at once, or not at all.
    package var meets: Meeting?
    /// The rules of demo mode up to the one that answers; nil if demo mode is off.
    package var demo: [DemoRule]?
    /// The sources that `from` names, in its order: the first one that answers is taken; nil if `from` is not set.
    package var rungs: [Rung]?
    /// Other URLs by which clients reach the same URL of the origin, with the service of each.
    package var ways: [Way]?
}

extension AdminExplanation {
    package typealias Outcome = StoredExplanation.Outcome

    package struct Upstream: Codable, Sendable, Equatable {
        package var method: String
        package var url: String
        /// The conditions of the request: If-None-Match and If-Modified-Since, Range and If-Range for a part, or the
        /// client's own if its request is passed on.
        package var conditions: [Field]
    }

    /// The part of the stored response that the client gets.
    package struct Reply: Codable, Sendable, Equatable {
        package var status: Int
        /// The first and the last byte of each part of a 206, as `0-99`; empty for a whole response.
        package var parts: [String]
        /// The section behind the status, if it is not the stored one.
        package var section: String?
    }

    /// The reason why the last answer was not stored.
    package struct Unstored: Codable, Sendable, Equatable {
        package var ruling: Ruling
        /// Seconds since that answer.
        package var ago: Int64
    }

    /// A file that can stand in for an answer: a placeholder or a fallback.
    package struct Standing: Codable, Sendable, Equatable {
        package var path: String
        package var status: Int
        /// Milliseconds for which a placeholder waits for the origin; 0 for a fallback.
        package var afterMilliseconds: Int
        /// True if the file would answer this request now if the origin took longer or failed.
        package var mayAnswer: Bool
    }

    package struct Cache: Codable, Sendable, Equatable {
        /// The service of the key; empty in forward mode.
        package var service: String
        /// The URL of the key.
        package var url: String
        /// The lines of the key besides the URL, such as the value of a field.
        package var keyLines: [String]
        /// The method of validation as configured: `head`, `conditional`, `auto` or `never`.
        package var revalidate: String
        package var variants: [Variant]
        package var outcome: Outcome
        package var decision: Ruling
        /// The answer of the store; nil if it does not answer.
        package var reply: Reply?
        /// The request that the origin would get; nil if it is not asked.
        package var upstream: Upstream?
        /// The number of fetches of the key under way that others may join.
        package var fills: Int
        /// True if the last answer could not be shared, so that requests for the key do not wait for one another.
        package var isUncacheable: Bool
        /// The last answer, if it was not stored; nil if it was, or if there was none since the start.
        package var unstored: Unstored?
        /// Seconds until the next validation, since the last one failed; nil if it is made at once.
        package var checkPause: Int64?
        package var placeholder: Standing?
        package var fallback: Standing?
        /// The index among the variants of the one that answers if the origin fails, although the request does not
        /// select it (`cache.other_variant`); nil if none does.
        package var otherVariant: Int?
    }
}

extension AdminExplanation {
    /// The terms of the age calculation (RFC 9111 section 4.2.3).
    package struct Age: Codable, Sendable, Equatable {
        package var dateValue: Int64
        package var requestTime: Int64
        package var responseTime: Int64
        package var ageValue: Int64
        package var apparentAge: Int64
        package var responseDelay: Int64
        package var correctedAgeValue: Int64
        package var correctedInitialAge: Int64
        package var residentTime: Int64
        package var currentAge: Int64
    }

    package struct Selecting: Codable, Sendable, Equatable {
        package var name: String
        /// The value in the stored request; nil if it had no such field.
        package var stored: String?
        package var asked: String?
        package var matches: Bool
    }

    package struct Variant: Codable, Sendable, Equatable {
        package var status: Int
        /// The size of the body in bytes; nil if it is unknown.
        package var size: Int64?
        /// The first and the last byte of each stored part, as `0-99`; nil if the whole body is stored.
        package var parts: [String]?
        /// The tiers that have the response, the fastest first.
        package var tiers: [String]
        package var etag: String?
        package var lastModified: String?
        package var groups: [String]
        package var selecting: [Selecting]
        package var age: Age
        package var lifetime: Int64
        /// The time that is compared with the lifetime, in seconds: the age, or in library mode the time since the
        /// response was received or validated.
        package var timeInUse: Int64
        /// The source of the lifetime, such as `max-age`.
        package var source: Ruling
        /// Seconds of freshness left, negative for a stale response.
        package var ttl: Int64
        package var isChosen: Bool
        /// True if a rule has invalidated the response, so that it never answers.
        package var isInvalidated: Bool
        /// The decision of the caching rules about this response alone.
        package var decision: Ruling
        /// The staleness in seconds up to which the response answers if the origin fails; nil if it does not.
        package var staleIfError: Int64?
        /// The reason why the response does not answer if the origin fails.
        package var staleRefusal: Ruling?
    }
}

// MARK: - Makes the document from the values of the server

extension StoredExplanation.Outcome: Codable {}

extension AdminExplanation.Route {
    fileprivate init(_ route: RequestExplanation.Route) {
        let kind: Kind =
            switch route.kind {
            case .service: .service
            case .forward: .forward
            case .demo: .demo
            case .tunnel: .tunnel
            }
        self.init(
            kind: kind,
            service: route.service,
            match: route.match,
            endpoint: route.endpoint,
            asks: route.asks,
            proxy: route.proxy,
            openAPI: route.document.map { "\($0), \(route.isRefusedByDocument ? "refuse" : "report")" }
        )
    }
}

extension AdminExplanation {
    package init(_ explanation: RequestExplanation) {
        let request = explanation.request
        self.init(
            method: request.method.name,
            target: request.target,
            fields: request.fields.lines.map { Field(name: $0.name, value: $0.value) },
            route: Route(explanation.route),
            proxied: explanation.proxied?.map { Proxied(rule: $0.rule.rawValue, takes: $0.takes, reason: $0.reason) },
            now: explanation.now,
            isOffline: explanation.isOffline,
            bypass: explanation.bypass.map { Ruling($0) },
            cache: explanation.stored.map { Cache($0, explanation) },
            meets: Meeting(explanation),
            demo: explanation.demo?.map { ruling in
                DemoRule(rule: ruling.rule, answers: ruling.answers, differences: ruling.differences)
            },
            rungs: explanation.sources?.map { ruling in
                Rung(rung: ruling.source.rawValue, answers: ruling.answers, reason: ruling.says.reason)
            },
            ways: explanation.ways.isEmpty ? nil : explanation.ways.map { Way(service: $0.service, url: $0.url) }
        )
    }

    /// The first and the last byte of each range, as `0-99`.
    fileprivate static func bytes(_ ranges: [Range<Int64>]) -> [String] {
        ranges.map { "\($0.lowerBound)-\($0.upperBound - 1)" }
    }
}

extension AdminExplanation.Cache {
    fileprivate init(_ stored: RequestExplanation.Stored, _ whole: RequestExplanation) {
        let (found, outcome) = (stored.explanation, stored.outcome)
        self.init(
            service: found.key.service,
            url: found.key.description,
            keyLines: found.key.extras?.split(separator: "\n").map(String.init) ?? [],
            revalidate: stored.revalidate.rawValue,
            variants: zip(found.rules.variants, found.locations).map { AdminExplanation.Variant($0, $1) },
            outcome: outcome,
            decision: AdminExplanation.Ruling(found, outcome),
            reply: found.reply.map { reply in
                AdminExplanation.Reply(
                    status: reply.status,
                    parts: AdminExplanation.bytes(reply.parts),
                    section: reply.section
                )
            },
            upstream: outcome == .answer || outcome == .refuse
                ? nil : AdminExplanation.Upstream(found, whole.route.asks ?? found.key.description),
            fills: found.fills,
            isUncacheable: found.isRememberedAsUncacheable
        )
        unstored = found.unstored.map { unstored in
            let ruling = AdminExplanation.Ruling(reason: unstored.reason, section: unstored.section)
            return AdminExplanation.Unstored(ruling: ruling, ago: max(0, whole.now - unstored.time))
        }
        checkPause = found.checkPause.map { $0 - whole.now }
        placeholder = found.placeholder.map { AdminExplanation.Standing($0) }
        fallback = found.fallback.map { AdminExplanation.Standing($0) }
        otherVariant = found.otherVariantOnFailure
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
    /// Why nothing is stored or looked up.
    fileprivate init(_ bypass: RequestExplanation.Bypass) {
        switch bypass {
        case .upgrade: self.init(reason: "upgrade", section: "RFC 9110 section 7.8")
        case .demo: self.init(reason: "demo", section: "configuration, demo.enabled")
        case .from: self.init(reason: "from", section: "configuration, from")
        case .recording: self.init(reason: "source", section: "configuration, source")
        case .content: self.init(reason: "content", section: "RFC 9110 section 9.3.1")
        case .storedPost: self.init(reason: "content", section: "configuration, cache.methods")
        case .seed: self.init(reason: StoreTier.seed.rawValue, section: "configuration, cache.seed_dir")
        case .cacheOff: self.init(reason: StoreRefusal.cacheOff.rawValue, section: StoreRefusal.cacheOff.section)
        }
    }

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
    fileprivate init(_ variant: Explanation.Variant, _ found: StoredExplanation.Location) {
        let source = variant.lifetime.source
        self.init(
            status: variant.status,
            size: found.parts?.length ?? variant.bodyLength,
            parts: found.parts.map { AdminExplanation.bytes($0.stored) },
            tiers: found.tiers.map(\.rawValue),
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
            isInvalidated: found.isInvalidated,
            decision: AdminExplanation.Ruling(reason: variant.decision.reason, section: variant.decision.section)
        )
        switch variant.ifError {
        case .allowed(let limit): staleIfError = limit
        case .refused(let refusal):
            staleRefusal = AdminExplanation.Ruling(reason: refusal.rawValue, section: refusal.section)
        }
    }
}

extension RequestExplanation.SourceRuling.Says {
    /// A description of the answer, or the reason why there is none.
    fileprivate var reason: String {
        switch self {
        case .noDemoAnswers: "there are no demo answers"
        case .noDemoRule(let nearest):
            "no rule is for this request\(nearest.isEmpty ? "" : ": " + nearest.joined(separator: "; "))"
        case .demoRule(let name): name.map { "rule \($0)" } ?? "its own answer"
        case .recorded(let time): "recorded \(HTTPDate.format(time))"
        case .notRecorded(let why): why
        case .offline: "the daemon is offline"
        case .refused(let why): why
        case .notOfItsMethod: "only GET and HEAD are answered from there"
        case .asks(let url): "asks \(url ?? "its service")"
        case .noFallback: "there is no file"
        case .fallback(let status, let path): "answers \(status) with \(path)"
        case .noSeed: "no seed is of this URL, or the request has no-cache"
        case .seed: "a seed"
        case .nothingStored: "nothing is stored for this request"
        case .fresh(let seconds): "fresh for \(Lifetimes.text(seconds))"
        case .stale(let limit): "may answer up to \(Lifetimes.text(limit)) past its freshness (RFC 5861 section 4)"
        case .notAllowed(let reason, let section): "\(reason) (\(section))"
        }
    }
}

extension AdminExplanation.Meeting {
    /// The way in which a request would meet its origin; nil if the origin is asked at once, or not at all.
    fileprivate init?(_ explanation: RequestExplanation) {
        switch explanation.outlook {
        case .asked: return nil
        case .waits(let others, let most):
            let wait = "for \(most / 1_000_000) ms at most (configuration, max_queue)"
            let before = others == 0 ? "" : ", behind \(others) others"
            self.init(kind: .waits, reason: "the request waits for a slot of its service\(before), \(wait)")
        case .refused(let error):
            self.init(kind: .refused, reason: error.description)
            let stored = explanation.stored?.explanation
            if error.isOriginFailure, stored?.answersOnFailure == true {
                instead = .stale
            } else if error.isOriginFailure, stored?.otherVariantOnFailure != nil {
                instead = .otherVariant
            } else if stored?.fallback?.mayAnswer == true {
                instead = .fallback
            } else {
                instead = .nothing
                (status, retryAfter) = (error.status, error.retryAfter)
                switch explanation.parking {
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

extension StoredExplanation {
    /// The stored response that the request selects answers if the origin fails.
    fileprivate var answersOnFailure: Bool {
        guard let chosen = rules.variants.first(where: \.isChosen), case .allowed = chosen.ifError else { return false }
        return true
    }
}
