// Endpoints that ask their origin for another target than the client's: what the origin gets, what is stored under
// which key, and what is refused.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Targets {
        private static let people =
            "{ name: user, path: /users/:id, to: /v2/people/:id?expand=:expand, params: { expand: none } }"

        /// Answers with the method, the target and the credentials that it got.
        private static func origin(_ fields: [(String, String)] = [("Cache-Control", "max-age=60")]) throws
            -> ScriptedOrigin
        {
            try ScriptedOrigin { request in
                let said = "\(request.method) \(request.target) \(request.field("Authorization") ?? "-")"
                return .answer(200, to: request, fields: fields, said)
            }
        }

        @Test func theOriginIsAskedForTheTargetOfTheEndpoint() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url + "/base", "endpoints: [\(Self.people)]")))
            #expect(try daemon.exchange("/api/users/7").text == "GET /base/v2/people/7?expand=none -")
            #expect(
                try daemon.exchange("/api/users/7?expand=all&x=%2F").text == "GET /base/v2/people/7?expand=all&x=%2F -"
            )
            #expect(
                try daemon.exchange("/api/users/a%2Fb%3F%23%0D%0A").text
                    == "GET /base/v2/people/a%2Fb%3F%23%0D%0A?expand=none -"
            )
            #expect(try daemon.exchange("/api/other?y").text == "GET /base/other?y -")
            #expect(try daemon.exchange("HEAD", "/api/users/8").status == 200)
            #expect(
                origin.requests(method: "HEAD", target: "/base/v2/people/8?expand=none")
                    + origin.requests(target: "/base/v2/people/8?expand=none") > 0
            )
        }

        @Test func aMissingParameterIsNamedAndNothingIsSent() throws {
            let origin = try Self.origin()
            let endpoints = "endpoints: [{ name: user, path: /user, to: /people/:id }]"
            let daemon = try Daemon(services(service("api", origin.url, endpoints)))
            let answer = try daemon.exchange("/api/user")
            #expect(answer.status == 400 && answer.field("Content-Type") == "application/problem+json")
            #expect(answer.text.contains("endpoint user of service api: the parameter 'id' is missing"))
            for target in ["/api/user?id=..", "/api/user?id=%2e%2e%2fadmin", "/api/user?id=", "/api/user?id=1&id=2"] {
                let answer = try daemon.exchange(target)
                #expect(answer.status == 400 && answer.text.contains("'id'"), "\(target)")
            }
            #expect(origin.requests() == 0)
            let explained = try daemon.command("explain", "/api/user")
            #expect(
                !explained.succeeded && (explained.output + explained.errors).contains("the parameter 'id' is missing")
            )
        }

        @Test func aTargetIsStoredUnderItsOwnKeyAndFoundByEveryName() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url, "endpoints: [\(Self.people)]")))
            func isHit(_ target: String) throws -> Bool {
                try daemon.exchange(target).field("Cache-Status")?.contains("hit") == true
            }
            _ = try daemon.exchange("/api/users/7")
            #expect(try isHit("/api/users/7") && isHit("/api/users/7?expand=none"))
            // The same URL on the origin, asked for by another way, may be another resource.
            #expect(try !isHit("/api/v2/people/7?expand=none"))
            #expect(origin.requests() == 2)
            let shown = try daemon.command("explain", "/api/users/7", "--json").output
            #expect(shown.contains("\"user\"") && shown.contains("/v2/people/7?expand=none"))
            for url in ["/api/users/7", origin.url + "/v2/people/7?expand=none"] {
                _ = try daemon.exchange("/api/users/7")
                #expect(try isHit("/api/users/7"), "\(url)")
                #expect(try daemon.command("purge", url).succeeded)
                #expect(try !isHit("/api/users/7"), "\(url)")
            }
        }

        @Test func anUnsafeRequestInvalidatesWhatItsTargetIsStoredAs() throws {
            let origin = try Self.origin()
            let endpoints =
                "endpoints: [\(Self.people), { name: save, method: PUT, path: /users/:id, to: /v2/people/:id?expand=none }]"
            let daemon = try Daemon(services(service("api", origin.url, endpoints)))
            for (method, target) in [("PUT", "/api/users/7"), ("POST", "/api/v2/people/7?expand=none")] {
                _ = try daemon.exchange("/api/users/7")
                #expect(try daemon.exchange("/api/users/7").field("Cache-Status")?.contains("hit") == true)
                #expect(try daemon.exchange(method, target, body: Array("x".utf8)).status == 200)
                #expect(
                    try daemon.exchange("/api/users/7").field("Cache-Status")?.contains("hit") == false,
                    "\(method)"
                )
            }
            #expect(origin.requests(method: "PUT", target: "/v2/people/7?expand=none") == 1)
        }

        @Test func endpointsHaveCredentialsOfTheirOwnAndShareNothing() throws {
            let origin = try Self.origin()
            let endpoints =
                "endpoints: [{ name: me, path: /me, to: /self, auth: { bearer: one-of-two } }, { name: you, path: /you, to: /self, auth: { basic: { user: u, password: p } } }, { name: they, path: /self }]"
            let daemon = try Daemon(services(service("api", origin.url, "auth: { bearer: all }", endpoints)))
            for _ in 0..<2 {
                #expect(try daemon.exchange("/api/me").text == "GET /self Bearer one-of-two")
                #expect(try daemon.exchange("/api/you").text == "GET /self Basic dTpw")
                #expect(try daemon.exchange("/api/self").text == "GET /self Bearer all")
            }
            #expect(origin.requests() == 3)
            #expect(try daemon.exchange("/api/me", fields: [("Origin", "http://elsewhere.test")]).status == 403)
            let shown = try daemon.command("config", "show", "-c", daemon.home.folder.file("drydock.yaml")).output
            for secret in ["one-of-two", "dTpw"] {
                let told = shown + daemon.errors + daemon.accessLog.joined() + (try daemon.command("list").output)
                // The folder has a name of chance, in which any four letters may be.
                #expect(!told.replacing(daemon.home.folder.path, with: "").contains(secret), "\(secret)")
            }
        }

        @Test func anEndpointMayDoWithoutTheCredentialsOfItsService() throws {
            let origin = try Self.origin()
            let endpoints =
                "endpoints: [{ name: open, path: /open, auth: none }, { name: shared, path: /shared/:id, to: \"/shared/:id\", auth: none }]"
            let daemon = try Daemon(services(service("api", origin.url, "auth: { bearer: all }", endpoints)))
            for target in ["/open", "/shared/7"] {
                // Stored under a key of its own, and passed on: no way adds them.
                #expect(try daemon.exchange("/api\(target)").text == "GET \(target) -")
                #expect(try daemon.exchange("/api\(target)").text == "GET \(target) -")
                #expect(try daemon.exchange("DELETE", "/api\(target)").text == "DELETE \(target) Bearer all")
            }
            #expect(try daemon.exchange("/api/other").text == "GET /other Bearer all")
            let own = try daemon.exchange("/api/open", fields: [("Authorization", "Bearer mine")])
            #expect(own.text == "GET /open Bearer mine")
            // The service stays one that web pages elsewhere may not use.
            #expect(try daemon.exchange("/api/open", fields: [("Origin", "http://elsewhere.test")]).status == 403)
            let shown = try daemon.command("config", "show", "-c", daemon.home.folder.file("drydock.yaml")).output
            #expect(shown.contains("        auth:\n          mode: none\n"), "\(shown)")
        }

        @Test func parametersGoIntoTheQueryInTheOrderThatIsAskedFor() throws {
            let origin = try Self.origin()
            let given = "{ name: given, path: /given, params: { page: 1, f: { a: [x, true] } } }"
            let sorted =
                "{ name: sorted, path: /sorted, params: { page: 1, a: [x, true] }, params_as: { order: sorted, arrays: repeated, booleans: digits } }"
            let daemon = try Daemon(services(service("api", origin.url, "endpoints: [\(given), \(sorted)]")))
            #expect(
                try daemon.exchange("/api/given?z&b=%41").text
                    == "GET /given?z&b=%41&page=1&f%5Ba%5D%5B%5D=x&f%5Ba%5D%5B%5D=true -"
            )
            #expect(try daemon.exchange("/api/sorted?z&page=3&b=%41").text == "GET /sorted?a=x&a=1&b=%41&page=3&z -")
            #expect(try daemon.exchange("/api/sorted?b=%41&z&page=3").field("Cache-Status")?.contains("hit") == true)
        }

        @Test func aServiceInFrontOfAnotherAsksForTheTargetToo() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(
                services(
                    service("front", "service:back", "endpoints: [{ name: u, path: /u/:id, to: /users/:id }]"),
                    service("back", origin.url, "endpoints: [\(Self.people)]")
                )
            )
            #expect(try daemon.exchange("/front/u/7").text == "GET /v2/people/7?expand=none -")
            #expect(try daemon.exchange("/front/u/7").field("Cache-Status")?.contains("hit") == true)
            #expect(try daemon.command("purge", origin.url + "/v2/people/7?expand=none").succeeded)
            #expect(try daemon.exchange("/front/u/7").field("Cache-Status")?.contains("hit") == false)
        }

        @Test func aReloadChangesTheTarget() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(
                services(service("api", origin.url, "endpoints: [{ name: a, path: /a, to: /one }]"))
            )
            #expect(try daemon.exchange("/api/a").text == "GET /one -")
            try daemon.rewrite(services(service("api", origin.url, "endpoints: [{ name: a, path: /a, to: /two }]")))
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.exchange("/api/a").text == "GET /two -")
        }
    }
}
