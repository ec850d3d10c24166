// Origins behind an HTTP proxy: names that only the proxy knows, its credentials, its failures, and loops through it.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Proxies {
        // "us:pa ss", by coreutils' base64.
        fileprivate static let basic = "Basic dXM6cGEgc3M="
        fileprivate static let userinfo = "us:pa%20ss"

        /// A proxy that answers plain requests with `answer`, and opens tunnels to a port of this machine for those who
        /// have the right credentials.
        fileprivate static func proxy(
            tunnelsTo port: Int = 0,
            wants credentials: String? = basic,
            answer: @escaping ScriptedOrigin.Handler = { .answer(to: $0, "of the proxy") }
        ) throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                guard request.field("Proxy-Authorization") == credentials else {
                    return .answer(407, to: request, fields: [("Proxy-Authenticate", "Basic realm=\"p\"")], "who?")
                }
                guard request.method == "CONNECT" else { return answer(request) }
                return OriginReply([.bytes(Array("HTTP/1.1 200 Opened\r\n\r\n".utf8)), .tunnel(port)])
            }
        }

        fileprivate static func key(_ proxy: ScriptedOrigin, _ userinfo: String? = userinfo) -> String {
            "upstream_proxy: \"http://\(userinfo.map { "\($0)@" } ?? "")\(proxy.authority)\""
        }

        @Test func aPlainOriginIsAskedThroughTheProxyAndStored() throws {
            let proxy = try Self.proxy { request in
                .resource(request, etag: "\"1\"", fields: [("Cache-Control", "max-age=60")], "of the proxy")
            }
            var settings = services(
                service(
                    "api",
                    "http://origin.test:81/base",
                    Self.key(proxy),
                    "headers: { set: { Proxy-Authorization: mine } }"
                )
            )
            settings.rest += "clock: { movable: true }\n"
            let daemon = try Daemon(settings)
            let own = [("Proxy-Authorization", "Basic b3duOm93bg=="), ("X-Mine", "1")]
            for _ in 0..<2 { #expect(try daemon.exchange("/api/a?b", fields: own).text == "of the proxy") }
            #expect(proxy.requests() == 1)
            let asked = try #require(proxy.log.first)
            #expect(asked.target == "http://origin.test:81/base/a?b")
            #expect(asked.all("Host") == ["origin.test:81"])
            #expect(asked.all("Proxy-Authorization") == [Self.basic])
            #expect(asked.field("X-Mine") == "1" && asked.field("Via") == "1.1 drydock")
            // What is stale is checked on the same way.
            #expect(try daemon.command("clock", "advance", "100s").succeeded)
            #expect(try daemon.exchange("/api/a?b").cacheStatus?.detail == "revalidated")
            #expect(proxy.log.last?.method == "HEAD" && proxy.log.last?.target == asked.target)
            let posted = try daemon.exchange("POST", "/api/p", body: Array("content".utf8))
            #expect(posted.text == "of the proxy" && proxy.log.last?.body == Array("content".utf8))
            let explained = try daemon.command("explain", "/api/a?b").output
            #expect(explained.contains("http://origin.test:81/base/a?b through the proxy \(proxy.authority)\n"))
        }

        @Test func credentialsAreShownNowhere() throws {
            let proxy = try Self.proxy(wants: "none of these")
            var settings = services(service("api", "http://origin.test", Self.key(proxy)))
            settings.logLevel = "trace"
            let daemon = try Daemon(settings)
            let answer = try daemon.exchange("/api/a")
            expectProblem(answer, 502)
            #expect(answer.field("Proxy-Status")?.contains("error=proxy_configuration_error;") == true)
            let told = "the proxy \(proxy.authority) does not take the user and the password"
            #expect(answer.text.contains(told), "\(answer.text)")
            #expect(!answer.text.contains("who?"))
            let shown = try daemon.command("config", "show", "-c", daemon.home.configuration)
            #expect(shown.output.contains("upstream_proxy: \"http://(hidden)@\(proxy.authority)\""), "\(shown.report)")
            let explained = try daemon.command("explain", "/api/a")
            let status = try daemon.command("status", "--json")
            #expect(explained.succeeded && status.succeeded)
            #expect(daemon.end() != nil)
            let all = [
                shown.report, explained.report, status.report, daemon.output, daemon.errors,
                daemon.accessLog.joined(), answer.text, "\(answer.head)",
            ]
            #expect(daemon.accessLog.joined().contains(told))
            for text in all {
                for secret in ["pa ss", "pa%20ss", "dXM6cGEgc3M="] { #expect(!text.contains(secret), "\(text)") }
            }
        }

        @Test func anHTTPSOriginIsReachedThroughATunnel() throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder, hosts: ["origin.test"])
            let nginx = try NginxOrigin(location: "add_header Cache-Control \"max-age=600\";", tls: files)
            try nginx.write("a.txt", "over TLS")
            try nginx.folder.writePattern("root/big.bin", count: 3 << 20)
            let proxy = try Self.proxy(tunnelsTo: nginx.port)
            let tls = "tls: { ca: \(files.authority) }"
            let daemon = try Daemon(
                services(
                    service("api", "https://origin.test", tls, Self.key(proxy)),
                    service("misnamed", "https://other.test", tls, Self.key(proxy)),
                    service("wrong", "https://origin.test", tls, Self.key(proxy, "us:wrong")),
                    service("bare", "https://origin.test", tls, Self.key(proxy, nil))
                )
            )
            let own = [("Proxy-Authorization", "Basic b3duOm93bg==")]
            #expect(try daemon.exchange("/api/a.txt", fields: own).text == "over TLS")
            #expect(try daemon.exchange("/api/a.txt").cacheStatus?.isHit == true)
            #expect(try daemon.exchange("/api/big.bin").body.count == 3 << 20)
            #expect(proxy.log.allSatisfy { $0.method == "CONNECT" && $0.target == "origin.test:443" })
            #expect(proxy.log.first?.all("Proxy-Authorization") == [Self.basic])
            #expect(proxy.log.first?.field("Via") == "1.1 drydock")
            let misnamed = try daemon.exchange("/misnamed/a.txt")
            expectProblem(misnamed, 502)
            #expect(misnamed.field("Proxy-Status")?.contains("tls_certificate_error") == true)
            for (name, words) in [("wrong", "does not take the user"), ("bare", "wants credentials")] {
                let refused = try daemon.exchange("/\(name)/b.txt")
                expectProblem(refused, 502)
                #expect(refused.field("Proxy-Status")?.contains("error=proxy_configuration_error;") == true)
                #expect(refused.text.contains("the proxy \(proxy.authority) \(words)"), "\(refused.text)")
            }
        }

        @Test func aProxyThatIsNotThereOrSaysNothing() throws {
            let dead = try freePort()
            let silent = try ScriptedOrigin { _ in OriginReply([.hang]) }
            let daemon = try Daemon(
                services(
                    service("dead", "http://origin.test", "upstream_proxy: \"http://127.0.0.1:\(dead)\""),
                    service("dead-tls", "https://origin.test", "upstream_proxy: \"http://127.0.0.1:\(dead)\""),
                    service(
                        "silent",
                        "http://origin.test",
                        "timeout: { connect: 2m, first_byte: 200ms }",
                        Self.key(silent)
                    ),
                    service("silent-tls", "https://origin.test", "timeout: { connect: 200ms }", Self.key(silent))
                )
            )
            for (name, status, error, words) in [
                ("dead", 502, "connection_refused", "check that the proxy runs"),
                ("dead-tls", 502, "connection_refused", "check that the proxy runs"),
                ("silent", 504, "http_response_timeout", "raise timeout.first_byte"),
                ("silent-tls", 504, "connection_timeout", "raise timeout.connect"),
            ] {
                let answer = try daemon.exchange("/\(name)/a")
                expectProblem(answer, status)
                #expect(answer.field("Proxy-Status")?.contains("error=\(error);") == true, "\(answer.head)")
                #expect(answer.text.contains("through the proxy 127.0.0.1:"), "\(answer.text)")
                #expect(answer.text.contains(words), "\(answer.text)")
            }
        }

        @Test func theEnvironmentNamesTheProxyAndTheExceptions() throws {
            let proxy = try Self.proxy(wants: nil)
            let origin = try ScriptedOrigin { .answer(to: $0, "direct") }
            let text =
                "defaults: { upstream_proxy: env }\nforward: { upstream_proxy: env, allow: [\"*\", \"127.0.0.1\"] }\n"
                + "services:\n" + service("named", "http://origin.test") + service("local", origin.url)
                + service("without", "http://127.0.0.1:\(origin.port)", "upstream_proxy: none")
            let daemon = try Daemon(
                DaemonSettings(text),
                environment: ["http_proxy": proxy.url, "no_proxy": "127.0.0.0/8,.local.test"]
            )
            #expect(try daemon.exchange("/named/a").text == "of the proxy")
            #expect(try daemon.exchange("/local/a").text == "direct")
            #expect(try daemon.exchange("/without/b").text == "direct")
            #expect(proxy.log.map(\.target) == ["http://origin.test/a"])
            #expect(try daemon.exchange("http://forward.test/f").text == "of the proxy")
            #expect(try daemon.exchange("\(origin.url)/f").text == "direct")
        }
    }
}

