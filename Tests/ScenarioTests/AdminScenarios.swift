// The admin socket and the commands that speak to it, the access log, and what every answer says about itself.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Admin {
        static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                switch request.target {
                case "/kept": .resource(request, etag: "\"1\"", fields: [("Cache-Control", "max-age=600")], "kept")
                case "/missing": .answer(404, "missing")
                default: .answer("passed", fields: [("Cache-Control", "no-store")])
                }
            }
        }

        private func json(_ response: RawResponse) throws -> [String: Any] {
            #expect(response.field("Content-Type")?.hasPrefix("application/json") == true)
            return try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
        }

        @Test func theAdminSocketAnswers() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            _ = try daemon.exchange("/api/kept")
            _ = try daemon.exchange("/api/kept")
            let admin = try RawClient(unix: daemon.home.adminSocket)
            #expect(try admin.exchange("/healthz").status == 200)
            #expect(try admin.exchange("/readyz").status == 200)
            let status = try json(admin.exchange("/v1/status"))
            #expect(!status.isEmpty)
            let entries = try admin.exchange("/v1/entries")
            #expect(entries.status == 200)
            #expect(
                entries.text.contains("\(origin.url)/kept") || entries.text.contains("127.0.0.1:\(origin.port)\\/kept")
            )
            let metrics = try admin.exchange("/metrics")
            #expect(metrics.field("Content-Type")?.hasPrefix("text/plain") == true)
            let lines = metrics.text.split(separator: "\n")
            #expect(lines.contains { $0.hasPrefix("# TYPE drydock_") })
            #expect(lines.contains("drydock_log_dropped_total 0"))
            for line in lines where !line.hasPrefix("#") {
                #expect(line.split(separator: " ").last.flatMap { Double($0) } != nil, "\(line)")
            }
            #expect(try admin.exchange("/v1/nothing").status == 404)
            #expect(try admin.exchange("GET", "/v1/reload").status == 405)
            #expect(try admin.exchange("POST", "/v1/reload", body: []).status == 200)
            var information = stat()
            #expect(stat(daemon.home.adminSocket, &information) == 0)
            #expect(information.st_mode & 0o777 == 0o600)
        }

        @Test func readinessIsAnExitCode() throws {
            let home = try DaemonHome()
            let address = "unix:\(home.adminSocket)"
            func ready(_ arguments: String...) throws -> ShellResult {
                try Shell.run(try Daemon.binary(), ["ready", "--admin", address] + arguments)
            }
            let early = try ready()
            #expect(early.end == .exited(3) && early.output == "", "\(early.report)")
            let began = ContinuousClock.now
            #expect(try ready("--wait", "1s").end == .exited(3))
            #expect(hasPassed(.seconds(1), since: began))
            #expect(try ready("--wait", "soon").end == .exited(2))
            // One that waits from before the daemon begins sees it come.
            let waiting = try ChildProcess(
                try Daemon.binary(),
                ["ready", "--admin", address, "--wait", "10m"],
                environment: Shell.cleanEnvironment()
            )
            let daemon = try Daemon(text: "listen: 127.0.0.1:\(home.port)\nadmin: \(address)\n", at: home)
            #expect(waiting.waitForEnd() == .exited(0))
            let now = try ready()
            #expect(now.succeeded && now.output == "ready\n", "\(now.report)")
            #expect(try ready("--json").output == "{\"is_ready\":true}\n")
            withExtendedLifetime(daemon) {}
        }

        @Test func whyItIsNotReadyIsPrinted() throws {
            let standing = try ScriptedOrigin { .answer(503, to: $0, "not ready: loop 1 stands still\n") }
            let result = try Shell.run(
                try Daemon.binary(),
                ["ready", "--admin", standing.url.replacing("http://", with: "")]
            )
            #expect(
                result.end == .exited(1) && result.output == "not ready: loop 1 stands still\n",
                "\(result.report)"
            )
            standing.stop()
        }

        @Test func nothingOfItIsReachableThroughTheProxyPort() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            for path in ["/v1/status", "/metrics", "/healthz", "/readyz"] {
                let answer = try daemon.exchange(path)
                expectProblem(answer, 404)
                #expect(answer.text.contains("/api"), "an unmatched path lists the services")
            }
            #expect(try daemon.exchange("POST", "/v1/reload", body: []).status == 404)
        }

        @Test func onTCPItChecksHostAndOrigin() throws {
            let home = try DaemonHome()
            let port = try freePort()
            let text = "listen: 127.0.0.1:\(home.port)\nadmin: 127.0.0.1:\(port)\nlog: { access: off }\nservices: []\n"
            let daemon = try Daemon(text: text, at: home)
            let local = "127.0.0.1:\(port)"
            #expect(try RawClient(port: port).exchange("GET", "/healthz", host: local).status == 200)
            for host in ["evil.example", "evil.example:\(port)"] {
                let answer = try RawClient(port: port).exchange("GET", "/v1/status", host: host)
                #expect((400..<500).contains(answer.status), "\(host)")
            }
            let page = [("Origin", "http://evil.example")]
            let driven = try RawClient(port: port).exchange("POST", "/v1/reload", host: local, fields: page, body: [])
            #expect(driven.status == 403)
            #expect(daemon.process.isRunning)
        }

        @Test func commandsAndTheirExitCodes() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            _ = try daemon.exchange("/api/kept")
            let status = try daemon.command("status")
            #expect(status.succeeded, "\(status.report)")
            #expect(status.output.contains("\(daemon.port)"), "\(status.report)")
            let machine = try daemon.command("status", "--json")
            #expect((try? JSONSerialization.jsonObject(with: Data(machine.output.utf8))) != nil, "\(machine.report)")
            let list = try daemon.command("list")
            #expect(list.succeeded && list.output.contains("/kept"), "\(list.report)")
            let other = try daemon.command("list", "*/nothing*")
            #expect(other.succeeded && !other.output.contains("/kept"), "\(other.report)")
            #expect(try daemon.command("reload").end == .exited(0))
            #expect(try daemon.command("status", "--nonsense").end == .exited(2))
            #expect(try daemon.command("nonsense").end == .exited(2))
            let version = try daemon.command("--version")
            #expect(version.succeeded && !version.output.isEmpty)

            let absent = try Shell.run(
                Daemon.binary(),
                ["status"],
                environment: ["DRYDOCK_ADMIN": "unix:\(daemon.home.folder.file("absent.sock"))"]
            )
            #expect(absent.end == .exited(3))
            #expect(absent.errors.contains("absent.sock"), "\(absent.report)")
            let unnamed = try Shell.run(Daemon.binary(), ["status"], folder: daemon.home.folder.path)
            #expect(unnamed.succeeded, "the configuration here names the socket: \(unnamed.report)")
            let wrong = try Shell.run(Daemon.binary(), ["status", "--admin", "nowhere"])
            #expect(wrong.end == .exited(2) && wrong.errors.contains("unix:PATH"), "\(wrong.report)")
            let missing = try Shell.run(Daemon.binary(), ["check", "-c", daemon.home.folder.file("absent.yaml")])
            #expect(missing.end == .exited(1))
        }

        @Test func theListKnowsTheEndpointsOwnLifetime() throws {
            let origin = try Self.origin()
            let longer = "cache: { ttl: 2h, override_origin: true }"
            let daemon = try Daemon(
                services(service("api", origin.url, "endpoints: [{ name: kept, path: /kept, \(longer) }]"))
            )
            _ = try daemon.exchange("/api/kept")
            let entries = try json(RawClient(unix: daemon.home.adminSocket).exchange("/v1/entries"))
            let entry = try #require((entries["entries"] as? [[String: Any]])?.first)
            #expect((entry["ttl"] as? Int).map { (7000...7200).contains($0) } == true, "\(entry)")
        }

        @Test(arguments: ["json", "combined", "text"])
        func theAccessLogHasALinePerAnswer(_ format: String) throws {
            let origin = try Self.origin()
            var settings = services(service("api", origin.url))
            settings.accessFormat = format
            let daemon = try Daemon(settings)
            let agent = [("User-Agent", "probe/1.0 \"quoted\""), ("Referer", "http://localhost/page")]
            for target in ["/api/kept", "/api/kept", "/api/missing", "/nowhere"] {
                _ = try daemon.exchange(target, fields: agent)
            }
            #expect(eventually { daemon.accessLog.count >= 4 })
            let lines = daemon.accessLog
            #expect(lines.count == 4)
            for (line, expected) in zip(
                lines,
                [("/api/kept", "200"), ("/api/kept", "200"), ("/api/missing", "404"), ("/nowhere", "404")]
            ) {
                #expect(line.contains(expected.0) || line.contains(expected.0.replacing("/", with: "\\/")), "\(line)")
                #expect(line.contains(expected.1), "\(line)")
                switch format {
                case "json":
                    let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                    #expect(object?["status"] as? Int == Int(expected.1), "\(line)")
                case "combined":
                    let form =
                        /^127\.0\.0\.1 - - \[\d\d\/\w{3}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "GET \S+ HTTP\/1\.1" \d{3} \d+ "[^"]*" ".*"$/
                    #expect(line.firstMatch(of: form) != nil, "\(line)")
                    #expect(line.contains("http://localhost/page"))
                default: #expect(line.contains("GET"), "\(line)")
                }
            }
        }

        @Test func everyAnswerSaysWhereItComesFrom() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(
                services(service("api", origin.url), service("down", "http://127.0.0.1:\(freePort())"))
            )
            let miss = try daemon.exchange("/api/kept")
            #expect(miss.cacheStatus?.name == "drydock")
            #expect(miss.cacheStatus?.forwarded == "uri-miss")
            #expect(miss.cacheStatus?.isStored == true)
            #expect(miss.field("Age") == nil)
            let hit = try daemon.exchange("/api/kept")
            #expect(hit.cacheStatus?.isHit == true)
            #expect((300...600).contains(hit.cacheStatus?.timeToLive ?? 0))
            #expect(hit.field("Age").flatMap { Int($0) }.map { (0...300).contains($0) } == true)
            #expect(hit.field("ETag") == "\"1\"")
            let head = try daemon.exchange("HEAD", "/api/kept")
            #expect(head.cacheStatus?.isHit == true)
            #expect(head.field("Content-Length") == "4")
            let conditional = try daemon.exchange("/api/kept", fields: [("If-None-Match", "W/\"1\"")])
            #expect(conditional.status == 304)
            #expect(origin.requests() == 1)

            let passed = try daemon.exchange("/api/other")
            #expect(passed.cacheStatus?.isStored == false)
            #expect(passed.cacheStatus?.detail == "no-store")
            let method = try daemon.exchange("DELETE", "/api/other")
            #expect(method.cacheStatus?.forwarded == "method")
            let failed = try daemon.exchange("/down/x")
            expectProblem(failed, 502)
            for answer in [miss, hit, head, conditional, passed, method, failed] {
                #expect(answer.cacheStatus?.name == "drydock", "\(answer.head)")
                #expect(answer.field("Via") == "1.1 drydock", "\(answer.head)")
                #expect(answer.field("Date") != nil, "\(answer.head)")
            }
        }
    }
}
