// A daemon that cannot start says whose fault it is and what helps: ports, sockets, folders, groups.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct StartErrors {
        /// What `serve` says, run by a user without rights: this one, or `nobody` where this is root.
        private func refused(_ text: String, at home: DaemonHome) throws -> String {
            try home.folder.write("drydock.yaml", text)
            #expect(chmod(home.folder.path, 0o755) == 0)
            let serve = [try Daemon.binary(), "serve", "-c", home.configuration]
            let lesser = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"]
            let result = try Shell.run(
                isRoot ? "setpriv" : serve[0],
                isRoot ? lesser + serve : Array(serve.dropFirst()),
                folder: home.folder.path
            )
            #expect(result.end == .exited(1), "\(result.report)")
            #expect(result.errors.hasPrefix("drydock: not started: ") || result.errors.contains("not started: "))
            return result.errors
        }

        private var isRoot: Bool { geteuid() == 0 }

        private func text(_ listen: String, _ rest: String = "") -> String {
            "listen: \(listen)\nlog: { access: off }\nforward: { enabled: false }\nservices: []\n\(rest)\n"
        }

        @Test("an address that is taken is named with its key, and how to find who has it")
        func ports() throws {
            let home = try DaemonHome()
            let taken = try ScriptedOrigin { _ in .answer("mine") }
            let listen = try refused(text("127.0.0.1:\(taken.port)"), at: home)
            #expect(listen.contains("listen on 127.0.0.1:\(taken.port): Address already in use"), "\(listen)")
            #expect(listen.contains("'ss -ltnp' shows which; end it, or take another port in 'listen'"), "\(listen)")
            let admin = try refused(text("127.0.0.1:\(home.port)", "admin: 127.0.0.1:\(taken.port)"), at: home)
            #expect(admin.contains("take another port in 'admin'"), "\(admin)")
            let absent = try refused(text("192.0.2.1:\(home.port)"), at: home)
            #expect(absent.contains("'ip address' shows those that it has; correct 'listen'"), "\(absent)")
        }

        @Test("a port below 1024 names the capability, and the ports that need none")
        func privilegedPorts() throws {
            let lowest = Int(readText("/proc/sys/net/ipv4/ip_unprivileged_port_start").filter(\.isNumber)) ?? 1024
            // Some machines let everybody have every port.
            guard lowest > 81 else { return }
            let home = try DaemonHome()
            let errors = try refused(text("127.0.0.1:81"), at: home)
            #expect(errors.contains("AmbientCapabilities=CAP_NET_BIND_SERVICE and PrivateUsers=no into"), "\(errors)")
            #expect(errors.contains("take a port above 1023 in 'listen'"), "\(errors)")
        }

        @Test("a group that is not there is named with its key, and so is one that the daemon's user is not in")
        func groups() throws {
            let home = try DaemonHome()
            let folder = try home.folder.folder("run")
            #expect(chmod(folder, 0o777) == 0)
            func admin(_ group: String) -> String {
                text("127.0.0.1:\(home.port)", "admin: { listen: \"unix:\(folder)/admin.sock\", group: \(group) }")
            }
            let unknown = try refused(admin("no-such-group"), at: home)
            #expect(
                unknown.contains(
                    "'admin.group' is 'no-such-group', and this machine has no such group; make it with 'groupadd --system no-such-group', or name another one"
                ),
                "\(unknown)"
            )
            let foreign = try refused(admin("root"), at: home)
            #expect(foreign.contains("is not in that group; 'usermod -aG root "), "\(foreign)")
            #expect(foreign.contains("or leave out 'admin.group'"), "\(foreign)")
        }

        @Test("a folder that the daemon may not write is named with its owner, and how to give it to the daemon")
        func folders() throws {
            let home = try DaemonHome()
            let folder = try home.folder.folder("closed")
            #expect(chmod(folder, 0o555) == 0)
            defer { chmod(folder, 0o755) }
            func expect(_ errors: String, _ path: String, _ key: String, isMissing: Bool) {
                #expect(errors.contains("or name another path in '\(key)'"), "\(errors)")
                guard isRoot else {
                    return #expect(errors.contains("'chmod u+rwx \(folder)' lets the daemon write there"), "\(errors)")
                }
                #expect(
                    errors.contains("\(folder) belongs to root (mode 0555), and the daemon runs as nobody: "),
                    "\(errors)"
                )
                #expect(errors.contains("'chown nobody \(path)'"), "\(errors)")
                #expect(errors.contains("make \(path) and give it") == isMissing, "\(errors)")
            }
            let listen = "127.0.0.1:\(home.port)"
            for (path, isMissing) in [("\(folder)/run", true), (folder, false)] {
                let admin = try refused(text(listen, "admin: \"unix:\(path)/admin.sock\""), at: home)
                expect(admin, path, "admin", isMissing: isMissing)
                let cache = try refused(text(listen, "cache: { disk: { path: \"\(path)\" } }"), at: home)
                #expect(cache.contains("the cache folder \(path) cannot be used: "), "\(cache)")
                expect(cache, path, "cache.disk.path", isMissing: isMissing)
            }
            let log = text(listen).replacing("access: off", with: "access: \(folder)/access.log")
            expect(try refused(log, at: home), folder, "log.access", isMissing: false)
        }

        @Test("what another user has left in the cache folder or in the log is named with its remedy")
        func whatOthersLeft() throws {
            // Only root leaves what others may not touch.
            guard isRoot else { return }
            let daemon = try Daemon("services: []")
            let home = daemon.home
            #expect(daemon.end() == .exited(0))
            #expect(chown(home.cache, 65534, 65534) == 0)
            let settings = "cache: { disk: { path: \"\(home.cache)\" } }"
            let cache = try refused(text("127.0.0.1:\(home.port)", settings), at: home)
            #expect(
                cache.contains("something in it belongs to another user, and the daemon runs as nobody"),
                "\(cache)"
            )
            #expect(cache.contains("'chown -R nobody \(home.cache)'"), "\(cache)")
            #expect(chmod(home.accessLog, 0o600) == 0)
            let log = text("127.0.0.1:\(home.port)").replacing("access: off", with: "access: \(home.accessLog)")
            let errors = try refused(log, at: home)
            #expect(errors.contains("it belongs to root, and the daemon runs as nobody"), "\(errors)")
            #expect(errors.contains("'chown nobody \(home.accessLog)' gives it the file"), "\(errors)")
        }
    }
}
