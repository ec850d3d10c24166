// What may change a stored answer and what may not: Host, forwarding fields, HEAD, unsafe requests.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Keys {
        static let kept = [("Cache-Control", "max-age=600")]

        /// http-rules.md 23: an origin that sees the client's Host may answer by it.
        @Test func aPreservedHostIsPartOfTheKey() throws {
            let origin = try ScriptedOrigin { request in
                .answer("for \(request.field("Host") ?? "")", fields: Self.kept)
            }
            let daemon = try Daemon(
                services(
                    service("api", origin.url, "host: preserve"),
                    service("outer", "service:api")
                )
            )
            for prefix in ["/api", "/outer"] {
                for _ in 0..<2 {
                    for host in ["a.localhost", "B.localhost", "localhost:\(daemon.port)"] {
                        let answer = try daemon.client().exchange("GET", "\(prefix)/x", host: host)
                        #expect(answer.text == "for \(host)")
                    }
                }
            }
            #expect(origin.requests() == 3)
            // An unsafe request invalidates what its own Host has stored.
            _ = try daemon.client().exchange("POST", "/api/x", host: "a.localhost")
            _ = try daemon.client().exchange("GET", "/api/x", host: "a.localhost")
            _ = try daemon.client().exchange("GET", "/api/x", host: "B.localhost")
            #expect(origin.requests() == 5)
        }

        /// http-rules.md 24.
        @Test(arguments: [
            "X-Forwarded-Host", "x-forwarded-proto", "X-Forwarded-For", "Forwarded", "X-Original-URL", "X-Rewrite-URL",
            "X-HTTP-Method-Override", "X-Host", "X_Forwarded_Host", "X-Real-IP", "X-Scheme", "X-Original-URI",
            "True-Client-IP",
        ])
        func noFieldOutsideTheKeyChangesWhatIsStored(_ name: String) throws {
            let origin = try ScriptedOrigin { request in
                .answer(request.field(name) ?? "plain", fields: request.method == "GET" ? Self.kept : [])
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            #expect(try daemon.exchange("/api/x", fields: [(name, "evil")]).text == "plain")
            let second = try daemon.exchange("/api/x")
            #expect(second.text == "plain")
            #expect(second.cacheStatus?.isHit == true)
            // What is never stored goes on as it is.
            #expect(try daemon.exchange("POST", "/api/x", fields: [(name, "mine")]).text == "mine")
        }

        /// RFC 9111 section 4.3.5: a HEAD that shows a change makes the stored response stale.
        @Test func aHeadThatShowsAChangeEndsTheStoredAnswer() throws {
            let version = Counter()
            // To HEAD without a body, whose bytes would make it an answer that proves nothing.
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: Self.kept + [("ETag", "\"\(version.value)\"")], "v\(version.value)")
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            #expect(try daemon.exchange("/api/x").text == "v0")
            version.add()
            // Until it is stored, HEAD cannot end it.
            let isStored = try eventually {
                let answer = try daemon.exchange("/api/x")
                #expect(answer.text == "v0")
                return answer.field("Cache-Status")?.contains("detail=memory") == true
            }
            #expect(isStored)
            _ = try daemon.client().exchange("HEAD", "/api/x", fields: [("Cache-Control", "no-cache")])
            #expect(try daemon.exchange("/api/x").text == "v1")
        }

        /// Who asks after a successful unsafe request is not given what was fetched before it.
        @Test func nobodyJoinsAFetchFromBeforeAnUnsafeRequest() throws {
            let gate = Gate()
            let gets = Counter()
            let origin = try ScriptedOrigin { request in
                if request.method != "GET" { return .answer("done") }
                gets.add()
                if gets.value > 1 { return .answer("new", fields: Self.kept) }
                return OriginReply([
                    OriginReply.head(200, fields: Self.kept + [("Content-Length", "6")]), OriginReply.text("old"),
                    .wait(gate), OriginReply.text("old"),
                ])
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            let first = try daemon.client()
            try first.request("GET", "/api/x")
            _ = try first.readHead()
            #expect(try daemon.exchange("DELETE", "/api/x").text == "done")
            #expect(try daemon.exchange("/api/x").text == "new")
            gate.open()
            #expect(try first.readBody { _ in } == .complete)
            #expect(try daemon.exchange("/api/x").text == "new")
        }

        /// What no tier takes is not said to be stored, and what fits exactly is.
        @Test func theLimitPerObjectIsExact() throws {
            let origin = try ScriptedOrigin { request in
                .pattern(Int(request.target.dropFirst()) ?? 0, fields: Self.kept)
            }
            var settings = services(service("api", origin.url))
            settings.memory = "{ size: 16MiB, max_object: 1MiB }"
            settings.disk = nil
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/api/1048576").cacheStatus?.isStored == true)
            #expect(try daemon.exchange("/api/1048576").cacheStatus?.isHit == true)
            for _ in 0..<2 {
                let status = try daemon.exchange("/api/1048577").cacheStatus
                #expect(status?.isHit == false)
                #expect(status?.isStored == false)
            }
        }
    }
}
