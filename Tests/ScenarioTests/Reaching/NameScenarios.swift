// By which names clients reach a daemon: on this machine, behind a proxy, and from another host of a network.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Names {
        /// curl, told that a name is this machine's.
        private func curl(_ name: String, _ daemon: Daemon, _ path: String, _ more: String...) throws -> ShellResult {
            let authority = "\(name):\(daemon.port)"
            let known = ["--resolve", "\(authority):127.0.0.1", "http://\(authority)\(path)"]
            return try Shell.run("curl", ["-sS", "-w", " %{http_code}", "--noproxy", "*"] + more + known)
        }

        @Test func aServiceAnswersForTheNamesUnderHosts() throws {
            let origin = try ScriptedOrigin { .answer("for \($0.target)") }
            var settings = services(
                service("api", origin.url),
                service("own", origin.url, "hosts: [own.lan]"),
                "  - { name: both, match: { host: both.lan, prefix: /v1 }, base_url: \"\(origin.url)\" }\n"
            )
            let rest = settings.rest
            settings.rest += "hosts: [drydock, \"*.lan\"]\n"
            let daemon = try Daemon(settings)
            for (name, path, expected) in [
                ("drydock", "/api/x", "for /x 200"), ("cache.lan", "/api/x", "for /x 200"),
                ("own.lan", "/own/x", "for /x 200"), ("both.lan", "/v1/x", "for /x 200"),
                ("both.lan", "/api/x", "for /x 200"), ("localhost", "/own/x", "for /x 200"),
            ] {
                let run = try curl(name, daemon, path)
                #expect(run.output == expected, "\(name) \(run.report)")
            }
            let before = origin.requests()
            for (name, path, words) in [
                ("evil.example", "/api/x", "no service answers for the host evil.example"),
                ("lan", "/api/x", #"write hosts: [\"lan\"] in its configuration file"#),
                ("drydock", "/own/x", "service own does not answer for the host drydock"),
            ] {
                let run = try curl(name, daemon, path)
                #expect(run.output.hasSuffix(" 421") && run.output.contains(words), "\(run.report)")
            }
            #expect(origin.requests() == before)
            let status = try daemon.command("status")
            #expect(status.output.contains("both both.lan/v1 ->"), "\(status.report)")
            // A reload takes them away again.
            settings.rest = rest
            try daemon.rewrite(settings)
            let reload = try daemon.command("reload")
            #expect(reload.succeeded, "\(reload.report)")
            #expect(try curl("drydock", daemon, "/api/x").output.hasSuffix(" 421"))
        }

        /// What commands take for a URL of the daemon itself, where it listens on every address.
        @Test func commandsKnowTheDaemonsOwnURLs() throws {
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [("Cache-Control", "max-age=600")], "for \(request.target)")
            }
            let home = try DaemonHome()
            let daemon = try Daemon(
                text: """
                    listen: 0.0.0.0:\(home.port)
                    clients: [loopback]
                    hosts: [cache.test]
                    admin: "unix:\(home.adminSocket)"
                    log: { access: "\(home.accessLog)" }
                    services: [{ name: api, match: { prefix: /api }, base_url: "\(origin.url)" }]
                    forward: { allow: [10.0.0.7, "*:3000"] }

                    """,
                at: home
            )
            let own = ["http://127.0.0.1:\(home.port)", "http://cache.test:\(home.port)", "http://cache.test"]
            for (urls, route) in [
                (own, "service api at /api"),
                // Another machine's, whatever its port; and another program's on this one.
                (["http://10.0.0.7:\(home.port)", "http://cache.test:3000"], "forward"),
            ] {
                for url in urls {
                    let said = try daemon.command("explain", url + "/api/x")
                    #expect(said.output.contains("route          \(route)"), "\(url): \(said.report)")
                }
            }
            for url in own {
                #expect(try curl("cache.test", daemon, "/api/x").output == "for /x 200")
                let purged = try daemon.command("purge", url + "/api/x")
                #expect(purged.succeeded && purged.output.hasPrefix("1 "), "\(url): \(purged.report)")
            }
            #expect(origin.requests() == 3)
        }

        /// Behind a router that translates addresses, clients ask for one that no interface has.
        @Test func withoutForwardModeAnAddressOfARouterIsTheDaemons() throws {
            let origin = try ScriptedOrigin { .answer("for \($0.target)") }
            let home = try DaemonHome()
            let daemon = try Daemon(
                text: """
                    listen: 0.0.0.0:\(home.port)
                    clients: [loopback]
                    admin: "unix:\(home.adminSocket)"
                    log: { access: "\(home.accessLog)" }
                    services: [{ name: api, match: { prefix: /api }, base_url: "\(origin.url)" }]
                    forward: { enabled: false }

                    """,
                at: home
            )
            #expect(try curl("203.0.113.5", daemon, "/api/x").output == "for /x 200")
            let said = try daemon.command("explain", "http://203.0.113.5:\(home.port)/api/x")
            #expect(said.output.contains("route          service api at /api"), "\(said.report)")
        }

        @Test func theMachinesNameCountsWhereOthersMayConnect() throws {
            let origin = try ScriptedOrigin { .answer("for \($0.target)") }
            var settings = services(service("api", origin.url))
            let name = ProcessInfo.processInfo.hostName.split(separator: ".").first.map(String.init) ?? ""
            try #require(!name.isEmpty && name != "localhost", "this machine has no name of its own")
            let closed = try Daemon(settings)
            #expect(try curl(name, closed, "/api/x").output.hasSuffix(" 421"))
            settings.rest += "clients: [any]\n"
            let open = try Daemon(settings)
            #expect(try curl(name, open, "/api/x").output == "for /x 200")
            #expect(try curl("evil.example", open, "/api/x").output.hasSuffix(" 421"))
        }

        @Test func aProxyInFrontPassesItsHost() throws {
            let origin = try ScriptedOrigin { .answer("for \($0.target)") }
            var settings = services(service("api", origin.url))
            settings.rest += "hosts: [cache.example]\n"
            let daemon = try Daemon(settings)
            func front(_ host: String, _ forwarded: String) throws -> NginxOrigin {
                let fields = [
                    ("Host", host), ("X-Forwarded-Host", forwarded), ("Forwarded", "host=\(forwarded)"),
                    ("X-Original-Host", forwarded),
                ]
                let lines = fields.map { "proxy_set_header \($0.0) \"\($0.1)\";" }
                return try NginxOrigin(location: "proxy_pass \(daemon.url); " + lines.joined(separator: " "))
            }
            // What nginx calls $http_host is the Host that its client has sent.
            let passing = try front("$http_host", "evil.example")
            let good = try RawClient(port: passing.port).exchange("GET", "/api/x", host: "cache.example")
            #expect(good.text == "for /x")
            let other = try RawClient(port: passing.port).exchange("GET", "/api/x", host: "evil.example")
            #expect(other.status == 421)
            // What a proxy only says beside Host is said by anybody.
            let beside = try front("other.example", "cache.example")
            #expect(try RawClient(port: beside.port).exchange("GET", "/api/x", host: "cache.example").status == 421)
            #expect(origin.requests() == 1)
        }
    }

    @Suite(
        .timeLimit(.minutes(10)),
        .enabled(if: NetworkPair.isPossible, "needs root, and a kernel that lets it make network namespaces")
    )
    struct TwoHosts {
        private static let names = ["drydock", "cache.lan", "evil.example", "box"]

        private static func daemon(_ network: NetworkPair) throws -> Daemon {
            let home = try DaemonHome()
            try home.folder.write("answer.txt", "played")
            let text = """
                listen: 0.0.0.0:8080
                clients: [10.213.7.0/24, loopback]
                admin: "unix:\(home.adminSocket)"
                log: { access: "\(home.accessLog)" }
                name: drydock
                hosts: [drydock, "*.lan"]
                forward: { allow: ["*"] }
                services:
                  - name: demo
                    match: { prefix: /demo }
                    demo: { enabled: true, file: answer.txt, headers: { Cache-Control: max-age=600 } }
                  - { name: shop, match: { prefix: /shop }, base_url: "service:demo" }

                """
            return try Daemon(text: text, at: home, launcher: network.server.launcher)
        }

        private func ask(_ host: NetworkPair.Host, _ url: String, proxy: String? = nil) throws -> ShellResult {
            let environment = proxy.map { ["http_proxy": $0] } ?? [:]
            return try host.run("curl", "-sS", "-w", " %{http_code}", url, environment: environment)
        }

        /// As one container asks another by the name of its service.
        @Test func aNameLeadsToTheOtherHost() throws {
            let network = try NetworkPair(Self.names)
            let daemon = try Self.daemon(network)
            for name in ["drydock", "cache.lan", network.server.address] {
                let run = try ask(network.client, "http://\(name):8080/shop/x")
                #expect(run.output == "played 200", "\(name) \(run.report)")
            }
            let head = try network.client.run("curl", "-sSi", "http://drydock:8080/shop/x")
            #expect(head.output.contains("drydock; hit"), "\(head.report)")
            let refused = try ask(network.client, "http://evil.example:8080/shop/x")
            #expect(refused.output.hasSuffix(" 421") && refused.output.contains("write hosts:"), "\(refused.report)")
            withExtendedLifetime(daemon) {}
        }

        /// The name that the machine gives itself, which no configuration has to know.
        @Test func theMachinesNameLeadsToIt() throws {
            let name = ProcessInfo.processInfo.hostName.split(separator: ".").first.map(String.init) ?? ""
            try #require(!name.isEmpty && name != "localhost", "this machine has no name of its own")
            let network = try NetworkPair([name])
            let daemon = try Self.daemon(network)
            let run = try ask(network.client, "http://\(name):8080/shop/x")
            #expect(run.output == "played 200", "\(run.report)")
            withExtendedLifetime(daemon) {}
        }

        /// As with `http_proxy` for every container of a Compose file.
        @Test func asAProxyItAnswersForItself() throws {
            let network = try NetworkPair(Self.names)
            let daemon = try Self.daemon(network)
            let proxy = "http://drydock:8080"
            for name in ["drydock", network.server.address] {
                let run = try ask(network.client, "http://\(name):8080/shop/x", proxy: proxy)
                #expect(run.output == "played 200", "\(name) \(run.report)")
            }
            let inner = try ask(network.client, "http://\(network.client.address):8080/", proxy: proxy)
            #expect(inner.output.hasSuffix(" 502"), "an internal address stays refused: \(inner.report)")
            let clear = try network.client.run(
                "curl",
                "-sS",
                "-w",
                " %{http_code}",
                "--request-target",
                "https://example.com/",
                proxy
            )
            #expect(clear.output.hasSuffix(" 403") && clear.output.contains("unencrypted"), "\(clear.report)")
            withExtendedLifetime(daemon) {}
        }

        /// nginx on the one host, in front of the daemon on the other.
        @Test func aProxyOnAnotherHostPassesItsHost() throws {
            let network = try NetworkPair(Self.names)
            let daemon = try Self.daemon(network)
            let folder = try TemporaryFolder("front")
            try folder.write(
                "nginx.conf",
                """
                \(getuid() == 0 ? "user root;" : "")
                pid \(folder.path)/nginx.pid;
                events {}
                http {
                    access_log off;
                    client_body_temp_path \(folder.path)/body;
                    proxy_temp_path \(folder.path)/proxy;
                    fastcgi_temp_path \(folder.path)/fastcgi;
                    uwsgi_temp_path \(folder.path)/uwsgi;
                    scgi_temp_path \(folder.path)/scgi;
                    server {
                        listen \(network.client.address):80;
                        location / { proxy_pass http://\(network.server.address):8080; proxy_set_header Host $http_host; }
                    }
                }

                """
            )
            let command = ["/usr/sbin/nginx", "-p", folder.path, "-c", folder.file("nginx.conf"), "-g", "daemon off;"]
            let nginx = try ChildProcess(
                "ip",
                Array(network.client.launcher.dropFirst()) + command,
                environment: Shell.cleanEnvironment(),
                errors: folder.file("error.log")
            )
            defer { nginx.signal(SIGKILL, group: true) }
            func through(_ host: String) throws -> String {
                try network.client.run(
                    "curl",
                    "-sS",
                    "-w",
                    " %{http_code}",
                    "-H",
                    "Host: \(host)",
                    "http://\(network.client.address)/shop/x"
                ).output
            }
            #expect(try eventually { try through("cache.lan") == "played 200" }, "\(folder.text("error.log"))")
            #expect(try through("drydock") == "played 200")
            #expect(try through("evil.example").hasSuffix(" 421"))
            withExtendedLifetime(daemon) {}
        }
    }
}
