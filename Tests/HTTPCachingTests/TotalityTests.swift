// Random heads: every decision has an answer, and nothing is reused that a short independent reading of RFC 9111 forbids.

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
        for round in 0..<1000 {
            let asked = RandomHeads.request(&generator)
            let answer = RandomHeads.response(&generator)
            let policy = RandomHeads.policy(&generator)
            let decision = Caching.decideStore(request: asked, response: answer, policy: policy, now: arrival)
            let head = Caching.makeStoredHead(
                request: asked,
                response: answer,
                requestTime: arrival - 1,
                responseTime: arrival,
                policy: policy
            )
            let next = Bool.random(using: &generator) ? asked : RandomHeads.request(&generator)
            let now = arrival + [0, 1, 9, 10, 11, 59, 60, 61, 200_000, -50].randomElement(using: &generator, or: 0)
            exercise(head, answer, next, policy, now)
            guard case .store = decision else { continue }
            storedCount += 1
            switch Caching.lookup(request: next, stored: head, policy: policy, now: now) {
            case .fresh(let age, let ttl):
                reused += 1
                #expect(age >= 0 && ttl > 0)
                #expect(Reference.mayStore(asked, answer), "seed \(seed) round \(round): stored\n\(answer.fields)")
                #expect(
                    Reference.mayReuse(asked, answer, next, after: now - arrival),
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
        #expect(reused > 20)
    }

    @Test("Times at the ends of Int64 are answered like any others")
    func extremes() {
        for time in [Int64.min, -1, 0, 1, .max] {
            for now in [Int64.min, 0, .max] {
                let head = Caching.makeStoredHead(
                    request: request(),
                    response: response(200, [("Cache-Control", "max-age=60"), ("Last-Modified", date())]),
                    requestTime: now,
                    responseTime: time
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
        _ = Caching.judgeHead(stored: head, headAnswer: answer, now: now, request: asked, policy: policy)
        _ = Caching.decideKeep(head, policy: policy)
        _ = Caching.invalidatedURLs(url: "http://a.test/dir/page", response: answer)
    }
}

/// A second, much shorter reading of RFC 9111 for a shared cache. It only forbids; where it is unsure it allows.
enum Reference {
    static func words(_ fields: Fields, _ name: String) -> [String] {
        fields.all(name).joined(separator: ",").lowercased().split(separator: ",").map { part in
            String(part.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
    }

    static func seconds(_ words: [String], _ name: String) -> Int64? {
        words.compactMap { $0.hasPrefix(name + "=") ? Int64($0.dropFirst(name.count + 1).filter { $0 != "\"" }) : nil }
            .min()
    }

    static func mayStore(_ asked: RequestHead, _ answer: ResponseHead) -> Bool {
        let control = words(answer.fields, "cache-control")
        if asked.method != .get || words(asked.fields, "cache-control").contains("no-store") { return false }
        if control.contains("no-store") && !control.contains("must-understand") { return false }
        if control.contains("private") || [206, 304].contains(answer.status) { return false }
        if words(answer.fields, "vary").contains("*") { return false }
        return !asked.fields.contains("authorization") || control.contains("public")
            || control.contains("must-revalidate") || control.contains { $0.hasPrefix("s-maxage") }
    }

    static func mayReuse(_ asked: RequestHead, _ answer: ResponseHead, _ next: RequestHead, after: Int64) -> Bool {
        let control = words(answer.fields, "cache-control")
        let wish = words(next.fields, "cache-control")
        if control.contains("no-cache") || wish.contains("no-cache") { return false }
        if next.method != .get && next.method != .head { return false }
        for name in words(answer.fields, "vary") where words(asked.fields, name) != words(next.fields, name) {
            return false
        }
        let age = (words(answer.fields, "age").first.flatMap { Int64($0) } ?? 0) + max(after, 0)
        if let limit = seconds(wish, "max-age"), age > limit { return false }
        if control.contains(where: { $0.hasPrefix("max-age=-") || $0 == "max-age=x" || $0 == "max-age" }) {
            return false
        }
        if let lifetime = seconds(control, "s-maxage") ?? seconds(control, "max-age") { return age < lifetime }
        return !answer.fields.all("expires").contains("0")
    }

    static func forbidsStale(_ answer: ResponseHead) -> Bool {
        let control = words(answer.fields, "cache-control")
        return control.contains {
            ["must-revalidate", "proxy-revalidate", "no-cache"].contains($0) || $0.hasPrefix("s-maxage=")
        }
    }
}

/// Heads made of pieces that matter to a cache, well-formed and not.
enum RandomHeads {
    static let responseDirectives = [
        "max-age=60", "max-age=10", "max-age=0", "max-age=x", "max-age=-1", "max-age=\"60\"", "max-age", "s-maxage=60",
        "s-maxage=0", "no-store", "no-cache", "No-Cache", "private", "public", "must-revalidate", "proxy-revalidate",
        "must-understand", "stale-while-revalidate=60", "stale-if-error=60", "no-cache=\"x-a\"", "private=\"x-a\"",
        "foo", "bar=\"a, b\"", "\"", "=", "max-age =60", "immutable",
    ]
    static let requestDirectives = [
        "no-cache", "no-store", "max-age=0", "max-age=10", "max-stale", "max-stale=10", "min-fresh=10",
        "only-if-cached",
        "foo", "max-age=x", "\"",
    ]
    static let responseFields: [(String, String)] = [
        ("ETag", "\"a\""), ("ETag", "W/\"b\""), ("Last-Modified", date(-1000)), ("Last-Modified", "x"),
        ("Expires", date(60)), ("Expires", "0"), ("Expires", date(-60)), ("Age", "5"), ("Age", "x"), ("Age", "59, 1"),
        ("Vary", "Accept"), ("Vary", "*"), ("Vary", "accept, X-T"), ("Set-Cookie", "a=1"), ("Location", "../x"),
        ("Date", date(-5)), ("Date", "x"), ("Connection", "X-A"), ("X-A", "1"), ("Content-Length", "5"),
    ]
    static let requestFields: [(String, String)] = [
        ("Accept", "a, b"), ("Accept", "c"), ("X-T", "1"), ("Authorization", "Basic eA=="), ("If-None-Match", "\"a\""),
        ("If-Modified-Since", date(-1000)), ("If-Match", "*"), ("Pragma", "no-cache"), ("Range", "bytes=0-"),
        ("Cookie", "a=1"),
    ]

    static func request(_ generator: inout SeededGenerator) -> RequestHead {
        var fields = pick(requestFields, atMost: 3, &generator)
        let directives = pick(requestDirectives, atMost: 2, &generator)
        if !directives.isEmpty { fields.append(("Cache-Control", directives.joined(separator: ", "))) }
        let method = [HTTPWire.Method.get, .get, .get, .get, .get, .head, .post].randomElement(
            using: &generator,
            or: .get
        )
        return HTTPCachingTests.request(method, fields)
    }

    static func response(_ generator: inout SeededGenerator) -> ResponseHead {
        var fields = pick(responseFields, atMost: 4, &generator)
        let directives = pick(responseDirectives, atMost: 3, &generator)
        if !directives.isEmpty { fields.append(("Cache-Control", directives.joined(separator: ", "))) }
        let status = [200, 200, 200, 200, 203, 206, 301, 302, 304, 404, 412, 500, 503].randomElement(
            using: &generator,
            or: 200
        )
        return HTTPCachingTests.response(status, fields)
    }

    static func policy(_ generator: inout SeededGenerator) -> CachePolicy {
        CachePolicy(
            ttl: [nil, nil, 10].randomElement(using: &generator, or: nil),
            revalidate: [.head, .conditional, .never].randomElement(using: &generator, or: .head)
        )
    }

    private static func pick<Element>(
        _ pieces: [Element],
        atMost: Int,
        _ generator: inout SeededGenerator
    ) -> [Element] {
        (0..<Int.random(in: 0...atMost, using: &generator)).compactMap { _ in pieces.randomElement(using: &generator) }
    }
}

extension Array {
    fileprivate func randomElement(using generator: inout SeededGenerator, or fallback: Element) -> Element {
        randomElement(using: &generator) ?? fallback
    }
}
