// Sockets that a service manager passes: their names say where clients connect and where commands are taken.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct PassedSockets {
        /// Listens as systemd does, gives the sockets the descriptors from 3 on, and becomes the program:
        /// NAME=ADDRESS... -- PROGRAM...
        private static let launcher = """
            import os, socket, sys
            end = sys.argv.index("--")
            names, sockets = [], []
            for word in sys.argv[1:end]:
                name, _, address = word.partition("=")
                if address.startswith("/"):
                    one = socket.socket(socket.AF_UNIX)
                    one.bind(address)
                else:
                    host, _, port = address.rpartition(":")
                    one = socket.socket(socket.AF_INET)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    one.bind((host, int(port)))
                one.listen(100)
                names.append(name)
                # Out of the way of the places that are filled below.
                one = os.dup(one.fileno())
                while one < 3 + end:
                    one = os.dup(one)
                sockets.append(one)
            for index, one in enumerate(sockets):
                os.dup2(one, 3 + index, inheritable=True)
            os.environ["LISTEN_PID"] = str(os.getpid())
            os.environ["LISTEN_FDS"] = str(len(sockets))
            os.environ["LISTEN_FDNAMES"] = ":".join(names)
            os.execv(sys.argv[end + 1], sys.argv[end + 1:])

            """

        private func launcher(_ sockets: [String]) -> [String] {
            ["python3", "-c", Self.launcher] + sockets + ["--"]
        }

        /// What `serve` says where it does not start.
        private func refused(_ sockets: [String], _ text: String, at home: DaemonHome) throws -> String {
            try home.folder.write("drydock.yaml", text)
            let command = launcher(sockets) + [try Daemon.binary(), "serve", "-c", home.configuration]
            let run = try Shell.run(command[0], Array(command.dropFirst()), folder: home.folder.path)
            #expect(run.end == .exited(1), "\(run.report)")
            return run.errors
        }

        @Test("clients connect to one and commands go to the other, and nothing else is listened on")
        func bothArePassed() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let home = try DaemonHome()
            let other = try freePort()
            let file = home.folder.file("passed.sock")
            let settings = services(service("api", origin.url))
            let text = settings.text(at: home).replacing("127.0.0.1:\(home.port)", with: "127.0.0.1:\(other)")
            let daemon = try Daemon(
                text: text,
                at: home,
                launcher: launcher(["proxy=127.0.0.1:\(home.port)", "admin=\(file)"])
            )
            #expect(try daemon.exchange("/api/x").text == "fine")
            #expect(throws: TestSupportError.self) { try RawClient(port: other) }
            #expect(access(home.adminSocket, F_OK) != 0, "the address of 'admin' is not used")
            let status = try Shell.run(Daemon.binary(), ["status", "--admin", "unix:\(file)"])
            #expect(status.succeeded && status.output.contains("127.0.0.1:\(home.port)"), "\(status.report)")
            // Nothing of the admin API is on the proxy's socket, and nothing of the proxy on the other.
            #expect(try daemon.exchange("/v1/status").status == 404)
            #expect(try RawClient(unix: file).exchange("/api/x").status == 404)
            for line in [
                "systemd passed 127.0.0.1:\(home.port) (descriptor 3, name 'proxy'): clients connect there",
                "systemd passed unix:\(file) (descriptor 4, name 'admin'): commands are taken there",
                "commands are taken at unix:\(file)",
            ] {
                #expect(daemon.errors.contains(line), "\(line) in \(daemon.errors)")
            }
            #expect(daemon.end() == .exited(0))
            #expect(access(file, F_OK) == 0, "the socket's file stays the service manager's")
        }

        @Test("the admin API alone is passed, on TCP with the checks against web pages; 'listen' counts as ever")
        func adminAlone() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let home = try DaemonHome()
            let port = try freePort()
            let settings = services(service("api", origin.url))
            let daemon = try Daemon(
                text: settings.text(at: home),
                at: home,
                launcher: launcher(["admin=127.0.0.1:\(port)"])
            )
            #expect(try daemon.exchange("/api/x").text == "fine")
            func status(_ host: String, _ fields: [(String, String)] = []) throws -> Int {
                try RawClient(port: port).exchange("GET", "/healthz", host: host, fields: fields).status
            }
            #expect(try status("127.0.0.1:\(port)") == 200)
            #expect(try status("pages.example:\(port)") == 403)
            #expect(try status("127.0.0.1:\(port)", [("Origin", "https://pages.example")]) == 403)
            #expect(access(home.adminSocket, F_OK) != 0)
        }

        @Test("sockets without a known name, or with the unit's, are the proxy's; 'admin' counts as ever")
        func proxyAlone() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let home = try DaemonHome()
            let other = try freePort()
            let daemon = try Daemon(
                text: services(service("api", origin.url)).text(at: home),
                at: home,
                launcher: launcher(["drydock.socket=127.0.0.1:\(home.port)", "unknown=127.0.0.1:\(other)"])
            )
            #expect(try daemon.exchange("/api/x").text == "fine")
            #expect(try RawClient(port: other).exchange("/api/x").text == "fine")
            #expect(try daemon.command("status").succeeded)
        }

        @Test(
            "'tls' of a daemon without an address for it is a warning, unless a socket for TLS is passed",
            arguments: [("proxy", 1), ("proxy-tls", 0), ("proxy-any", 0)]
        )
        func securePassed(name: String, warnings: Int) throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let home = try DaemonHome()
            let files = try TLSFiles(in: home.folder)
            let rest = """
                tls: { certificate: "\(files.certificate)", key: "\(files.key)" }
                services:
                \(service("api", origin.url))
                """
            let settings = DaemonSettings(rest)
            let daemon = try Daemon(
                text: settings.text(at: home),
                at: home,
                launcher: launcher(["\(name)=127.0.0.1:\(home.port)"])
            )
            func said() -> Int { daemon.errors.components(separatedBy: "'tls' is for addresses with TLS").count - 1 }
            #expect(said() == warnings, "\(daemon.errors)")
            let scheme = name == "proxy" ? "http" : "https"
            let url = "\(scheme)://127.0.0.1:\(home.port)/api/x"
            let answer = try Shell.run("curl", ["-sS", "--cacert", files.authority, url])
            #expect(answer.succeeded && answer.output == "fine", "\(answer.report)")
            // A reload knows no better and no worse than the start.
            #expect(try daemon.command("reload").succeeded)
            #expect(said() == 2 * warnings, "\(daemon.errors)")
        }

        @Test("a name that says nothing, an open admin API and 'admin: none' are no start")
        func refusals() throws {
            let home = try DaemonHome()
            let text = "listen: 127.0.0.1:\(home.port)\nlog: { access: off }\nservices: []\n"
            let port = try freePort()
            let named = try refused(["amdin=127.0.0.1:\(port)"], text, at: home)
            #expect(named.contains("under the name 'amdin' (descriptor 3)"), "\(named)")
            let open = try refused(["admin=0.0.0.0:\(port)"], text, at: home)
            #expect(open.contains("that listens on 0.0.0.0:\(port); the admin API has no password"), "\(open)")
            let none = try refused(["admin=127.0.0.1:\(port)"], text + "admin: none\n", at: home)
            #expect(none.contains("'admin' is none, and systemd passed 127.0.0.1:\(port)"), "\(none)")
        }
    }
}
