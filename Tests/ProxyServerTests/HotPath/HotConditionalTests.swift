// Conditions, ranges and variants on the hot path: byte for byte what the waiting path answers.

import EventLoop
import Glibc
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct HotConditionalTests {
    private typealias Pairs = [(String, String)]

    private static let body = "0123456789abcdefghij"
    private static let modified = "Sun, 06 Nov 1994 08:49:37 GMT"
    private static let now = HTTPDate.format(Int64(time(nil)))

    /// What is stored: the status, and its fields besides Cache-Control.
    private static let responses: [(name: String, status: Int, fields: Pairs)] = [
        (
            "strong", 200,
            [
                ("ETag", "\"a\""), ("Last-Modified", modified), ("Content-Type", "text/plain"),
                ("CDN-Cache-Control", "max-age=700"),
                ("drydock-CACHE-control", "max-age=700"), ("Expires", "0"), ("Content-Location", "/other"),
                ("Content-Digest", "x"), ("Content-MD5", "y"), ("X-Cache-Control-Not", "z"), ("Server", "s"),
                ("Cache-Status", "inner; hit"), ("Access-Control-Allow-Origin", "*"), ("X-Empty", ""),
            ]
        ),
        ("behind", 200, [("Via", "1.0 fred"), ("ETag", "\"a\"")]),
        ("weak", 200, [("ETag", "W/\"a\""), ("Last-Modified", modified), ("Accept-Ranges", "none")]),
        ("comma", 200, [("ETag", "\"a,b\""), ("Content-Range", "bytes 0-1/2")]),
        ("bare", 200, [("ETag", "a"), ("Accept-Ranges", "bytes")]),
        ("dated", 200, [("Last-Modified", modified)]),
        ("modified-now", 200, [("Last-Modified", now), ("Date", now)]),
        ("nothing", 200, []),
        ("missing", 404, [("ETag", "\"a\""), ("Last-Modified", modified)]),
        ("notice", 203, [("ETag", "\"a\"")]),
    ]

    /// What is asked.
    private static let conditions: [Pairs] =
        [
            "\"a\"", "W/\"a\"", "w/\"a\"", "\"b\"", "a", "*", "\"b\", \"a\"", "\"b\",W/\"a\" ,", "\"a,b\"",
            "\"x, \"a\"", "",
            ",", "\"*\"", "\"b\", *", "W/", "W/*", "\"a", "\"A\"", "\"b\", \"c\"",
        ].map { [("If-None-Match", $0)] } + [
            [("If-None-Match", "\"b\""), ("If-None-Match", "\"a\"")],
            [("If-None-Match", "\"b\""), ("If-None-Match", "*")],
            [("If-None-Match", "\"b\""), ("If-Modified-Since", "Fri, 01 Jan 2038 00:00:00 GMT")],
            [("If-None-Match", "\"a\""), ("If-Modified-Since", "Sun, 06 Nov 1993 08:49:37 GMT")],
            [("If-Modified-Since", modified), ("If-Modified-Since", modified)],
            [("If-None-Match", "\"a\""), ("Connection", "If-None-Match")],
            [("If-None-Match", "\"a\""), ("Connection", "keep-alive")],
            [("If-None-Match", "\"a\""), ("Connection", "close")],
            [("If-None-Match", "\"a\""), ("Range", "bytes=0-1")],
            [("If-None-Match", "\"b\""), ("Range", "bytes=0-1")],
        ]
        + [
            modified, "Sun, 06 Nov 1994 08:49:36 GMT", "Fri, 01 Jan 2038 00:00:00 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994", now, "yesterday", "",
        ].map { [("If-Modified-Since", $0)] }

    private static let ranges: [Pairs] =
        [
            "bytes=0-0", "bytes=0-19", "bytes=0-99", "bytes=5-", "bytes=-5", "bytes=-99", "BYTES=1-2", "bytes=19-19",
            "bytes=20-", "bytes=-0", "bytes=2-1", "bytes= 0-1", "bytes=0-1 ", "bytes=0 -1", "bytes=0-1,", "bytes=,0-1",
            "bytes=0-1, 2-3", "items=0-1", "bytes=", "bytes", "bytes=a-b", "bytes=-", "bytes=1-2-3", "bytes=+1-2",
            "bytes=0-99999999999999999999", "bytes=99999999999999999999-", "bytes=000000000000000000000001-2",
        ].map { [("Range", $0)] } + [
            [("Range", "bytes=0-1"), ("Range", "bytes=2-3")], [("Range", "bytes=0-1"), ("Connection", "Range")],
            [("If-Range", "\"a\"")], [("Range", "bytes=0-1"), ("If-Range", "\"a\""), ("If-Range", "\"a\"")],
            [("Range", "bytes=0-1"), ("If-Range", "\"a\""), ("Connection", "x, If-Range")],
            [("Range", "bytes=0-1"), ("If-Modified-Since", modified)],
        ]
        + [
            "\"a\"", "W/\"a\"", "\"b\"", "a", "*", "", "\"a,b\"", modified, "Sun, 06 Nov 1994 08:49:36 GMT",
            "Sun Nov  6 08:49:37 1994", "\"a\", \"b\"", now,
        ].map { [("Range", "bytes=3-4"), ("If-Range", $0)] }

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let name = request.target.split(separator: "/").last.map(String.init) ?? ""
            guard let response = responses.first(where: { $0.name == name }) else { return .answer(to: request, "?") }
            let fields = [("Cache-Control", "max-age=600, public")] + response.fields
            return .answer(response.status, to: request, fields: fields, body)
        }
    }

    /// Everything of an answer but what the clock changes, its lines in order of their spelling.
    private static func facts(_ response: RawResponse) -> [String] {
        let lines = response.head.fields.compactMap { name, value -> String? in
            if name == "Age" { return UInt(value) == nil ? "Age is no number" : nil }
            guard name == "Cache-Status" else { return "\(name): \(value)" }
            let members = value.split(separator: ";").map { $0.hasPrefix(" ttl=") ? " ttl" : $0 }
            return "\(name): \(members.joined(separator: ";"))"
        }
        return ["\(response.head.status) \(response.head.reason)"] + lines.sorted() + [response.text]
    }

    /// The hot path writes Age behind Via.
    private static func isHot(_ response: RawResponse) -> Bool {
        let names = response.head.fields.map(\.name)
        guard let age = names.firstIndex(of: "Age"), let via = names.firstIndex(of: "Via") else { return false }
        return via < age
    }

    private static func ask(
        _ harness: HandlerHarness,
        _ target: String,
        _ wish: Pairs
    ) throws -> (hot: RawResponse, waiting: RawResponse) {
        let hot = try harness.get(target, fields: wish)
        return (hot, try harness.get(target, fields: wish + [("Cache-Control", "max-age=999999999")]))
    }

    /// Asks both paths for each, and counts the answers of the hot path by status.
    private static func compare(_ wishes: [Pairs], _ rest: String = "") async throws -> [Int: Int] {
        let origin = try Self.origin()
        let services =
            "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)/base\"\(rest) }]"
        let counts = Monitor([Int: Int]())
        try await HandlerHarness.run(services) { harness throws in
            let client = try harness.client()
            for response in Self.responses {
                let target = "/s/\(response.name)"
                #expect(try client.exchange(target).status == response.status)
                #expect(try Self.isHot(client.exchange(target)), "\(response.name)")
                for wish in wishes {
                    var (hot, waiting) = try Self.ask(harness, target, wish)
                    // A second may have begun between the two, which Date shows; not twice in a row.
                    if Self.facts(hot) != Self.facts(waiting) {
                        (hot, waiting) = try Self.ask(harness, target, wish)
                    }
                    #expect(Self.facts(hot) == Self.facts(waiting), "\(response.name) \(wish)")
                    // Where Via has been there before, the order of the lines tells nothing.
                    if response.name == "behind" { continue }
                    #expect(!Self.isHot(waiting))
                    if Self.isHot(hot) { counts.update { $0[hot.status, default: 0] += 1 } }
                }
            }
            #expect(origin.requests() == Self.responses.count)
        }
        return counts.read { $0 }
    }

    @Test func `conditions are answered alike on both paths`() async throws {
        let hot = try await Self.compare(Self.conditions)
        // A condition that Connection names waits.
        #expect(hot.values.reduce(0, +) == (Self.responses.count - 1) * (Self.conditions.count - 1))
        #expect(hot[304, default: 0] > 50 && hot[200, default: 0] > 50 && hot[404, default: 0] > 20)
    }

    @Test func `ranges are answered alike on both paths`() async throws {
        // Not those with several parts: their boundary is made anew each time.
        let hot = try await Self.compare(Self.ranges.filter { !$0.contains { $0.1.contains(", 2-3") } })
        #expect(hot[206, default: 0] > 50 && hot[200, default: 0] > 10)
        #expect(hot[416] == nil, "these wait")
    }

    @Test func `ready heads that a service has changed are answered alike`() async throws {
        let wishes = Array(Self.conditions.prefix(6)) + Array(Self.ranges.prefix(6))
        let hot = try await Self.compare(wishes, ", cors: { origins: [\"http://a.test\"] }")
        #expect(hot[206, default: 0] > 20 && hot[304, default: 0] > 10)
    }

    // MARK: - Variants

    private static let coded = ("Accept-Encoding", "gzip, br")
    private static let browser: Pairs = [
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
        ("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"), ("Accept-Language", "en-US,en;q=0.5"),
        ("Referer", "http://localhost/"), ("Connection", "keep-alive"), ("Cookie", "a=b; c=d"), ("TE", "trailers"),
        ("Upgrade-Insecure-Requests", "1"), ("Sec-Fetch-Dest", "document"), ("Sec-Fetch-Mode", "navigate"),
        ("X-Forwarded-For", "10.0.0.1"), ("Via", "1.1 front"), ("Origin", "http://a.test"),
    ]

    /// Each answer names what it was chosen by.
    private static func varying(_ vary: String) throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let names = vary.split(separator: ",").map { $0.filter { $0 != " " } }
            let text = names.map { request.all($0).joined(separator: "|") }.joined(separator: "; ")
            return .answer(to: request, fields: [("Cache-Control", "max-age=600"), ("Vary", vary)], text)
        }
    }

    @Test(
        arguments: [
            ("Accept-Encoding", [coded], true), ("accept-encoding", [coded], true), ("Accept-Encoding", [], true),
            ("Accept-Encoding, Cookie", [coded, ("Cookie", "x=y")], true), ("X-Tenant", [("x-tenant", "a")], true),
            ("Accept-Encoding", [coded, coded], false), ("Accept-Encoding", [coded, ("Connection", "x")], false),
            ("TE", [("TE", "trailers")], false), ("Keep-Alive", [], false), ("X-Tenant", [("X-Tenant", "")], true),
        ] as [(String, [(String, String)], Bool)]
    )
    func `a variant answers at once where nobody could doubt that it is selected`(
        vary: String,
        fields: [(String, String)],
        isHot: Bool
    ) async throws {
        let origin = try Self.varying(vary)
        let services = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(services) { harness throws in
            let first = try harness.get("/s/x", fields: fields)
            for _ in 0..<2 {
                let again = try harness.get("/s/x", fields: fields)
                #expect(again.text == first.text && Self.isHot(again) == isHot)
                let waiting = try harness.get("/s/x", fields: fields + [("Cache-Control", "max-age=999999999")])
                #expect(Self.facts(again) == Self.facts(waiting))
            }
            #expect(origin.requests() == 1)
        }
    }

    @Test func `each request gets its own variant, at once where it is spelled the same`() async throws {
        let origin = try Self.varying("Accept-Encoding")
        let services = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(services) { harness throws in
            let spellings: [(String, text: String, isHot: Bool)] = [
                ("gzip", "gzip", true), ("br", "br", true), ("br, gzip", "br, gzip", true),
                // The same in another spelling: found by its meaning, on the waiting path.
                ("gzip, br", "br, gzip", false), ("GZIP", "gzip", false), ("gzip;q=1", "gzip", false),
            ]
            for (spelling, text, _) in spellings {
                #expect(try harness.get("/s/x", fields: [("Accept-Encoding", spelling)]).text == text)
            }
            #expect(origin.requests() == 3)
            for (spelling, text, isHot) in spellings {
                let got = try harness.get("/s/x", fields: [("Accept-Encoding", spelling)])
                #expect(got.text == text && Self.isHot(got) == isHot, "\(spelling)")
            }
            let none = try harness.get("/s/x")
            #expect(none.text.isEmpty && none.field("Cache-Status")?.contains("fwd=vary-miss") == true)
            #expect(origin.requests() == 4)
        }
    }

    @Test func `where Vary has changed the rules choose`() async throws {
        let vary = Monitor("Accept-Encoding")
        let origin = try ScriptedOrigin { request in
            let vary = vary.read { $0 }
            return .answer(to: request, fields: [("Cache-Control", "max-age=600"), ("Vary", vary)], vary)
        }
        let services = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(services) { harness throws in
            let fields = [Self.coded, ("Accept-Language", "de")]
            #expect(try harness.get("/s/x", fields: [Self.coded]).text == "Accept-Encoding")
            #expect(try Self.isHot(harness.get("/s/x", fields: fields)))
            vary.update { $0 = "Accept-Language" }
            harness.clock.advance(seconds: 1)
            let reload = fields + [("Cache-Control", "no-cache")]
            #expect(try harness.get("/s/x", fields: reload).text == "Accept-Language")
            // Both match now, and the newer one is to be used.
            let got = try harness.get("/s/x", fields: fields)
            #expect(got.text == "Accept-Language" && !Self.isHot(got))
        }
    }

    @Test func `what browsers and proxies send stays on the hot path`() async throws {
        let origin = try Self.varying("Accept-Encoding")
        let services = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(services) { harness throws in
            let fields = Self.browser + [Self.coded]
            #expect(try harness.get("/s/x", fields: fields).text == "gzip, br")
            let hot = try harness.get("/s/x", fields: fields)
            #expect(Self.isHot(hot))
            let waiting = try harness.get("/s/x", fields: fields + [("Cache-Control", "max-age=999999999")])
            #expect(Self.facts(hot) == Self.facts(waiting))
            // A loop is still refused, and one that is none is looked at more closely.
            #expect(try harness.get("/s/x", fields: [Self.coded, ("Via", "1.1 a, 1.0 DryDock")]).status == 508)
            let near = try harness.get("/s/x", fields: [Self.coded, ("Via", "1.1 drydock-2")])
            #expect(near.status == 200 && !Self.isHot(near))
            #expect(origin.requests() == 1)
        }
    }
}
