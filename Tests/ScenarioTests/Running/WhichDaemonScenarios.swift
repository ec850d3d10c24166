// Which daemon a command is for: the one that is named, or none; and a change says whose it was.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct WhichDaemon {
        /// Commands that ask or change a daemon, with what they need.
        private static let commands: [[String]] = [
            ["status"], ["list"], ["explain", "/x"], ["pins"], ["jobs"], ["jobs", "show", "1"],
            ["jobs", "cancel", "1"], ["jobs", "retry", "1"], ["jobs", "remove", "1"], ["purge", "--all"],
            ["pin", "/x"], ["unpin", "/x"], ["offline", "on"], ["clock", "advance", "1s"], ["clock", "reset"],
            ["reload"], ["size", "/x"], ["prefetch", "/x"], ["cancel", "--all"], ["events"], ["parked"],
            ["parked", "replay", "--all"], ["parked", "cancel", "1"], ["seed", "export", "s"], ["seed", "import", "s"],
        ]

        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "kept") }
        }

        /// A daemon that has one response, and whose admin socket is where commands look for one that nobody names.
        private func usual(
            _ origin: ScriptedOrigin,
            _ rest: String = "",
            environment: [String: String] = [:]
        ) throws -> (Daemon, runtime: String) {
            var settings = services(service("api", origin.url))
            settings.rest += rest
            let daemon = try Daemon(settings, environment: environment)
            _ = try daemon.exchange("/api/kept")
            #expect(try eventually { try daemon.command("list").output.contains("/kept") })
            let runtime = daemon.home.folder.file("run")
            try FileManager.default.createDirectory(
                atPath: "\(runtime)/drydock",
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
            try FileManager.default.createSymbolicLink(
                atPath: "\(runtime)/drydock/admin.sock",
                withDestinationPath: daemon.home.adminSocket
            )
            return (daemon, runtime)
        }

        @Test(
            arguments: [
                ("cache: { memory: { size: 64MB } }", "drydock.yaml:1:26: "),
                ("listen: [127.0.0.1:0", "drydock.yaml:"), ("admin: { mode: \"0600\" }", "drydock.yaml:1:8: "),
                ("services: []\nadnim: unix:/absent.sock", "drydock.yaml:2:1: unknown key 'adnim'"),
                ("admin: none", "drydock.yaml:1:1: 'admin' is none"),
                // The address is left to the default, and the daemon there runs another file.
                ("listen: 127.0.0.1:0", "no daemon of "), ("", "no daemon of "),
            ]
        )
        func aFileThatIsWrongNeverLeadsToAnotherDaemon(text: String, error: String) throws {
            let origin = try Self.origin()
            let (daemon, runtime) = try usual(origin)
            let folder = try TemporaryFolder("elsewhere")
            try folder.write("drydock.yaml", text + "\n")
            for named in [[], ["-c", folder.file("drydock.yaml")]] {
                for command in [["purge", "--all"], ["offline", "on"], ["reload"], ["cancel", "--all"], ["status"]] {
                    let result = try Shell.run(
                        Daemon.binary(),
                        command + named,
                        environment: ["XDG_RUNTIME_DIR": runtime],
                        folder: folder.path
                    )
                    // Nobody was asked: that is no answer of a daemon's.
                    let code: Int32 = error.hasPrefix("no daemon") ? 3 : 1
                    #expect(result.end == .exited(code), "\(command): \(result.report)")
                    #expect(result.errors.contains(error), "\(command): \(result.report)")
                    let isNone = ["no daemon was asked", "none was asked"].contains { result.errors.contains($0) }
                    #expect(isNone, "\(command): \(result.report)")
                    #expect(result.output.isEmpty)
                }
            }
            #expect(try daemon.command("list").output.contains("/kept"))
            #expect(try daemon.command("status").output.contains("offline        no"))
        }

        @Test func withoutAFileTheUsualSocketIsAsked() throws {
            let origin = try Self.origin()
            let (daemon, runtime) = try usual(origin)
            let folder = try TemporaryFolder("elsewhere")
            // Where the machine has a configuration, that one counts.
            guard !FileManager.default.fileExists(atPath: "/etc/drydock/drydock.yaml") else { return }
            let result = try Shell.run(
                Daemon.binary(),
                ["purge", "--all"],
                environment: ["XDG_RUNTIME_DIR": runtime],
                folder: folder.path
            )
            #expect(result.succeeded && result.output == "1 stored response purged\n", "\(result.report)")
            #expect(result.errors.contains("daemon: unix:\(runtime)/drydock/admin.sock, "), "\(result.report)")
            #expect(result.errors.contains("configuration \(daemon.home.configuration)"), "\(result.report)")
        }

        @Test func everyCommandTakesAConfigurationFile() throws {
            let folder = try TemporaryFolder("elsewhere")
            try folder.write("drydock.yaml", "admin: unix:\(folder.file("of-the-folder.sock"))\n")
            try folder.write("other.yaml", "admin: unix:\(folder.file("other.sock"))\n")
            let absent = ["DRYDOCK_ADMIN": "unix:\(folder.file("of-the-environment.sock"))"]
            for command in Self.commands {
                for option in ["-c", "--config"] {
                    let result = try Shell.run(
                        Daemon.binary(),
                        command + [option, "other.yaml"],
                        environment: absent,
                        folder: folder.path
                    )
                    #expect(result.end == .exited(3), "\(command): \(result.report)")
                    #expect(result.errors.contains(folder.file("other.sock")), "\(command): \(result.report)")
                }
            }
            let both = ["purge", "--all", "-c", "other.yaml", "--admin", "unix:/absent.sock"]
            let result = try Shell.run(Daemon.binary(), both, folder: folder.path)
            #expect(result.end == .exited(2) && result.errors.contains("give one of them"), "\(result.report)")
        }

        @Test func aChangeSaysWhichDaemonItChanged() throws {
            let origin = try Self.origin()
            let (daemon, _) = try usual(origin, "clock: { movable: true }\n")
            let seeds = daemon.home.folder.file("seeds")
            let changes: [[String]] = [
                ["pin", "/api/kept"], ["unpin", "/api/kept"], ["offline", "on"], ["offline", "off"],
                ["clock", "advance", "1s"], ["clock", "reset"], ["reload"], ["cancel", "--all"],
                ["parked", "replay", "--all"], ["parked", "cancel", "api"], ["size", "/api/kept", "--save"],
                ["prefetch", "--job", "1"], ["prefetch", "/api/other"],
                ["jobs", "remove", "1"], ["seed", "export", seeds], ["seed", "import", seeds], ["purge", "--all"],
            ]
            let told = "daemon: unix:\(daemon.home.adminSocket), process \(daemon.pid), "
            for change in changes {
                let result = try Shell.run(
                    Daemon.binary(),
                    change + ["-c", "drydock.yaml"],
                    folder: daemon.home.folder.path
                )
                #expect(result.succeeded, "\(change): \(result.report)")
                #expect(
                    result.errors.contains(told + "configuration \(daemon.home.configuration)\n"),
                    "\(change): \(result.report)"
                )
                #expect(!result.output.contains("daemon: "), "\(change): \(result.report)")
            }
            for question in [["status"], ["list"], ["pins"], ["explain", "/api/kept"], ["size", "/api/kept"]] {
                let result = try Shell.run(
                    Daemon.binary(),
                    question + ["-c", "drydock.yaml"],
                    folder: daemon.home.folder.path
                )
                #expect(result.succeeded && !result.errors.contains("daemon: "), "\(question): \(result.report)")
            }
        }

        @Test func whatOnlyTheDaemonHasIsNoErrorHere() throws {
            let secret = #"defaults: { headers: { set: { X-Key: "${DRYDOCK_TEST_KEY}" } } }"#
            let origin = try Self.origin()
            let (daemon, _) = try usual(origin, secret + "\n", environment: ["DRYDOCK_TEST_KEY": "k"])
            let result = try Shell.run(Daemon.binary(), ["status"], folder: daemon.home.folder.path)
            #expect(result.succeeded && result.output.contains("process \(daemon.pid)"), "\(result.report)")
        }
    }
}
