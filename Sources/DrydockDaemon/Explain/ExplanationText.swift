// The text of an explanation as `drydock explain` prints it: one line for each step, with the section of its rule.

import CacheStore
import Configuration
import HTTPWire
import ProxyServer

extension AdminExplanation {
    /// The explanation as lines with line ends; labels begin in column 0, values in column 15.
    package var text: String {
        var text = ExplanationText()
        text.add("request", "\(method) \(target)")
        for field in fields { text.add("", "\(field.name): \(field.value)") }
        text.add("route", route.text)
        for (number, rule) in (proxied ?? []).enumerated() {
            text.add(number == 0 ? "proxied" : "", "\(rule.rule): \(rule.takes ? "takes it" : "no"), \(rule.reason)")
        }
        if let document = route.openAPI { text.add("checked by", "\(document) (configuration, openapi)") }
        if let asks = route.asks { text.add("origin", asks + (route.proxy.map { " through the proxy \($0)" } ?? "")) }
        for rule in demo ?? [] {
            let name = rule.rule.map { "rule \($0)" } ?? "its own answer"
            text.add("demo", "\(name): \(rule.answers ? "answers" : rule.differences.joined(separator: "; "))")
        }
        for rung in rungs ?? [] { text.add("rung", "\(rung.rung): \(rung.answers ? "answers" : "no"), \(rung.reason)") }
        for way in ways ?? [] { text.add("also asked as", "\(way.url) (service \(way.service))") }
        if let bypass, bypass.reason == StoreTier.seed.rawValue {
            text.add("decision", "answers from the seed folder, unchecked (\(bypass.section))")
        } else if let rungs {
            text.add("decision", Self.decision(rungs))
        } else if let bypass {
            text.add("decision", "nothing is stored or looked up: \(bypass.text)")
        }
        if let cache { text.add(cache, now: now) }
        for (number, line) in (meets?.lines ?? []).enumerated() { text.add(number == 0 ? "meets" : "", line) }
        text.add("now", "\(HTTPDate.format(now)) (\(now))")
        text.add("offline", isOffline ? "yes, no origin is asked" : "no")
        return text.text
    }

    private static func decision(_ rungs: [Rung]) -> String {
        guard let first = rungs.firstIndex(where: \.answers) else {
            return "no rung answers: 504 (configuration, from)"
        }
        let rung = rungs[first].rung
        guard rung == "live" else { return "\(rung) answers (configuration, from)" }
        let next = rungs[first...].dropFirst().first(where: \.answers).map { ", and if that fails, \($0.rung) answers" }
        return "live is asked\(next ?? "") (configuration, from)"
    }
}

extension AdminExplanation.Ruling {
    /// The reason with its rule: `max-age (RFC 9111 section 5.2.2.1)`.
    fileprivate var text: String { "\(reason) (\(section))" }
}

extension AdminExplanation.Route {
    fileprivate var text: String {
        switch kind {
        case .forward: return "forward mode"
        case .tunnel: return service.map { "a tunnel of service \($0)" } ?? "a tunnel of forward mode"
        case .service, .demo:
            let text = "service \(service ?? "") at \(match ?? "")\(endpoint.map { ", endpoint \($0)" } ?? "")"
            return kind == .demo ? text + ", a demo answer" : text
        }
    }
}

private struct ExplanationText {
    private(set) var text = ""

    mutating func add(_ label: String, _ value: String) {
        text += label + String(repeating: " ", count: max(1, 15 - label.utf8.count)) + value + "\n"
    }

    mutating func add(_ cache: AdminExplanation.Cache, now: Int64) {
        add("key", cache.service.isEmpty ? cache.url : "\(cache.url) of service \(cache.service)")
        for line in cache.keyLines { add("", line) }
        add("stored", cache.variants.isEmpty ? "nothing" : BatchProgress.count(cache.variants.count, "response"))
        if let unstored = cache.unstored {
            let when = unstored.ago == 0 ? "" : " \(Lifetimes.text(unstored.ago)) ago"
            add("not stored", "the last answer\(when): \(unstored.ruling.text)")
        }
        for (index, variant) in cache.variants.enumerated() { add(variant, number: index + 1) }
        let chosen = cache.variants.first { $0.isChosen }
        if let chosen { add(chosen, now: now) }
        add("decision", "\(Self.outcome(cache, chosen)): \(cache.decision.text)")
        if let reply = cache.reply {
            let parts = reply.parts.isEmpty ? "" : ", bytes \(reply.parts.joined(separator: ", "))"
            add("status", "\(reply.status)\(parts)\(reply.section.map { " (\($0))" } ?? "")")
        }
        if let upstream = cache.upstream {
            add("sends", "\(upstream.method) \(upstream.url), revalidate: \(cache.revalidate)")
            for field in upstream.conditions { add("", "\(field.name): \(field.value)") }
        }
        if cache.upstream == nil {
            // Nothing is printed here: without a request to an origin, none can fail.
        } else if let limit = chosen?.staleIfError {
            add("on failure", "answers with it up to \(Lifetimes.text(limit)) past its freshness (RFC 5861 section 4)")
        } else if let index = cache.otherVariant {
            let what = "response \(index + 1), which the request does not select"
            add("on failure", "answers with \(what): other-variant (configuration, cache.other_variant)")
        } else if let refusal = chosen?.staleRefusal {
            add("on failure", "does not answer with it: \(refusal.text)")
        }
        if let pause = cache.checkPause {
            let text =
                "no check for \(Lifetimes.text(pause)), since the last one failed (configuration, cache.check_pause)"
            add("check pause", text)
        }
        if let file = cache.placeholder {
            let text =
                "answers \(file.status) with \(file.path) where the origin takes longer than \(file.afterMilliseconds)ms"
            add("placeholder", file.mayAnswer ? text : "does not answer this request now: \(file.path)")
        }
        if let file = cache.fallback {
            let text = "answers \(file.status) with \(file.path) where the origin fails and nothing stored may answer"
            add("fallback", file.mayAnswer ? text : "does not answer this request now: \(file.path)")
        }
        add("fetches", cache.fills == 0 ? "none under way" : "\(cache.fills) under way, which others may join")
        add("uncacheable", cache.isUncacheable ? "remembered, so that requests do not wait for one another" : "no")
    }

