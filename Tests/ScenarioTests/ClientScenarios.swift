// Real clients through the daemon: curl both ways, git, pip. The second run of each costs the origin no whole answer.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct RealClients {
        /// A daemon that forwards to loopback, which has to be named.
        static func forwarding(_ connect: String = "") throws -> Daemon {
            try Daemon(
                """
                forward:
                  enabled: true
                  allow: ["127.0.0.1", "localhost"]
                  connect: { allow: [\(connect)] }
                """
            )
        }

        static func proxy(_ daemon: Daemon) -> [String: String] { ["http_proxy": daemon.url] }

        /// GETs that nginx answered in full. What a client itself asks to have checked is answered by a 304.
        static func wholeAnswers(_ nginx: NginxOrigin) throws -> [String] {
            _ = try nginx.requests()
            return nginx.log.filter { $0.method == "GET" && $0.status == 200 }.map(\.path)
        }

        static func nginx() throws -> NginxOrigin {
            try NginxOrigin(location: "add_header Cache-Control \"max-age=600\";")
        }

        @Test func curlInReverseMode() throws {
            let nginx = try Self.nginx()
            try nginx.write("a.txt", "through the service")
            let daemon = try Daemon(services(service("files", nginx.url)))
            for _ in 0..<2 {
                let run = try Shell.run("curl", ["-sS", "-f", "\(daemon.url)/files/a.txt"])
                #expect(run.output == "through the service", "\(run.report)")
            }
            #expect(try nginx.requests() == 1)
        }

        @Test func curlInForwardMode() throws {
            let nginx = try Self.nginx()
            try nginx.write("a.txt", "through the proxy")
            let daemon = try Self.forwarding()
            for _ in 0..<2 {
                let run = try Shell.run("curl", ["-sS", "-f", "\(nginx.url)/a.txt"], environment: Self.proxy(daemon))
                #expect(run.output == "through the proxy", "\(run.report)")
            }
            let named = try Shell.run(
                "curl",
                ["-sS", "-f", "http://localhost:\(nginx.port)/a.txt"],
                environment: Self.proxy(daemon)
            )
            #expect(named.output == "through the proxy", "\(named.report)")
            // One for each name: the host is part of the key.
            #expect(try nginx.requests(method: "GET") == 2)
        }

        @Test func curlUploadsAndReadsItsOwnAnswer() throws {
            let origin = try ScriptedOrigin { request in .answer(201, "\(request.method) \(request.bodyLength)") }
            let daemon = try Daemon(services(service("api", origin.url)))
            let folder = try TemporaryFolder()
            let file = try folder.writePattern("upload", count: 3_000_000)
            let run = try Shell.run("curl", ["-sS", "--data-binary", "@\(file)", "\(daemon.url)/api/in"])
            #expect(run.output == "POST 3000000", "\(run.report)")
            #expect(origin.log.first?.bodyIsPattern == true)
        }

        @Test func gitClonesOverPlainHTTP() throws {
            let nginx = try Self.nginx()
            let folder = try TemporaryFolder()
            try makeRepository(in: folder, bare: "\(nginx.root)/repo.git")
            let daemon = try Self.forwarding()
            var whole = [String]()
            for run in ["first", "second"] {
                try Shell.must(
                    "git",
                    ["clone", "-q", "\(nginx.url)/repo.git", folder.file(run)],
                    environment: gitEnvironment.merging(Self.proxy(daemon)) { $1 }
                )
                #expect(folder.text("\(run)/hello.txt") == "hello\n")
                #expect(try SHA256.file(folder.file("\(run)/big.bin")) == SHA256.file(folder.file("work/big.bin")))
                let now = try Self.wholeAnswers(nginx)
                if run == "second" { #expect(now == whole, "the second clone fetched again") }
                whole = now
            }
            #expect(whole.contains { $0.hasPrefix("/repo.git/info/refs") })
            let pack = try #require(whole.first { $0.hasSuffix(".pack") })
            #expect(try nginx.requests(method: "GET", path: pack) == 1)
        }

        var gitEnvironment: [String: String] {
            [
                "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
                "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@localhost",
                "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@localhost",
            ]
        }

        func makeRepository(in folder: TemporaryFolder, bare: String) throws {
            try folder.write("work/hello.txt", "hello\n")
            try folder.writePattern("work/big.bin", count: 500_000)
            let steps = [
                ["init", "-q", "work"], ["-C", "work", "add", "."], ["-C", "work", "commit", "-q", "-m", "One"],
                ["clone", "-q", "--bare", "work", bare], ["-C", bare, "gc", "-q"], ["-C", bare, "update-server-info"],
            ]
            for step in steps {
                try Shell.must("git", step, environment: gitEnvironment, folder: folder.path)
            }
        }

        @Test func pipDownloadsFromALocalIndex() throws {
            let nginx = try Self.nginx()
            let wheel = "tiny-1.0-py3-none-any.whl"
            try makeWheel(wheel, nginx)
            try nginx.write("simple/tiny/index.html", "<!doctype html><a href=\"../../wheels/\(wheel)\">\(wheel)</a>")
            let daemon = try Self.forwarding()
            let folder = try TemporaryFolder()
            var whole = [String]()
            for run in ["first", "second"] {
                let target = try folder.folder(run)
                try Shell.must(
                    "python3",
                    [
                        "-m", "pip", "download", "-q", "--no-cache-dir", "--no-deps", "--disable-pip-version-check",
                        "--timeout", "120",
                        "--index-url", "\(nginx.url)/simple/", "--dest", target, "tiny",
                    ],
                    environment: Self.proxy(daemon).merging(["PIP_CONFIG_FILE": "/dev/null", "HOME": target]) { $1 }
                )
                #expect(try SHA256.file("\(target)/\(wheel)") == SHA256.file("\(nginx.root)/wheels/\(wheel)"))
                let now = try Self.wholeAnswers(nginx)
                if run == "second" { #expect(now == whole, "the second download fetched again") }
                whole = now
            }
            #expect(whole == ["/simple/tiny/", "/wheels/\(wheel)"])
            #expect(try nginx.requests(method: "GET", path: "/wheels/\(wheel)") == 1)
        }

        func makeWheel(_ name: String, _ nginx: NginxOrigin) throws {
            let folder = nginx.folder
            try folder.write("wheel/tiny/__init__.py", "answer = 42\n")
            try folder.write("wheel/tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
            try folder.write(
                "wheel/tiny-1.0.dist-info/WHEEL",
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            try folder.write(
                "wheel/tiny-1.0.dist-info/RECORD",
                "tiny/__init__.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\n"
            )
            try folder.folder("root/wheels")
            try Shell.must(
                "python3",
                ["-m", "zipfile", "-c", folder.file("root/wheels/\(name)"), "tiny", "tiny-1.0.dist-info"],
                folder: folder.file("wheel")
            )
        }
    }
}
