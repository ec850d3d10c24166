// The systemd unit and the log rotation as `make install` lays them out: asked about by systemd-analyze, and used.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Unit {
        static func root(file: StaticString = #filePath) -> String {
            let source = URL(fileURLWithPath: "\(file)").resolvingSymlinksInPath()
            return source.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
        }

        /// Installs into a fresh tree.
        private func install() throws -> TemporaryFolder {
            let tree = try TemporaryFolder("install")
            try make("install", in: tree)
            return tree
        }

        private func make(_ target: String, in tree: TemporaryFolder) throws {
            let run = try Shell.run(
                "make",
                [target, "RELEASE=\(Daemon.binary())", "DESTDIR=\(tree.path)", "PREFIX=/usr", "SYSCONFDIR=/etc"],
                folder: Self.root()
            )
            #expect(run.succeeded, "\(run.report)")
        }

        @Test func installLaysOutTheTree() throws {
            let tree = try install()
            let names = [
                "usr/bin/drydock", "usr/lib/systemd/system/drydock.service", "etc/drydock/drydock.yaml",
                "etc/logrotate.d/drydock",
                "usr/share/man/man1/drydock.1", "usr/share/man/man1/drydock-purge.1",
                "usr/share/bash-completion/completions/drydock", "usr/share/zsh/site-functions/_drydock",
                "usr/share/fish/vendor_completions.d/drydock.fish", "usr/share/doc/drydock/THIRD-PARTY-NOTICES",
            ]
            for name in names {
                #expect(access(tree.file(name), R_OK) == 0, "\(name)")
            }
            let purge = tree.text("usr/share/man/man1/drydock-purge.1")
            #expect(purge.contains("\\fB\\-\\-older\\-than\\fR"), "the page names every option: \(purge)")
            #expect(access(tree.file("usr/bin/drydock"), X_OK) == 0)
            let run = try Shell.run(
                tree.file("usr/bin/drydock"),
                ["check", "-c", tree.file("etc/drydock/drydock.yaml")]
            )
            #expect(run.succeeded, "\(run.report)")
        }

        @Test func uninstallLeavesTheConfigurationAlone() throws {
            let tree = try install()
            try make("uninstall", in: tree)
            let left = try Shell.must("find", [tree.path, "-type", "f"])
            #expect(left.split(separator: "\n").map(String.init) == [tree.file("etc/drydock/drydock.yaml")])
        }

        @Test func anInstallationLeavesAChangedRotationAlone() throws {
            let tree = try install()
            let path = tree.file("etc/logrotate.d/drydock")
            try "# changed by hand\n".write(toFile: path, atomically: true, encoding: .utf8)
            try make("install", in: tree)
            try make("uninstall", in: tree)
            #expect(tree.text("etc/logrotate.d/drydock") == "# changed by hand\n")
        }

        @Test func everyPageThatTheUnitNamesIsInstalled() throws {
            let tree = try install()
            let unit = tree.text("usr/lib/systemd/system/drydock.service")
            let lines = unit.split(separator: "\n").filter { $0.hasPrefix("Documentation=") }
            let names = lines.flatMap { $0.dropFirst("Documentation=".count).split(separator: " ") }
            #expect(names.count == 4, "\(lines)")
            for name in names {
                var path = String(name.dropFirst("file:///".count))
                if name.hasPrefix("man:") {
                    let page = name.dropFirst("man:".count).split { "()".contains($0) }
                    path = "usr/share/man/man\(page[1])/\(page[0]).\(page[1])"
                } else {
                    #expect(name.hasPrefix("file:///"), "\(name)")
                }
                #expect(access(tree.file(path), R_OK) == 0, "\(name)")
            }
        }

        /// Starts the daemon with the calls and the limits that the unit leaves it, and reloads it once, which takes a
        /// thread of the runtime's pool; its event thread, of a higher priority, comes with the first of these.
        /// - Returns: what it and the runtime wrote, and how it ended.
        private func confined(_ more: String...) throws -> (text: String, end: ProcessEnd?) {
            let home = try DaemonHome()
            let settings = DaemonSettings(
                "services: [{ name: api, match: { prefix: /api }, base_url: http://127.0.0.1:9 }]"
            )
            let daemon = try Daemon(
                text: settings.text(at: home),
                at: home,
                environment: ["LIBDISPATCH_LOG": "stderr"],
                launcher: [Self.root() + "/.ci/run-as-unit"] + more + [Self.root() + "/systemd/drydock.service"]
            )
            daemon.signal(SIGHUP)
            #expect(daemon.notify.wait(for: "READY=1", count: 2))
            let end = daemon.end()
            return (daemon.errors, end)
        }

        @Test func theUnitLetsEveryThreadHaveItsPriority() throws {
            let (text, end) = try confined()
            #expect(end == .exited(0), "\(text)")
            // Where nobody may raise the limit, the event thread keeps the priority of the others.
            let isLimited = text.contains("run-as-unit: LimitNICE cannot be set here")
            let refused = text.split(separator: "\n").filter { $0.hasPrefix("Failed to set thread priority") }
            #expect(refused.filter { !(isLimited && $0.hasSuffix("errno=\(EACCES)")) } == [], "\(text)")
        }

        @Test func aRefusedPriorityIsALine() throws {
            let (text, end) = try confined("--refuse", "setpriority")
            #expect(end == .exited(0), "\(text)")
            #expect(text.contains("Failed to set thread priority for worker thread: "), "\(text)")
        }

        @Test func aRotationLosesNoLine() throws {
            let daemon = try Daemon(
                "services: [{ name: d, match: { prefix: /d }, demo: { enabled: true }, endpoints: [{ name: e, path: /e, demo: { body: fine } }] }]"
            )
            let home = daemon.home
            let source = try String(contentsOfFile: Self.root() + "/packaging/logrotate", encoding: .utf8)
            #expect(source.contains("\n/var/log/drydock/*.log {\n"))
            try home.folder.write("rotation", source.replacing("/var/log/drydock/*.log", with: home.accessLog))
            // What the rotation says to systemd, and what systemd does then.
            let calls = home.folder.file("calls")
            try home.folder.write(
                "bin/systemctl",
                "#!/bin/sh\necho \"$*\" >>\(calls)\n[ \"$1\" != kill ] || kill -USR1 \(daemon.pid)\n"
            )
            try Shell.must("chmod", ["0755", home.folder.file("bin/systemctl")])
            func rotate(_ more: String...) throws -> ShellResult {
                let path = "\(home.folder.path)/bin:/usr/sbin:/usr/bin:/sbin:/bin"
                let words = ["PATH=\(path)", "logrotate", "--state", home.folder.file("state")] + more
                return try Shell.run("env", words + [home.folder.file("rotation")])
            }
            func lines(_ name: String) -> Int { home.folder.text(name).split(separator: "\n").count }

            let trial = try rotate("--debug")
            #expect(trial.succeeded && !trial.errors.contains("error"), "\(trial.report)")
            for (asked, opened) in [(3, 1), (2, 2)] {
                for _ in 0..<asked { #expect(try daemon.exchange("/d/e").status == 200) }
                #expect(eventually { daemon.accessLog.count == asked })
                let run = try rotate("--force")
                #expect(run.succeeded, "\(run.report)")
                let line = "access log opened again"
                #expect(eventually { daemon.errors.components(separatedBy: line).count == opened + 1 })
                #expect(lines("access.log.1") == asked)
            }
            #expect(try daemon.exchange("/d/e").status == 200)
            #expect(eventually { daemon.accessLog.count == 1 })
            #expect(lines("access.log.1") == 2, "what came later is in the new file")
            let first = try Shell.must("zcat", [home.folder.file("access.log.2.gz")])
            #expect(first.split(separator: "\n").count == 3)
            let wanted = "is-active --quiet drydock.service\nkill --kill-who=main --signal=SIGUSR1 drydock.service\n"
            #expect(home.folder.text("calls") == wanted + wanted)
            #expect(daemon.process.isRunning)
        }

        @Test func aLogThatCannotBeOpenedAgainGoesOn() throws {
            let daemon = try Daemon(
                "services: [{ name: d, match: { prefix: /d }, demo: { enabled: true }, endpoints: [{ name: e, path: /e, demo: { body: fine } }] }]"
            )
            let moved = daemon.home.folder.file("moved.log")
            #expect(rename(daemon.home.accessLog, moved) == 0)
            #expect(mkdir(daemon.home.accessLog, 0o700) == 0)
            daemon.signal(SIGUSR1)
            let line =
                "access log not opened again, lines go to the old file: log.access: open the access log \(daemon.home.accessLog): Is a directory; name another path in 'log.access'"
            #expect(eventually { daemon.errors.contains(line) }, "\(daemon.errors)")
            #expect(try daemon.exchange("/d/e").status == 200)
            #expect(eventually { readText(moved).split(separator: "\n").count == 1 })
        }

        @Test func theUnitVerifiesAndIsExposedByAtMostTwo() throws {
            let tree = try install()
            try Shell.must(
                "sh",
                ["-c", "cp -n /usr/lib/systemd/system/*.target \"$0/usr/lib/systemd/system/\"", tree.path]
            )
            // Every program that the unit starts is one that is installed with it.
            let verify = try Shell.run(
                "systemd-analyze",
                ["verify", "--man=no", "--root=\(tree.path)", "drydock.service"]
            )
            #expect(verify.succeeded, "\(verify.report)")
            #expect(verify.output + verify.errors == "", "\(verify.report)")

            let security = try Shell.run(
                "systemd-analyze",
                ["security", "--offline=yes", "--root=\(tree.path)", "drydock.service"]
            )
            let words = security.output.split(separator: "\n").last?.split(separator: " ") ?? []
            let level = words.compactMap { Double($0) }.first
            #expect((level ?? 10) <= 2.0, "\(security.report)")
        }

        @Test func aReloadAsksTheDaemonWhichJudgesItsFile() throws {
            let unit = try String(contentsOfFile: Self.root() + "/systemd/drydock.service", encoding: .utf8)
            let line = try #require(unit.split(separator: "\n").first { $0.hasPrefix("ExecReload=") })
            var words = line.dropFirst("ExecReload=".count).split(separator: " ").map(String.init)
            #expect(words.removeFirst() == "/usr/bin/drydock" && words.last == "unix:/run/drydock/admin.sock")
            let rest = "services: [{ name: api, match: { prefix: /api }, base_url: http://127.0.0.1:9 }]"
            let daemon = try Daemon(rest)
            words[words.count - 1] = "unix:" + daemon.home.adminSocket
            func reload() throws -> ShellResult {
                // With nothing but what the unit has: no folder with a configuration, and no PATH.
                try Shell.run(
                    Daemon.binary(),
                    words,
                    environment: ["PATH": "/nowhere", "DRYDOCK_ADMIN": ""],
                    folder: "/"
                )
            }
            let good = try reload()
            #expect(good.succeeded && good.output.contains("1 service"), "\(good.report)")
            try daemon.home.folder.write("drydock.yaml", DaemonSettings(rest + "\nnonsense: 1").text(at: daemon.home))
            let bad = try reload()
            #expect(bad.end == .exited(1) && bad.errors.contains("nonsense"), "\(bad.report)")
            #expect(daemon.process.isRunning)
            try daemon.home.folder.write("drydock.yaml", DaemonSettings(rest).text(at: daemon.home))
            #expect(try reload().succeeded)
        }
    }
}
