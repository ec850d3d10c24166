// The systemd unit as `make install` lays it out, asked about by systemd-analyze.

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
