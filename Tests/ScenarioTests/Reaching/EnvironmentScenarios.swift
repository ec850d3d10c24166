// `drydock env`, and `drydock check --environment`: the environment of programs, and that of the daemon's unit.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Environments {
        /// A shell that has taken what `drydock env` prints asks the daemon.
        @Test func aShellThatEvaluatesItAsksTheProxy() throws {
            let origin = try ScriptedOrigin { .answer("for \($0.target)", fields: [("Cache-Control", "max-age=60")]) }
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    services: [{ name: api, match: { host: api.test }, base_url: "\(origin.url)" }]
                    """
                )
            )
            let url = "http://localhost:\(daemon.port)"
            let lines = try daemon.command("env")
            #expect(
                lines.output == "export http_proxy=\(url) https_proxy=\(url) no_proxy='localhost,127.0.0.1,::1'\n",
                "\(lines.report)"
            )
            let asked = try Shell.run("sh", ["-c", "eval \"$1\" && curl -sS http://api.test/x", "sh", lines.output])
            #expect(asked.output == "for /x", "\(asked.report)")
            let git = try daemon.command("env", "git")
            #expect(git.output == "git config --global http.proxy \(url)\n", "\(git.report)")
            let names = try daemon.command("env", "--list").output.split(separator: "\n")
            #expect(names.contains("npm      npm, in its own settings"), "\(names)")
            let json = try daemon.command("env", "apt", "--json")
            let document = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
            #expect(document?["proxy"] as? String == url && document?["certificate"] == nil, "\(json.report)")
            let programs = document?["programs"] as? [[String: Any]]
            #expect(programs?.count == 1 && programs?.first?["name"] as? String == "apt", "\(json.report)")
            let unknown = try daemon.command("env", "csh")
            #expect(unknown.end == .exited(2) && unknown.errors.contains("'csh' is not known; there are shell, fish,"))
            // What is read has rows of columns, whatever is in them.
            for path in ["/x", "/longer"] { _ = try Shell.run("curl", ["-sS", "-x", url, "http://api.test\(path)"]) }
            let list = try daemon.command("list").output.split(separator: "\n").map(String.init)
            let columns = list.compactMap {
                $0.range(of: "api  http").map { range in
                    list[0].distance(from: list[0].startIndex, to: range.lowerBound)
                }
            }
            #expect(list.count == 2 && Set(columns).count == 1, "\(list)")
        }

        @Test func aConfigurationIsReadWithoutADaemon() throws {
            let folder = try TemporaryFolder("env")
            func env(_ text: String, _ program: String...) throws -> ShellResult {
                try folder.write("drydock.yaml", text + "\nservices: []\n")
                return try Shell.run(Daemon.binary(), ["env", "-c", folder.file("drydock.yaml")] + program)
            }
            let plain = try env("listen: 192.0.2.7:81\nclients: [any]\nforward: { allow: [a.test] }", "android")
            #expect(plain.output == "adb shell settings put global http_proxy 192.0.2.7:81\n", "\(plain.report)")
            let made = try Shell.run(Daemon.binary(), ["ca", "create", "--ca", folder.file("ca")])
            #expect(made.succeeded, "\(made.report)")
            func reading(_ hosts: String) -> String {
                """
                listen: localhost:8080
                ca: \(folder.file("ca"))
                forward: { allow: ["*"], connect: { allow: ["*:443"] }, intercept: { hosts: \(hosts) } }
                """
            }
            let one = try env(reading("[api.test]"), "curl")
            #expect(one.output.contains("export CURL_CA_BUNDLE=\(folder.file("ca"))/ca.pem\n"), "\(one.report)")
            #expect(one.errors.contains("have the system trust it by 'drydock ca trust'"), "\(one.report)")
            let off = try env("forward: { enabled: false }")
            #expect(off.end == .exited(1) && off.errors.contains("set forward.enabled: true"), "\(off.report)")
            let socket = try env("listen: unix:\(folder.file("s"))")
            #expect(
                socket.end == .exited(1) && socket.errors.contains("add one such as localhost:8080"),
                "\(socket.report)"
            )
        }

        @Test func checkTakesTheEnvironmentOfTheUnit() throws {
            let folder = try TemporaryFolder("unit")
            try folder.write(
                "drydock.yaml",
                """
                services:
                  - { name: a, match: { prefix: /a }, base_url: "${ORIGIN}", auth: { bearer: "${TOKEN}" }, headers: { set: { X-A: "${SPACED}" } } }

                """
            )
            func check(_ text: String, _ variables: [String: String] = [:]) throws -> ShellResult {
                try folder.write("environment", text)
                return try Shell.run(
                    Daemon.binary(),
                    ["check", folder.file("drydock.yaml"), "--environment", folder.file("environment")],
                    environment: variables
                )
            }
            let whole = try check(
                """
                # a comment
                ; another one

                ORIGIN=http://a.test  
                  TOKEN='se cret'"#x"
                SPACED="a \\"b\\" \\
                c"
                """.replacing("se cret", with: "secret")
            )
            #expect(whole.end == .exited(0) && whole.output == "ok (1 service, 0 endpoints)\n", "\(whole.report)")
            // The shell's own variables are not the unit's.
            let less = try check("ORIGIN=http://a.test\nSPACED=a\n", ["TOKEN": "t"])
            #expect(less.end == .exited(1) && less.errors.contains("drydock.yaml:2:") && less.errors.contains("TOKEN"))
            for (text, expected) in [
                ("ORIGIN=x\n  export A=b\n", ":2:3: 'export A' is no variable; write NAME=VALUE"),
                ("A\nB=c\n", ":1:1: 'A' is no variable"), ("\nA=\"b\n\n", ":2:1: the value of A has a quote"),
            ] {
                let wrong = try check(text)
                #expect(
                    wrong.end == .exited(1) && wrong.errors.contains(folder.file("environment") + expected),
                    "\(wrong.report)"
                )
            }
            let absent = try Shell.run(
                Daemon.binary(),
                ["check", folder.file("drydock.yaml"), "--environment", "/nowhere"]
            )
            #expect(
                absent.end == .exited(1) && absent.errors.contains("--environment /nowhere cannot be read"),
                "\(absent.report)"
            )
        }

        @Test func completionsNameFilesAndPrograms() throws {
            let folder = try TemporaryFolder("completions")
            let script = try Shell.run(Daemon.binary(), ["--generate-completion-script", "bash"])
            try folder.write("drydock", script.output)
            try folder.write("alpha.yaml", "")
            for (words, expected) in [
                (["check", "al"], "alpha.yaml"), (["check", "--environment", "al"], "alpha.yaml"),
                (["serve", "-c", "al"], "alpha.yaml"), (["import", "al"], "alpha.yaml"), (["env", "gra"], "gradle"),
            ] {
                let line = (["drydock"] + words).joined(separator: " ")
                let program = """
                    source ./drydock
                    COMP_WORDS=(\(line)) COMP_CWORD=\(words.count) COMP_LINE='\(line)' COMP_POINT=\(line.utf8.count)
                    _drydock drydock '\(words.last ?? "")' '\(words.dropLast().last ?? "drydock")'
                    printf '%s\\n' "${COMPREPLY[@]}"
                    """
                let completed = try Shell.run("bash", ["-c", program], folder: folder.path)
                #expect(completed.output == expected + "\n", "\(line): \(completed.report)")
            }
        }

        @Test(.enabled(if: PlainUser.canChange, "only root can be other users"))
        func whoMayNotAskIsToldWhatHelps() throws {
            let daemon = try Daemon("services: []")
            let socket = daemon.home.adminSocket
            let user = try PlainUser.fresh()
            #expect(chmod(daemon.home.folder.path, 0o755) == 0 && chmod(socket, 0o600) == 0)
            let refused = try user.drydock("status", "--admin", "unix:\(socket)")
            #expect(
                refused.end == .exited(3) && refused.errors.contains(" cannot be asked: Permission denied; ")
                    && refused.errors.contains("write sudo before the command"),
                "\(refused.report)"
            )
            // Root, by sudo, is told of the daemon of who has written it.
            let other = try PlainDaemon(user, "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--no-disk")
            defer { user.removePrivateFolder() }
            #expect(other.says("commands are taken"), "\(other.errors)")
            let variables = ["SUDO_UID": "\(user.id)", "SUDO_USER": "ada", "XDG_RUNTIME_DIR": user.home.path]
            let sudo = try Shell.run(Daemon.binary(), ["status"], environment: variables, folder: user.home.path)
            let ofTheMachine = ["/run/drydock/admin.sock", "/etc/drydock/drydock.yaml"]
            // Where the machine has a daemon of its own, root asks that one.
            if !ofTheMachine.contains(where: FileManager.default.fileExists) {
                #expect(sudo.end == .exited(3), "\(sudo.report)")
                #expect(
                    sudo.errors.contains(
                        "the daemon of ada is at unix:/tmp/drydock-\(user.id)/admin.sock: leave out sudo"
                    ),
                    "\(sudo.report)"
                )
            }
            // Nobody is advised to give a folder of the system's away.
            let log = try TemporaryFolder("log")
            try log.write(
                "drydock.yaml",
                "listen: 127.0.0.1:0\nadmin: none\nlog: { access: /var/log/drydock-of-a-test.log }\nservices: []\n"
            )
            #expect(chmod(log.path, 0o755) == 0)
            let gift = try user.drydock("serve", "-c", log.file("drydock.yaml"))
            #expect(gift.errors.contains("such as /var/log/drydock, in 'log.access'"), "\(gift.report)")
            #expect(!gift.errors.contains("chown"), "\(gift.report)")
        }
    }
}
