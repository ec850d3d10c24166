// A daemon that takes over from another: clients notice nothing, what is stored stays right, and where it cannot be done the old one goes on.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(20))) struct TakeOvers {
        private static let fields = [("Cache-Control", "max-age=600")]

        /// What `restart-load.py` expects: the target ten times, slowly a hundred times, or the body.
        static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                if request.method == "POST" { return .answer(String(decoding: request.body, as: UTF8.self)) }
                guard request.target.contains("slow") else {
                    return .answer(String(repeating: request.target, count: 10), fields: fields)
                }
                let part = Array(String(repeating: request.target, count: 25).utf8)
                let head = [("Content-Length", "\(4 * part.count)"), ("Cache-Control", "no-store")]
                return OriginReply(
                    [OriginReply.head(200, fields: head)]
                        + (0..<4).flatMap { _ in [OriginReply.Step.bytes(part), .pause(milliseconds: 200)] }
                )
            }
        }

        /// The clients of `restart-load.py`, until ``end()``.
        struct Load {
            private let folder = try? TemporaryFolder("load")
            private let child: ChildProcess

            struct Report: Decodable {
                let answers: Int
                let longest: Double
                let resumed: Int
                let sessions: Int
                let troubles: Int
                let first: [String]
            }

            init(_ address: String, path: String = "/api", tls: (port: Int, authority: String)? = nil) throws {
                let folder = try #require(folder)
                let words =
                    [program("restart-load.py"), address, path, "900"]
                    + (tls.map { ["\($0.port)", $0.authority] } ?? [])
                child = try ChildProcess(
                    "python3",
                    words,
                    environment: Shell.cleanEnvironment(),
                    output: folder.file("report"),
                    errors: folder.file("errors")
                )
            }

            func end() throws -> Report {
                child.signal(SIGTERM)
                let folder = try #require(folder)
                #expect(child.waitForEnd() == .exited(0), "\(folder.text("errors"))")
                return try JSONDecoder().decode(Report.self, from: Data(folder.text("report").utf8))
            }
        }

        /// A configuration for ``Load`` with a plain address and one with TLS, and the local authority that it needs.
        static func text(of origin: ScriptedOrigin, at home: DaemonHome, secure: Int) throws -> String {
            let made = try Shell.run(Daemon.binary(), ["ca", "create", "--ca", "\(home.folder.path)/ca"])
            try #require(made.succeeded, "\(made.report)")
            var settings = services(service("api", origin.url, "cache: { ttl: 10m }"))
            settings.rest += "tls: local\nca: \(home.folder.path)/ca\n"
            return settings.text(at: home).replacing(
                "listen: 127.0.0.1:\(home.port)",
                with: "listen: [127.0.0.1:\(home.port), \"https://127.0.0.1:\(secure)\"]"
            )
        }

        static func program(_ name: String) -> String {
            URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../Programs/\(name)")
                .standardized.path
        }

        @Test("clients of all kinds notice nothing, however often it happens")
        func underLoad() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            let secure = try freePort()
            let text = try Self.text(of: origin, at: home, secure: secure)
            let daemon = try Daemon(text: text, at: home)
            let load = try Load("127.0.0.1:\(home.port)", tls: (secure, "\(home.folder.path)/ca/ca.pem"))
            #expect(eventually { daemon.accessLog.count > 50 })
            let times = Thoroughness.isFull ? 200 : 8
            for _ in 0..<times {
                let count = daemon.accessLog.count
                let before = try daemon.takeOver()
                #expect(before.waitForEnd() == .exited(0), "\(daemon.errors.suffix(2000))")
                #expect(eventually { daemon.accessLog.count > count + 50 })
            }
            let report = try load.end()
            #expect(report.troubles == 0, "\(report.first)")
            #expect(report.answers > 50 * times && report.sessions > 0)
            // The ticket keys have gone from daemon to daemon.
            #expect(report.resumed == report.sessions)
            #expect(daemon.errors.count("taken over from the process before") == times)
            #expect(daemon.errors.contains("cut off") == false)
        }

        @Test(
            "an unsafe request under way ends before the next daemon opens the store, and what it invalidates is gone"
        )
        func invalidation() throws {
            let (posted, gate) = (Gate(), Gate())
            let origin = try ScriptedOrigin { request in
                guard request.method == "POST" else { return .answer("state \(gate.isOpened)", fields: Self.fields) }
                posted.open()
                return OriginReply([.wait(gate)]).then(.answer("done"))
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            #expect(try daemon.exchange("/api/item").text == "state false")
            let answers = Monitor<[Int]>([])
            let port = daemon.port
            Threads.start("post") {
                let answer = try? RawClient(port: port).exchange("POST", "/api/item", host: "127.0.0.1", body: [1])
                answers.update { $0.append(answer?.status ?? 0) }
            }
            #expect(posted.wait())
            let isReady = Gate()
            Threads.start("take over") {
                _ = try? daemon.takeOver()
                isReady.open()
            }
            #expect(eventually { daemon.errors.contains("another daemon takes over") })
            // It waits for the answer to the POST, and who connects meanwhile waits for it.
            #expect(isReady.wait(seconds: 1.5) == false)
            #expect(daemon.errors.contains("the store is closed") == false)
            gate.open()
            #expect(isReady.wait())
            #expect(answers.wait(60) { $0 == [200] })
            let answer = try daemon.exchange("/api/item")
            #expect(answer.text == "state true", "what the POST has changed is not answered from the store")
            #expect(origin.requests(method: "GET") == 2)
        }

        @Test(
            "a long answer goes on in the old daemon, whole, while the new one answers from the store"
        )
        func longAnswer() throws {
            let (begun, gate) = (Gate(), Gate())
            let size = 8 << 20
            let origin = try ScriptedOrigin { request in
                guard request.target == "/long" else { return .answer("short", fields: Self.fields) }
                let head = OriginReply.head(200, fields: Self.fields + [("Content-Length", "\(size)")])
                begun.open()
                return OriginReply([head, .pattern(size / 2, from: 0), .wait(gate), .pattern(size / 2, from: size / 2)])
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            #expect(try daemon.exchange("/api/short").text == "short")
            let lengths = Monitor<[Int]>([])
            let port = daemon.port
            Threads.start("long") {
                let answer = try? RawClient(port: port).exchange("GET", "/api/long", host: "127.0.0.1")
                let isWhole = answer.map { $0.end == .complete && $0.body == Pattern.bytes(0..<size) } ?? false
                lengths.update { $0.append(isWhole ? answer?.body.count ?? 0 : -1) }
            }
            #expect(begun.wait())
            let before = try daemon.takeOver()
            let short = try daemon.exchange("/api/short")
            #expect(short.field("Cache-Status")?.contains("; hit") == true, "\(short.head)")
            #expect(before.isRunning)
            gate.open()
            #expect(lengths.wait(60) { $0 == [size] })
            #expect(before.waitForEnd() == .exited(0))
            // What came after the store was given away is not in it.
            #expect(try daemon.exchange("/api/long").field("Cache-Status")?.contains("; hit") == false)
            #expect(origin.requests(target: "/short") == 1 && origin.requests(target: "/long") == 2)
        }

        @Test("every kind of listener goes over, and what the new configuration does not name is closed")
        func listeners() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            let (metrics, dropped) = (try freePort(), try freePort())
            let (kept, gone) = (home.folder.file("kept.sock"), home.folder.file("gone.sock"))
            let settings = services(service("api", origin.url))
            func text(_ more: String) -> String {
                "metrics: 127.0.0.1:\(metrics)\n"
                    + settings.text(at: home).replacing(
                        "listen: 127.0.0.1:\(home.port)",
                        with: "listen: [127.0.0.1:\(home.port), \"unix:\(kept)\"\(more)]"
                    )
            }
            let daemon = try Daemon(text: text(", \"unix:\(gone)\", 127.0.0.1:\(dropped)"), at: home)
            let metricsBefore = try RawClient(port: metrics).exchange("/healthz").text
            #expect(try RawClient(unix: gone).exchange("GET", "/api/x", host: "localhost").status == 200)
            try home.folder.write("drydock.yaml", text(""))
            #expect(try daemon.takeOver().waitForEnd() == .exited(0))
            #expect(try RawClient(unix: kept).exchange("GET", "/api/x", host: "localhost").status == 200)
            #expect(try RawClient(port: metrics).exchange("/healthz").text == metricsBefore)
            #expect(try daemon.command("status").output.contains("process \(daemon.pid)"))
            #expect(access(gone, F_OK) != 0 && access(kept, F_OK) == 0)
            #expect(throws: TestSupportError.self) { try RawClient(port: dropped) }
            #expect(daemon.end() == .exited(0))
            #expect(access(kept, F_OK) != 0 && access(home.adminSocket, F_OK) != 0, "the files are the last daemon's")
        }

        @Test("a new daemon that cannot start changes nothing")
        func refused() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            let home = daemon.home
            let taken = try freePort()
            let listener = try SilentListener("127.0.0.1", port: taken)
            defer { withExtendedLifetime(listener) {} }
            func fails(_ text: String, _ part: String, code: Int32 = 1) throws {
                try home.folder.write("other.yaml", text)
                let run = try Shell.run(
                    Daemon.binary(),
                    ["serve", "-c", home.folder.file("other.yaml"), "--take-over"]
                )
                #expect(run.end == .exited(code) && run.errors.contains(part), "\(run.report)")
                #expect(try daemon.exchange("/api/x").status == 200)
                #expect(access(home.adminSocket, F_OK) == 0)
            }
            let text = services(service("api", origin.url)).text(at: home)
            try fails(text + "nonsense: 1\n", "nonsense", code: 78)
            try fails(text.replacing("listen: 127.0.0.1:\(home.port)", with: "listen: 127.0.0.1:\(taken)"), "in use")
            #expect(daemon.errors.contains("has given it up: this one goes on"))
            let tcp = "admin: { listen: 127.0.0.1:\(try freePort()) }"
            try fails(
                text.replacing("admin: { listen: \"unix:\(home.adminSocket)\", mode: \"0600\" }", with: tcp),
                "'admin' names no unix socket"
            )
            let plain = try RawClient(unix: home.adminSocket).exchange(
                "POST",
                "/v1/take-over",
                host: "localhost",
                body: []
            )
            #expect(plain.status == 426 && plain.field("Upgrade") == "drydock-take-over", "\(plain.text)")
            #expect(try daemon.takeOver().waitForEnd() == .exited(0))
        }

        @Test("a new daemon that dies before it serves brings the old one back, with its sockets and its store")
        func diesInBetween() throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            #expect(try daemon.exchange("/api/x").status == 200)
            let successor =
                Self.successor + """
                    client.sendall(b"take\\n")
                    assert client.recv(100) == b"gone\\n"
                    """
            let readies = daemon.notify.received.count { $0 == "READY=1" }
            let run = try Shell.run("python3", ["-c", successor, daemon.home.adminSocket])
            #expect(run.succeeded, "\(run.report)")
            // Whoever asks meanwhile waits.
            let answer = try daemon.exchange("/api/x")
            #expect(answer.field("Cache-Status")?.contains("; hit") == true, "\(answer.head)")
            #expect(daemon.notify.wait(for: "READY=1", count: readies + 1))
            #expect(daemon.errors.contains("has ended before it served: this one begins again"))
            #expect(origin.requests() == 1 && daemon.process.isRunning)
            #expect(try daemon.takeOver().waitForEnd() == .exited(0))
            #expect(daemon.end() == .exited(0))
        }

        /// Asks for the offer, and gets it.
        private static let successor = """
            import os, signal, socket, sys
            client = socket.socket(socket.AF_UNIX)
            client.connect(sys.argv[1])
            client.sendall(b"POST /v1/take-over HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: upgrade\\r\\nUpgrade: drydock-take-over\\r\\nContent-Length: 0\\r\\n\\r\\n")
            head = b""
            while not head.endswith(b"\\r\\n\\r\\n"):
                head += client.recv(1)
            offer = socket.recv_fds(client, 65536, 16)

            """

        @Test(
            "a signal ends the old daemon at every step of a take-over",
            arguments: [
                // Before the next daemon has agreed: it is told.
                (
                    "os.kill(pid, signal.SIGTERM)\nassert client.recv(100) == b'ending\\n'\nassert client.recv(100) == b''\n",
                    false
                ),
                // While the next daemon is about to serve, and says no more.
                (
                    "client.sendall(b'take\\n')\nassert client.recv(100) == b'gone\\n'\nos.kill(pid, signal.SIGTERM)\nassert client.recv(100) == b''\n",
                    true
                ),
            ]
        )
        func signalled(_ step: String, keepsFile: Bool) throws {
            let origin = try Self.origin()
            let daemon = try Daemon(services(service("api", origin.url)))
            let words = [
                "-c", Self.successor + "pid = int(sys.argv[2])\n" + step, daemon.home.adminSocket, "\(daemon.pid)",
            ]
            let run = try Shell.run("python3", words)
            #expect(run.succeeded, "\(run.report)")
            let end = daemon.process.waitForEnd()
            #expect(end == .exited(0) || (keepsFile && end == .signalled(SIGTERM)), "\(end)")
            #expect((access(daemon.home.adminSocket, F_OK) == 0) == keepsFile)
            #expect(!daemon.errors.contains("this one begins again"))
        }

        @Test(
            "an old daemon that ends before it lets go: by a signal, it is waited for no more; else its store is free"
        )
        func endsInBetween() throws {
            let origin = try Self.origin()
            for (word, isServed) in [("ending\\n", false), ("", true)] {
                let home = try DaemonHome()
                try home.folder.write("drydock.yaml", services(service("api", origin.url)).text(at: home))
                // Offers its admin socket alone, and is gone.
                let before = """
                    import socket, sys
                    admin = socket.socket(socket.AF_UNIX)
                    admin.bind(sys.argv[1])
                    admin.listen()
                    print("listens", flush=True)
                    client = admin.accept()[0]
                    client.recv(65536)
                    client.sendall(b"HTTP/1.1 101 Switching Protocols\\r\\n\\r\\n")
                    socket.send_fds(client, [b'{"keys":[],"pid":1,"sockets":["admin"],"version":"1"}\\n'], [admin.fileno()])
                    client.sendall(b"\(word)")
                    """
                let old = try ChildProcess(
                    "python3",
                    ["-c", before, home.adminSocket],
                    environment: Shell.cleanEnvironment(),
                    output: home.folder.file("stdout.log"),
                    errors: home.folder.file("old.log")
                )
                #expect(eventually { home.folder.text("stdout.log").contains("listens") })
                let fresh = try ChildProcess(
                    Daemon.binary(),
                    ["serve", "-c", home.configuration, "--take-over"],
                    environment: Shell.cleanEnvironment(),
                    errors: home.folder.file("stderr.log")
                )
                #expect(old.waitForEnd() == .exited(0), "\(home.folder.text("old.log"))")
                if isServed {
                    #expect(eventually { (try? RawClient(port: home.port).exchange("/api/x").status) == 200 })
                    fresh.signal(SIGTERM)
                    #expect(fresh.waitForEnd() == .exited(0))
                } else {
                    #expect(fresh.waitForEnd() == .exited(1))
                    #expect(home.folder.text("stderr.log").contains("the daemon with process 1 ends by a signal"))
                }
            }
        }

        @Test("a daemon whose configuration cannot be read again is not taken over")
        func standardInput() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            try home.folder.write("drydock.yaml", services(service("api", origin.url)).text(at: home))
            let old = try ChildProcess(
                "sh",
                ["-c", "exec \"$0\" serve -c - < \"$1\"", Daemon.binary(), home.configuration],
                environment: Shell.cleanEnvironment(),
                errors: home.folder.file("stderr.log")
            )
            #expect(eventually { (try? RawClient(port: home.port).exchange("/api/x").status) == 200 })
            let run = try Shell.run(Daemon.binary(), ["serve", "-c", home.configuration, "--take-over"])
            #expect(run.end == .exited(1) && run.errors.contains("came from standard input"), "\(run.report)")
            #expect(try RawClient(port: home.port).exchange("/api/x").status == 200)
            old.signal(SIGTERM)
            #expect(old.waitForEnd() == .exited(0))
        }

        @Test("without a daemon to take over from, it starts as ever")
        func first() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            try home.folder.write("drydock.yaml", services(service("api", origin.url)).text(at: home))
            let child = try ChildProcess(
                Daemon.binary(),
                ["serve", "-c", home.configuration, "--take-over"],
                environment: Shell.cleanEnvironment(),
                errors: home.folder.file("stderr.log")
            )
            #expect(eventually { (try? RawClient(port: home.port).exchange("/api/x").status) == 200 })
            #expect(
                home.folder.text("stderr.log").contains("no daemon to take over from: this one starts as the first")
            )
            child.signal(SIGTERM)
            #expect(child.waitForEnd() == .exited(0))
        }
    }
}

extension String {
    /// How often a text is in this one.
    fileprivate func count(_ text: String) -> Int { components(separatedBy: text).count - 1 }
}
