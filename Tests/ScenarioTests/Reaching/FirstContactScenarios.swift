// The first hour: the README's first file, make run, serve URL, a configuration from standard input, all addresses.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct FirstContact {
        private static let project = URL(filePath: #filePath).deletingLastPathComponent().path + "/../../.."

        /// Users to try as: this process's own, and one without rights where this process can be one.
        private static let users = PlainUser.canChange ? [true, false] : [false]

        private static func user(_ isFresh: Bool) throws -> PlainUser {
            isFresh ? try PlainUser.fresh() : try PlainUser()
        }

        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "from the origin") }
        }

        /// The first configuration file of the README, with a port and an origin of this scenario's.
        private static func firstFile(_ port: Int, _ origin: String) throws -> String {
            let lines = readText(project + "/README.md").split(separator: "\n", omittingEmptySubsequences: false)
            let start = try #require(lines.firstIndex(of: "    listen: localhost:8080"))
            let block = lines[start...].prefix { $0.isEmpty || $0.hasPrefix("    ") }.map { $0.dropFirst(4) }
            let text = block.joined(separator: "\n")
            #expect(text.contains("localhost:8080") && text.contains("https://api.github.com\n"), "\(text)")
            return text.replacing("localhost:8080", with: "localhost:\(port)")
                .replacing("base_url: https://api.github.com\n", with: "base_url: \(origin)\n")
        }

        @Test(
            "the README's first file works as it stands, for any user, with and without XDG_RUNTIME_DIR",
            arguments: users
        )
        func readme(_ isFresh: Bool) throws {
            let origin = try Self.origin()
            // Without the variable, this process's own user may have a daemon of the machine's already.
            for hasRuntime in isFresh ? [true, false] : [true] {
                let user = try Self.user(isFresh)
                defer { if isFresh { user.removePrivateFolder() } }
                var variables = ["GITHUB_TOKEN": "ghp_x"]
                if hasRuntime { variables["XDG_RUNTIME_DIR"] = try user.runtimeFolder() }
                let port = try freePort()
                let file = try user.home.write("drydock.yaml", try Self.firstFile(port, origin.url))
                let check = try user.drydock("check", "-c", "drydock.yaml", environment: variables)
                #expect(
                    check.succeeded && check.output.hasPrefix("ok (1 service") && check.errors.isEmpty,
                    "\(check.report)"
                )
                let daemon = try PlainDaemon(user, "-c", "drydock.yaml", environment: variables)
                #expect(
                    daemon.says("configuration \(file)\n") && daemon.says("commands are taken at unix:"),
                    "\(daemon.errors)"
                )
                let answer = try RawClient(port: port).exchange(
                    "GET",
                    "/github/users/octocat",
                    host: "localhost:\(port)"
                )
                #expect(answer.status == 200 && answer.text == "from the origin", "\(answer.head)")
                for folder in [user.home.path, "/"] {
                    let status = try user.drydock("status", environment: variables, folder: folder)
                    #expect(status.output.contains("process \(daemon.process.pid)"), "\(status.report)")
                }
            }
        }

        @Test("after make run, status in another terminal finds the daemon, and Ctrl-C ends it once", arguments: users)
        func makeRun(_ isFresh: Bool) throws {
            let user = try Self.user(isFresh)
            defer { if isFresh { user.removePrivateFolder() } }
            // What `make run` runs, in a copy of what it needs, on a port of this scenario's.
            let port = try freePort()
            try Shell.must("cp", ["-R", Self.project + "/config", user.home.file("config")])
            let demo = readText(user.home.file("config/demo.yaml"))
            try user.home.write("config/demo.yaml", demo.replacing("localhost:8080", with: "localhost:\(port)"))
            try user.home.folder(".ci")
            try Shell.must("install", ["-m", "0755", Self.project + "/.ci/run-demo", user.home.file(".ci/run-demo")])
            try Shell.must("chmod", ["-R", "a+rX", user.home.path])
            let variables = isFresh ? [:] : ["XDG_RUNTIME_DIR": try user.runtimeFolder()]
            let daemon = try PlainDaemon(
                user,
                program: [user.home.file(".ci/run-demo"), user.binary],
                environment: variables
            )
            #expect(eventually { daemon.output.contains("Ctrl-C ends it") }, "\(daemon.output) \(daemon.errors)")
            #expect(daemon.output.contains("/drydock status\n"), "\(daemon.output)")
            let status = try user.drydock("status", environment: variables, folder: "/")
            #expect(status.output.contains("process \(daemon.process.pid)"), "\(status.report)")
            #expect(status.output.contains("configuration  \(user.home.path)/config/demo.yaml"), "\(status.report)")
            let answer = try RawClient(port: port).exchange("GET", "/shop/catalogue", host: "localhost:\(port)")
            #expect(answer.status == 200, "\(answer.head)")
            // As a terminal sends it.
            daemon.process.signal(SIGINT, group: true)
            #expect(daemon.process.waitForEnd() == .exited(0), "\(daemon.errors)")
            #expect(
                daemon.errors.split(separator: "\n").last?.hasSuffix("info drydock: stopped") == true,
                "\(daemon.errors)"
            )
        }

        @Test("serve URL takes addresses, and says origin, folder, commands and file")
        func serveURL() throws {
            let origin = try Self.origin()
            let user = try PlainUser()
            let runtime = try user.runtimeFolder()
            let variables = ["XDG_RUNTIME_DIR": runtime, "XDG_CACHE_HOME": user.home.file("cache")]
            let (one, two) = (try freePort(), user.home.file("two.sock"))
            let daemon = try PlainDaemon(
                user,
                origin.url,
                "--listen",
                "127.0.0.1:\(one)",
                "--listen",
                "unix:\(two)",
                environment: variables
            )
            let listeners = "127.0.0.1:\(one), unix:\(two)"
            #expect(
                daemon.says("serving \(origin.url) on \(listeners), without a configuration file\n"),
                "\(daemon.errors)"
            )
            #expect(
                daemon.says("stored responses are kept in \(user.home.path)/cache/drydock/serve, at most 1.0 GiB\n")
            )
            #expect(daemon.says("commands are taken at unix:\(runtime)/drydock/admin.sock\n"), "\(daemon.errors)")
            #expect(try RawClient(port: one).exchange("GET", "/x", host: "127.0.0.1:\(one)").text == "from the origin")
            let curl = try Shell.run("curl", ["-s", "--unix-socket", two, "http://localhost/x"])
            #expect(curl.output == "from the origin", "\(curl.report)")
            // One folder has one daemon: the line says what to do where there is no file.
            let second = try user.drydock("serve", origin.url, "--listen", "127.0.0.1:0", environment: variables)
            #expect(second.end == .exited(1) && second.errors.contains("XDG_CACHE_HOME=DIR"), "\(second.report)")
            for (arguments, part) in [
                (["--listen", "8080", origin.url], "an address needs a host"),
                (["--listen", ":1", "--listen", "localhost:1", origin.url], "localhost:1 takes a port twice"),
                (["--clients", "all", origin.url], "'all' is not a client rule"),
            ] {
                let result = try Shell.run(Daemon.binary(), ["serve"] + arguments, environment: variables)
                #expect(result.end == .exited(1) && result.errors.contains(part), "\(result.report)")
            }
            let file = try Shell.run(Daemon.binary(), ["serve", "-c", "x.yaml", "--listen", ":1"])
            #expect(
                file.end == .exited(2) && file.errors.contains("--listen needs the URL of an origin"),
                "\(file.report)"
            )
        }

        /// Runs a command whose output is a terminal, and copies what it writes there.
        private static let terminal = """
            import os, subprocess, sys
            master, slave = os.openpty()
            process = subprocess.Popen(sys.argv[1:], stdout=slave)
            os.close(slave)
            while True:
                try: data = os.read(master, 4096)
                except OSError: break
                if not data: break
                os.write(1, data)
            """

        @Test("serve URL takes what a service needs most, and logs as text to a terminal alone")
        func serveURLWithOptions() throws {
            let origin = try ScriptedOrigin { .answer("for \($0.target)") }
            let user = try PlainUser()
            let variables = [
                "XDG_RUNTIME_DIR": try user.runtimeFolder(), "XDG_CACHE_HOME": user.home.file("cache"),
            ]
            let port = try freePort()
            let words = [
                user.binary, "serve", origin.url, "--listen", "127.0.0.1:\(port)", "--ttl", "10m", "--cors",
                "http://localhost:3000", "--hosts", "drydock", "--no-disk", "--name", "api",
            ]
            for isOnTerminal in [true, false] {
                let program = isOnTerminal ? ["python3", "-c", Self.terminal] + words : words
                let daemon = try PlainDaemon(user, program: program, environment: variables)
                let before = origin.requests()
                // An emulator and a phone ask by addresses that are none of this machine's.
                for host in ["drydock:\(port)", "10.0.2.2:\(port)", "[2001:db8::7]"] {
                    let page = try RawClient(port: port).exchange(
                        "GET",
                        "/x",
                        host: host,
                        fields: [("Origin", "http://localhost:3000")]
                    )
                    #expect(page.text == "for /x", "\(host): \(page.text)")
                    #expect(page.field("Access-Control-Allow-Origin") == "http://localhost:3000")
                }
                #expect(origin.requests() == before + 1, "--ttl stores what says nothing of its freshness")
                #expect(try RawClient(port: port).exchange("GET", "/x", host: "evil.example").status == 421)
                let status = try user.drydock("status", environment: variables)
                #expect(status.output.contains("service        api / -> \(origin.url)"), "\(status.report)")
                #expect(status.output.contains("disk           off"), "\(status.report)")
                #expect(!FileManager.default.fileExists(atPath: user.home.file("cache/drydock")))
                #expect(eventually { daemon.output.split(whereSeparator: \.isNewline).count >= 4 })
                for line in daemon.output.split(whereSeparator: \.isNewline) {
                    #expect(line.hasPrefix("{") != isOnTerminal && line.contains("/x"), "\(line)")
                }
            }
            for (option, value, part) in [
                ("--ttl", "10", "'--ttl' a duration needs a unit"), ("--hosts", "*", "'--hosts' '*' would let"),
                ("--cors", "localhost", "'--cors' 'localhost' is not a web origin"),
                ("--name", "a/b", "'--name' 'a/b' is not a name"), ("--ca", "/nowhere.pem", "'--ca' is for an origin"),
            ] {
                let result = try user.drydock("serve", origin.url, option, value, environment: variables)
                #expect(result.end == .exited(1) && result.errors.contains(part), "\(result.report)")
                let file = try user.drydock("serve", "-c", "x.yaml", option, value, environment: variables)
                let needs = "\(option) needs the URL of an origin"
                #expect(file.end == .exited(2) && file.errors.contains(needs), "\(file.report)")
            }
        }

        @Test("serve URL --tls makes the user's authority where there is none, and says https")
        func serveURLOverTLS() throws {
            let origin = try Self.origin()
            // The authority of root is the service's.
            let user = PlainUser.canChange ? try PlainUser.fresh() : try PlainUser()
            let variables = [
                "XDG_RUNTIME_DIR": try user.runtimeFolder(), "XDG_CACHE_HOME": user.home.file("cache"),
                "XDG_STATE_HOME": user.home.file("state"),
            ]
            let (one, two) = (try freePort(), user.home.file("two.sock"))
            let authority = "\(user.home.path)/state/drydock/ca"
            func serve() throws -> PlainDaemon {
                try PlainDaemon(
                    user,
                    origin.url,
                    "--tls",
                    "--listen",
                    "127.0.0.1:\(one)",
                    "--listen",
                    "unix:\(two)",
                    environment: variables
                )
            }
            var made = ""
            for round in 1...2 {
                let daemon = try serve()
                let addresses = "https://127.0.0.1:\(one), unix:\(two)"
                #expect(
                    daemon.says("serving \(origin.url) on \(addresses), without a configuration file\n"),
                    "\(daemon.errors)"
                )
                let told = "notice drydock: made a local authority in \(authority), which no program trusts yet"
                #expect(daemon.errors.contains(told) == (round == 1), "\(daemon.errors)")
                let certificate = try String(contentsOfFile: "\(authority)/ca.pem", encoding: .utf8)
                if round == 1 { made = certificate } else { #expect(certificate == made) }
                let status = try user.drydock("status", environment: variables)
                #expect(status.output.contains("listening on   \(addresses)  ("), "\(status.report)")
                let url = "https://127.0.0.1:\(one)/x"
                let curl = try Shell.run("curl", ["-s", "--cacert", "\(authority)/ca.pem", url])
                #expect(curl.output == "from the origin", "\(curl.report)")
                let plain = try Shell.run("curl", ["-s", "--unix-socket", two, "http://localhost/x"])
                #expect(plain.output == "from the origin", "\(plain.report)")
                daemon.process.signal(SIGTERM)
                #expect(daemon.process.waitForEnd() == .exited(0), "\(daemon.errors)")
            }
            for (arguments, code, part) in [
                (["--tls"], 2, "--tls needs the URL of an origin"),
                (["--listen", "https://127.0.0.1:1", origin.url], 1, "give --tls for its certificates"),
                (["--tls", "--listen", "unix:\(two)", origin.url], 1, "add --listen localhost:8443"),
            ] {
                let result = try Shell.run(Daemon.binary(), ["serve"] + arguments, environment: variables)
                #expect(result.end == .exited(Int32(code)) && result.errors.contains(part), "\(result.report)")
            }
        }

        @Test("a port without a host is one of all addresses, for this machine alone unless clients says more")
        func allAddresses() throws {
            let origin = try Self.origin()
            let user = try PlainUser()
            let variables = ["XDG_RUNTIME_DIR": try user.runtimeFolder(), "XDG_CACHE_HOME": user.home.file("cache")]
            let port = try freePort()
            let daemon = try PlainDaemon(user, origin.url, "--listen", ":\(port)", environment: variables)
            #expect(daemon.says("on 0.0.0.0:\(port)"), "\(daemon.errors)")
            #expect(
                daemon.says("warning drydock: other machines can connect to *:\(port), and each gets a 403"),
                "\(daemon.errors)"
            )
            var hosts = ["127.0.0.1", "127.0.0.2"]
            if daemon.says(", [::]:\(port),") { hosts.append("[::1]") }
            for host in hosts {
                let result = try Shell.run("curl", ["-s", "http://\(host):\(port)/x"])
                #expect(result.output == "from the origin", "\(host): \(result.report)")
            }
            // No open proxy: what is asked in absolute form is not forwarded.
            let forward = try Shell.run(
                "curl",
                [
                    "-s", "-o", "/dev/null", "-w", "%{http_code}", "-x", "http://127.0.0.1:\(port)",
                    "http://drydock.example/",
                ]
            )
            #expect(forward.output == "403", "\(forward.report)")
            let text = "listen: \"*:\(port)\"\nforward: { enabled: false }\n"
            let check = try user.drydock("check", "-c", try user.home.write("all.yaml", text))
            #expect(check.succeeded && check.output == "ok (0 services, 0 endpoints)\n", "\(check.report)")
            #expect(
                check.errors.contains("all.yaml:1:9: warning: other machines can connect to *:\(port)"),
                "\(check.report)"
            )
        }

        @Test("-c - reads standard input, once")
        func standardInput() throws {
            let origin = try Self.origin()
            let user = try PlainUser()
            let variables = ["XDG_RUNTIME_DIR": try user.runtimeFolder()]
            let port = try freePort()
            let text = "listen: 127.0.0.1:\(port)\nservices:\n\(service("api", origin.url))"
            let check = try user.drydock("check", "-c", "-", input: text)
            #expect(check.succeeded && check.output == "ok (1 service, 0 endpoints)\n", "\(check.report)")
            let wrong = try user.drydock("check", "-c", "-", input: text + "nmae: x\n")
            let line = text.split(separator: "\n").count + 1
            #expect(wrong.end == .exited(1), "\(wrong.report)")
            #expect(wrong.errors.hasPrefix("<standard input>:\(line):1: unknown key 'nmae'"), "\(wrong.report)")
            let daemon = try PlainDaemon(
                user,
                "-c",
                "-",
                environment: variables,
                input: try user.home.write("input", text)
            )
            #expect(daemon.says("with 1 service, configuration <standard input>\n"), "\(daemon.errors)")
            let status = try user.drydock("status", environment: variables)
            #expect(status.output.contains("configuration  <standard input>\n"), "\(status.report)")
            let reload = try user.drydock("reload", environment: variables)
            #expect(reload.end == .exited(1), "\(reload.report)")
            #expect(reload.errors.contains("came from standard input, which cannot be read again"), "\(reload.report)")
            #expect(reload.errors.contains("the old configuration stays in force"), "\(reload.report)")
            #expect(
                try RawClient(port: port).exchange("GET", "/api/x", host: "127.0.0.1:\(port)").text == "from the origin"
            )
            // The same text names its daemon to a command.
            let named = try user.drydock("status", "-c", "-", environment: variables, input: text)
            #expect(named.output.contains("process \(daemon.process.pid)"), "\(named.report)")
        }
    }
}
