// Ctrl-C: for whom the daemon waits and until when, the second one that ends it at once, and who was cut off.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Ends {
        private static func origin(_ gate: Gate) throws -> ScriptedOrigin {
            try ScriptedOrigin { _ in
                OriginReply([
                    OriginReply.head(200, fields: [("Content-Length", "2000"), ("Cache-Control", "max-age=60")]),
                    .pattern(1000, from: 0), .wait(gate),
                    .pattern(1000, from: 1000),
                ])
            }
        }

        /// A daemon with two answers under way and a tunnel, and who waits for them.
        private static func busy(_ gate: Gate, shutdown: String) throws -> (Daemon, [RawClient], [ScriptedOrigin]) {
            let origin = try origin(gate)
            let far = try ScriptedOrigin { _ in .answer("far") }
            var settings = services(service("api", origin.url))
            settings.accessFormat = "text"
            settings.rest += """

                shutdown: \(shutdown)
                forward: { allow: ["127.0.0.1"], connect: { allow: ["*:*"] } }
                """
            let daemon = try Daemon(settings)
            var clients: [RawClient] = []
            for path in ["a?token=s3cret", "b"] {
                let client = try daemon.client()
                try client.request("GET", "/api/\(path)")
                #expect(try client.readHead().status == 200)
                #expect(try client.readBody(upTo: 1000) { _ in } == nil)
                clients.append(client)
            }
            let tunnel = try daemon.client()
            try tunnel.send("CONNECT \(far.authority) HTTP/1.1\r\nHost: \(far.authority)\r\n\r\n")
            #expect(try tunnel.readHead(method: "CONNECT").status == 200)
            // One that wants nothing is not waited for.
            let idle = try daemon.client()
            #expect(try idle.exchange("GET", "/nowhere", host: "127.0.0.1:\(daemon.port)").status == 404)
            return (daemon, clients + [tunnel, idle], [origin, far])
        }

        @Test("it says for whom it waits and until when, and nobody is cut who ends in time")
        func waits() throws {
            let gate = Gate()
            let (daemon, clients, origins) = try Self.busy(gate, shutdown: "10m")
            daemon.signal(SIGINT)
            let line = "notice drydock: waiting for 2 requests and 1 tunnel, until "
            #expect(eventually { daemon.errors.contains(line) }, "\(daemon.errors)")
            for text in [
                "at the latest ('shutdown' sets how long); a second Ctrl-C ends the daemon at once\n",
                "waiting for 127.0.0.1 GET /api/a, ", "waiting for 127.0.0.1 GET /api/b, ",
                "waiting for 127.0.0.1 CONNECT \(origins[1].authority), ",
            ] {
                #expect(eventually { daemon.errors.contains(text) }, "\(text): \(daemon.errors)")
            }
            #expect(!daemon.errors.contains("s3cret"), "a query may hold secrets")
            gate.open()
            for client in clients[..<2] { #expect(try client.readBody { _ in } == .complete) }
            clients[2].close()
            #expect(daemon.process.waitForEnd() == .exited(0))
            #expect(!daemon.errors.contains("cut off"), "\(daemon.errors)")
        }

        @Test("who is cut off at the end is listed")
        func cutOff() throws {
            let gate = Gate()
            defer { gate.open() }
            let (daemon, clients, origins) = try Self.busy(gate, shutdown: "300ms")
            #expect(daemon.end(SIGTERM) == .exited(0))
            #expect(daemon.errors.contains("; a second signal ends the daemon at once\n"), "\(daemon.errors)")
            for request in ["GET /api/a", "GET /api/b", "CONNECT 127.0.0.1:"] {
                let lines = daemon.errors.split(separator: "\n").filter {
                    $0.contains("warning drydock: cut off: 127.0.0.1 \(request)")
                }
                #expect(lines.count == 1, "\(request): \(daemon.errors)")
                if request != "CONNECT 127.0.0.1:" {
                    #expect(lines.allSatisfy { $0.hasSuffix("1000 bytes sent") }, "\(lines)")
                }
            }
            withExtendedLifetime((clients, origins)) {}
        }

        @Test("a second signal ends it at once", arguments: [SIGINT, SIGTERM])
        func second(_ signal: Int32) throws {
            let gate = Gate()
            defer { gate.open() }
            let (daemon, clients, origins) = try Self.busy(gate, shutdown: "10m")
            daemon.signal(SIGINT)
            #expect(eventually { daemon.errors.contains("waiting for 2 requests") }, "\(daemon.errors)")
            daemon.signal(signal)
            #expect(daemon.process.waitForEnd() == .signalled(signal))
            withExtendedLifetime((clients, origins)) {}
        }

        @Test("also where whoever started it has SIGINT ignored, as a shell does for what runs in the background")
        func inTheBackground() throws {
            let gate = Gate()
            defer { gate.open() }
            let origin = try Self.origin(gate)
            let home = try DaemonHome()
            let text = services(service("api", origin.url)).text(at: home)
            try home.folder.write("drydock.yaml", text)
            let notify = try NotifySocket(home.folder.file("notify.sock"))
            let process = try ChildProcess(
                "sh",
                ["-c", "trap '' INT; exec \"$0\" serve -c \"$1\"", Daemon.binary(), home.configuration],
                environment: Shell.cleanEnvironment(adding: ["NOTIFY_SOCKET": notify.path]),
                errors: home.folder.file("stderr.log")
            )
            defer { process.signal(SIGKILL, group: true) }
            #expect(notify.wait(for: "READY=1"))
            let client = try RawClient(port: home.port)
            try client.request("GET", "/api/a", host: "127.0.0.1:\(home.port)")
            #expect(try client.readHead().status == 200)
            process.signal(SIGINT)
            #expect(eventually { home.folder.text("stderr.log").contains("waiting for 1 request, until") })
            process.signal(SIGINT)
            #expect(process.waitForEnd() == .signalled(SIGINT))
        }
    }
}
