// Paths with dot segments: refused before anything is matched where they could leave what a service answers for,
// else passed on as they are.

import DownloadCore
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct DotSegmentTests {
    /// Ways out of `/pub`, and of a base path.
    private static let ways = [
        "/pub/../admin", "/pub/%2e%2e/admin", "/pub/%2E./admin", "/pub/..%2fadmin", "/pub%2f..%2fadmin",
        "/pub/..%5cadmin",
        "/pub\\..\\admin", "/pub/..\\admin", "/pub/..;/admin", "/pub/..;x=1/admin", "/pub/%252e%252e/admin",
        "/pub/./admin",
        "/../../admin", "/..", "/pub/..?q=1",
    ]

    private static func text(_ origin: ScriptedOrigin) -> String {
        """
        services:
          - name: lock
            match: { prefix: /lock }
            base_url: "\(origin.url)/web"
            auth: { bearer: s3cret }
            unlisted: 404
            endpoints:
              - { name: pub, path: "/pub/*" }
              - { name: post, path: "/pub/*", method: POST }
          - { name: outer, match: { prefix: /outer }, base_url: service:lock }
          - { name: based, match: { prefix: /based }, base_url: "\(origin.url)/web" }
          - { name: trusted, match: { prefix: /trusted }, base_url: "\(origin.url)", headers: { set: { X-Api-Key: k } } }
          - { name: listed, match: { prefix: /listed }, base_url: "\(origin.url)", endpoints: [{ name: e, path: /e }] }
          - { name: straight, match: { prefix: /straight }, base_url: "\(origin.url)/web", cache: { mode: none } }
          - { name: hosted, match: { host: hosted.localhost }, base_url: "\(origin.url)/web" }
          - { name: open, match: { prefix: /open }, base_url: "\(origin.url)" }
          - name: demo
            match: { prefix: /demo }
            endpoints: [{ name: any, path: "/pub/*", demo: { enabled: true, status: 204 } }]
        """
    }

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], $0.target) }
    }

    @Test func `no request of any kind reaches what lies beside an endpoint or a base path`() async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            for service in ["lock", "outer", "based", "trusted", "listed", "straight", "demo"] {
                for way in Self.ways {
                    let target = "/\(service)\(way)"
                    // Twice: what was refused is not there the second time.
                    for method in ["GET", "HEAD", "POST", "DELETE", "GET"] {
                        let body: [UInt8]? = method == "POST" ? [1, 2, 3] : nil
                        let answer = try harness.exchange(method, target, body: body)
                        #expect(answer.status == 400, "\(method) \(target)")
                        if method == "GET" {
                            // Says why, and which service has a say; a service in front stands for the one behind.
                            #expect(answer.text.contains("dot segments") && answer.text.contains("service \(service) "))
                        }
                    }
                    let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
                    #expect(try harness.get(target, fields: upgrade).status == 400, "\(target)")
                    #expect(try harness.explanation(target).contains("400 Path with dot segments"), "\(target)")
                    #expect(try harness.batchKey(BatchItem(url: target)).contains("dot segments"), "\(target)")
                }
            }
            for way in Self.ways {
                #expect(try harness.get(way, host: "hosted.localhost").status == 400, "\(way)")
                // By the URL of the origin behind a service.
                let url = "\(origin.url)/web\(way)"
                if way.hasPrefix("/pub/") {
                    #expect(try harness.batchKey(BatchItem(url: url)).contains("dot segments"))
                }
            }
            #expect(origin.requests() == 0)
            // The service is there, and its connection in step.
            let client = try harness.client()
            #expect(try client.exchange("/lock/pub/../admin").status == 400)
            #expect(try client.exchange("/lock/pub/a%2Fb.c/..d?x=/../y").text == "/web/pub/a%2Fb.c/..d?x=/../y")
            #expect(try client.exchange("/lock/admin").status == 404)
            #expect(try client.exchange("/demo/pub/x").status == 204)
        }
    }

    @Test func `elsewhere a target goes on as it is, and is the key byte for byte`() async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            for way in Self.ways {
                for expected in ["uri-miss", "hit"] {
                    let answer = try harness.get("/open\(way)")
                    #expect(answer.text == way)
                    #expect(answer.field("Cache-Status")?.contains(expected) == true, "\(way)")
                    try harness.settle()
                }
                #expect(origin.requests(target: way) == 1, "\(way)")
            }
            #expect(try harness.get("/open/admin").field("Cache-Status")?.contains("uri-miss") == true)
        }
    }

    @Test func `what was stored under such a path is not served once it is refused`() async throws {
        let origin = try Self.origin()
        let open = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\" }]"
        let keys = ["auth: { bearer: x }", "endpoints: [{ name: e, path: \"/pub/*\" }]"]
        try await HandlerHarness.run(open) { harness throws in
            for _ in 0..<2 { #expect(try harness.get("/s/pub/../x").text == "/pub/../x") }
            for key in keys {
                try harness.reload(open.replacing(" }]", with: ", \(key) }]"))
                for _ in 0..<2 { #expect(try harness.get("/s/pub/../x").status == 400) }
            }
            try harness.reload(open)
            #expect(try harness.get("/s/pub/../x").field("Cache-Status")?.contains("hit") == true)
            #expect(origin.requests() == 1)
        }
    }
}
