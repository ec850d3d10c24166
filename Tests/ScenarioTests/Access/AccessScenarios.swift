// Rules that allow and deny requests of a service, on every way that a request may take.

import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Access {
        private static let rules = [
            "deny: [{ name: writes, method: [POST, PUT, DELETE] }, { path: /admin/* }, { fields: { X-Debug: \"*\" } }]"
        ]

        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { .answer($0.target, fields: [("Cache-Control", "max-age=600")]) }
        }

        @Test func aRefusalNamesItsRule() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url, Self.rules[0])))
            let cases: [(String, String, [(String, String)], String)] = [
                ("POST", "/api/a", [], "deny[0] (writes)"), ("GET", "/api/admin/x", [], "deny[1]"),
                ("GET", "/api/%61dmin/x", [], "deny[1]"), ("HEAD", "/api//admin", [], "deny[1]"),
                ("GET", "/api/a", [("X-Debug", "1")], "deny[2]"),
            ]
            for (method, target, fields, rule) in cases {
                let answer = try daemon.exchange(method, target, fields: fields)
                #expect(answer.status == 403, "\(method) \(target)")
                if method != "HEAD" {
                    expectProblem(answer, 403)
                    #expect(answer.text.contains("the rule \(rule) of service api"), "\(answer.text)")
                }
            }
            #expect(origin.requests() == 0)
            for _ in 0..<2 { #expect(try daemon.exchange("/api/a").text == "/a") }
            #expect(origin.requests() == 1, "what no rule denies is stored")
            #expect(
                try daemon.exchange("GET", "/api/a", fields: [("X-Debug", "1")]).status == 403,
                "a hit is none then"
            )
            let explained = try daemon.command("explain", "/api/admin/x")
            #expect(explained.report.contains("deny[1]"), "\(explained.report)")
            let fetched = try daemon.command("prefetch", "/api/admin/x")
            #expect(!fetched.succeeded && fetched.report.contains("deny[1]"), "\(fetched.report)")
        }

        @Test func onlyWhatARuleAllowsIsAnswered() throws {
            let origin = try Self.origin()
            let rules = "allow: [{ method: GET, path: \"/pub/*\" }, { fields: { X-Api-Key: k1 } }]"
            let daemon = try Daemon(services(service("api", origin.url, rules)))
            #expect(try daemon.exchange("/api/pub/a").status == 200)
            #expect(try daemon.exchange("POST", "/api/pub/a").status == 403)
            let refused = try daemon.exchange("/api/other")
            expectProblem(refused, 403)
            #expect(refused.text.contains("no rule under 'allow' of service api"))
            #expect(!refused.text.contains("k1"))
            #expect(try daemon.exchange("GET", "/api/other", fields: [("X-Api-Key", "k1")]).status == 200)
            #expect(try daemon.exchange("/api/pub/../other").status == 400, "no path leaves what a rule allows")
            #expect(try !daemon.command("config", "show", "-c", daemon.home.configuration).output.contains("k1"))
        }

        @Test func rulesHoldForDemoAnswersServicesBehindAndAfterAReload() throws {
            let origin = try Self.origin()
            var settings = services(
                service("inner", origin.url, "deny: [{ path: /no }]"),
                service("outer", "service:inner")
            )
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/outer/yes").status == 200)
            #expect(try daemon.exchange("/outer/no").status == 403)
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            #expect(try daemon.exchange("GET", "/inner/no", fields: upgrade).status == 403)
            #expect(origin.requests() == 1)
            settings = services(
                service("inner", origin.url),
                service("outer", "service:inner", "deny: [{ path: /yes }]")
            )
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.exchange("/outer/yes").status == 403, "what is stored is denied from now on")
            #expect(try daemon.exchange("/inner/no").status == 200)
        }

        @Test func pagesThatAreNamedMayReadWhatIsExposed() throws {
            let origin = try ScriptedOrigin { request in
                .answer(
                    request.target,
                    fields: [
                        ("Cache-Control", "max-age=600"), ("Access-Control-Allow-Credentials", "true"),
                        ("Access-Control-Expose-Headers", "X-Origin"),
                    ]
                )
            }
            let cors = "origins: [\"http://page.test\"]"
            let daemon = try Daemon(
                services(
                    service("plain", origin.url, "cors: { \(cors) }"),
                    service(
                        "api",
                        origin.url,
                        "cors: { \(cors), expose: [ETag, X-Total], credentials: true, private_network: true }"
                    )
                )
            )
            let page = ("Origin", "http://page.test")
            for _ in 0..<2 {
                let answer = try daemon.exchange("GET", "/api/a", fields: [page])
                #expect(answer.head.all("Access-Control-Allow-Origin") == ["http://page.test"])
                #expect(answer.head.all("Access-Control-Allow-Credentials") == ["true"])
                #expect(answer.head.all("Access-Control-Expose-Headers") == ["ETag, X-Total"])
                let plain = try daemon.exchange("GET", "/plain/a", fields: [page])
                #expect(plain.head.all("Access-Control-Allow-Credentials") == [], "the file does not allow them")
            }
            let ask = [
                page, ("Access-Control-Request-Method", "PUT"), ("Access-Control-Request-Private-Network", "true"),
            ]
            let preflight = try daemon.exchange("OPTIONS", "/api/a", fields: ask)
            #expect(preflight.field("Access-Control-Allow-Private-Network") == "true")
            #expect(preflight.field("Access-Control-Allow-Credentials") == "true")
            #expect(preflight.field("Access-Control-Expose-Headers") == nil)
            let refused = try daemon.exchange("OPTIONS", "/plain/a", fields: ask)
            #expect(refused.field("Access-Control-Allow-Private-Network") == nil)
            let foreign = try daemon.exchange(
                "OPTIONS",
                "/api/a",
                fields: [("Origin", "http://other.test")] + ask.dropFirst()
            )
            #expect(foreign.field("Access-Control-Allow-Private-Network") == nil)
        }
    }
}
