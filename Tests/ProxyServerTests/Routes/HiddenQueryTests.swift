// Secrets in the query: the origin gets them, and nobody else ever sees them.

import Configuration
import DownloadCore
import Foundation
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct HiddenQueryTests {
    private static func text(_ origin: ScriptedOrigin) -> String {
        """
        services:
          - name: api
            match: { prefix: /api }
            base_url: "\(origin.url)/v1"
            query: { page: 1, api_key: s3cret/a }
            endpoints: [{ name: e, path: /e, query: { appid: { value: s3cret.b, secret: true } } }]
          - { name: only, match: { prefix: /only }, base_url: "\(origin.url)", query: { token: s3cret-c } }
          - name: direct
            match: { prefix: /direct }
            base_url: "\(origin.url)"
            query: { token: s3cret-d }
            cache: { mode: none }
          - { name: outer, match: { prefix: /outer }, base_url: service:inner, query: { key: s3cret-o } }
          - { name: other, match: { prefix: /other }, base_url: service:inner, query: { key: s3cret-p } }
          - { name: inner, match: { prefix: /inner }, base_url: "\(origin.url)", query: { key: s3cret-i, more: x } }
          - { name: plain, match: { prefix: /plain }, base_url: "\(origin.url)" }
          - { name: before, match: { prefix: /before }, base_url: service:plain, query: { key: s3cret-q }, cache: { mode: none } }
          - { name: gone, match: { prefix: /gone }, base_url: "http://127.0.0.1:1", query: { token: s3cret-g } }
        """
    }

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            var fields = [("Cache-Control", "max-age=60")]
            if request.target.contains("moved") { fields.append(("Location", request.target)) }
            return .answer(request.target.contains("moved") ? 302 : 200, to: request, fields: fields, "x")
        }
    }

    @Test(
        arguments: [
            ("/api/x", "/v1/x?page=1&api_key=s3cret%2Fa"),
            ("/api/e?page=2", "/v1/e?page=2&api_key=s3cret%2Fa&appid=s3cret.b"),
            ("/api/x?api_key=mine", "/v1/x?api_key=mine&page=1"), ("/only", "/?token=s3cret-c"),
            ("/only/x?a", "/x?a&token=s3cret-c"), ("/direct/x?a", "/x?a&token=s3cret-d"),
            ("/outer/x", "/x?more=x&key=s3cret-o"), ("/other/x", "/x?more=x&key=s3cret-p"),
            ("/inner/x", "/x?more=x&key=s3cret-i"), ("/outer/x?key=mine", "/x?key=mine&more=x"),
            ("/before/x", "/x?key=s3cret-q"),
        ] as [(String, String)]
    )
    func `the origin gets it, however it is asked`(target: String, asked: String) async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            // An endpoint is of GET.
            for method in target.hasPrefix("/api/e") ? ["GET", "HEAD"] : ["GET", "POST", "HEAD"] {
                let answer = try harness.exchange(method, target, body: method == "POST" ? [1] : nil)
                #expect(answer.status == 200)
            }
            #expect(Set(origin.log.map(\.target)) == [asked])
            #expect(try harness.get(target, fields: [("Connection", "Upgrade"), ("Upgrade", "x")]).status == 200)
            #expect(Set(origin.log.map(\.target)) == [asked])
        }
    }

    @Test func `it stands in no key, explanation, batch, answer or log line`() async throws {
        let origin = try Self.origin()
        let folder = try TemporaryFolder()
        let path = folder.path + "/access.log"
        var log = LogConfiguration()
        log.access = .file(path: path)
        let targets = ["/x", "/e", "/moved", "/moved?b=2", "/missing/.."]
        try await HandlerHarness.run(Self.text(origin), log: log) { harness throws in
            for service in ["api", "only", "direct", "outer", "other", "inner", "before", "gone"] {
                for target in targets.map({ "/\(service)\($0)" }) {
                    for _ in 0..<2 {
                        let answer = try harness.get(target)
                        let said = answer.head.fields.map { "\($0.name): \($0.value)" } + [answer.text]
                        #expect(!said.joined(separator: "\n").contains("s3cret"), "\(target) \(said)")
                        try harness.settle()
                    }
                    let explained = try harness.explanation(target)
                    #expect(!explained.contains("s3cret"), "\(target) \(explained)")
                    #expect(!(try harness.batchKey(BatchItem(url: target))).contains("s3cret"), "\(target)")
                }
            }
            #expect(try harness.get("/api/moved?b=2").field("Location") == "/api/moved?b=2&page=1")
            #expect(try harness.get("/only/moved").field("Location") == "/only/moved")
            #expect(try harness.get("/direct/moved").field("Location") == "/direct/moved")
            #expect(try harness.get("/outer/moved").field("Location") == "/outer/moved?more=x")
            let listed = try harness.listed()
            #expect(listed.count > 10 && !listed.contains { $0.contains("s3cret") }, "\(listed)")
            #expect(listed.contains { $0.hasSuffix("/x?more=x query of outer: key") }, "\(listed)")
        }
        let lines = try String(contentsOfFile: path, encoding: .utf8)
        #expect(lines.contains("gone"))
        #expect(!lines.contains("s3cret"))
    }

    @Test("nor in an interim answer, which speaks of the proxy's URLs as a final one does")
    func interimAnswers() async throws {
        let origin = try ScriptedOrigin { request in
            let head = request.target.split(separator: "?").first.map(String.init) ?? ""
            let query = request.target.dropFirst(head.count)
            let early = """
                HTTP/1.1 103 Early Hints\r\nLink: <\(head)/style.css\(query)>; rel=preload\r\n\
                Location: \(head)/next\(query)\r\nSet-Cookie: a=b; Domain=origin.test\r\n\r\n
                """
            return .raw(early + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
        }
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "x")]
            // Answers that may be stored, that are passed on, by another service, to a body,
            // and on the way to a tunnel.
            let ways: [(method: String, target: String, fields: [(String, String)])] = [
                ("GET", "/api/x", []), ("GET", "/only/x", []), ("GET", "/direct/x", []), ("GET", "/outer/x", []),
                ("POST", "/api/x", []), ("GET", "/api/x", upgrade), ("GET", "/direct/x", upgrade),
            ]
            for (method, target, fields) in ways {
                let body: [UInt8]? = method == "POST" ? [1] : nil
                let answer = try harness.exchange(method, target, fields: fields, body: body)
                #expect(answer.status == 200, "\(target)")
                let early = try #require(answer.interim.first, "\(method) \(target)")
                #expect(early.status == 103)
                let said = early.fields.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
                #expect(!said.contains("s3cret"), "\(said)")
                #expect(early.field("Location")?.hasPrefix("\(target)/next") == true, "\(said)")
                #expect(early.field("Set-Cookie") == "a=b", "\(said)")
                #expect(early.field("Link")?.contains("/style.css") == true, "\(said)")
            }
        }
    }

    @Test func `services that ask one another keep apart what they ask with different secrets`() async throws {
        let origin = try ScriptedOrigin { request in
            .answer(to: request, fields: [("Cache-Control", "max-age=60")], request.target)
        }
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            for _ in 0..<2 {
                #expect(try harness.get("/plain/x").text == "/x")
                #expect(try harness.get("/before/x").text == "/x?key=s3cret-q")
                #expect(try harness.get("/outer/x").text == "/x?more=x&key=s3cret-o")
                #expect(try harness.get("/other/x").text == "/x?more=x&key=s3cret-p")
                #expect(try harness.get("/inner/x").text == "/x?more=x&key=s3cret-i")
                try harness.settle()
            }
            #expect(origin.requests() == 5)
            // An unsafe request by one way reaches what is stored for the others.
            #expect(try harness.exchange("POST", "/plain/x", body: [1]).status == 200)
            #expect(try harness.get("/plain/x").field("Cache-Status")?.contains("fwd=") == true)
            #expect(try harness.get("/before/x").text == "/x?key=s3cret-q")
            #expect(origin.requests() == 8)
        }
    }

    @Test func `such a service is no less fast, and refuses foreign web origins`() async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            for service in ["api", "only", "direct", "outer", "inner"] {
                let foreign = try harness.get("/\(service)/x", fields: [("Origin", "http://page.test")])
                #expect(foreign.status == 403, "\(service)")
            }
            #expect(try harness.get("/plain/x", fields: [("Origin", "http://page.test")]).status == 200)
            let plan = try compile(Self.text(origin))
            let route = try #require(plan.service(named: "only"))
            #expect(route.itself.hotKey == .whole)
            #expect(try #require(plan.service(named: "inner")).itself.hotKey == .none)
        }
    }
}
