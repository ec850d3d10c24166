// Reloads under load, bad reloads, the service manager's notifications, draining, and errors at the start.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Lifecycle {
        static func settings(_ origin: ScriptedOrigin, plan: String) -> DaemonSettings {
            services(service("api", origin.url, "headers: { set: { X-Plan: \"\(plan)\" } }"))
        }

        @Test func reloadsUnderLoadFailNoRequest() throws {
            let origin = try ScriptedOrigin { request in
                .answer(request.field("X-Plan") ?? "none", fields: [("Cache-Control", "no-store")])
            }
            let daemon = try Daemon(Self.settings(origin, plan: "0"))
            let stop = Counter()
            defer { stop.add() }
            let finished = Monitor<[Set<String>]?>(nil)
            // The last plan that each client has seen.
            let last = Monitor([Int: Int]())
            Threads.start("load") {
                let plans = try? Threads.run(8, seconds: 600) { index -> Set<String> in
                    let client = try daemon.client()
                    var plans = Set<String>()
                    var asked = 0
                    while stop.value == 0 {
                        asked += 1
                        let answer = try client.exchange("/api/\(index)/\(asked)")
                        guard answer.status == 200, answer.end == .complete else {
                            throw TestSupportError.failed("\(answer.head)")
                        }
                        plans.insert(answer.text)
                        last.update { $0[index] = Int(answer.text) }
                    }
                    return plans
                }
                finished.update { $0 = plans ?? [] }
            }
            for plan in 1...10 {
                try daemon.rewrite(Self.settings(origin, plan: "\(plan)"))
                daemon.signal(SIGHUP)
                try #require(daemon.notify.wait(for: "RELOADING=1", count: plan))
                try #require(daemon.notify.wait(for: "READY=1", count: plan + 1))
                try #require(last.wait(120) { seen in (0..<8).allSatisfy { seen[$0] == plan } })
            }
            stop.add()
            #expect(finished.wait(120) { $0 != nil })
            let plans = finished.read { $0 ?? [] }
            #expect(plans.count == 8, "a request failed during a reload")
            #expect(plans.allSatisfy { $0.contains("10") })
            #expect(daemon.notify.received.contains { $0.hasPrefix("MONOTONIC_USEC=") })
        }

        @Test("SIGHUP as soon as a port is open is a reload, and not the end")
        func reloadAtOnce() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            for _ in 0..<10 {
                let home = try DaemonHome()
                try home.folder.write("drydock.yaml", Self.settings(origin, plan: "0").text(at: home))
                let notify = try NotifySocket(home.folder.file("notify.sock"))
                var variables = Shell.cleanEnvironment()
                variables["NOTIFY_SOCKET"] = notify.path
                let process = try ChildProcess(
                    Daemon.binary(),
                    ["serve", "-c", home.configuration],
                    environment: variables,
                    folder: home.folder.path,
                    errors: home.folder.file("stderr.log")
                )
                defer { process.signal(SIGKILL, group: true) }
                // Without a rest between two looks, and without an end of its own but the process's.
                while process.isRunning, (try? RawClient(port: home.port)) == nil {}
                process.signal(SIGHUP)
                #expect(notify.wait(for: "RELOADING=1"))
                #expect(notify.wait(for: "READY=1", count: 2))
                #expect(process.isRunning, "\(home.folder.text("stderr.log"))")
                process.signal(SIGTERM)
                #expect(process.waitForEnd() == .exited(0))
            }
        }

        @Test func aBadReloadKeepsTheOldPlanAndSaysWhy() throws {
            let origin = try ScriptedOrigin { request in
                .answer(request.field("X-Plan") ?? "none", fields: [("Cache-Control", "no-store")])
            }
            let daemon = try Daemon(Self.settings(origin, plan: "old"))
            var bad = Self.settings(origin, plan: "new")
            bad.rest += "\nservcies: []\n"
            try daemon.rewrite(bad)
            daemon.signal(SIGHUP)
            #expect(eventually { (daemon.errors + daemon.output).contains("servcies") })
            let line = bad.text(at: daemon.home).components(separatedBy: "\n").firstIndex { $0.hasPrefix("servcies") }
            #expect((daemon.errors + daemon.output).contains("drydock.yaml:\((line ?? 0) + 1):1"))
            #expect(try daemon.exchange("/api/x").text == "old")

            let command = try daemon.command("reload")
            #expect(command.end == .exited(1))
            #expect(command.errors.contains("servcies") && command.errors.contains("services"), "\(command.report)")
            #expect(try daemon.exchange("/api/x").text == "old")

            try daemon.rewrite(Self.settings(origin, plan: "new"))
            let reload = try daemon.command("reload")
            #expect(reload.succeeded, "\(reload.report)")
            #expect(try daemon.exchange("/api/x").text == "new")
        }

        @Test func aReloadThatNeedsARestartIsRefused() throws {
            let origin = try ScriptedOrigin { request in .answer(request.field("X-Plan") ?? "none") }
            let daemon = try Daemon(Self.settings(origin, plan: "old"))
            var other = Self.settings(origin, plan: "new")
            other.loops = "1"
            try daemon.rewrite(other)
            let command = try daemon.command("reload")
            #expect(command.end == .exited(1))
            #expect(command.errors.contains("loops") && command.errors.contains("restart"), "\(command.report)")
            #expect(try daemon.exchange("/api/x").text == "old")
        }

        @Test func terminationDrainsAndExitsWithZero() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { _ in
                OriginReply([
                    OriginReply.head(200, fields: [("Content-Length", "200000")]), .pattern(100_000, from: 0),
                    .wait(gate), .pattern(100_000, from: 100_000),
                ])
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            let idle = try daemon.client()
            let client = try daemon.client()
            try client.request("GET", "/api/slow")
            #expect(try client.readHead().status == 200)
            daemon.signal(SIGTERM)
            #expect(daemon.notify.wait(for: "STOPPING=1"))
            #expect(try idle.isClosedByServer())
            let refused = eventually { (try? daemon.client()) == nil }
            #expect(refused, "the daemon still accepts while it drains")
            // A reload that comes too late changes nothing.
            daemon.signal(SIGHUP)
            gate.open()
            var bytes = 0
            #expect(try client.readBody { bytes += $0.count } == .complete)
            #expect(bytes == 200_000)
            #expect(daemon.process.waitForEnd() == .exited(0))
            let told = daemon.notify.received
            #expect(told.count { $0 == "READY=1" } == 1 && !told.contains("RELOADING=1"), "\(told)")
        }

        @Test func anAccessLogThatNobodyReadsDoesNotHoldUpTheEnd() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let home = try DaemonHome()
            #expect(mkfifo(home.accessLog, 0o600) == 0)
            let reader = open(home.accessLog, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            #expect(reader >= 0)
            defer { close(reader) }
            let settings = services(service("api", origin.url))
            let daemon = try Daemon(text: settings.text(at: home), at: home)
            // More lines than a pipe holds.
            let long = String(repeating: "x", count: 4000)
            for number in 0..<40 { #expect(try daemon.exchange("/api/\(number)?\(long)").status == 200) }
            #expect(daemon.end(SIGTERM) == .exited(0))
        }

        @Test func drainingEndsAtItsDeadline() throws {
            let origin = try ScriptedOrigin { _ in .never }
            var settings = services(service("api", origin.url))
            settings.rest += "\nshutdown: 1s\n"
            let daemon = try Daemon(settings)
            let client = try daemon.client()
            try client.request("GET", "/api/never")
            #expect(origin.waitForRequests(1))
            #expect(daemon.end(SIGTERM) == .exited(0))
        }

        static let fourErrors = """
            listen: 127.0.0.1:1
            limits: { head: 64KB }
            services:
              - name: a
                match: { prefix: /a }
                base_url: http://127.0.0.1:1
                timeout: { connect: 5 }
                chache: { mode: standard }
              - name: b
                match: { prefix: /b }
                base_url: 7

            """

        @Test(arguments: ["check", "serve"])
        func fourErrorsPrintFourAndNothingStarts(_ verb: String) throws {
            let home = try DaemonHome()
            try home.folder.write(
                "drydock.yaml",
                Self.fourErrors.replacing("127.0.0.1:1\n", with: "127.0.0.1:\(home.port)\n", maxReplacements: 1)
            )
            let run = try Shell.run(Daemon.binary(), [verb, "-c", home.configuration])
            #expect(run.end == refused(verb), "\(run.report)")
            for location in ["2:17", "7:25", "8:5", "11:15"] {
                #expect(run.errors.contains("drydock.yaml:\(location)"), "\(location) in \(run.report)")
            }
            let lines = run.errors.split(separator: "\n").count { $0.contains("drydock.yaml:") }
            #expect(lines == 4, "\(run.report)")
            #expect(run.errors.contains("cache"), "the nearest known key is named")
            #expect(run.errors.contains("64KiB"), "the right spelling is named")
        }

        @Test func checkSaysWhatItRead() throws {
            let home = try DaemonHome()
            let text = services(service("a", "http://127.0.0.1:1"), service("b", "http://127.0.0.1:1")).text(at: home)
            try home.folder.write("drydock.yaml", text)
            let run = try Shell.run(Daemon.binary(), ["check", "-c", home.configuration])
            #expect(run.succeeded, "\(run.report)")
            #expect(run.output.hasPrefix("ok (2 services"), "\(run.report)")
            let bare = try Shell.run(Daemon.binary(), ["check", home.configuration])
            #expect(bare.succeeded && bare.output == run.output, "\(bare.report)")
            let both = try Shell.run(Daemon.binary(), ["check", home.configuration, "-c", home.configuration])
            #expect(both.end == .exited(2) && both.errors.contains("give one configuration file"), "\(both.report)")
        }

        @Test func whatDoesNothingIsToldByCheckAtTheStartAndByAReload() throws {
            let idle = services(service("a", "http://127.0.0.1:1", "retry: { delay: 1s }"))
            let daemon = try Daemon(idle)
            let words = "'retry.delay' does nothing, since 'retry.count' is 0; set 'count', or remove 'delay'"
            func told() -> Int {
                daemon.errors.split(separator: "\n").count { $0.contains(#""level":"warning""#) && $0.contains(words) }
            }
            #expect(told() == 1, "\(daemon.errors)")
            let check = try daemon.command("check", daemon.home.configuration)
            #expect(check.succeeded && check.output.hasPrefix("ok (1 service"), "\(check.report)")
            let lines = check.errors.split(separator: "\n").filter { $0.hasSuffix(": warning: " + words) }
            #expect(lines.count == 1 && lines[0].hasPrefix(daemon.home.configuration + ":"), "\(check.report)")
            #expect(try daemon.command("reload").succeeded)
            #expect(told() == 2, "\(daemon.errors)")
            try daemon.rewrite(services(service("a", "http://127.0.0.1:1", "retry: { delay: 1s, count: 1 }")))
            #expect(try daemon.command("reload").succeeded)
            #expect(told() == 2, "\(daemon.errors)")
        }

        @Test func theLogHasFiftyWarningsOfAConfiguration() throws {
            let services = (1...53).map { service("s\($0)", "http://127.0.0.1:1", "retry: { delay: 1s }") }
            let daemon = try Daemon("services:\n" + services.joined())
            let warnings = daemon.errors.split(separator: "\n").filter {
                $0.contains(#""level":"warning""#) && !$0.contains("limits.connections is")
            }
            #expect(warnings.count == 51, "\(daemon.errors)")
            #expect(
                warnings.last?.contains("3 more warnings about the configuration; 'drydock check' prints all") == true
            )
            let check = try daemon.command("check", daemon.home.configuration)
            #expect(check.errors.split(separator: "\n").count { $0.contains(": warning: ") } == 53, "\(check.report)")
        }

        @Test func anAddressInUseIsSaid() throws {
            let daemon = try Daemon("services: []")
            let home = try DaemonHome()
            let text = services().text(at: home).replacing("127.0.0.1:\(home.port)", with: "127.0.0.1:\(daemon.port)")
            try home.folder.write("drydock.yaml", text)
            let run = try Shell.run(Daemon.binary(), ["serve", "-c", home.configuration])
            #expect(run.end == .exited(1), "\(run.report)")
            #expect(run.errors.contains("127.0.0.1:\(daemon.port)"), "\(run.report)")
        }
    }
}