extension Scenarios.Proxies {
    @Test func forwardModeAndItsTunnels() throws {
        let folder = try TemporaryFolder()
        let files = try TLSFiles(in: folder, hosts: ["origin.test"])
        let nginx = try NginxOrigin(tls: files)
        try nginx.write("a.txt", "over TLS")
        let proxy = try Self.proxy(tunnelsTo: nginx.port)
        let daemon = try Daemon("forward: { \(Self.key(proxy)) }")
        let plain = try daemon.exchange("http://origin.test/x", fields: [("Proxy-Authorization", "Basic b3duOm93bg==")])
        #expect(plain.text == "of the proxy")
        #expect(proxy.log.last?.all("Proxy-Authorization") == [Self.basic])
        // A rule that names an address holds for one that the target names; a name is the proxy's business.
        expectProblem(try daemon.exchange("http://10.1.2.3/x"), 502)
        #expect(try daemon.exchange("http://internal.test/x").text == "of the proxy")
        // A port of the daemon's own is no reason to look the name up.
        #expect(try daemon.exchange("http://origin.test:\(daemon.port)/x").text == "of the proxy")
        #expect(proxy.requests() == 3)
        let run = try Shell.run(
            "curl",
            ["-sS", "-f", "--cacert", files.authority, "https://origin.test/a.txt"],
            environment: ["https_proxy": daemon.url]
        )
        #expect(run.succeeded && run.output == "over TLS", "\(run.report)")
        #expect(proxy.log.last?.method == "CONNECT" && proxy.log.last?.target == "origin.test:443")
        #expect(proxy.log.last?.all("Proxy-Authorization") == [Self.basic])
        #expect(proxy.log.last?.field("Via") == "1.1 drydock")
    }