    private mutating func add(_ variant: AdminExplanation.Variant, number: Int) {
        var parts = ["\(variant.status)", variant.size.map { "\($0) B" } ?? "of unknown length"]
        if let stored = variant.parts { parts.append("of which bytes \(stored.joined(separator: " and "))") }
        parts.append(variant.tiers.joined(separator: "+"))
        if variant.isInvalidated {
            parts.append("invalidated")
        } else if variant.isChosen {
            parts.append("chosen")
        } else {
            parts.append("not chosen: " + variant.refusal)
        }
        add("response \(number)", parts.joined(separator: ", "))
        if let etag = variant.etag { add("", "ETag: \(etag)") }
        if let date = variant.lastModified { add("", "Last-Modified: \(date)") }
        if !variant.groups.isEmpty { add("", "Cache-Groups: \(variant.groups.joined(separator: ", "))") }
        for field in variant.selecting {
            let asked = "the request has \(field.asked.map { "'\($0)'" } ?? "none")"
            let kept = field.stored.map { "'\($0)'" } ?? "none"
            add("", "varies by \(field.name), stored for \(kept), \(asked): \(field.matches ? "matches" : "differs")")
        }
        let own = variant.selecting.map(\.name).filter(Self.ownFields.contains)
        if !own.isEmpty {
            let cost = "each has a response of its own, and the oldest go (configuration, cache.max_variants)"
            add("", "\(own.joined(separator: " and ")) differs from client to client: \(cost)")
        }
    }

    /// Adds the calculation of age and freshness (RFC 9111 sections 4.2.3 and 4.2.1), one term a line.
    private mutating func add(_ variant: AdminExplanation.Variant, now: Int64) {
        let age = variant.age
        add("age", "\(age.currentAge)s (RFC 9111 section 4.2.3)")
        term(
            "apparent_age",
            "max(0, response_time - date_value)",
            "max(0, \(age.responseTime) - \(age.dateValue))",
            age.apparentAge
        )
        term(
            "response_delay",
            "response_time - request_time",
            "\(age.responseTime) - \(age.requestTime)",
            age.responseDelay
        )
        term(
            "corrected_age_value",
            "age_value + response_delay",
            "\(age.ageValue) + \(age.responseDelay)",
            age.correctedAgeValue
        )
        term(
            "corrected_initial_age",
            "max(apparent_age, corrected_age_value)",
            "max(\(age.apparentAge), \(age.correctedAgeValue))",
            age.correctedInitialAge
        )
        term("resident_time", "now - response_time", "\(now) - \(age.responseTime)", age.residentTime)
        term(
            "current_age",
            "corrected_initial_age + resident_time",
            "\(age.correctedInitialAge) + \(age.residentTime)",
            age.currentAge
        )
        add("lifetime", "\(variant.lifetime)s from \(variant.source.text)")
        if variant.timeInUse != age.currentAge {
            add("in use", "\(variant.timeInUse)s since it came or was checked (configuration, cache.mode)")
        }
        add("freshness", variant.ttl > 0 ? "fresh for \(variant.ttl)s" : "stale for \(-variant.ttl)s")
    }

    private mutating func term(_ name: String, _ form: String, _ numbers: String, _ value: Int64) {
        add("", "\(name) = \(form) = \(numbers) = \(value)")
    }

    private static func outcome(
        _ cache: AdminExplanation.Cache,
        _ chosen: AdminExplanation.Variant?
    ) -> String {
        let tier = chosen?.tiers.first ?? ""
        switch cache.outcome {
        case .answer: return "answers from \(tier)"
        case .refresh: return "answers from \(tier), and refreshes behind"
        case .check: return "asks the origin whether it is still good"
        case .fetch: return "asks the origin for the whole"
        case .part: return "asks the origin for a part"
        case .refuse: return "answers 504, since nobody is to be asked"
        }
    }

    /// The fields that differ from client to client; a response that varies by them is hardly ever reused.
    private static let ownFields: Set<String> = [
        "authorization", "cookie", "from", "origin", "referer", "user-agent", "x-forwarded-for", "x-request-id",
    ]
}

extension AdminExplanation.Variant {
    /// The reason why another variant was chosen.
    fileprivate var refusal: String {
        selecting.contains { !$0.matches } || decision.reason != "fresh" && decision.reason != "expired"
            ? decision.text : "another one is more recent (RFC 9111 section 4)"
    }
}
