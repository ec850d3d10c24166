// Checking stored responses, and what a 304 changes (RFC 9111 sections 3.2, 4.3.1 and 4.3.4).

import HTTPWire
import Testing

@testable import HTTPCaching

@Suite("Revalidation")
struct RevalidationTests {
    static let tag = ("ETag", "\"a\"")
    static let modified = ("Last-Modified", date(-1000))

    private func conditions(_ fields: [(String, String)]) -> [String]? {
        Caching.revalidation(request: request(), stored: stored(fields), policy: CachePolicy())?
            .conditions.lines.map { "\($0.name): \($0.value)" }
    }

    @Test("RFC 9111 4.3.1: the stored validators go upstream, byte for byte")
    func validators() {
        #expect(conditions([Self.tag]) == ["If-None-Match: \"a\""])
        #expect(conditions([("ETag", "W/\"a\"")]) == ["If-None-Match: W/\"a\""])
        #expect(conditions([("ETag", "bare\u{E9}")]) == ["If-None-Match: bare\u{E9}"])
        #expect(conditions([Self.modified]) == ["If-Modified-Since: " + date(-1000)])
        #expect(conditions([Self.tag, Self.modified])?.count == 2)
        #expect(conditions([("ETag", ""), ("Last-Modified", "long ago")]) == nil)
        #expect(conditions([]) == nil)
    }

    @Test(
        "RFC 9111 4.3.5: HEAD where the policy says so; a conditional GET for no-cache, reloads and where forced",
        arguments: [
            ("max-age=60", nil, ValidationMethod.head, false, Revalidation.Kind.head),
            ("max-age=60", nil, .head, true, .conditional), ("max-age=60", nil, .conditional, false, .conditional),
            ("max-age=60", nil, .never, false, nil), ("no-cache", nil, .head, false, .conditional),
            ("max-age=60", "no-cache", .head, false, .conditional),
            ("max-age=60", "max-age=0", .head, false, .conditional),
            ("max-age=60", "max-age=1", .head, false, .head),
        ] as [(String, String?, ValidationMethod, Bool, Revalidation.Kind?)]
    )
    func kind(directives: String, wish: String?, method: ValidationMethod, force: Bool, expected: Revalidation.Kind?) {
        let revalidation = Caching.revalidation(
            request: request(.get, wish.map { [("Cache-Control", $0)] } ?? []),
            stored: stored([("Cache-Control", directives), Self.tag]),
            policy: CachePolicy(revalidate: method),
            forceConditional: force
        )
        #expect(revalidation?.kind == expected)
        #expect(revalidation?.method == expected.map { $0 == .head ? .head : .get })
    }