    @Test func aTunnelThatTheProxyRefuses() throws {
        let proxy = try ScriptedOrigin { .answer(403, to: $0, "no") }
        let daemon = try Daemon("forward: { \(Self.key(proxy)) }")
        let client = try daemon.client()
        try client.send("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
        let refused = try client.readResponse(method: "CONNECT")
        expectProblem(refused, 502)
        #expect(refused.field("Proxy-Status")?.contains("error=http_request_denied;") == true)
        #expect(refused.text.contains("the proxy \(proxy.authority) refuses the way to origin.test:443 (403)"))
        #expect(eventually { daemon.accessLog.joined().contains("(403)") })
    }

    @Test func anUpgradeGoesThroughATunnel() throws {
        let origin = try ScriptedOrigin { _ in
            let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
            return OriginReply([.bytes(Array(head.utf8)), .converse { $0 }])
        }
        let proxy = try Self.proxy(tunnelsTo: origin.port)
        let daemon = try Daemon(services(service("ws", "http://origin.test:81", Self.key(proxy))))
        let client = try daemon.client()
        try client.send(
            "GET /ws/live HTTP/1.1\r\nHost: 127.0.0.1:\(daemon.port)\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
        )
        #expect(try client.readHead().status == 101)
        try client.send("ping")
        #expect(try client.readRaw(4) == Array("ping".utf8))
        #expect(proxy.log.first?.method == "CONNECT" && proxy.log.first?.target == "origin.test:81")
        #expect(origin.log.first?.target == "/live" && origin.log.first?.field("Host") == "origin.test:81")
        #expect(origin.log.first?.field("Proxy-Authorization") == nil)
    }

    @Test func aDaemonThatIsItsOwnProxyIsA508() throws {
        let home = try DaemonHome()
        let own = "upstream_proxy: \"http://127.0.0.1:\(home.port)\""
        let text =
            "forward: { \(own), allow: [\"*\"] }\nservices:\n" + service("plain", "http://origin.test", own)
            + service("tls", "https://origin.test", own)
        let daemon = try Daemon(DaemonSettings(text), at: home)
        for path in ["/plain/a", "/tls/a", "http://origin.test/a"] {
            expectProblem(try daemon.exchange(path), 508)
        }
        let client = try daemon.client()
        try client.send("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n")
        let refused = try client.readResponse(method: "CONNECT")
        expectProblem(refused, 508)
        #expect(refused.field("Proxy-Status")?.contains("error=proxy_loop_detected;") == true)
    }

    @Test func redirectsRetriesAndTheBreakerWorkThroughIt() throws {
        let proxy = try ScriptedOrigin { request in
            switch request.target {
            case "http://a.test/old": .answer(302, to: request, fields: [("Location", "http://b.test/new")], "")
            case "http://b.test/new": .answer(to: request, "of b")
            case "busy.test:443", "down.test:443":
                OriginReply([.bytes(Array("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".utf8)), .cut])
            case "auth.test:443": .answer(407, to: request, "who?")
            default: .answer(404, to: request, "none")
            }
        }
        let daemon = try Daemon(
            services(
                service("a", "http://a.test", "redirects: follow", Self.key(proxy)),
                service(
                    "busy",
                    "https://busy.test",
                    "retry: { count: 2, delay: 1ms, when: [connect] }",
                    Self.key(proxy)
                ),
                service(
                    "down",
                    "https://down.test",
                    "breaker: { failures: 2, window: 10m, open: 10m }",
                    Self.key(proxy)
                ),
                service("auth", "https://auth.test", "breaker: { failures: 1, open: 10m }", Self.key(proxy))
            )
        )
        #expect(try daemon.exchange("/a/old").text == "of b")
        #expect(proxy.log.map(\.target) == ["http://a.test/old", "http://b.test/new"])
        #expect(proxy.log.allSatisfy { $0.all("Proxy-Authorization") == [Self.basic] })
        expectProblem(try daemon.exchange("/busy/x"), 502)
        #expect(proxy.requests(target: "busy.test:443") == 3)
        for _ in 0..<2 { expectProblem(try daemon.exchange("/down/x"), 502) }
        expectProblem(try daemon.exchange("/down/x"), 503)
        #expect(proxy.requests(target: "down.test:443") == 2)
        // What the proxy wants says nothing of the origin.
        for _ in 0..<2 { expectProblem(try daemon.exchange("/auth/x"), 502) }
        #expect(proxy.requests(target: "auth.test:443") == 2)
    }

    @Test func aPrefetchGoesThroughIt() throws {
        let proxy = try Self.proxy { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "of the proxy") }
        let daemon = try Daemon(services(service("api", "http://origin.test", Self.key(proxy))))
        let run = try daemon.command("prefetch", "/api/a", "/api/b")
        #expect(run.succeeded, "\(run.report)")
        #expect(Set(proxy.log.map(\.target)) == ["http://origin.test/a", "http://origin.test/b"])
        #expect(try daemon.exchange("/api/a").cacheStatus?.isHit == true)
    }
}
