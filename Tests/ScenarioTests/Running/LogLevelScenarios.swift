// Levels of single modules of the daemon's own log: in the configuration, and for a time by `drydock log`.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct LogLevels {
        /// The messages of the lines of requests.
        private static func messages(_ daemon: Daemon) -> [String] {
            daemon.errors.split(separator: "\n").compactMap { line in
                let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                guard let object, object["level"] as? String == "debug" else { return nil }
                return "\(object["module"] ?? "none"): \(object["message"] ?? "none")"
            }
        }

        @Test("a module at level debug tells its lines and no others, of the configuration and by command")
        func oneModule() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=60")], "fine") }
            let settings = services(service("api", origin.url))
            let daemon = try Daemon(settings)
            let client = try daemon.client()
            _ = try client.exchange("/api/a")
            #expect(Self.messages(daemon).isEmpty)

            let set = try daemon.command("log", "download=debug", "--for", "10m")
            #expect(set.succeeded && set.output.contains("download   debug    10m left, then info\n"), "\(set.report)")
            #expect(set.errors.hasPrefix("daemon: unix:\(daemon.home.adminSocket), process \(daemon.pid)"))
            #expect(daemon.errors.contains("\"message\":\"log levels set\""))
            _ = try client.exchange("/api/b")
            // What is stored asks no origin.
            _ = try client.exchange("/api/a")
            #expect(eventually { Self.messages(daemon).count == 2 })
            #expect(Self.messages(daemon) == ["download: asks the origin", "download: the origin answered"])

            // What the file says of a module is in force where the operator has said nothing.
            try daemon.home.folder.write(
                "drydock.yaml",
                settings.text(at: daemon.home)
                    .replacingOccurrences(of: "level: info", with: "level: info, modules: { request: debug }")
            )
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.command("log", "--reset").output.contains("request    debug\ndownload   info\n"))
            let before = Self.messages(daemon).count
            _ = try client.exchange("/api/c")
            #expect(eventually { Self.messages(daemon).count == before + 4 })
            #expect(
                Self.messages(daemon).suffix(4) == [
                    "request: request", "request: decided", "request: answer", "request: answered",
                ]
            )

            // An order against the file: the module is silent, and hits are answered in the fast way again.
            #expect(try daemon.command("log", "request=info", "--for", "1h").succeeded)
            _ = try client.exchange("/api/d")
            let document = try daemon.command("log", "--json")
            #expect(document.output.contains("\"configured\":\"debug\",\"left\":3"), "\(document.report)")
            #expect(Self.messages(daemon).count == before + 4)
        }

        @Test("set levels end by themselves, and the log says so")
        func theirTimeEnds() throws {
            let daemon = try Daemon(services(service("api", "http://127.0.0.1:1")))
            #expect(try daemon.command("log", "all=debug", "--for", "1s").succeeded)
            #expect(eventually { daemon.errors.contains("log levels are those of the configuration again") })
            let shown = try daemon.command("log")
            #expect(shown.succeeded && !shown.output.contains("left") && shown.output.contains("tls        info\n"))
            _ = try daemon.exchange("/api/a")
            #expect(!Self.messages(daemon).contains { $0.hasPrefix("request: ") })
        }

        @Test("what is no module, no level or no time is wrong usage, and asks no daemon")
        func wrongUsage() throws {
            for (words, says) in [
                (["downlod=debug"], "did you mean download?"), (["download=loud"], "is not a level"),
                (["download"], "not of the form MODULE=LEVEL"), (["for=10m"], "not of the form MODULE=LEVEL"),
                (["download=debug", "--for", "25h"], "for longer, write log.modules"),
                (["--for", "10m"], "needs a level"), (["--reset", "download=debug"], "not both"),
                (["--reset", "--for", "10m"], "leave out --for"),
            ] {
                let result = try Shell.run(try Daemon.binary(), ["log"] + words)
                #expect(result.end == .exited(2) && result.errors.contains(says), "\(words): \(result.report)")
            }
        }
    }
}
