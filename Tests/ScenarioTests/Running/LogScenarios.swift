// What the logs say of the first mistakes of a new user, and that no line is lost when the daemon ends.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Logs {
        private static func objects(_ text: String) throws -> [[String: Any]] {
            try text.split(separator: "\n").map { line in
                try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
            }
        }

        @Test("curl with https:// or HTTP/2, a CONNECT and an upgrade that fail: the daemon's log says why, as JSON")
        func whatClientsDoWrong() throws {
            let origin = try ScriptedOrigin { request in .answer(200, to: request, "fine") }
            let daemon = try Daemon(
                "forward: { enabled: true }\n" + "services:\n" + service("api", origin.url)
            )
            let address = "127.0.0.1:\(daemon.port)"
            let commands = [
                ["-sk", "https://\(address)/api/a"], ["-s", "--http2-prior-knowledge", "http://\(address)/api/a"],
                ["-sp", "-x", "http://\(address)", "http://mail.test:25/"],
                ["-s", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "http://\(address)/api/chat"],
            ]
            for command in commands { _ = try Shell.run("curl", ["-o", "/dev/null", "--max-time", "120"] + command) }
            let texts = [
                "a client speaks TLS to this port, which takes plain HTTP: use http:// in its URL, not https://",
                "a client speaks HTTP/2 to this port, which takes HTTP/1.1: switch HTTP/2 off in the client, such as by curl --http1.1",
                "refused a CONNECT", "an upgrade failed",
            ]
            #expect(eventually { texts.allSatisfy { daemon.errors.contains($0) } }, "\(daemon.errors)")
            let lines = try Self.objects(daemon.errors)
            #expect(lines.allSatisfy { $0["time"] is String && $0["level"] is String && $0["message"] is String })
            for text in texts {
                let line = try #require(lines.first { $0["message"] as? String == text })
                #expect(line["level"] as? String == "notice" && line["client"] as? String == "127.0.0.1")
            }
            #expect(lines.contains { $0["target"] as? String == "mail.test:25" && $0["error"] is String })
            // A flood of them is counted, and not written.
            for _ in 0..<50 {
                let client = try daemon.client()
                try client.send("nonsense\r\n\r\n")
                _ = try client.readResponse()
            }
            #expect(daemon.errors.components(separatedBy: "not acceptable HTTP").count == 11)
        }

        @Test("the request id joins the line of the access log, those at debug level and the origin's")
        func oneID() throws {
            let origin = try ScriptedOrigin { request in
                .answer(request.field("X-Request-Id") ?? "none", fields: [("Cache-Control", "max-age=60")])
            }
            var settings = services(service("api", origin.url))
            let daemon = try Daemon(settings)
            // On one connection, since its lines come in order.
            let client = try daemon.client()
            let made = try client.exchange("/api/a").text
            #expect(made.count == 16)
            #expect(try client.exchange("/api/b", fields: [("X-Request-Id", "mine")]).text == "mine")
            // The stored one tells which request it was fetched for.
            #expect(try client.exchange("/api/a").text == made)
            settings.logLevel = "debug"
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            let told = try client.exchange("/api/c").text
            #expect(eventually { daemon.errors.contains("\"message\":\"answered\"") })
            #expect(!daemon.errors.contains(made))
            let messages = try Self.objects(daemon.errors).filter { $0["id"] as? String == told }
            #expect(
                messages.compactMap { $0["message"] as? String }
                    == ["request", "decided", "asks the origin", "the origin answered", "answer", "answered"],
                "\(messages)"
            )
            #expect(eventually { daemon.accessLog.count == 4 })
            let ids = try Self.objects(daemon.accessLog.joined(separator: "\n")).map { $0["id"] as? String }
            #expect(ids[0] == made && ids[1] == "mine" && ids[2] != made && ids[3] == told)
        }

        @Test("at debug level the log says how large bodies get to clients on this machine, and what that takes")
        func sending() throws {
            var settings = services(service("api", "http://127.0.0.1:1"))
            settings.logLevel = "debug"
            let daemon = try Daemon(settings)
            let way = #/large bodies in memory go to clients on this machine by (copying|sendfile):/#
            let costs = #/256 KiB take \d+ µs of CPU copied, \d+ µs by sendfile/#
            #expect(eventually { daemon.errors.contains(way) && daemon.errors.contains(costs) })
        }

        @Test(
            "the endpoint's name is in the line, whoever answers: memory, the origin at once, the origin after a wait"
        )
        func endpoints() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "fine") }
            let endpoints =
                "endpoints: [{ name: kept, path: /kept }, { name: passed, path: /passed, cache: { mode: none } }]"
            var settings = services(service("api", origin.url, endpoints))
            let daemon = try Daemon(settings)
            let client = try daemon.client()
            let host = "127.0.0.1:\(daemon.port)"
            let paths = ["/kept", "/kept", "/passed", "/passed", "/other", "/other"]
            for path in paths { _ = try client.exchange("GET", "/api" + path, host: host) }
            #expect(eventually { daemon.accessLog.count == 6 })
            let lines = try Self.objects(daemon.accessLog.joined(separator: "\n"))
            #expect(
                lines.map { $0["endpoint"] as? String } == ["kept", "kept", "passed", "passed", nil, nil],
                "\(lines)"
            )
            #expect(lines.allSatisfy { $0["service"] as? String == "api" })
            settings.accessFormat = "text"
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            _ = try daemon.exchange("/api/kept")
            #expect(eventually { daemon.accessLog.count == 7 })
            #expect(daemon.accessLog.last?.contains(" api endpoint=kept [drydock; hit") == true)
        }

        @Test("the daemon's own log is text where lines are text, and a reload changes it")
        func textAndJSON() throws {
            var settings = services(service("api", "http://127.0.0.1:9"))
            settings.accessFormat = "text"
            let daemon = try Daemon(settings)
            #expect(daemon.errors.contains(" info drydock: serving on "), "\(daemon.errors)")
            settings.accessFormat = "json"
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            #expect(eventually { daemon.errors.contains("\"level\":\"info\",\"message\":\"configuration reloaded\"") })
        }

        /// How the daemon is told to end, and where its lines go.
        static let ends: [(signal: Int32, isPipe: Bool)] = [
            (SIGTERM, false), (SIGINT, false), (SIGTERM, true), (SIGINT, true),
        ]

        @Test("every answer has its line, in order, before the daemon has ended", arguments: ends)
        func noLineIsLost(signal: Int32, isPipe: Bool) throws {
            let origin = try ScriptedOrigin { request in
                .answer(to: request, fields: [("Cache-Control", "max-age=60")], "x")
            }
            let home = try DaemonHome()
            var text = services(service("api", origin.url)).text(at: home)
            text.replace("access: \"\(home.accessLog)\"", with: "access: stdout")
            try home.folder.write("drydock.yaml", text)
            let output = home.folder.file("stdout.log")
            if isPipe { #expect(mkfifo(output, 0o600) == 0) }
            let notify = try NotifySocket(home.folder.file("notify.sock"))
            var variables = Shell.cleanEnvironment()
            variables["NOTIFY_SOCKET"] = notify.path
            let isEnding = Gate()
            let lines = Monitor("")
            if isPipe {
                Threads.start("reader") {
                    // Opened for as long as there is a writer; read only once the daemon has been told to end.
                    guard let file = FileHandle(forReadingAtPath: output) else { return }
                    isEnding.wait()
                    let read = String(decoding: file.readDataToEndOfFile(), as: UTF8.self)
                    lines.update { $0 = read }
                }
            }
            let process = try ChildProcess(
                Daemon.binary(),
                ["serve", "-c", home.configuration],
                environment: variables,
                folder: home.folder.path,
                output: output,
                errors: home.folder.file("stderr.log")
            )
            defer { process.signal(SIGKILL, group: true) }
            try #require(notify.wait(for: "READY=1"))
            let clients = try (0..<4).map { _ in try RawClient(port: home.port) }
            // More than a pipe holds.
            let count = 400
            for number in 0..<count {
                let target = "/api/\(number % 50)?number=\(number)&" + String(repeating: "x", count: 200)
                #expect(try clients[number % 4].exchange(target).status == 200)
            }
            process.signal(signal)
            // The daemon has ended its connections, and has lines to write that the pipe has no room for.
            #expect(notify.wait(for: "STOPPING=1"))
            for client in clients { #expect(try client.isClosedByServer()) }
            isEnding.open()
            #expect(process.waitForEnd() == .exited(0))
            if isPipe {
                #expect(lines.wait(120) { !$0.isEmpty })
            } else {
                lines.update { $0 = home.folder.text("stdout.log") }
            }
            let objects = try Self.objects(lines.read { $0 })
            #expect(objects.count == count)
            let numbers = objects.compactMap { line in
                (line["target"] as? String).flatMap { $0.split(separator: "=").last }.flatMap {
                    Int($0.prefix { $0.isNumber })
                }
            }
            #expect(Set(numbers) == Set(0..<count))
            // One connection's lines are in order beyond doubt; those of another loop come before its next answer.
            for client in 0..<4 {
                #expect(numbers.filter { $0 % 4 == client } == Array(stride(from: client, to: count, by: 4)))
            }
            let steps = zip(numbers, numbers.dropFirst()).map { abs($1 - $0) }
            #expect(steps.allSatisfy { $0 < 20 }, "\(numbers)")
        }
    }
}
