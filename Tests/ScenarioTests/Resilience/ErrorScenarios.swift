// Failed answers in one shape around a real daemon: what fails, what is kept, and what comes before.

import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Errors {
        private static let error =
            "error: { map: { error: { fields: { code: code, text: { from: body.error.text, default: unknown }, status: status } } } }"

        /// The document of ``error``.
        private static func shape(_ status: Int, _ code: String, _ text: String = "unknown") -> String {
            #"{"error":{"code":"\#(code)","text":"\#(text)","status":\#(status)}}"#
        }

        private static let fresh = ("Cache-Control", "max-age=60")

        private func moving(_ services: String...) throws -> Daemon {
            var settings = DaemonSettings("services:\n" + services.joined())
            settings.rest += "clock: { movable: true }\n"
            return try Daemon(settings)
        }

        @Test func errorsOfTheOriginHaveOneShape() throws {
            let origin = try ScriptedOrigin { request in
                switch request.target {
                case "/json":
                    .answer(
                        404,
                        to: request,
                        fields: [
                            ("ETag", "\"o\""), ("Retry-After", "7"), ("Content-MD5", "x"), ("Content-Type", "a/json"),
                        ],
                        #"{"error": {"text": "no such user"}}"#
                    )
                case "/text": .answer(500, to: request, fields: [("Content-Type", "text/html")], "<h1>oops</h1>")
                case "/empty": .answer(503, to: request, "")
                default: .answer(to: request, "fine")
                }
            }
            let daemon = try Daemon(services(service("api", origin.url, Self.error)))
            let json = try daemon.exchange("/api/json")
            #expect(json.status == 404 && json.text == Self.shape(404, "http_404", "no such user"))
            #expect(json.field("Content-Type") == "application/json" && json.field("Retry-After") == "7")
            #expect(json.field("Content-Length") == "\(json.body.count)")
            #expect(json.field("ETag") == nil && json.field("Content-MD5") == nil && json.field("Via") != nil)
            #expect(json.field("Cache-Status")?.contains("fwd-status=404") == true)
            #expect(try daemon.exchange("/api/text").text == Self.shape(500, "http_500"))
            #expect(try daemon.exchange("/api/empty").text == Self.shape(503, "http_503"))
            #expect(try daemon.exchange("/api/fine").text == "fine")
            let posted = try daemon.exchange("POST", "/api/json", body: Array("x".utf8))
            #expect(posted.status == 404 && posted.text == json.text)
            let head = try daemon.exchange("HEAD", "/api/json")
            #expect(head.status == 404 && head.body.isEmpty && head.field("ETag") == nil)
            #expect(head.field("Content-Type") == "application/json" && head.field("Content-Length") == nil)
        }

        /// Where nothing is stored, and where an answer could not be stored, requests go to their origin on a way of
        /// their own.
        @Test func whatIsNeverStoredHasTheShapeEachTime() throws {
            let origin = try ScriptedOrigin { request in
                .answer(404, to: request, fields: [("Cache-Control", "no-store")], "no")
            }
            let daemon = try Daemon(
                services(
                    service("api", origin.url, Self.error),
                    service("none", origin.url, Self.error, "cache: { mode: none }"),
                    service("listed", origin.url, "response: { success: [2xx] }", "error: { map: { c: code } }")
                )
            )
            for _ in 0..<3 {
                #expect(try daemon.exchange("/api/a").text == Self.shape(404, "http_404"))
                #expect(try daemon.exchange("/none/a").text == Self.shape(404, "http_404"))
                #expect(try daemon.exchange("/listed/a").text == #"{"c":"http_404"}"#)
            }
            #expect(origin.requests() == 9)
        }

        @Test func anOriginThatIsAwayHasTheSameShape() throws {
            let daemon = try Daemon(
                services(
                    service("dead", "http://127.0.0.1:1", Self.error),
                    service("plain", "http://127.0.0.1:1"),
                    service("parked", "http://127.0.0.1:1", Self.error, "park: 300ms"),
                    service("broken", "http://127.0.0.1:1", Self.error, "breaker: { failures: 1, open: 60s }")
                )
            )
            let dead = try daemon.exchange("/dead/a")
            #expect(dead.status == 502 && dead.text == Self.shape(502, "connection_refused"))
            #expect(dead.field("Content-Type") == "application/json")
            #expect(dead.field("Proxy-Status")?.contains("error=connection_refused") == true)
            #expect(dead.field("Cache-Status")?.contains("fwd=uri-miss") == true)
            let head = try daemon.exchange("HEAD", "/dead/a")
            #expect(head.status == 502 && head.field("Content-Length") == "\(dead.body.count)" && head.body.isEmpty)
            #expect(try daemon.exchange("PUT", "/dead/a", body: Array("x".utf8)).text == dead.text)
            #expect(try daemon.exchange("/parked/a").text == Self.shape(504, "destination_unavailable"))
            expectProblem(try daemon.exchange("/plain/a"), 502)
            // Nothing is stored for it: that is what the request asked for, and no error of the origin.
            expectProblem(try daemon.exchange("/dead/a", fields: [("Cache-Control", "only-if-cached")]), 504)
            #expect(try daemon.exchange("/broken/a").text == Self.shape(502, "connection_refused"))
            let open = try daemon.exchange("/broken/a")
            #expect(open.status == 503 && open.text == Self.shape(503, "destination_unavailable"))
            #expect(open.field("Retry-After") != nil)
        }

        @Test func refusalsOfDrydockStayProblems() throws {
            let endpoint = "endpoints: [{ name: a, path: /a, method: GET }]"
            let daemon = try Daemon(
                services(
                    service("api", "http://127.0.0.1:1", Self.error, endpoint, "unlisted: 404", "deny: [{ path: /b }]")
                )
            )
            expectProblem(try daemon.exchange("/api/b"), 403)
            expectProblem(try daemon.exchange("/api/c"), 404)
            expectProblem(try daemon.exchange("/api/../x"), 400)
        }

        @Test func aRefusedMappingAndAnUnexpectedTypeAreErrorsToo() throws {
            let origin = try ScriptedOrigin { request in
                let type = request.target == "/html" ? "text/html" : "application/json; charset=utf-8"
                return .answer(to: request, fields: [("Content-Type", type), Self.fresh], "{ broken")
            }
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.url,
                        "error: { map: { why: message, code: code } }",
                        "response: { type: [application/json, image/*], map: { name: user.name } }"
                    ),
                    service("plain", origin.url, "response: { type: application/json }")
                )
            )
            let mapping = try daemon.exchange("/api/a")
            #expect(mapping.status == 502 && mapping.text.contains("service 'api' cannot be mapped"))
            #expect(mapping.text.hasSuffix(#""code":"proxy_internal_error"}"#))
            let type = try daemon.exchange("/api/html")
            #expect(type.status == 502 && type.field("Content-Type") == "application/json")
            #expect(
                type.text.contains("has the type text/html, and 'response.type' expects application/json or image/*")
            )
            let problem = try daemon.exchange("/plain/html")
            expectProblem(problem, 502)
            #expect(problem.text.contains("the answer for service 'plain' has the type text/html"))
            #expect(try daemon.exchange("/plain/a").text == "{ broken")
            #expect(try daemon.exchange("/plain/a").cacheStatus?.isHit == true)
            #expect(try !daemon.command("list").output.contains("/html"))
        }

        @Test func anUnexpectedTypeLeavesTheGoodCopy() throws {
            let type = Monitor("application/json")
            let origin = try ScriptedOrigin { request in
                .answer(
                    to: request,
                    fields: [("Content-Type", type.read { $0 }), ("Cache-Control", "max-age=1")],
                    "{}"
                )
            }
            let daemon = try moving(
                service("api", origin.url, "response: { type: application/json }", "cache: { check_pause: 0s }"),
                service("strict", origin.url, "response: { type: application/json }", "cache: { stale_if_error: 0s }")
            )
            for name in ["api", "strict"] { #expect(try daemon.exchange("/\(name)/a").text == "{}") }
            type.update { $0 = "text/html" }
            _ = try daemon.command("clock", "advance", "5s")
            let stale = try daemon.exchange("/api/a")
            #expect(stale.status == 200 && stale.cacheStatus?.detail == "stale-if-error", "\(stale.head)")
            expectProblem(try daemon.exchange("/strict/a"), 502)
            #expect(try daemon.exchange("/strict/a", fields: [("Cache-Control", "max-stale")]).text == "{}")
            type.update { $0 = "application/json" }
            #expect(try daemon.exchange("/strict/a").status == 200)
        }

        @Test func aStoredErrorIsAHitInTheShapeOfTheMoment() throws {
            let origin = try ScriptedOrigin { request in
                .answer(404, to: request, fields: [Self.fresh, ("ETag", "\"o\"")], #"{"error": {"text": "gone"}}"#)
            }
            let daemon = try Daemon(services(service("api", origin.url, Self.error)))
            #expect(try daemon.exchange("/api/a").cacheStatus?.isStored == true)
            let client = try daemon.client()
            for _ in 0..<3 {
                let hit = try client.exchange("GET", "/api/a", host: "127.0.0.1:\(daemon.port)")
                #expect(hit.status == 404 && hit.text == Self.shape(404, "http_404", "gone"))
                #expect(hit.cacheStatus?.isHit == true && hit.field("Age") != nil && hit.field("ETag") == nil)
            }
            for (map, expected) in [
                ("error: { map: { c: code } }", #"{"c":"http_404"}"#), ("", #"{"error": {"text": "gone"}}"#),
                (Self.error, Self.shape(404, "http_404", "gone")),
            ] {
                try daemon.rewrite(services(service("api", origin.url, map)))
                #expect(try daemon.command("reload").succeeded)
                for _ in 0..<2 {
                    let hit = try client.exchange("GET", "/api/a", host: "127.0.0.1:\(daemon.port)")
                    #expect(hit.text == expected && hit.cacheStatus?.isHit == true, "\(map)")
                }
            }
            #expect(origin.requests() == 1)
        }

        @Test func whatStandsInComesFirst() throws {
            let isUp = Monitor(true)
            let origin = try ScriptedOrigin { request in
                isUp.read { $0 }
                    ? .answer(to: request, fields: [("Cache-Control", "max-age=1")], "fine")
                    : .answer(503, to: request, "no")
            }
            let home = try DaemonHome()
            let file = try home.folder.write("fallback.txt", "fallback")
            var settings = services(
                service("api", origin.url, Self.error, "cache: { check_pause: 0s }"),
                service("file", origin.url, Self.error, "cache: { fallback: { file: \"\(file)\", status: 503 } }"),
                service("again", origin.url, Self.error, "retry: { count: 2, delay: 10ms, when: [503] }")
            )
            settings.rest += "clock: { movable: true }\n"
            let daemon = try Daemon(settings, at: home)
            _ = try daemon.exchange("/api/a")
            isUp.update { $0 = false }
            _ = try daemon.command("clock", "advance", "5s")
            let stale = try daemon.exchange("/api/a")
            #expect(stale.status == 200 && stale.text == "fine" && stale.cacheStatus?.detail == "stale-if-error")
            let fallback = try daemon.exchange("/file/b")
            #expect(fallback.status == 503 && fallback.text == "fallback")
            let before = origin.requests()
            #expect(try daemon.exchange("/again/b").text == Self.shape(503, "http_503"))
            #expect(origin.requests() == before + 3)
        }

        @Test func demoFailuresHaveTheShapeAndCountForRetries() throws {
            let home = try DaemonHome()
            let file = try home.folder.write("user.json", "{}")
            try home.folder.write("error.json", #"{"error": {"text": "demo"}}"#)
            let demo =
                "demo: { enabled: true, file: \"\(file)\", failure: { chance: 100%, status: 503, file: \"\(home.folder.file("error.json"))\" } }"
            let gone = "demo: { enabled: true, file: \"\(file)\", status: 404 }"
            let rest = "{ count: 2, delay: 1ms }"
            let daemon = try Daemon(
                DaemonSettings(
                    "services: [{ name: a, match: { prefix: /a }, \(demo), \(Self.error), retry: \(rest) }, "
                        + "{ name: b, match: { prefix: /b }, \(gone), \(Self.error) }, "
                        + "{ name: c, match: { prefix: /c }, \(demo), \(Self.error) }]\n"
                ),
                at: home
            )
            for path in ["/a/u", "/c/u"] {
                let failed = try daemon.exchange(path)
                #expect(failed.status == 503 && failed.text == Self.shape(503, "http_503", "demo"))
                #expect(failed.field("Drydock-Demo")?.contains("outcome=failure") == true)
                #expect(failed.field("Content-Length") == "\(failed.body.count)")
            }
            #expect(try daemon.metric("drydock_retries_total") == 2)
            #expect(try daemon.exchange("/b/u").text == Self.shape(404, "http_404"))
        }

        @Test func anEndpointHasAnotherShapeOrNone() throws {
            let origin = try ScriptedOrigin { .answer(404, to: $0, "gone") }
            let endpoints =
                "endpoints: [{ name: own, path: /own, error: { map: { e: endpoint, b: body } } }, { name: off, path: /off, error: { map: none } }]"
            let daemon = try Daemon(services(service("api", origin.url, Self.error, endpoints)))
            #expect(try daemon.exchange("/api/own").text == #"{"e":"own","b":"gone"}"#)
            #expect(try daemon.exchange("/api/off").text == "gone")
            #expect(try daemon.exchange("/api/other").text == Self.shape(404, "http_404"))
        }

        @Test func aServiceInFrontSeesTheFailureAndShapesIt() throws {
            let inner = service("inner", "http://127.0.0.1:1", "error: { map: { inner: code } }")
            let outer = service("outer", "service:inner", Self.error)
            let daemon = try Daemon(services(inner, outer))
            #expect(try daemon.exchange("/inner/a").text == #"{"inner":"connection_refused"}"#)
            #expect(try daemon.exchange("/outer/a").text == Self.shape(502, "connection_refused"))
        }

        @Test func theConfigurationSaysWhatASuccessIs() throws {
            let status = Monitor(200)
            let origin = try ScriptedOrigin { request in
                .answer(status.read { $0 }, to: request, fields: [("Cache-Control", "max-age=1")], #"{"n": 1}"#)
            }
            let success = "response: { success: [200, 404], map: { m: n } }"
            let daemon = try moving(service("api", origin.url, success, Self.error, "cache: { check_pause: 0s }"))
            #expect(try daemon.exchange("/api/a").text == #"{"m":1}"#)
            status.update { $0 = 202 }
            let other = try daemon.exchange("/api/b")
            #expect(other.status == 202 && other.text == Self.shape(202, "http_202"))
            #expect(other.cacheStatus?.detail == "status-not-successful")
            _ = try daemon.command("clock", "advance", "5s")
            let stale = try daemon.exchange("/api/a")
            #expect(stale.status == 200 && stale.text == #"{"m":1}"# && stale.cacheStatus?.detail == "stale-if-error")
            status.update { $0 = 404 }
            #expect(try daemon.exchange("/api/c").text == #"{"n": 1}"#)
        }

        @Test func whatIsExpectedLaterMakesWhatIsStoredAMiss() throws {
            let text = Monitor("<html>")
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [Self.fresh, ("Content-Type", "text/html")], text.read { $0 })
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            for isHit in [false, true] { #expect(try daemon.exchange("/api/a").cacheStatus?.isHit == isHit) }
            try daemon.rewrite(services(service("api", origin.url, "response: { expect: json }")))
            #expect(try daemon.command("reload").succeeded)
            text.update { $0 = "{}" }
            let miss = try daemon.exchange("/api/a")
            #expect(miss.text == "{}" && miss.cacheStatus?.detail == "expect" && miss.cacheStatus?.isStored == true)
            #expect(try daemon.exchange("/api/a").cacheStatus?.detail == "memory")
            // The expectation is stored with the response, on the disk as well.
            try daemon.restart()
            #expect(try daemon.exchange("/api/a").cacheStatus?.isHit == true)
            try daemon.rewrite(
                services(service("api", origin.url, "response: { expect: json, type: application/json }"))
            )
            #expect(try daemon.command("reload").succeeded)
            expectProblem(try daemon.exchange("/api/a"), 502)
        }

        @Test func aSeedThatIsNotWhatIsExpectedIsAMiss() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [Self.fresh], #"{"from": "origin"}"#) }
            let folder = try TemporaryFolder("drydock-seeds")
            try folder.write("seed/\(origin.authority)/good.json", #"{"from": "seed"}"#)
            try folder.write("seed/\(origin.authority)/bad.json", "<html>")
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.url,
                        "cache: { seed_dir: \"\(folder.file("seed"))\" }",
                        "response: { expect: json }"
                    )
                )
            )
            #expect(try daemon.exchange("/api/good.json").text == #"{"from": "seed"}"#)
            for _ in 0..<2 { #expect(try daemon.exchange("/api/bad.json").text == #"{"from": "origin"}"#) }
            #expect(daemon.errors.contains("/bad.json is left out: it begins with"), "\(daemon.errors)")
            try folder.write("seed/\(origin.authority)/bad.json", #"{"from": "mended seed"}"#)
            #expect(try daemon.exchange("/api/bad.json").text == #"{"from": "mended seed"}"#)
        }
    }
}
