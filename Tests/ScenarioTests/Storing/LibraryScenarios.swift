// mode: library and the keys that go with it, in a running daemon: lifetimes, checks, what is gone,
// POST, keys, cookies, lengths.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Library {
        static let dated = ("Last-Modified", "Mon, 02 Jan 2023 00:00:00 GMT")

        private func daemon(_ services: String...) throws -> Daemon {
            var settings = DaemonSettings("services:\n" + services.joined())
            settings.rest += "clock: { movable: true }\n"
            return try Daemon(settings)
        }

        private func methods(_ origin: ScriptedOrigin) -> [String] { origin.log.map(\.method) }

        /// Two hours, whatever the origin says; then a HEAD, which begins two hours anew.
        @Test func theLifetimeIsTheConfigurations() throws {
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [Self.dated, ("Cache-Control", "no-cache, max-age=0")], "text")
            }
            let daemon = try daemon(
                service("api", origin.url, "cache: { mode: library }"),
                service("standard", origin.url),
                service("short", origin.url, "cache: { mode: library, ttl: 10m }")
            )
            for path in ["/api/x", "/standard/x", "/short/x"] {
                #expect(try daemon.exchange(path).cacheStatus?.isStored == true)
            }
            _ = try daemon.command("clock", "advance", "1h")
            #expect(try daemon.exchange("/api/x").cacheStatus?.detail == "memory")
            #expect(try daemon.exchange("/standard/x").cacheStatus?.isHit == false)
            #expect(try daemon.exchange("/short/x").cacheStatus?.detail == "revalidated")
            _ = try daemon.command("clock", "advance", "61m")
            origin.forgetRequests()
            let checked = try daemon.exchange("/api/x")
            #expect(checked.cacheStatus?.detail == "revalidated")
            // Seconds may begin in between.
            #expect((6900...7200).contains(checked.cacheStatus?.timeToLive ?? 0), "\(checked.head)")
            #expect(checked.text == "text")
            #expect(methods(origin) == ["HEAD"])
            #expect(origin.log[0].field("If-Modified-Since") == nil)
            _ = try daemon.command("clock", "advance", "110m")
            #expect(try daemon.exchange("/api/x").cacheStatus?.detail == "memory")
            let explained = try daemon.command("explain", "/api/x").output
            #expect(explained.contains("lifetime       7200s from ttl (configuration, cache.ttl)"), "\(explained)")
            let age = explained.firstMatch(of: /age            ([0-9]+)s/).flatMap { Int($0.1) } ?? 0
            #expect((6600..<7200).contains(age), "the check's time is the moved one: \(explained)")
        }

        /// An older date is a change, too; the copy answers while the origin fails, and is asked
        /// about again after check_pause.
        @Test func aFailedCheckRenewsNothing() throws {
            let version = Counter()
            let origin = try ScriptedOrigin { request in
                .answer(
                    to: request,
                    fields: [("Last-Modified", httpDate(-86_400 * (1 + version.value)))],
                    "v\(version.value)"
                )
            }
            let daemon = try daemon(service("api", origin.url, "cache: { mode: library, check_pause: 10m }"))
            #expect(try daemon.exchange("/api/x").text == "v0")
            version.add()
            origin.stop()
            _ = try daemon.command("clock", "advance", "3h")
            let failed = try daemon.exchange("/api/x")
            #expect(failed.text == "v0" && failed.cacheStatus?.detail == "stale-if-error", "\(failed.head)")
            try origin.restart()
            let paused = try daemon.exchange("/api/x")
            #expect(paused.text == "v0" && paused.cacheStatus?.detail == "check-pause")
            #expect(paused.cacheStatus?.isHit == true && (paused.cacheStatus?.timeToLive ?? 0) <= -3600)
            let explained = try daemon.command("explain", "/api/x").output
            #expect(explained.contains("check-pause (configuration, cache.check_pause)"), "\(explained)")
            #expect(origin.requests() == 1)
            _ = try daemon.command("clock", "advance", "10m")
            let replaced = try daemon.exchange("/api/x")
            #expect(replaced.text == "v1" && replaced.cacheStatus?.detail == "replaced")
            #expect(methods(origin) == ["GET", "HEAD", "GET"])
        }

        @Test(arguments: [("pass", 404, "none", 502), ("serve-stale", 200, "text", 200), ("evict", 404, "none", 502)])
        func whatIsGone(_ gone: String, status: Int, text: String, unreachable: Int) throws {
            let isGone = Counter()
            let origin = try ScriptedOrigin { request in
                isGone.value > 0
                    ? .answer(404, to: request, "none") : .answer(to: request, fields: [Self.dated], "text")
            }
            let daemon = try daemon(
                service("api", origin.url, "cache: { mode: library, gone: \(gone), check_pause: 0s }")
            )
            _ = try daemon.exchange("/api/x")
            isGone.add()
            _ = try daemon.command("clock", "advance", "3h")
            let answer = try daemon.exchange("/api/x")
            #expect(answer.status == status && answer.text == text)
            origin.stop()
            // `pass` keeps the copy for when nobody answers, `evict` does not.
            let later = try daemon.exchange("/api/x")
            #expect(later.status == (gone == "pass" ? 200 : unreachable), "\(later.head)")
        }

        @Test(arguments: [
            ("compare: [etag]", ["HEAD"]), ("compare: [last-modified]", ["HEAD", "GET"]),
            ("compare: [length]", ["HEAD"]),
            ("revalidate: conditional", ["GET"]), ("revalidate: never", []), ("ttl: none", ["HEAD", "GET"]),
        ])
        func howItIsChecked(_ setting: String, asked: [String]) throws {
            let date = Counter()
            let origin = try ScriptedOrigin { request in
                date.add()
                let fields = [("ETag", "\"1\""), ("Last-Modified", httpDate(-60 * date.value))]
                return .answer(to: request, fields: fields, "text")
            }
            let daemon = try daemon(service("api", origin.url, "cache: { mode: library, \(setting) }"))
            _ = try daemon.exchange("/api/x")
            _ = try daemon.command("clock", "advance", "3h")
            #expect(try daemon.exchange("/api/x").text == "text")
            #expect(methods(origin) == ["GET"] + asked)
        }

        /// no-cache fetches the whole; what is there stays until all of its replacement has come.
        @Test func forcing() throws {
            let turn = Counter()
            let origin = try ScriptedOrigin { request in
                turn.add()
                if turn.value == 3 {
                    return OriginReply([
                        OriginReply.head(200, fields: [("Content-Length", "9")]), OriginReply.text("cut"), .cut,
                    ])
                }
                return .answer(to: request, fields: [Self.dated], "v\(turn.value)")
            }
            let daemon = try daemon(service("api", origin.url, "cache: { mode: library }"))
            #expect(try daemon.exchange("/api/x").text == "v1")
            let forced = try daemon.exchange("/api/x", fields: [("Cache-Control", "no-cache")])
            #expect(forced.text == "v2" && forced.cacheStatus?.isStored == true)
            #expect(origin.log[1].method == "GET" && origin.log[1].field("If-Modified-Since") == nil)
            #expect(try eventually { try daemon.exchange("/api/x").text == "v2" })
            let client = try daemon.client()
            try client.request("GET", "/api/x", fields: [("Cache-Control", "no-cache")])
            _ = try client.readHead()
            #expect(try client.readBody { _ in } != .complete)
            #expect(try daemon.exchange("/api/x").text == "v2")
            #expect(origin.requests() == 3)
        }

        /// The body is part of the key; a longer one than is read first is passed on whole.
        @Test func postsAreStoredByTheirContent() throws {
            let origin = try ScriptedOrigin { request in
                .answer(
                    "\(request.method) \(request.bodyLength) \(String(decoding: request.body.prefix(8), as: UTF8.self))"
                )
            }
            let daemon = try daemon(
                service("api", origin.url, "cache: { mode: library, methods: [GET, POST] }"),
                service("plain", origin.url, "cache: { mode: library }")
            )
            func post(_ path: String, _ body: [UInt8], _ fields: [(String, String)] = []) throws -> RawResponse {
                try daemon.exchange("POST", path, fields: fields, body: body)
            }
            for _ in 0..<2 {
                #expect(try post("/api/x", Array("one".utf8)).text == "POST 3 one")
                #expect(try post("/api/x", Array("two".utf8)).text == "POST 3 two")
                #expect(try daemon.exchange("/api/x").text == "GET 0 ")
            }
            #expect(origin.requests() == 3)
            #expect(try post("/api/x", Array("one".utf8)).cacheStatus?.detail == "memory")
            #expect(try post("/api/x", Array("one".utf8), [("Content-Type", "a/b")]).cacheStatus?.isHit == false)
            #expect(try post("/api/x", []).text == "POST 0 ")
            #expect(try post("/api/x", []).cacheStatus?.isHit == true)
            for path in ["/api/x", "/plain/x"] {
                let long = [UInt8](repeating: 65, count: path == "/plain/x" ? 3 : 100_000)
                for _ in 0..<2 {
                    let answer = try post(path, long)
                    #expect(answer.text.hasPrefix("POST \(long.count) A"), "\(answer.text)")
                    #expect(answer.cacheStatus?.forwarded == "method")
                }
            }
            // In chunks, more than is read: what has been read comes first, and nothing is lost.
            let client = try daemon.client()
            let chunk = "4000\r\n" + String(repeating: "B", count: 0x4000) + "\r\n"
            try client.send("POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<6 { try client.send(chunk) }
            try client.send("0\r\n\r\n")
            #expect(try client.readResponse(method: "POST").text == "POST \(6 * 0x4000) BBBBBBBB")
            // In chunks, and short: the same question as with a length.
            try client.send(
                "POST /api/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n"
            )
            #expect(try client.readResponse(method: "POST").text == "POST 3 one")
        }

        @Test func forwardModeHasTheSameKeys() throws {
            let origin = try ScriptedOrigin { request in
                .answer("\(request.method) \(request.target) \(request.bodyLength)")
            }
            let daemon = try Daemon(
                """
                forward:
                  allow: [127.0.0.1]
                  cache: { mode: library, methods: [GET, POST], key: { ignore_query: ["utm_*"] } }
                """
            )
            let client = try daemon.client()
            for query in ["", "?utm_source=a", "?utm_medium=b&utm_source=c"] {
                let answer = try client.exchange("GET", "\(origin.url)/x\(query)", host: origin.authority)
                #expect(answer.text == "GET /x 0")
            }
            for _ in 0..<2 {
                let url = "\(origin.url)/x"
                #expect(try client.exchange("POST", url, host: origin.authority, body: [1, 2]).text == "POST /x 2")
            }
            #expect(methods(origin) == ["GET", "POST"])
        }

        @Test func methodsWithoutGetStoreNoGet() throws {
            let origin = try ScriptedOrigin { request in .answer(request.method) }
            let daemon = try daemon(service("api", origin.url, "cache: { mode: library, methods: [POST] }"))
            for _ in 0..<2 {
                #expect(try daemon.exchange("/api/x").cacheStatus?.forwarded == "bypass")
                #expect(try daemon.exchange("POST", "/api/x", body: [1]).text == "POST")
            }
            #expect(methods(origin).sorted() == ["GET", "GET", "POST"])
        }

        @Test func whatEntersTheKey() throws {
            let origin = try ScriptedOrigin { request in
                .answer(
                    "\(request.target) for \(request.field("X-Tenant") ?? "nobody")",
                    fields: [("Cache-Control", "max-age=600")]
                )
            }
            let daemon = try daemon(
                service("short", origin.url, "cache: { key: { ignore_query: [\"utm_*\", sid] } }"),
                service("tenant", origin.url, "cache: { key: { fields: [X-Tenant] } }"),
                service("host", origin.url, "cache: { key: { fields: [X-Forwarded-Host] } }")
            )
            #expect(try daemon.exchange("/short/x?q=1&utm_source=a").text == "/x?q=1 for nobody")
            for query in ["?q=1", "?q=1&sid=2", "?utm_a=b&q=1"] {
                #expect(try daemon.exchange("/short/x\(query)").cacheStatus?.isHit == true, "\(query)")
            }
            #expect(try daemon.exchange("/short/x?q=2").cacheStatus?.isHit == false)
            for tenant in ["a", "b", "a", "b"] {
                #expect(try daemon.exchange("/tenant/x", fields: [("X-Tenant", tenant)]).text == "/x for \(tenant)")
            }
            #expect(try daemon.exchange("/tenant/x").text == "/x for nobody")
            #expect(origin.requests() == 5)
            let explained = try daemon.command("explain", "/tenant/x", "-H", "X-Tenant: a").output
            #expect(explained.contains("x-tenant: a") && explained.contains("answers from memory"), "\(explained)")
            // What is in the key goes on to the origin, also what is otherwise kept from it.
            let hosts = [("X-Forwarded-Host", "a.example")]
            #expect(try daemon.exchange("/short/host", fields: hosts).text == "/host for nobody")
            #expect(origin.log.last?.field("X-Forwarded-Host") == nil)
            #expect(try daemon.exchange("/host/x", fields: hosts).cacheStatus?.isHit == false)
            #expect(origin.log.last?.field("X-Forwarded-Host") == "a.example")
            // An unsafe request to the URL ends what is stored for every tenant.
            _ = try daemon.exchange("DELETE", "/tenant/x")
            #expect(try daemon.exchange("/tenant/x", fields: [("X-Tenant", "b")]).cacheStatus?.isHit == false)
        }

        @Test(arguments: [
            ("strict", nil, true), ("explicit", "id=1", true), ("strip", nil, true), ("skip", "id=1", false),
        ])
        func cookies(_ rule: String, cookie: String?, isStored: Bool) throws {
            let fields = [("Cache-Control", "max-age=600"), ("Set-Cookie", "id=1")]
            let origin = try ScriptedOrigin { _ in .answer("text", fields: fields) }
            let daemon = try daemon(service("api", origin.url, "cache: { set_cookie: \(rule) }"))
            #expect(try daemon.exchange("/api/x").field("Set-Cookie") == "id=1")
            let second = try daemon.exchange("/api/x")
            #expect(second.field("Set-Cookie") == cookie && second.cacheStatus?.isHit == isStored)
            if !isStored { #expect(second.cacheStatus?.detail == "set-cookie") }
        }

        @Test("cookies says whose answers are stored, in services, endpoints, defaults and forward mode")
        func cookiesOfRequests() throws {
            let origin = try ScriptedOrigin { .answer("for \($0.field("Cookie") ?? "nobody")") }
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    defaults: { cache: { ttl: 1h } }
                    forward: { allow: ["127.0.0.1"], cache: { ttl: 1h, cookies: any } }
                    services:
                    """ + "\n"
                        + service("api", origin.url, "endpoints: [{ name: e, path: /e, cache: { cookies: any } }]")
                        + service("all", origin.url, "cache: { cookies: any }")
                        + service("none", origin.url, "cache: { cookies: never }")
                )
            )
            let alice = [("Cookie", "alice")]
            for (path, isStored) in [("/api/x", false), ("/api/e", true), ("/all/x", true), ("/none/x", false)] {
                let first = try daemon.exchange(path, fields: alice)
                #expect(first.text == "for alice" && first.cacheStatus?.isStored == isStored, "\(path)")
                #expect(first.cacheStatus?.detail == (isStored ? nil : "request-cookie"))
                #expect(try daemon.exchange(path).text == (isStored ? "for alice" : "for nobody"), "\(path)")
            }
            let target = "\(origin.url)/forward"
            #expect(try daemon.exchange(target, fields: alice).cacheStatus?.isStored == true)
            #expect(try daemon.exchange(target).text == "for alice")
        }

        @Test func shortBodiesAreNotStored() throws {
            let kept = [("Cache-Control", "max-age=600")]
            let origin = try ScriptedOrigin { request in
                request.target == "/chunked" ? .chunked(["tiny"], fields: kept) : .answer("tiny", fields: kept)
            }
            let daemon = try daemon(service("api", origin.url, "cache: { min_length: 5B }"), service("all", origin.url))
            for _ in 0..<2 {
                #expect(try daemon.exchange("/api/x").cacheStatus?.detail == "too-short")
                #expect(try daemon.exchange("/api/chunked").cacheStatus?.isHit == false)
            }
            _ = try daemon.exchange("/all/x")
            #expect(try daemon.exchange("/all/x").cacheStatus?.isHit == true)
        }
    }
}
