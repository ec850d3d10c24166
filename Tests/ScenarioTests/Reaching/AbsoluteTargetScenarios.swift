// What clients get that send everything to the proxy: URLs of the daemon itself, UTF-8, and https without CONNECT.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct AbsoluteTargets {
        @Test func httpProxyDoesNotStandBeforeTheDaemonItself() throws {
            let origin = try ScriptedOrigin { .answer("for \($0.target)") }
            let daemon = try Daemon(services(service("api", origin.url)))
            let proxies = ["http_proxy": daemon.url, "https_proxy": daemon.url]
            for exception in ["", "localhost,127.0.0.1,::1"] {
                for name in ["localhost", "127.0.0.1"] {
                    let run = try Shell.run(
                        "curl",
                        ["-sS", "-v", "http://\(name):\(daemon.port)/api/x"],
                        environment: proxies.merging(["no_proxy": exception]) { $1 }
                    )
                    #expect(run.output == "for /x", "\(run.report)")
                    // The proxy was asked where nothing excepts the name, and there alone.
                    let line = "> GET http://\(name):\(daemon.port)/api/x"
                    #expect(run.errors.contains(line) == exception.isEmpty, "\(run.report)")
                }
            }
        }

        @Test func aURLWithUTF8IsForwarded() throws {
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [("Cache-Control", "max-age=600")], "for \(request.target)")
            }
            let daemon = try Daemon("forward: { allow: [127.0.0.1] }")
            for _ in 0..<2 {
                let run = try Shell.run(
                    "curl",
                    ["-sS", "\(origin.url)/grün/ü?q=€"],
                    environment: ["http_proxy": daemon.url]
                )
                #expect(run.output == "for /gr%C3%BCn/%C3%BC?q=%E2%82%AC", "\(run.report)")
            }
            #expect(origin.requests() == 1)
        }

        private static func secure(_ folder: TemporaryFolder) throws -> (NginxOrigin, TLSFiles) {
            let files = try TLSFiles(in: folder)
            let nginx = try NginxOrigin(location: "add_header Cache-Control \"max-age=600\";", tls: files)
            try nginx.write("a.txt", "secret")
            return (nginx, files)
        }

        /// As axios asks an http proxy for an https URL (before it learned CONNECT in 2026).
        private func ask(_ url: String, _ client: RawClient) throws -> RawResponse {
            let host = url.dropFirst(8).prefix { $0 != "/" }
            return try client.exchange(
                "GET",
                url,
                host: String(host),
                fields: [("Accept", "application/json, text/plain, */*")]
            )
        }

        @Test func httpsWithoutATunnelIsFetchedAndCached() throws {
            let folder = try TemporaryFolder()
            let (nginx, files) = try Self.secure(folder)
            let home = try DaemonHome()
            let socket = home.folder.file("proxy.sock")
            let text = """
                listen: ["127.0.0.1:\(home.port)", "unix:\(socket)"]
                admin: "unix:\(home.adminSocket)"
                log: { access: "\(home.accessLog)" }
                forward:
                  allow: [127.0.0.1, localhost]
                  connect: { allow: ["*:\(nginx.port)"] }
                  tls: { ca: "\(files.authority)" }

                """
            let daemon = try Daemon(text: text, at: home)
            let url = "https://localhost:\(nginx.port)/a.txt"
            for client in [try daemon.client(), try RawClient(unix: socket)] {
                let answer = try ask(url, client)
                #expect(answer.status == 200 && answer.text == "secret", "\(answer.head)")
            }
            #expect(try ask(url, daemon.client()).cacheStatus?.isHit == true)
            #expect(nginx.log.count == 1)
            // The key is that of https, and forward mode's.
            #expect(try daemon.command("list").output.contains(url))
            #expect(try daemon.exchange("http://localhost:\(nginx.port)/a.txt").status == 400, "nginx wants TLS there")
            let explained = try daemon.command("explain", url)
            #expect(explained.output.contains("forward") && explained.output.contains(url), "\(explained.report)")
        }

        @Test func httpsObeysTheRulesOfCONNECT() throws {
            let folder = try TemporaryFolder()
            let (nginx, files) = try Self.secure(folder)
            let url = "https://localhost:\(nginx.port)/a.txt"
            for (rules, status, words) in [
                ("allow: [localhost], connect: { allow: [\"*:443\"] }", 403, "forward.connect.allow"),
                ("allow: [\"*\"], connect: { allow: [\"*:\(nginx.port)\"] }", 502, "internal address"),
                ("allow: [other.test], connect: { allow: [\"*:\(nginx.port)\"] }", 403, "no rule allows localhost"),
            ] {
                let daemon = try Daemon("forward: { \(rules), tls: { ca: \"\(files.authority)\" } }")
                let refused = try ask(url, daemon.client())
                #expect(refused.status == status && refused.text.contains(words), "\(refused.text)")
            }
            // Whom the system does not trust, forward mode does not, either.
            let allowed = "allow: [localhost], connect: { allow: [\"localhost:\(nginx.port)\"] }"
            let doubting = try Daemon("forward: { \(allowed) }")
            expectProblem(try ask(url, doubting.client()), 502)
            #expect(nginx.log.isEmpty)
        }

        @Test func httpsInTheClearIsRefusedOnAListenerOfTheNetwork() throws {
            let folder = try TemporaryFolder()
            let (nginx, files) = try Self.secure(folder)
            let home = try DaemonHome()
            let text = """
                listen: 0.0.0.0:\(home.port)
                clients: [loopback]
                admin: "unix:\(home.adminSocket)"
                log: { access: "\(home.accessLog)" }
                forward: { allow: [localhost], connect: { allow: ["*:*"] }, tls: { ca: "\(files.authority)" } }

                """
            let daemon = try Daemon(text: text, at: home)
            let refused = try ask("https://localhost:\(nginx.port)/a.txt", daemon.client())
            expectProblem(refused, 403)
            #expect(
                refused.text.contains("use CONNECT for https") && refused.text.contains("localhost:PORT"),
                "\(refused.text)"
            )
            // A tunnel goes through.
            let tunnelled = try Shell.run(
                "curl",
                ["-sS", "--cacert", files.authority, "https://localhost:\(nginx.port)/a.txt"],
                environment: ["https_proxy": daemon.url]
            )
            #expect(tunnelled.output == "secret", "\(tunnelled.report)")
        }

        // MARK: - Clients of Node.js

        /// Runs a program of JavaScript with the packages of Debian.
        /// - Parameter environment: what it finds besides; the proxy that Node.js itself may obey is switched off.
        private func node(
            _ script: String,
            _ arguments: String...,
            environment: [String: String] = [:]
        ) throws -> ShellResult {
            let always = ["NODE_PATH": "/usr/share/nodejs", "NODE_USE_ENV_PROXY": "0", "no_proxy": ""]
            return try Shell.run(
                "node",
                ["-e", script] + arguments,
                environment: always.merging(environment) { $1 }
            )
        }

        /// What Documentation/guide/reaching.md says of it.
        @Test func fetchOfNodeDoesNotLookAtHTTPProxy() throws {
            let origin = try ScriptedOrigin { .answer($0.field("Via") ?? "directly") }
            let daemon = try Daemon("forward: { allow: [127.0.0.1] }")
            let script = "fetch(process.argv[1]).then(r => r.text()).then(t => console.log(t))"
            let run = try node(script, "\(origin.url)/x", environment: ["http_proxy": daemon.url])
            #expect(run.output == "directly\n", "\(run.report)")
        }

        /// A dispatcher of undici makes a tunnel for every URL, and a service needs none.
        @Test func undiciTunnelsThroughAProxyAndAsksAServiceDirectly() throws {
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [("Cache-Control", "max-age=600")], request.field("Via") ?? "directly")
            }
            var settings = services(service("api", origin.url))
            settings.rest += "forward: { allow: [127.0.0.1], connect: { allow: [\"127.0.0.1:\(origin.port)\"] } }\n"
            let daemon = try Daemon(settings)
            let script = """
                const { ProxyAgent, request } = require("undici")
                const [url, proxy] = process.argv.slice(1)
                const options = proxy ? { dispatcher: new ProxyAgent(proxy) } : {}
                request(url, options).then(async r => {
                    console.log(r.statusCode, r.headers["cache-status"] ?? "none", await r.body.text())
                    process.exit()
                })
                """
            let tunnelled = try node(script, "\(origin.url)/x", daemon.url)
            #expect(tunnelled.output == "200 none directly\n", "\(tunnelled.report)")
            for outcome in ["fwd=uri-miss", "; hit"] {
                let served = try node(script, "\(daemon.url)/api/x")
                #expect(served.output.hasPrefix("200 drydock") && served.output.hasSuffix(" 1.1 drydock\n"))
                #expect(served.output.contains(outcome), "\(served.report)")
            }
            #expect(origin.requests() == 2)
        }

        /// It obeys `http_proxy` and `https_proxy`, and asks for both kinds of URL in absolute form, without CONNECT.
        @Test func axiosGetsBothKindsOfURLFromTheCache() throws {
            let folder = try TemporaryFolder()
            let (nginx, files) = try Self.secure(folder)
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [("Cache-Control", "max-age=600")], "plain")
            }
            let allowed = "allow: [127.0.0.1, localhost], connect: { allow: [\"*:\(nginx.port)\"] }"
            let daemon = try Daemon("forward: { \(allowed), tls: { ca: \"\(files.authority)\" } }")
            let script = """
                require("axios").get(process.argv[1]).then(r => console.log(r.status, r.headers["cache-status"], r.data))
                """
            let proxies = ["http_proxy": daemon.url, "https_proxy": daemon.url]
            for (url, text) in [("\(origin.url)/a", "plain"), ("https://localhost:\(nginx.port)/a.txt", "secret")] {
                for outcome in ["fwd=uri-miss", "; hit"] {
                    let run = try node(script, url, environment: proxies)
                    #expect(run.output.hasPrefix("200 drydock") && run.output.hasSuffix(" \(text)\n"), "\(run.report)")
                    #expect(run.output.contains(outcome), "\(run.report)")
                }
            }
            #expect(origin.requests() == 1 && nginx.log.count == 1)
        }
    }
}
