// Daemons whose configuration names no admin address: their user's commands find them, and nobody
// else's folder is trusted.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct OwnSocket {
        /// A file that says nothing of commands.
        private static func write(_ user: PlainUser, _ name: String = "drydock.yaml") throws -> (
            file: String, port: Int
        ) {
            let port = try freePort()
            let text = "listen: 127.0.0.1:\(port)\nlog: { access: off }\nservices: []\n"
            return (try user.home.write("conf/\(name)", text), port)
        }

        private static func mode(_ path: String) -> mode_t? {
            var status = stat()
            return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : nil
        }

        @Test("commands of the same user find it, with and without XDG_RUNTIME_DIR", arguments: [true, false])
        func isFound(_ hasRuntime: Bool) throws {
            guard PlainUser.canChange || hasRuntime else { return }
            let user = PlainUser.canChange ? try PlainUser.fresh() : try PlainUser()
            defer { if PlainUser.canChange { user.removePrivateFolder() } }
            let runtime = try user.runtimeFolder()
            let variables = hasRuntime ? ["XDG_RUNTIME_DIR": runtime] : [:]
            let folder = hasRuntime ? "\(runtime)/drydock" : user.privateFolder
            let (file, _) = try Self.write(user)
            let daemon = try PlainDaemon(user, "-c", file, environment: variables)
            #expect(daemon.says("commands are taken at unix:\(folder)/admin.sock\n"), "\(daemon.errors)")
            #expect(daemon.says("with 0 services, configuration \(file)\n"), "\(daemon.errors)")
            #expect(daemon.says("stored responses are kept in memory alone"), "\(daemon.errors)")
            #expect(Self.mode(folder) == 0o700 && Self.mode("\(folder)/admin.sock") == 0o600)
            // From another folder, and by the file.
            for arguments in [["status"], ["status", "-c", file]] {
                let (program, words) = user.command([user.binary] + arguments)
                let result = try Shell.run(program, words, environment: user.variables(variables), folder: "/")
                #expect(result.succeeded && result.output.contains("process \(daemon.process.pid)"), "\(result.report)")
            }
            if !hasRuntime {
                // A session began after the daemon: its folder is another one, with nothing in it.
                let other = try user.drydock("status", environment: ["XDG_RUNTIME_DIR": runtime], folder: "/")
                #expect(other.succeeded && other.output.contains("process \(daemon.process.pid)"), "\(other.report)")
            }
            let reload = try user.drydock("reload", environment: variables, folder: "/")
            #expect(
                reload.errors.contains(
                    "daemon: unix:\(folder)/admin.sock, process \(daemon.process.pid), configuration \(file)"
                )
            )
            daemon.process.signal(SIGTERM)
            #expect(daemon.process.waitForEnd() == .exited(0))
            let none = try user.drydock("status", environment: variables, folder: "/")
            #expect(
                none.end == .exited(3) && none.errors.contains("\(folder)/admin.sock: No such file"),
                "\(none.report)"
            )
        }

        @Test("root's is in /run/drydock", .enabled(if: PlainUser.canChange))
        func ofRoot() throws {
            let user = try PlainUser()
            guard try user.drydock("status", "--admin", "/run/drydock/admin.sock").end == .exited(3) else { return }
            let (file, _) = try Self.write(user)
            let daemon = try PlainDaemon(user, "-c", file)
            #expect(daemon.says("commands are taken at unix:/run/drydock/admin.sock\n"), "\(daemon.errors)")
            let status = try user.drydock("status", "-c", file)
            #expect(status.output.contains("process \(daemon.process.pid)"), "\(status.report)")
            daemon.process.signal(SIGTERM)
            #expect(daemon.process.waitForEnd() == .exited(0))
        }

        @Test("no command goes to the daemon of another file")
        func ofAnotherFile() throws {
            let user = try PlainUser()
            let variables = ["XDG_RUNTIME_DIR": try user.runtimeFolder()]
            let (file, _) = try Self.write(user)
            let daemon = try PlainDaemon(user, "-c", file, environment: variables)
            let (other, _) = try Self.write(user, "other.yaml")
            for command in [["purge", "--all"], ["offline", "on"], ["status"]] {
                let (program, words) = user.command([user.binary] + command + ["-c", other])
                let result = try Shell.run(program, words, environment: user.variables(variables), folder: "/")
                #expect(result.end == .exited(3), "\(result.report)")
                #expect(
                    result.errors.contains("no daemon of \(other) was found, and none was asked"),
                    "\(result.report)"
                )
                #expect(
                    result.errors.contains("process \(daemon.process.pid), configuration \(file)"),
                    "\(result.report)"
                )
            }
            // Nor where the variable names it.
            let named = variables.merging([
                "DRYDOCK_ADMIN": "unix:\(variables["XDG_RUNTIME_DIR"] ?? "")/drydock/admin.sock"
            ]) { $1 }
            #expect(try user.drydock("purge", "--all", "-c", other, environment: named).end == .exited(3))
            #expect(
                try user.drydock("status", environment: variables, folder: "/").output.contains("offline        no")
            )
            // A file in another place that is a link to the daemon's own is the same file.
            try FileManager.default.createSymbolicLink(
                atPath: user.home.file("drydock.yaml"),
                withDestinationPath: file
            )
            #expect(try user.drydock("status", environment: variables).succeeded)
        }

        @Test("a second daemon leaves the first one its socket, and says what to do")
        func twoOfOneUser() throws {
            let user = try PlainUser()
            let variables = ["XDG_RUNTIME_DIR": try user.runtimeFolder()]
            let socket = "\(variables["XDG_RUNTIME_DIR"] ?? "")/drydock/admin.sock"
            let first = try PlainDaemon(user, "-c", try Self.write(user).file, environment: variables)
            let (file, port) = try Self.write(user, "second.yaml")
            let second = try PlainDaemon(user, "-c", file, environment: variables)
            #expect(second.process.isRunning, "\(second.errors)")
            #expect(
                second.says(
                    "warning drydock: no commands are taken: unix:\(socket) is the socket of another daemon; name an address"
                )
            )
            #expect(try RawClient(port: port).exchange("GET", "/x", host: "127.0.0.1:\(port)").status == 404)
            let status = try user.drydock("status", environment: variables)
            #expect(status.output.contains("process \(first.process.pid)"), "\(status.report)")
            #expect(try user.drydock("status", "-c", file, environment: variables).end == .exited(3))
            second.process.signal(SIGTERM)
            #expect(second.process.waitForEnd() == .exited(0))
            #expect(try user.drydock("status", environment: variables).succeeded, "it has not taken the file along")
            // With an address of its own, as the line says.
            let own = variables.merging(["DRYDOCK_ADMIN": "unix:\(user.home.file("second.sock"))"]) { $1 }
            let third = try PlainDaemon(user, "-c", file, environment: own)
            #expect(third.says("commands are taken at unix:\(user.home.file("second.sock"))\n"), "\(third.errors)")
            for arguments in [["status"], ["status", "-c", file]] {
                let (program, words) = user.command([user.binary] + arguments)
                let result = try Shell.run(program, words, environment: user.variables(own), folder: "/")
                #expect(result.output.contains("process \(third.process.pid)"), "\(result.report)")
            }
            // An address that somebody has named, and that cannot be had, is an error.
            let refused = try user.drydock("serve", "-c", try Self.write(user, "fourth.yaml").file, environment: own)
            #expect(refused.end == .exited(1) && refused.errors.contains("'DRYDOCK_ADMIN'"), "\(refused.report)")
            let wrong = ["DRYDOCK_ADMIN": "0.0.0.0:1"]
            let public_ = try user.drydock("serve", "-c", try Self.write(user, "fifth.yaml").file, environment: wrong)
            #expect(public_.end == .exited(1) && public_.errors.contains("not on loopback"), "\(public_.report)")
        }

        @Test("admin: none takes no commands, and commands are told so")
        func none() throws {
            let user = try PlainUser()
            let variables = ["XDG_RUNTIME_DIR": try user.runtimeFolder()]
            let text = "listen: 127.0.0.1:\(try freePort())\nadmin: none\n"
            let file = try user.home.write("conf/drydock.yaml", text)
            let daemon = try PlainDaemon(user, "-c", file, environment: variables)
            #expect(daemon.says("info drydock: no commands are taken\n"), "\(daemon.errors)")
            let result = try user.drydock("status", "-c", file, environment: variables)
            #expect(
                result.end == .exited(1) && result.errors.contains("\(file):2:1: 'admin' is none"),
                "\(result.report)"
            )
            #expect(try user.drydock("status", environment: variables).end == .exited(3))
        }

        enum Trap: String, CaseIterable { case ofAnother, open, link }

        @Test(
            "a folder in /tmp of another user, one that others may look into, and a link are not used",
            .enabled(if: PlainUser.canChange),
            arguments: Trap.allCases
        )
        func trapped(_ trap: Trap) throws {
            let user = try PlainUser.fresh()
            defer { user.removePrivateFolder() }
            let trapFolder = trap == .link ? try user.runtimeFolder("target") : user.privateFolder
            if trap == .link {
                try FileManager.default.createSymbolicLink(atPath: user.privateFolder, withDestinationPath: trapFolder)
            } else {
                #expect(mkdir(trapFolder, 0o755) == 0)
                if trap == .open { #expect(chown(trapFolder, user.id, user.id) == 0) }
            }
            // Somebody waits there for commands that are not meant for him.
            let home = try DaemonHome()
            let trapText = services().text(at: home).replacing(home.adminSocket, with: "\(trapFolder)/admin.sock")
                .replacing("\"0600\"", with: "\"0666\"")
            let other = try Daemon(text: trapText, at: home)
            let (file, port) = try Self.write(user)
            let daemon = try PlainDaemon(user, "-c", file)
            let reason =
                switch trap {
                case .ofAnother: "the folder \(user.privateFolder) belongs to the user 0, and not to \(user.id)"
                case .open: "the folder \(user.privateFolder) is open to other users; write chmod 700"
                case .link: "\(user.privateFolder) is not a folder"
                }
            #expect(daemon.says("warning drydock: no commands are taken: \(reason)"), "\(daemon.errors)")
            #expect(try RawClient(port: port).exchange("GET", "/x", host: "127.0.0.1:\(port)").status == 404)
            for arguments in [["status"], ["status", "-c", file], ["purge", "--all"]] {
                let (program, words) = user.command([user.binary] + arguments)
                let result = try Shell.run(program, words, environment: user.variables([:]), folder: "/")
                #expect(result.end == .exited(3), "\(result.report)")
                #expect(result.errors.contains("\(reason)"), "\(result.report)")
            }
            let there = try Shell.run(Daemon.binary(), ["status", "--admin", "unix:\(trapFolder)/admin.sock"])
            #expect(there.output.contains("process \(other.pid)"), "somebody has waited for them: \(there.report)")
        }
    }
}
