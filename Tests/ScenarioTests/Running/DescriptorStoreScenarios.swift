// A service manager that keeps the daemon's sockets from one process to the next: a restart refuses nobody.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(20))) struct DescriptorStores {
        /// A daemon under `service-manager.py`.
        private final class Service {
            let home: DaemonHome
            private let manager: ChildProcess
            private let commands: FileHandle

            init(_ text: String, at home: DaemonHome) throws {
                self.home = home
                try home.folder.write("drydock.yaml", text)
                let pipe = home.folder.file("commands")
                try #require(mkfifo(pipe, 0o600) == 0)
                manager = try ChildProcess(
                    "python3",
                    [
                        TakeOvers.program("service-manager.py"), home.folder.file("notify.sock"), pipe, Daemon.binary(),
                        "serve",
                        "-c", home.configuration,
                    ],
                    environment: Shell.cleanEnvironment(),
                    output: home.folder.file("stdout.log"),
                    errors: home.folder.file("stderr.log")
                )
                // Opening it waits for the reader, which opens it when the daemon is ready.
                commands = try #require(FileHandle(forWritingAtPath: pipe))
            }

            deinit { manager.signal(SIGKILL, group: true) }

            /// The names that each process was passed, in the order of the starts.
            var starts: [String] {
                home.folder.text("stdout.log").split(separator: "\n").map { String($0.trimmingPrefix("ready ")) }
            }
            var errors: String { home.folder.text("stderr.log") }

            func order(_ word: String) throws {
                let count = starts.count
                try commands.write(contentsOf: Data("\(word)\n".utf8))
                if word == "stop" {
                    #expect(manager.waitForEnd() == .exited(0))
                } else {
                    #expect(eventually { self.starts.count > count }, "\(errors)")
                }
            }
        }

        @Test("clients of all kinds notice nothing of restarts, and TLS sessions go on")
        func underLoad() throws {
            let origin = try TakeOvers.origin()
            let home = try DaemonHome()
            let secure = try freePort()
            let text = try TakeOvers.text(of: origin, at: home, secure: secure)
            let service = try Service(text, at: home)
            let load = try TakeOvers.Load("127.0.0.1:\(home.port)", tls: (secure, "\(home.folder.path)/ca/ca.pem"))
            func answers() -> Int { readText(home.accessLog).utf8.count { $0 == 10 } }
            #expect(eventually { answers() > 50 })
            let times = Thoroughness.isFull ? 200 : 5
            for _ in 0..<times {
                let count = answers()
                try service.order("restart")
                #expect(eventually { answers() > count + 50 })
            }
            let report = try load.end()
            #expect(report.troubles == 0, "\(report.first)")
            #expect(report.sessions > 0 && report.resumed == report.sessions)
            try service.order("stop")
            let names = Set(service.starts.dropFirst().map { Set($0.split(separator: ":")) })
            #expect(names == [["proxy.1", "proxy.2", "admin.1", "ticket-keys"]], "\(service.starts)")
        }

        @Test(
            "a killed process leaves its sockets as well, and those that no address is for are given back"
        )
        func crash() throws {
            let origin = try TakeOvers.origin()
            let home = try DaemonHome()
            let dropped = try freePort()
            let file = home.folder.file("proxy.sock")
            let settings = services(service("api", origin.url))
            func text(_ more: String) -> String {
                settings.text(at: home).replacing(
                    "listen: 127.0.0.1:\(home.port)",
                    with: "listen: [127.0.0.1:\(home.port), \"unix:\(file)\"\(more)]"
                )
            }
            let service = try Service(text(", 127.0.0.1:\(dropped)"), at: home)
            #expect(try RawClient(unix: file).exchange("GET", "/api/x", host: "localhost").status == 200)
            try home.folder.write("drydock.yaml", text(""))
            try service.order("crash")
            #expect(throws: TestSupportError.self) { try RawClient(port: dropped) }
            #expect(try RawClient(unix: file).exchange("GET", "/api/x", host: "localhost").status == 200)
            #expect(try RawClient(port: home.port).exchange("/api/x").field("Cache-Status")?.contains("; hit") == true)
            // A socket whose file is gone is of no use: another one takes its turn.
            unlink(file)
            try service.order("restart")
            #expect(try RawClient(unix: file).exchange("GET", "/api/x", host: "localhost").status == 200)
            try service.order("restart")
            #expect(try RawClient(unix: file).exchange("GET", "/api/x", host: "localhost").status == 200)
            let names = service.starts.map { Set($0.split(separator: ":")) }
            #expect(names[0] == [])
            #expect(names[1] == ["proxy.1", "proxy.2", "proxy.3", "admin.1", "ticket-keys"])
            #expect(names[2] == ["proxy.1", "proxy.2", "admin.1", "ticket-keys"])
            #expect(names[3] == names[2])
            try service.order("stop")
            #expect(service.errors.contains("taken over from the process before"))
        }

        @Test("an address that the next configuration has for all interfaces, or for another purpose, is bound anew")
        func addressesOfOtherUse() throws {
            let origin = try TakeOvers.origin()
            let home = try DaemonHome()
            let swapped = try freePort()
            let file = home.folder.file("proxy.sock")
            let text = services(service("api", origin.url)).text(at: home)
            func with(_ listen: String, metrics: String) -> String {
                "metrics: \(metrics)\n" + text.replacing("listen: 127.0.0.1:\(home.port)", with: "listen: \(listen)")
            }
            let service = try Service(
                with("[127.0.0.1:\(home.port), 127.0.0.1:\(swapped)]", metrics: "\"unix:\(file)\""),
                at: home
            )
            try home.folder.write(
                "drydock.yaml",
                "forward: { enabled: false }\n"
                    + with("[\"*:\(home.port)\", \"unix:\(file)\"]", metrics: "127.0.0.1:\(swapped)")
            )
            for _ in 0..<2 {
                try service.order("restart")
                #expect(try RawClient(port: home.port).exchange("/api/x").status == 200)
                #expect(try RawClient(unix: file).exchange("GET", "/api/x", host: "localhost").status == 200)
                #expect(try RawClient(port: swapped).exchange("/healthz").status == 200)
            }
            try service.order("stop")
            let names = service.starts.map {
                Set($0.split(separator: ":").filter { $0.hasPrefix("proxy") || $0.hasPrefix("metrics") })
            }
            #expect(names[1] == ["proxy.1", "proxy.2", "metrics.1"])
            // Of the machine's IPv6 it depends whether there is one more.
            #expect(names[2].contains("metrics.1") && names[2].count >= 3)
        }
    }
}
