// What a HEAD answer says about the stored response (RFC 9111 section 4.3.5).

import HTTPWire
import Testing

@testable import HTTPCaching

struct VerdictCase: Sendable, CustomTestStringConvertible {
    enum Outcome: Sendable, Equatable {
        case unchanged, changed(HeadChange), gone(Int), failed(Int)
    }

    var before: [(String, String)]
    var status: Int
    var answer: [(String, String)]
    var expected: Outcome
    var storedStatus: Int

    init(
        _ before: [(String, String)],
        _ status: Int,
        _ answer: [(String, String)],
        _ expected: Outcome,
        storedStatus: Int = 200
    ) {
        self.before = before
        self.status = status
        self.answer = answer
        self.expected = expected
        self.storedStatus = storedStatus
    }

    var testDescription: String { "\(storedStatus) \(before) HEAD \(status) \(answer)" }
}

@Suite("HEAD verdict")
struct HeadVerdictTests {
    static let tag = ("ETag", "\"a\"")
    static let weak = ("ETag", "W/\"a\"")
    static let other = ("ETag", "\"b\"")
    static let modified = ("Last-Modified", date(-1000))
    static let later = ("Last-Modified", date(-999))
    static let length = ("Content-Length", "10")
    static let longer = ("Content-Length", "11")

    @Test(
        "RFC 9111 4.3.5: the same validators freshen, a different validator or length makes stale, length alone proves nothing",
        arguments: [
            VerdictCase([tag], 200, [tag], .unchanged),
            VerdictCase([tag], 200, [other], .changed(.etag)),
            VerdictCase([tag], 200, [weak], .unchanged),
            VerdictCase([tag], 200, [("ETag", "\"A\"")], .changed(.etag)),
            VerdictCase([modified], 200, [modified], .unchanged),
            VerdictCase([modified], 200, [later], .changed(.lastModified)),
            VerdictCase([("Last-Modified", "x")], 200, [("Last-Modified", "x")], .changed(.noValidator)),
            VerdictCase([tag, modified], 200, [tag, modified], .unchanged),
            VerdictCase([tag, modified], 200, [tag, later], .changed(.lastModified)),
            VerdictCase([tag, modified], 200, [other, modified], .changed(.etag)),
            VerdictCase([tag, modified], 200, [modified], .unchanged),
            VerdictCase([modified], 200, [tag, modified], .changed(.etag)),
            VerdictCase([tag], 200, [modified], .changed(.lastModified)),
            VerdictCase([tag], 200, [tag, modified], .changed(.lastModified)),
            VerdictCase([], 200, [tag], .changed(.etag)), VerdictCase([], 200, [modified], .changed(.lastModified)),
            VerdictCase([weak], 200, [tag], .changed(.etag)), VerdictCase([weak], 200, [weak], .unchanged),
            VerdictCase([tag, modified], 200, [tag], .unchanged),
            VerdictCase([tag, length], 200, [tag, length], .unchanged),
            VerdictCase([tag, length], 200, [tag, longer], .changed(.length)),
            VerdictCase([tag], 200, [tag, longer], .unchanged),
            VerdictCase([tag, length], 200, [tag], .unchanged),
            VerdictCase([length], 200, [length], .changed(.noValidator)),
            VerdictCase([], 200, [], .changed(.noValidator)),
        ]
    )
    func comparison(example: VerdictCase) { check(example) }

    @Test(
        "RFC 9111 4.3.4: a 304 counts as a match, unless its validator is another's",
        arguments: [
            VerdictCase([tag], 304, [], .unchanged),
            VerdictCase([tag], 304, [tag], .unchanged),
            VerdictCase([tag], 304, [other], .changed(.etag)),
            VerdictCase([modified], 304, [later], .changed(.lastModified)),
            VerdictCase([tag, length], 304, [tag, longer], .unchanged),
            VerdictCase([weak], 304, [tag], .changed(.etag)), VerdictCase([tag], 304, [weak], .unchanged),
            VerdictCase([modified], 304, [tag], .changed(.etag)), VerdictCase([tag], 304, [modified], .unchanged),
            VerdictCase([tag, modified], 304, [tag, later], .unchanged),
        ]
    )
    func notModified(example: VerdictCase) { check(example) }

