// What a web page, or any other client, may make of a service that has credentials, endpoints or a base path.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct WebPages {
        @Test func noPathLeavesWhatAServiceAnswersFor() throws {
            let origin = try ScriptedOrigin { .answer($0.target, fields: [("Cache-Control", "max-age=600")]) }
            let daemon = try Daemon(
                services(
                    service(
                        "lock",
                        "\(origin.url)/web",
                        "auth: { bearer: s3cret }",
                        "unlisted: 404",
                        "endpoints: [{ name: pub, path: \"/pub/*\" }]"
                    ),
                    service("open", origin.url)
                )
            )
            let ways = [
                "/pub/../admin", "/pub/%2e%2e/admin", "/pub/..%2fadmin", "/pub/..%5cadmin", "/pub\\..\\admin",
                "/pub/..;/admin", "/../../admin", "/pub/./x", "/..",
            ]
            for way in ways {
                for method in ["GET", "HEAD", "POST"] {
                    let answer = try daemon.exchange(method, "/lock\(way)")
                    #expect(answer.status == 400, "\(method) \(way)")
                    if method == "GET" { expectProblem(answer, 400) }
                }
                let explained = try daemon.command("explain", "/lock\(way)")
                #expect(explained.report.contains("dot segments"), "\(explained.report)")
                let fetched = try daemon.command("prefetch", "/lock\(way)")
                #expect(!fetched.succeeded && fetched.report.contains("dot segments"), "\(fetched.report)")
            }
            #expect(origin.requests() == 0)
            #expect(try daemon.exchange("/lock/pub/x").text == "/web/pub/x")
            // Without anything to leave, the target is passed on as it is.
            for _ in 0..<2 { #expect(try daemon.exchange("/open/a/../b").text == "/a/../b") }
            #expect(origin.requests() == 2)
            let logged = eventually {
                daemon.accessLog.contains { $0.contains("..%2fadmin") && $0.contains("\"status\":400") }
            }
            #expect(logged, "the line says what was asked for")
        }

        @Test func aSecretOfTheQueryIsSeenByTheOriginAlone() throws {
            let origin = try ScriptedOrigin { request in
                if request.target.contains("moved") {
                    return .answer(302, fields: [("Location", request.target.replacing("moved", with: "x"))], "")
                }
                if request.target.contains("cut") {
                    return .raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab").then(.cut)
                }
                if request.target.contains("bad") { return .raw("HTTP/1.1 200 OK\r\nX Y: z\r\n\r\n") }
                let isAllowed = request.target.hasSuffix("key=s3cret%2Fvalue")
                return .answer(
                    isAllowed ? 200 : 401,
                    fields: [("Cache-Control", "max-age=600"), ("ETag", "\"1\"")],
                    "x"
                )
            }
            let daemon = try Daemon(
                services(
                    service("api", origin.url, "query: { key: { value: s3cret/value, secret: true } }"),
                    service("gone", "http://127.0.0.1:1", "query: { key: { value: s3cret/value, secret: true } }")
                )
            )
            var said: [String] = []
            for path in ["/api/x", "/api/x", "/api/y?q=1", "/api/moved", "/api/bad", "/gone/x"] {
                let answer = try daemon.exchange(path)
                said += answer.head.fields.map { "\(path) \($0.name): \($0.value)" } + [answer.text]
            }
            let cut = try daemon.exchange("/api/cut")
            #expect(cut.end == .cut || cut.status == 502, "\(cut.head)")
            #expect(try daemon.exchange("/api/x").cacheStatus?.isHit == true)
            #expect(try daemon.exchange("/api/moved").field("Location") == "/api/x")
            // The client's own is nobody's secret, and has a key of its own.
            #expect(try daemon.exchange("/api/x?key=mine").status == 401)
            _ = try daemon.command("prefetch", "/api/z", "/api/moved", "/api/bad", "/gone/z")
            for command in [
                ["list"], ["list", "--json"], ["explain", "/api/x"], ["explain", "/api/new", "--json"], ["jobs"],
                ["jobs", "show", "1", "--json"], ["status"], ["config", "show", "-c", daemon.home.configuration],
            ] {
                let admin = ["DRYDOCK_ADMIN": "unix:\(daemon.home.adminSocket)"]
                let result = try Shell.run(Daemon.binary(), command, environment: admin)
                #expect(result.succeeded, "\(result.report)")
                said.append("\(command) \(result.report)")
            }
            #expect(try daemon.command("list").output.contains("\(origin.url)/y?q=1"))
            #expect(origin.log.allSatisfy { $0.target.hasSuffix("key=s3cret%2Fvalue") || $0.target.hasSuffix("mine") })
            #expect(eventually { daemon.accessLog.contains { $0.contains("/gone/z") || $0.contains("/gone/x") } })
            said += daemon.accessLog + [daemon.output, daemon.errors]
            for text in said { #expect(!text.contains("s3cret"), "\(text)") }
            // Nor is it on the disk, where keys are.
            let found = try Shell.run("/bin/grep", ["-r", "-l", "s3cret", daemon.home.cache])
            #expect(found.output.split(separator: "\n").isEmpty, "\(found.output)")
        }

        @Test func whatAForeignPageLoadsIsRefused() throws {
            let origin = try ScriptedOrigin { _ in .answer("x", fields: [("Cache-Control", "max-age=600")]) }
            let daemon = try Daemon(
                services(
                    service("api", origin.url, "query: { api_key: k }"),
                    service("open", origin.url)
                )
            )
            let image = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors"), ("Sec-Fetch-Dest", "image")]
            let link = [
                ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document"),
            ]
            for _ in 0..<2 {
                #expect(try daemon.exchange("/api/x").text == "x")
                expectProblem(try daemon.exchange("/api/x", fields: image), 403)
                #expect(try daemon.exchange("/api/x", fields: link).status == 200)
                #expect(try daemon.exchange("/api/x", fields: [("Sec-Fetch-Site", "same-origin")]).status == 200)
                #expect(try daemon.exchange("/open/x", fields: image).status == 200)
            }
            #expect(origin.requests() == 2)
        }

        @Test func anOriginsFieldsStayWithinItsService() throws {
            let origin = try ScriptedOrigin { _ in
                .answer(
                    302,
                    fields: [
                        ("Location", "/base/\\evil.test/"), ("Refresh", "0; url=/base/next"),
                        ("Set-Cookie", "a=b; Domain=api.test; Path=/base"), ("Clear-Site-Data", "\"*\""),
                        ("Service-Worker-Allowed", "/"), ("Cache-Control", "max-age=600"),
                    ],
                    "moved"
                )
            }
            let daemon = try Daemon(
                """
                services:
                  - { name: root, match: { prefix: / }, base_url: "\(origin.url)/base" }
                  - { name: api, match: { prefix: /api }, base_url: "\(origin.url)/base" }
                """
            )
            // Stored, and shown in the same way the second time.
            for _ in 0..<2 {
                let root = try daemon.exchange("/x")
                #expect(root.field("Location") == "/./\\evil.test/")
                let answer = try daemon.exchange("/api/x")
                #expect(answer.field("Location") == "/api/\\evil.test/")
                #expect(answer.field("Refresh") == "0; url=/api/next")
                #expect(answer.field("Clear-Site-Data") == nil)
                #expect(answer.field("Service-Worker-Allowed") == "/api/")
                if let cookie = answer.field("Set-Cookie") { #expect(cookie == "a=b; Path=/api") }
            }
        }
    }
}
