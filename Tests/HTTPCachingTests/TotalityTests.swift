// Random heads: every decision has an answer, and nothing is reused that a short independent
// reading of RFC 9111 forbids.

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Totality")
struct TotalityTests {
    @Test(
        "Random heads: decisions are total and never reuse what the reference forbids",
        arguments: 1...8 as ClosedRange<UInt64>
    )
    func random(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var storedCount = 0
        var reused = 0
        var posted = 0
        for round in 0..<1000 {
            var asked = RandomHeads.request(&generator)
            var answer = RandomHeads.response(&generator)
            if round % 10 == 0 {
                // Left to chance, hardly a POST would be stored.
                asked.method = .post
                answer.status = 200
                answer.fields.set(.contentLocation, "/")
            }
            let policy = RandomHeads.policy(&generator)
            let decision = Caching.decideStore(
                request: asked,
                response: answer,
                policy: policy,
                times: ResponseTimes(at: arrival),
                url: Self.url
            )
            let head = Caching.makeStoredHead(
                request: asked,
                response: answer,
                times: ResponseTimes(requestTime: arrival - 1, responseTime: arrival),
                policy: policy,
                url: Self.url
            )
            let next = Bool.random(using: &generator) ? asked : RandomHeads.request(&generator)
            let now = arrival + [0, 1, 9, 10, 11, 59, 60, 61, 200_000, -50].randomElement(using: &generator, or: 0)
            exercise(head, answer, next, policy, now)
            guard case .store = decision else { continue }
            storedCount += 1
            posted += asked.method == .post ? 1 : 0
            #expect(Reference.mayStore(asked, answer), "seed \(seed) round \(round): stored\n\(answer.fields)")
            checkOffline(head, asked, answer, next, policy, now)
            switch Caching.lookup(request: next, stored: head, policy: policy, now: now) {
            case .fresh(let age, let ttl):
                reused += 1
                #expect(age >= 0 && ttl > 0 && now >= arrival)
                #expect(
                    Reference.mayReuse(asked, answer, next, after: now - arrival, ttl: policy.ttl),
                    "seed \(seed) round \(round): reused for\n\(next.fields)\nafter \(now - arrival)\n\(answer.fields)"
                )
            case .staleAllowed(_, let by, _):
                #expect(by >= 0)
                #expect(!Reference.forbidsStale(answer), "seed \(seed) round \(round): stale\n\(answer.fields)")
            case .stale, .mismatch, .onlyIfCachedMiss:
                break
            }
        }
        // The rounds reach both sides.
        #expect(storedCount > 100 && storedCount < 900)
        #expect(reused > 5 && posted > 0)
    }

    static let url = "http://a.test/"

    /// Offline everything that is selected answers, and nothing else does.
    private func checkOffline(
        _ head: StoredHead,
        _ asked: RequestHead,
        _ answer: ResponseHead,
        _ next: RequestHead,
        _ policy: CachePolicy,
        _ now: Int64
    ) {
        switch Caching.lookup(request: next, stored: head, policy: policy, now: now, isOffline: true) {
        case .fresh(let age, let ttl):
            #expect(
                Caching.lookup(request: next, stored: head, policy: policy, now: now) == .fresh(age: age, ttl: ttl)
            )
        case .staleAllowed(_, _, let allowance):
            #expect(allowance == .offline)
            #expect(Reference.selects(asked, answer, next) && Reference.mayShare(asked, answer))
        case .mismatch(let reason):
            #expect(Caching.lookup(request: next, stored: head, policy: policy, now: now) == .mismatch(reason))
        case .stale(_, _, .requestPrecondition), .onlyIfCachedMiss(.requestPrecondition):
            #expect(Caching.hasPreconditions(next))
        case .stale, .onlyIfCachedMiss: Issue.record("asks although it is offline")
        }
    }

    @Test(
        "Random variants: what is chosen is selected, what a 304 updates was asked for, explanations agree with decisions",
        arguments: 11...14 as ClosedRange<UInt64>
    )
    func variants(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var chosenCount = 0
        var updatedCount = 0
        for _ in 0..<500 {
            let policy = RandomHeads.policy(&generator)
            let exchanges = (0..<Int.random(in: 0...4, using: &generator)).map { _ in
                (asked: RandomHeads.request(&generator), answer: RandomHeads.response(&generator))
            }
            let heads = exchanges.enumerated().map { index, exchange in
                Caching.makeStoredHead(
                    request: exchange.asked,
                    response: exchange.answer,
                    times: ResponseTimes(at: arrival + Int64(index)),
                    policy: policy,
                    url: Self.url
                )
            }
            let next = RandomHeads.request(&generator)
            let chosen = Caching.select(from: heads, request: next, policy: policy)
            if let chosen {
                chosenCount += 1
                #expect(Reference.selects(exchanges[chosen].asked, exchanges[chosen].answer, next))
            }
            let now = arrival + 60
            let explained = Caching.explain(request: next, variants: heads, policy: policy, now: now)
            let decision = chosen.map { Caching.lookup(request: next, stored: heads[$0], policy: policy, now: now) }
            #expect(explained.chosen == chosen && explained.decision == decision)
            #expect(explained.variants.count == heads.count)

            let notModified = RandomHeads.response(&generator).fields
            let check = Caching.revalidation(
                request: next,
                stored: chosen.map { heads[$0] },
                variants: heads,
                policy: policy
            )
            guard let check else { continue }
            let updated = Caching.variantsUpdated(by: notModified, among: heads, asked: check)
            updatedCount += updated.count
            let asked = check.conditions.first(.ifNoneMatch) ?? check.conditions.first(.ifModifiedSince) ?? ""
            for index in updated {
                let sent = heads[index].fields.first(check.conditions.contains(.ifNoneMatch) ? .etag : .lastModified)
                #expect(asked.contains(try #require(sent)))
                if let tag = notModified.first(.etag), !tag.hasPrefix("W/") {
                    #expect(heads[index].fields.first(.etag) == tag)
                }
            }
        }
        #expect(chosenCount > 50 && updatedCount > 20)
    }

    @Test("Random bytes in any field that is read: decisions are total", arguments: 21...24 as ClosedRange<UInt64>)
    func noise(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let asked = RequestHead(method: .get, target: "/", fields: RandomHeads.noise(&generator))
            let answer = ResponseHead(
                status: [200, 206, 304].randomElement(using: &generator, or: 200),
                fields: RandomHeads.noise(&generator)
            )
            let policy = RandomHeads.policy(&generator)
            _ = Caching.decideStore(
                request: asked,
                response: answer,
                policy: policy,
                times: ResponseTimes(at: arrival),
                url: Self.url
            )
            let head = Caching.makeStoredHead(
                request: asked,
                response: answer,
                times: ResponseTimes(at: arrival),
                policy: policy,
                url: Self.url
            )
            exercise(head, answer, asked, policy, arrival + 9)
            // What a request selects once it selects again, and under one name.
            let again = Caching.makeStoredHead(
                request: asked,
                response: answer,
                times: ResponseTimes(at: arrival)
            )
            #expect(Caching.variantKey(head) == Caching.variantKey(again))
            if !head.varyNames.contains("*") { #expect(Caching.selects(stored: head, request: asked)) }
        }
    }

    @Test("Times at the ends of Int64 are answered like any others")
    func extremes() {
        for time in [Int64.min, -1, 0, 1, .max] {
            for now in [Int64.min, 0, .max] {
                let head = Caching.makeStoredHead(
                    request: request(),
                    response: response(200, [("Cache-Control", "max-age=60"), ("Last-Modified", date())]),
                    times: ResponseTimes(requestTime: now, responseTime: time)
                )
                exercise(
                    head,
                    response(304, [("Age", "9")]),
                    request(),
                    CachePolicy(ttl: .max, staleIfError: .max),
                    now
                )
                #expect(Caching.age(head, now: now) >= 0)
            }
        }
    }

    /// Calls every decision once: none may trap, whatever the heads.
    private func exercise(
        _ head: StoredHead,
        _ answer: ResponseHead,
        _ asked: RequestHead,
        _ policy: CachePolicy,
        _ now: Int64
    ) {
        _ = Caching.lookup(request: asked, stored: head, policy: policy, now: now)
        _ = Caching.answerConditional(request: asked, stored: head)
        _ = Caching.revalidation(request: asked, stored: head, policy: policy)
        _ = Caching.hotPath(stored: head, policy: policy)
        _ = Caching.mayServeStale(
            stored: head,
            policy: policy,
            staleness: Caching.staleness(head, policy: policy, now: now),
            request: asked
        )
        _ = Caching.judgeHead(
            stored: head,
            headAnswer: answer,
            times: ResponseTimes(at: now),
            request: asked,
            policy: policy
        )
        _ = Caching.decideKeep(head, policy: policy)
        _ = Caching.invalidatedURLs(url: "http://a.test/dir/page", response: answer)
        #expect(Caching.invalidatedGroups(method: .get, response: answer).isEmpty)
        if !Caching.cacheGroups(head.fields).isEmpty { #expect(Caching.hotPath(stored: head, policy: policy) == nil) }
        var capabilities = OriginCapabilities()
        capabilities.noteConditional(stored: head, answer: answer)
        _ = Caching.explain(
            request: asked,
            variants: [head],
            policy: policy,
            now: now,
            isOffline: true,
            capabilities: capabilities
        )
        _ = Caching.mayShareUpdate(head, request: asked, policy: policy)
        exerciseParts(head, answer, asked, policy, now)
    }

    /// The same for ranges and parts: what is answered lies within the representation, and what is
    /// stored has a strong validator.
    private func exerciseParts(
        _ head: StoredHead,
        _ answer: ResponseHead,
        _ asked: RequestHead,
        _ policy: CachePolicy,
        _ now: Int64
    ) {
        for length in [Int64.zero, 1, 10, .max] {
            guard case .parts(let parts) = Caching.rangeAnswer(request: asked, stored: head, length: length) else {
                continue
            }
            #expect(!parts.isEmpty && parts.allSatisfy { $0.lowerBound >= 0 && !$0.isEmpty && $0.upperBound <= length })
        }
        for spec in ByteRanges.parse(asked.fields)?.specs ?? [] { _ = try? Caching.checkPart(answer, asked: spec) }
        for isCheck in [false, true] {
            #expect(Caching.partConditions(head, isCheck: isCheck).isEmpty == (Caching.strongValidator(head) == nil))
        }
        _ = Caching.confirms(answer.fields, head)
        _ = Caching.mayResume(head)
        guard let content = ContentRange.parse(answer.fields) else { return }
        if Caching.joins(head, part: answer, content: content, now: now) {
            #expect(Caching.strongValidator(head) != nil && head.bodyLength != nil)
        }
        let part = Caching.decidePart(
            request: asked,
            response: answer,
            content: content,
            policy: policy,
            times: ResponseTimes(at: now)
        )
        guard case .store(let stored) = part else { return }
        #expect(stored.status == 200 && stored.bodyLength == content.length && Caching.strongValidator(stored) != nil)
    }
}
