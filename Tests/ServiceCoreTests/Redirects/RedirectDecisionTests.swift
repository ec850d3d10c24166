// Where redirects lead, and by which request they are followed.

import DownloadCore
import HTTPWire
import Testing
import Upstream

@testable import ServiceCore

@Suite struct RedirectDecisionTests {
    private static let here = RedirectTarget(
        OriginAddress(scheme: "https", host: "a.example", port: nil, basePath: ""),
        path: "/x/y?q=1"
    )

    @Test(
        "a Location as browsers read it",
        arguments: [
            ("z", "https://a.example/x/z"), ("./z", "https://a.example/x/z"), ("../z?r=2", "https://a.example/z?r=2"),
            ("/../../z", "https://a.example/z"), ("/z#part", "https://a.example/z"), ("?r", "https://a.example/x/y?r"),
            ("//b.example/z", "https://b.example/z"), ("https://B.example:443", "https://b.example/"),
            ("HTTPS://b.example:8443?a", "https://b.example:8443/?a"), ("\\z", "https://a.example/z"),
            ("\\\\b.example\\z", "https://b.example/z"), ("/a b\u{E9}", "https://a.example/a%20b%E9"),
            ("/%2e%2e/z", "https://a.example/z"), ("https://[::1]:81/z", "https://[::1]:81/z"),
            ("z:1/2", nil), ("mailto:a@b", nil), ("ftp://b.example/", nil), ("https:z", nil), ("", nil), ("#a", nil),
            ("https://user:secret@b.example/", nil), ("https://b.example:0/", nil), ("https:///z", nil),
            ("https://./z", nil), ("/a\u{0}b", nil), ("/z?a=\\b", "https://a.example/z?a=\\b"),
        ] as [(String, String?)]
    )
    func target(_ location: String, _ url: String?) {
        #expect(Self.here.resolving(location)?.url == url)
    }

    @Test("scheme, host and port make an origin")
    func origin() {
        let same = ["https://a.example/", "https://A.EXAMPLE:443/z", "/z"]
        let others = ["http://a.example/", "https://a.example:8443/", "https://www.a.example/", "https://a.example./"]
        for text in same { #expect(Self.here.resolving(text)?.isSameOrigin(as: Self.here.origin) == true, "\(text)") }
        for text in others {
            #expect(Self.here.resolving(text)?.isSameOrigin(as: Self.here.origin) == false, "\(text)")
        }
    }

    private static func decide(
        _ status: Int,
        _ method: Method = .get,
        to locations: [String] = ["/z"],
        canRepeat: Bool = true
    ) -> RedirectDecision {
        let fields = Fields(locations.map { ("Location", $0) })
        let head = ResponseHead(status: status, fields: fields)
        return RedirectDecision.decide(head, to: method, at: here, canRepeat: canRepeat)
    }

    private static let there = RedirectTarget(here.origin, path: "/z")

    @Test("303 is followed by GET, 301 and 302 of a POST, too; 307 and 308 repeat method and content")
    func methods() {
        for status in [301, 302, 303, 307, 308] {
            #expect(Self.decide(status) == .follow(Self.there, .get, keepsContent: true))
            #expect(Self.decide(status, .head) == .follow(Self.there, .head, keepsContent: true))
        }
        for status in [301, 302, 303] {
            #expect(Self.decide(status, .post) == .follow(Self.there, .get, keepsContent: false))
        }
        for status in [307, 308] {
            #expect(Self.decide(status, .post) == .follow(Self.there, .post, keepsContent: true))
        }
        for method in [Method.put, .delete, .patch] {
            #expect(Self.decide(303, method) == .follow(Self.there, .get, keepsContent: false))
            for status in [301, 302, 307, 308] {
                #expect(Self.decide(status, method) == .follow(Self.there, method, keepsContent: true))
            }
        }
    }

    @Test("content that is not there any more is not repeated: the client gets the redirect")
    func content() {
        #expect(Self.decide(307, .post, canRepeat: false) == .answer)
        #expect(Self.decide(301, .put, canRepeat: false) == .answer)
        #expect(Self.decide(303, .post, canRepeat: false) == .follow(Self.there, .get, keepsContent: false))
    }

    @Test("what is no redirect with one Location is the answer")
    func answers() {
        for status in [200, 201, 300, 304, 305, 306, 404, 500] { #expect(Self.decide(status) == .answer) }
        #expect(Self.decide(302, to: []) == .answer)
        #expect(Self.decide(302, to: ["/a", "/b"]) == .answer)
        #expect(Self.decide(302, to: ["ftp://b.example/"]) == .answer)
    }

    @Test("https does not lead to http, and the refusal shows no query")
    func downgrade() {
        guard case .refuse(let why) = Self.decide(302, to: ["http://a.example/z?token=s"]) else {
            Issue.record("followed")
            return
        }
        #expect(why.contains("https://a.example/x/y redirects from https to http://a.example/z,"))
        #expect(!why.contains("token"))
    }

    @Test("content is kept as long as it is short, and what was not read yet follows")
    func remembered() {
        let body = RememberedBody(ContentSource(Array("abcdef".utf8)))
        func read(_ source: any RequestBodySource, _ count: Int) -> String {
            withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { buffer in
                guard case .bytes(let count) = source.read(into: buffer) else { return "" }
                return String(decoding: buffer[..<count], as: UTF8.self)
            }
        }
        #expect(read(body, 2) == "ab")
        guard let again = body.again else {
            Issue.record("gone")
            return
        }
        #expect(read(again, 9) + read(again, 9) == "abcdef")
        let bytes = [UInt8](repeating: 0, count: RememberedBody.longest + 1)
        let inMemory = RememberedBody(ContentSource(bytes))
        _ = read(inMemory, bytes.count)
        #expect(inMemory.again != nil, "what is in memory can be had again, however long it is")
        let long = RememberedBody(ContentSource(bytes, then: ContentSource([])))
        _ = read(long, RememberedBody.longest)
        #expect(long.again != nil)
        _ = read(long, 9)
        #expect(long.again == nil)
    }

    @Test("a host must be allowed, and an internal address only by its own name")
    func allow() {
        #expect(TargetPattern.rules(["*"], "b.example", 443) == .noPrivate)
        #expect(TargetPattern.rules(["*.example", "c.test:81"], "b.example", 443) == .noPrivate)
        #expect(TargetPattern.rules(["*.example", "b.example"], "b.example", 443) == .any)
        #expect(TargetPattern.rules(["c.test:81"], "c.test", 81) == .any)
        #expect(TargetPattern.rules(["c.test:81"], "c.test", 82) == nil)
        #expect(TargetPattern.rules([], "c.test", 82) == nil)
    }
}
