// Where the origin fails, a variant that another client has brought answers, if `cache.other_variant` lets it.

import DownloadCore
import EventLoop
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5)))
struct FailingVariantTests {
    private static let codings = [("Accept-Encoding", "gzip, br")]

    private static var gzip: [UInt8] { Coded.jsonBy.first { $0.0 == "gzip" }?.1 ?? [] }

    /// Answers in gzip who accepts gzip and br, and fails for everybody else as the target says.
    private static func origin() throws -> ScriptedOrigin {
        let coded = gzip
        return try ScriptedOrigin { request in
            let name = String(request.target.split(separator: "/").last ?? "")
            if request.field("Accept-Encoding") == "gzip, br" {
                let more = ["strict": ", must-revalidate", "own": ", private"][name] ?? ""
                let fields = [
                    ("Cache-Control", "max-age=600" + more), ("Vary", "Accept-Encoding, Cookie"), ("ETag", "\"coded\""),
                    ("Content-Type", "application/json"), ("Content-Encoding", "gzip"),
                ]
                return .answer(200, to: request, fields: fields, body: coded)
            }
            return Int(name).map { .answer($0, to: request, "the origin's own") } ?? OriginReply([.cut])
        }
    }

    private static func text(_ origin: ScriptedOrigin, _ cache: String, _ more: String = "") -> String {
        "services: [{ name: api, match: { prefix: /api }, base_url: \"\(origin.url)\", cache: { \(cache) }\(more) }]"
    }

    @Test func `a failure is answered with another variant, which says so`() async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.text(origin, "other_variant: serve")) { harness throws in
            for name in ["cut", "503", "404"] { _ = try harness.get("/api/\(name)", fields: Self.codings) }
            try harness.settle()
            for (name, said) in [("cut", "fwd=vary-miss; ttl="), ("503", "fwd=vary-miss; fwd-status=503; ttl=")] {
                let before = origin.requests()
                for accept in ["zstd", "deflate, gzip"] {
                    let answer = try harness.get("/api/\(name)", fields: [("Accept-Encoding", accept)])
                    #expect(answer.status == 200, "\(name) \(accept)")
                    #expect(answer.body == (accept == "zstd" ? Coded.json : Self.gzip), "\(name) \(accept)")
                    #expect(answer.field("Cache-Control") == "no-store")
                    let status = answer.field("Cache-Status") ?? ""
                    #expect(status.contains(said) && status.hasSuffix("detail=other-variant"), "\(status)")
                    #expect(!status.contains("stored") && !status.contains("hit"), "\(status)")
                    let head = try harness.exchange("HEAD", "/api/\(name)", fields: [("Accept-Encoding", accept)])
                    #expect(head.status == 200 && head.field("Cache-Status")?.contains("other-variant") == true)
                }
                #expect(origin.requests() >= before + 4, "the origin is asked first, each time")
            }
            #expect(try blockUntil { try harness.counters().answers[.stale] == 8 })
            // What is no failure is passed on, and so is what the request forbids.
            let wanted = ("Accept-Encoding", "zstd")
            #expect(try harness.get("/api/404", fields: [wanted]).status == 404)
            for field in [
                ("Cookie", "id=1"), ("Accept", "text/html"), ("Cache-Control", "no-cache"), ("If-Match", "*"),
            ] {
                #expect(try harness.get("/api/503", fields: [wanted, field]).status == 503, "\(field)")
                #expect(try harness.get("/api/cut", fields: [wanted, field]).status == 502, "\(field)")
            }
            #expect(try harness.get("/api/cut", fields: [wanted, ("Cache-Control", "only-if-cached")]).status == 504)
            // Who selects it gets it as ever.
            let same = try harness.get("/api/cut", fields: Self.codings)
            #expect(same.field("Cache-Status")?.contains("detail=memory") == true)
        }
    }

    @Test func `without the key the failure is the answer, and an endpoint can switch it off`() async throws {
        let origin = try Self.origin()
        let wanted = [("Accept-Encoding", "zstd")]
        try await HandlerHarness.run(Self.text(origin, "stale_if_error: 1d")) { harness throws in
            #expect(try harness.get("/api/503", fields: Self.codings).status == 200)
            try harness.settle()
            #expect(try harness.get("/api/503", fields: wanted).status == 503)
        }
        let endpoint = ", endpoints: [{ name: off, path: /off/:name, cache: { other_variant: none } }]"
        try await HandlerHarness.run(Self.text(origin, "other_variant: serve", endpoint)) { harness throws in
            for path in ["/api/off/503", "/api/on/503"] { _ = try harness.get(path, fields: Self.codings) }
            try harness.settle()
            #expect(try harness.get("/api/off/503", fields: wanted).status == 503)
            #expect(try harness.get("/api/on/503", fields: wanted).status == 200)
        }
    }

    @Test func `nothing answers that may not be used stale, or is staler than stale_if_error`() async throws {
        let origin = try Self.origin()
        let cache = "other_variant: serve, stale_if_error: 1h"
        let wanted = [("Accept-Encoding", "zstd")]
        try await HandlerHarness.run(Self.text(origin, cache)) { harness throws in
            for name in ["cut", "strict", "own"] { _ = try harness.get("/api/\(name)", fields: Self.codings) }
            try harness.settle()
            #expect(try harness.get("/api/strict", fields: wanted).status == 502, "must-revalidate")
            #expect(try harness.get("/api/own", fields: wanted).status == 502, "private")
            harness.clock.advance(seconds: 600 + 1800)
            let stale = try harness.get("/api/cut", fields: wanted)
            #expect(stale.status == 200 && stale.body == Coded.json)
            #expect(stale.field("Cache-Status")?.contains("ttl=-18") == true, "\(stale.field("Cache-Status") ?? "")")
            let strict = wanted + [("Cache-Control", "stale-if-error=60")]
            #expect(try harness.get("/api/cut", fields: strict).status == 502)
            harness.clock.advance(seconds: 1900)
            #expect(try harness.get("/api/cut", fields: wanted).status == 502, "too stale")
        }
    }

    @Test func `it comes before the fallback, which answers where no variant may`() async throws {
        let origin = try Self.origin()
        let folder = try TemporaryFolder("drydock-variants")
        try folder.write("sorry.txt", "sorry")
        let cache = "other_variant: serve, fallback: { file: \"\(folder.file("sorry.txt"))\" }"
        try await HandlerHarness.run(Self.text(origin, cache)) { harness throws in
            _ = try harness.get("/api/cut", fields: Self.codings)
            try harness.settle()
            #expect(try harness.get("/api/cut", fields: [("Accept-Encoding", "zstd")]).body == Coded.json)
            #expect(try harness.get("/api/cut", fields: [("Accept", "text/html")]).text == "sorry")
            #expect(try harness.get("/api/other", fields: [("Accept-Encoding", "zstd")]).text == "sorry")
        }
    }
}
