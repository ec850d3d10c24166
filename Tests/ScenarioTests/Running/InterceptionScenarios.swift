// Tunnels that are read: real clients inside of them, what is wrong with an origin's certificate, and clients that do not
// trust the local authority.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Interception {
        /// An https origin, and a daemon that reads the tunnels to it under the name `localhost`.
        private struct World {
            let origin: NginxOrigin
            let files: TLSFiles
            let folder: TemporaryFolder
            let daemon: Daemon
            var url: String { "https://localhost:\(origin.port)" }
            /// The certificate of the local authority.
            var authority: String { "\(daemon.home.folder.path)/ca/ca.pem" }

            /// - Parameters:
            ///   - intercept: further keys of `forward.intercept`.
            ///   - more: further keys, with `AUTHORITY` for the file of the origin's.
            ///   - spoil: changes the origin's files.
            init(_ intercept: String = "", _ more: String = "", spoil: (TLSFiles) throws -> Void = { _ in }) throws {
                folder = try TemporaryFolder("interception")
                files = try TLSFiles(in: folder)
                try spoil(files)
                origin = try NginxOrigin(
                    location: "add_header Cache-Control max-age=600; add_header Alt-Svc 'h3=\":443\"';",
                    tls: files
                )
                let home = try DaemonHome()
                try Shell.must(Daemon.binary(), ["ca", "create", "--ca", "\(home.folder.path)/ca"])
                let settings = DaemonSettings(
                    """
                    ca: \(home.folder.path)/ca
                    forward:
                      allow: [localhost, 127.0.0.1]
                      connect: { allow: ["*:\(origin.port)"] }
                      tls: { ca: \(files.authority) }
                      intercept: { hosts: [localhost, 127.0.0.1]\(intercept) }
                    \(more.replacing("AUTHORITY", with: files.authority))
                    """
                )
                daemon = try Daemon(settings, at: home)
            }

            /// Asks through the proxy.
            func curl(_ target: String, trusting authority: String? = nil, _ more: [String] = []) throws -> ShellResult
            {
                try Shell.run(
                    "curl",
                    ["-sS", "-D", "-", "-x", daemon.url, "--cacert", authority ?? self.authority, "--max-time", "60"]
                        + more
                        + [target]
                )
            }
        }

        /// Programs that print what they get, with `URL`, `PROXY` and `CA` for what they are told.
        private static let programs: [(name: String, words: [String])] = [
            ("curl", ["curl", "-sS", "-x", "PROXY", "--cacert", "CA", "URL"]),
            ("wget", ["wget", "-q", "-O", "-", "--ca-certificate=CA", "-e", "https_proxy=PROXY", "URL"]),
            ("requests", python("import requests", "print(requests.get(url).text, end='')")),
            (
                "httpx",
                python("import httpx", "print(httpx.Client(proxies=proxy, verify=ca).get(url).text, end='')")
            ),
            (
                "aiohttp",
                python(
                    "import aiohttp, asyncio, ssl",
                    "context = ssl.create_default_context(cafile=ca)",
                    "async def main():",
                    "    async with aiohttp.ClientSession() as session:",
                    "        async with session.get(url, proxy=proxy, ssl=context) as answer:",
                    "            print(await answer.text(), end='')",
                    "asyncio.run(main())"
                )
            ),
            (
                "node https",
                node(
                    "const http = require('http'), https = require('https'), { URL } = require('url');",
                    "const [p, u] = [new URL(proxy), new URL(url)];",
                    "const ask = http.request({ host: p.hostname, port: p.port, method: 'CONNECT', path: u.host });",
                    "ask.on('connect', (answer, socket) => https.get(url, { socket, agent: false, ca: pem }, (r) => r.pipe(process.stdout)));",
                    "ask.end();"
                )
            ),
            (
                "undici",
                node(
                    "const { ProxyAgent, fetch } = require('undici');",
                    "const dispatcher = new ProxyAgent({ uri: proxy, requestTls: { ca: pem } });",
                    "fetch(url, { dispatcher }).then((r) => r.text()).then((t) => { process.stdout.write(t); process.exit(0); });"
                )
            ),
        ]

        private static func python(_ lines: String...) -> [String] {
            let script = ["import sys", "url, proxy, ca = sys.argv[1:]"] + lines
            return ["/usr/bin/python3", "-c", script.joined(separator: "\n"), "URL", "PROXY", "CA"]
        }

        private static func node(_ lines: String...) -> [String] {
            let script =
                ["const [url, proxy, ca] = process.argv.slice(1), pem = require('fs').readFileSync(ca);"] + lines
            return ["node", "-e", script.joined(separator: "\n"), "URL", "PROXY", "CA"]
        }

        @Test func programsGetHitsInside() throws {
            let world = try World()
            let environment = [
                "https_proxy": world.daemon.url, "REQUESTS_CA_BUNDLE": world.authority,
                "NODE_PATH": "/usr/share/nodejs:/usr/lib/nodejs",
            ]
            for (index, program) in Self.programs.enumerated() {
                try world.origin.write("\(index).txt", "for \(program.name)")
                let words = program.words.map {
                    ["URL": "\(world.url)/\(index).txt", "PROXY": world.daemon.url, "CA": world.authority][$0]
                        ?? $0.replacing("=PROXY", with: "=\(world.daemon.url)").replacing(
                            "=CA",
                            with: "=\(world.authority)"
                        )
                }
                for _ in 0..<2 {
                    let run = try Shell.run(words[0], Array(words.dropFirst()), environment: environment)
                    #expect(run.succeeded && run.output == "for \(program.name)", "\(program.name): \(run.report)")
                }
            }
            let paths = world.origin.log.map(\.path)
            #expect(paths == Self.programs.indices.map { "/\($0).txt" })
            let connections = try world.daemon.metric("drydock_intercepted_connections_total")
            #expect(connections == 2 * Self.programs.count)
            #expect(try world.daemon.metric("drydock_tls_leaves_total") == 1)
            #expect(try world.daemon.metric("drydock_tls_leaves") == 1)
            let inside = world.daemon.accessLog.filter { $0.contains("\"target\":\"\(world.url)/0.txt\"") }
            #expect(inside.count == 2)
            #expect(
                inside.allSatisfy {
                    $0.contains("\"tls\":{\"version\":\"TLSv1.3\"") && $0.contains("\"sni\":\"localhost\"")
                }
            )
            #expect(try world.daemon.command("list").output.contains("\(world.url)/0.txt"))
        }

        @Test func gitAndPipFetchOnceOverHTTPS() throws {
            let world = try World()
            let clients = RealClients()
            try clients.makeRepository(in: world.folder, bare: "\(world.origin.root)/repo.git")
            let wheel = "tiny-1.0-py3-none-any.whl"
            try clients.makeWheel(wheel, world.origin)
            try world.origin.write(
                "simple/tiny/index.html",
                "<!doctype html><a href=\"../../wheels/\(wheel)\">\(wheel)</a>"
            )
            for run in ["first", "second"] {
                try Shell.must(
                    "git",
                    ["clone", "-q", "\(world.url)/repo.git", world.folder.file(run)],
                    environment: clients.gitEnvironment.merging([
                        "https_proxy": world.daemon.url, "GIT_SSL_CAINFO": world.authority,
                    ]) { $1 }
                )
                #expect(
                    try SHA256.file(world.folder.file("\(run)/big.bin"))
                        == SHA256.file(world.folder.file("work/big.bin"))
                )
                let downloads = try world.folder.folder("pip-\(run)")
                try Shell.must(
                    "python3",
                    [
                        "-m", "pip", "download", "-q", "--no-cache-dir", "--no-deps", "--disable-pip-version-check",
                        "--timeout", "120", "--proxy", world.daemon.url,
                        "--index-url", "\(world.url)/simple/", "--dest", downloads, "tiny",
                    ],
                    environment: [
                        "PIP_CONFIG_FILE": "/dev/null", "HOME": downloads,
                        // As 'drydock ca lines' has it.
                        "REQUESTS_CA_BUNDLE": world.authority, "PIP_CERT": world.authority,
                    ]
                )
                #expect(try SHA256.file("\(downloads)/\(wheel)") == SHA256.file("\(world.origin.root)/wheels/\(wheel)"))
            }
            let whole = world.origin.log.filter { $0.method == "GET" && $0.status == 200 }.map(\.path)
            #expect(whole.count == Set(whole).count, "\(whole)")
            #expect(whole.contains("/wheels/\(wheel)") && whole.contains { $0.hasSuffix(".pack") })
        }

        @Test func sessionsGoOnForTheirHostAlone() throws {
            let world = try World()
            try world.origin.write("a.txt", "of the origin")
            let request = "GET /a.txt HTTP/1.1\r\nHost: localhost:\(world.origin.port)\r\nConnection: close\r\n\r\n"
            for version in ["-tls1_2", "-tls1_3"] {
                let session = world.folder.file("session\(version)")
                func ask(_ host: String, _ words: [String]) throws -> String {
                    let run = try Shell.run(
                        "openssl",
                        [
                            "s_client", "-proxy", "127.0.0.1:\(world.daemon.port)", "-connect",
                            "\(host):\(world.origin.port)", "-CAfile", world.authority, "-verify_return_error", version,
                            "-ign_eof",
                        ] + words,
                        input: Array(request.replacing("localhost", with: host).utf8)
                    )
                    #expect(run.output.contains("of the origin"), "\(run.report)")
                    return run.output
                }
                let named = ["-servername", "localhost"]
                #expect(try ask("localhost", named + ["-sess_out", session]).contains("New, TLSv1."))
                #expect(try ask("localhost", named + ["-sess_in", session]).contains("Reused, TLSv1."))
                // Neither for another host, nor where none is named.
                #expect(try ask("127.0.0.1", ["-noservername", "-sess_in", session]).contains("New, TLSv1."))
            }
            #expect(try world.daemon.metric("drydock_tls_handshakes_total{kind=\"full\"}") == 4)
            #expect(try world.daemon.metric("drydock_tls_handshakes_total{kind=\"resumed\"}") == 2)
        }

        @Test func whatIsWrongWithAnOriginsCertificateIsSaidInside() throws {
            let expired = try World(spoil: { try $0.expire() })
            let old = try expired.curl("\(expired.url)/a.txt")
            #expect(old.succeeded && old.output.contains("HTTP/1.1 502 "), "\(old.report)")
            #expect(
                old.output.contains("the certificate of localhost:\(expired.origin.port) has expired on "),
                "\(old.report)"
            )
            #expect(old.output.contains("Proxy-Status: "), "\(old.report)")
        }

        /// With `on_distrust: fail` each attempt fails, and is told of once.
        @Test func aClientThatDoesNotTrustTheAuthorityIsToldOfOnce() throws {
            let world = try World()
            try world.origin.write("a.txt", "of the origin")
            for _ in 0..<3 {
                let run = try world.curl("\(world.url)/a.txt", trusting: world.files.authority)
                #expect(run.end == .exited(60), "\(run.report)")
            }
            #expect(
                try eventually { try world.daemon.metric("drydock_tls_failures_total{reason=\"distrusted\"}") == 3 }
            )
            let told = world.daemon.errors.split(separator: "\n").filter {
                $0.contains("does not trust the local authority")
            }
            #expect(told.count == 1 && told[0].contains("export CURL_CA_BUNDLE=\(world.authority)"), "\(told)")
            #expect(world.origin.log.isEmpty)
            #expect(try world.daemon.metric("drydock_intercept_distrusted") == 1)
            let line =
                "127.0.0.1 localhost:\(world.origin.port), refused: it does not trust the certificate (alert unknown_ca)"
            let status = try world.daemon.command("status")
            #expect(status.output.contains(line), "\(status.report)")
        }

        @Test func aClientThatDoesNotTrustTheAuthorityIsLeftAlone() throws {
            let world = try World(", on_distrust: tunnel")
            try world.origin.write("a.txt", "of the origin")
            let first = try world.curl("\(world.url)/a.txt", trusting: world.files.authority)
            #expect(first.end == .exited(60), "\(first.report)")
            #expect(eventually { world.daemon.errors.contains("does not trust the local authority") })
            // It speaks with the origin itself from now on.
            for _ in 0..<2 {
                let run = try world.curl("\(world.url)/a.txt", trusting: world.files.authority)
                #expect(
                    run.succeeded && run.output.hasSuffix("of the origin") && run.output.contains("Alt-Svc"),
                    "\(run.report)"
                )
            }
            #expect(world.origin.log.count == 2)
            #expect(try world.daemon.command("status").output.contains("localhost:\(world.origin.port), left alone: "))
            // A reload forgets.
            #expect(try world.daemon.command("reload").succeeded)
            let again = try world.curl("\(world.url)/a.txt")
            #expect(again.succeeded && !again.output.contains("Alt-Svc"), "\(again.report)")
            #expect(try !world.daemon.command("status").output.contains("left alone"))
        }

        /// Node.js looks at the certificate after the handshake, and then just closes.
        @Test func aClientThatClosesAfterTheHandshakeIsKnownToDistrust() throws {
            let world = try World()
            let words = Self.programs.first { $0.name == "node https" }?.words ?? []
            let values = ["URL": "\(world.url)/a.txt", "PROXY": world.daemon.url, "CA": world.files.authority]
            let run = try Shell.run(words[0], words.dropFirst().map { values[$0] ?? $0 })
            #expect(!run.succeeded, "\(run.report)")
            #expect(
                eventually { world.daemon.errors.contains("does not trust the local authority") },
                "\(world.daemon.errors)"
            )
            #expect(world.origin.log.isEmpty)
        }

        @Test func aReloadBeginsAndEndsInterception() throws {
            let world = try World()
            try world.origin.write("a.txt", "of the origin")
            let text = readText(world.daemon.home.configuration)
            #expect(try world.curl("\(world.url)/a.txt").succeeded)
            try world.daemon.home.folder.write(
                "drydock.yaml",
                text.replacing("hosts: [localhost, 127.0.0.1]", with: "hosts: []")
            )
            #expect(try world.daemon.command("reload").succeeded)
            #expect(try world.curl("\(world.url)/a.txt").end == .exited(60))
            #expect(try world.curl("\(world.url)/a.txt", trusting: world.files.authority).succeeded)
            // Without an authority it is not begun, and the file in force stays.
            try FileManager.default.moveItem(
                atPath: "\(world.daemon.home.folder.path)/ca",
                toPath: world.folder.file("ca")
            )
            try world.daemon.home.folder.write("drydock.yaml", text)
            let refused = try world.daemon.command("reload")
            #expect(!refused.succeeded && refused.errors.contains("'forward.intercept'"), "\(refused.report)")
            #expect(refused.errors.contains("drydock ca create"), "\(refused.report)")
            let checked = try Shell.run(Daemon.binary(), ["check", "-c", world.daemon.home.configuration])
            #expect(!checked.succeeded && checked.errors.contains("drydock ca create"), "\(checked.report)")
            try FileManager.default.moveItem(
                atPath: world.folder.file("ca"),
                toPath: "\(world.daemon.home.folder.path)/ca"
            )
            #expect(try world.daemon.command("reload").succeeded)
            #expect(try world.curl("\(world.url)/a.txt").succeeded)
        }

        @Test func `what is asked inside of a tunnel is recorded, replayed and in the journal`() throws {
            let folder = try TemporaryFolder("recordings")
            let world = try World(
                "",
                """
                journal: 1MiB
                defaults: { recordings: { dir: \(folder.path) } }
                services: [{ name: site, match: { host: localhost }, tls: { ca: AUTHORITY }, source: replay-or-record }]
                """
            )
            try world.origin.write("a.txt", "of the origin")
            let recorded = try world.curl("\(world.url)/a.txt")
            #expect(recorded.output.hasSuffix("of the origin"), "\(recorded.report)")
            #expect(eventually { !((try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? []).isEmpty })
            // Three in one tunnel, from the recording: the origin has another answer by now.
            try world.origin.write("a.txt", "another")
            let again = try world.curl("\(world.url)/a.txt", ["\(world.url)/a.txt", "\(world.url)/a.txt"])
            #expect(again.output.components(separatedBy: "of the origin").count == 4, "\(again.report)")
            #expect(!again.output.contains("Alt-Svc"), "\(again.report)")
            #expect(world.origin.log.map(\.path) == ["/a.txt"])
            let entries = try world.daemon.command("journal", "--json").output
            for said in ["\"target\":\"\(world.url)/a.txt\"", "\"service\":\"site\""] {
                #expect(entries.components(separatedBy: said).count == 5, "\(said) in \(entries)")
            }
        }
    }
}