    @Test(
        "Other statuses: gone, changed, or failed",
        arguments: [
            VerdictCase([tag], 403, [tag], .failed(403)), VerdictCase([tag], 405, [], .failed(405)),
            VerdictCase([tag], 501, [], .failed(501)), VerdictCase([tag], 404, [], .gone(404)),
            VerdictCase([tag], 410, [], .gone(410)), VerdictCase([tag], 404, [tag], .unchanged, storedStatus: 404),
            VerdictCase([tag], 404, [other], .changed(.etag), storedStatus: 404),
            VerdictCase([tag], 200, [tag], .changed(.status), storedStatus: 404),
            VerdictCase([tag], 204, [tag], .changed(.status)), VerdictCase([tag], 302, [tag], .changed(.status)),
            VerdictCase([tag], 399, [], .changed(.status)), VerdictCase([tag], 400, [], .failed(400)),
            VerdictCase([tag], 429, [], .failed(429)), VerdictCase([tag], 500, [tag], .failed(500)),
            VerdictCase([tag], 503, [], .failed(503)),
        ]
    )
    func statuses(example: VerdictCase) { check(example) }

    @Test("RFC 9111 4.3.5: the answer's fields update the stored response, its age starts again")
    func update() throws {
        let before = stored([("Cache-Control", "max-age=60"), Self.tag, ("X-Old", "1"), Self.length, ("Age", "59")])
        let answer = response(
            200,
            [("Cache-Control", "max-age=90"), Self.tag, ("X-New", "1"), Self.length, ("Date", date(200))]
        )
        let verdict = Caching.judgeHead(
            stored: before,
            headAnswer: answer,
            times: ResponseTimes(requestTime: arrival + 197, responseTime: arrival + 200)
        )
        guard case .unchanged(let head) = verdict else {
            Issue.record("expected unchanged, got \(verdict)")
            return
        }
        #expect(head.initialAge == 3)
        #expect(head.validatedAt == arrival + 200)
        #expect(head.fields.first("X-Old") == "1" && head.fields.first("X-New") == "1")
        #expect(head.bodyLength == 10 && head.status == 200)
        let decision = Caching.lookup(request: request(), stored: head, policy: CachePolicy(), now: arrival + 200)
        #expect(decision == .fresh(age: 3, ttl: 87))
    }

    @Test("A check by HEAD takes over neither Set-Cookie nor Content-Type", arguments: [200, 304])
    func fieldsOfHead(status: Int) throws {
        let kept = [("Cache-Control", "max-age=60, public"), Self.tag]
        let policy = CachePolicy(setCookie: .explicit)
        for own in [[("Content-Type", "image/png"), ("Set-Cookie", "a=stored")], []] {
            let told = kept + [("Content-Type", "text/html"), ("Set-Cookie", "a=told"), ("X-New", "1")]
            let verdict = Caching.judgeHead(
                stored: stored(kept + own, policy: policy),
                headAnswer: response(status, told),
                times: ResponseTimes(at: arrival),
                policy: policy
            )
            guard case .unchanged(let head) = verdict else {
                Issue.record("expected unchanged, got \(verdict)")
                return
            }
            #expect(head.fields.first("X-New") == "1")
            for (name, value) in [("Content-Type", "image/png"), ("Set-Cookie", "a=stored")] {
                #expect(head.fields.all(name) == (own.isEmpty ? [] : [value]))
            }
        }
    }

    private func check(_ example: VerdictCase) {
        let verdict = Caching.judgeHead(
            stored: stored(example.before, status: example.storedStatus),
            headAnswer: response(example.status, example.answer),
            times: ResponseTimes(at: arrival)
        )
        let outcome: VerdictCase.Outcome =
            switch verdict {
            case .unchanged: .unchanged
            case .changed(let change): .changed(change)
            case .gone(let status): .gone(status)
            case .failed(let status): .failed(status)
            }
        #expect(outcome == example.expected)
    }
}