    @Test("RFC 9111 4.3.1: the client's own conditions and Range are replaced")
    func application() throws {
        var fields = Fields([
            ("If-None-Match", "\"old\""), ("If-Match", "\"x\""), ("If-Modified-Since", date()), ("Range", "bytes=0-1"),
            ("If-Range", "\"x\""), ("If-Unmodified-Since", date()), ("Accept", "text/html"),
        ])
        let revalidation = try #require(
            Caching.revalidation(request: request(), stored: stored([Self.tag]), policy: CachePolicy())
        )
        revalidation.apply(to: &fields)
        #expect(fields.lines.map { "\($0.name): \($0.value)" } == ["Accept: text/html", "If-None-Match: \"a\""])
    }

    private func freshened(
        _ before: [(String, String)],
        _ update: [(String, String)],
        request asked: RequestHead? = nil
    ) -> StoredHead {
        Caching.freshened(
            stored: stored(before),
            by: ResponseHead(status: 304, reason: "", version: .http11, fields: Fields(update)),
            times: ResponseTimes(requestTime: arrival + 99, responseTime: arrival + 100),
            request: asked
        )
    }

    @Test("of a 304 that others may read otherwise nothing is taken over", arguments: [false, true])
    func odd(byHead: Bool) {
        let update = [("Cache-Control", "max-age=99999"), ("Content-Security-Policy", "none"), ("X-A", "1")]
        var check = ResponseHead(status: byHead ? 200 : 304, reason: "", version: .http11, fields: Fields(update))
        check.isOddlyFramed = true
        let before = stored([("Cache-Control", "max-age=60"), Self.tag])
        let head = Caching.freshened(
            stored: before,
            by: check,
            times: ResponseTimes(requestTime: arrival + 99, responseTime: arrival + 100),
            byHead: byHead
        )
        #expect(head.fields.first(.cacheControl) == "max-age=60" && head.fields.first(.etag) == "\"a\"")
        #expect(head.fields.lines.allSatisfy { !["x-a", "content-security-policy"].contains($0.name.lowercased()) })
    }

    @Test("RFC 9111 3.2: every line of an updated field is replaced, the others stay")
    func update() {
        let head = freshened(
            [("Cache-Control", "max-age=60"), ("X-A", "1"), ("x-a", "2"), ("X-B", "1"), Self.tag, ("Age", "50")],
            [("Cache-Control", "max-age=90"), ("X-A", "3"), ("X-C", "1"), ("Date", date(100)), ("Age", "4")]
        )
        #expect(head.fields.all("x-a") == ["3"])
        #expect(head.fields.all("X-B") == ["1"])
        #expect(head.fields.all("X-C") == ["1"])
        #expect(head.fields.all(.date) == [date(100)])
        #expect(!head.fields.contains(.age))
        #expect(head.initialAge == 5)
        #expect(head.responseTime == arrival + 100)
        #expect(head.validatedAt == arrival + 100)
        #expect(Caching.freshnessLifetime(head, policy: CachePolicy()).seconds == 90)
    }

    @Test("RFC 9111 4.3.4: a 304 without Date or Age makes the response as new as its arrival")
    func withoutDate() {
        let head = freshened([("Cache-Control", "max-age=60"), ("Age", "59")], [])
        #expect(head.fields.first(.date) == date(100))
        #expect(head.initialAge == 1)
        let decision = Caching.lookup(request: request(), stored: head, policy: CachePolicy(), now: arrival + 100)
        #expect(decision == .fresh(age: 1, ttl: 59))
    }

    @Test(
        "RFC 9111 3.2: a 304 does not change these fields",
        arguments: [
            "Content-Length", "Content-Encoding", "Content-Range", "Connection", "Keep-Alive", "Proxy-Authenticate",
            "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Age",
        ]
    )
    func untouched(name: String) {
        let before = stored([(name, "5"), ("Cache-Control", "max-age=60")])
        let head = Caching.freshened(
            stored: before,
            by: ResponseHead(status: 304, reason: "", version: .http11, fields: Fields([(name, "9")])),
            times: ResponseTimes(at: arrival)
        )
        #expect(head.fields.all(name) == before.fields.all(name))
        #expect(head.bodyLength == before.bodyLength)
    }

    @Test("RFC 9111 3.2: what Connection names, private and no-cache list does not come in with a 304")
    func listed() {
        let head = freshened(
            [("Cache-Control", "max-age=60"), ("X-A", "1"), ("X-B", "1"), ("X-C", "1")],
            [("Connection", "X-A"), ("X-A", "2"), ("Cache-Control", "max-age=9, private=\"x-b\""), ("X-B", "2")]
        )
        #expect(head.fields.all("X-A") == ["1"])
        #expect(head.fields.all("X-B").isEmpty)
        #expect(head.fields.all("X-C") == ["1"])
    }

    @Test(
        "RFC 9111 5.2.2.7: what a 304 lists as private stays out, also where a targeted field governs the stored response"
    )
    func listedBesideTargeted() {
        let head = freshened(
            [("CDN-Cache-Control", "max-age=60"), ("Cache-Control", "max-age=1")],
            [("Cache-Control", "private=\"x-a\""), ("X-A", "1"), ("X-B", "1")]
        )
        #expect(!head.fields.contains("X-A") && head.fields.contains("X-B"))
    }

    @Test("A 304's Set-Cookie is kept with explicit freshness that is for all only")
    func cookies() {
        for (control, isKept) in [("s-maxage=60", true), ("public, max-age=60", true), ("max-age=60", false)] {
            let head = freshened([("Cache-Control", control)], [("Set-Cookie", "a=2")])
            #expect(head.fields.contains(.setCookie) == isKept)
        }
        #expect(!freshened([Self.tag, Self.modified], [("Set-Cookie", "a=2")]).fields.contains(.setCookie))
    }

    @Test("RFC 9111 4.1: a 304's Vary counts together with the request whose fields select")
    func vary() {
        let update = [("Vary", "Accept")]
        let asked = request(.get, [("Accept", "text/html"), ("X-Other", "1")])
        let selecting = freshened([("Cache-Control", "max-age=60")], update, request: asked)
        #expect(selecting.varyNames == ["accept"])
        #expect(Caching.selects(stored: selecting, request: asked))
        #expect(!Caching.selects(stored: selecting, request: request()))
        let blind = freshened([("Cache-Control", "max-age=60")], update)
        #expect(blind.varyNames.isEmpty && !blind.fields.contains(.vary))
    }

    @Test("What a 304 takes back is no longer kept")
    func takenBack() {
        let head = freshened([("Cache-Control", "max-age=60")], [("Cache-Control", "no-store")])
        #expect(Caching.decideKeep(head, policy: CachePolicy()) == .refuse(.noStore))
    }
}
