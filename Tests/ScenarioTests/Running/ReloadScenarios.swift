// What everybody learns of a reload: the command, the journal, the service manager and metrics.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Reloads {
        private static func settings(_ body: String, more: String = "") -> DaemonSettings {
            var settings = DaemonSettings(
                "services: [{ name: s, match: { prefix: /s }, demo: { enabled: true, body: \"\(body)\" } }]\n" + more
            )
            settings.accessFormat = "text"
            return settings
        }

        /// The number of the line that begins with a key, in the file of a daemon.
        private static func line(of key: String, in settings: DaemonSettings, _ home: DaemonHome) -> Int {
            let lines = settings.text(at: home).components(separatedBy: "\n")
            return (lines.firstIndex { $0.hasPrefix(key) } ?? -1) + 1
        }

        private static func verdict(_ daemon: Daemon) throws -> [Int] {
            try ["reload_success", "reloads_total{result=\"accepted\"}", "reloads_total{result=\"refused\"}"].map {
                try daemon.metric("drydock_config_\($0)")
            }
        }

        @Test("the command, the journal, STATUS= and metrics tell a refused reload, until one is accepted")
        func aRefusalIsToldEverywhere() throws {
            let home = try DaemonHome()
            // The journal reads the stream that JOURNAL_STREAM names; here a file that is there before the daemon.
            let errors = try home.folder.write("stderr.log", "")
            var file = stat()
            try #require(stat(errors, &file) == 0)
            let daemon = try Daemon(
                Self.settings("one"),
                at: home,
                environment: ["JOURNAL_STREAM": "\(file.st_dev):\(file.st_ino)"]
            )
            #expect(try Self.verdict(daemon) == [1, 0, 0])
            let begun = try daemon.metric("drydock_config_reload_time_seconds")
            #expect(begun > 1_700_000_000)

            let bad = Self.settings("two", more: "nonsense: 1\nservcies: []")
            let locations = ["nonsense", "servcies"].map {
                "\(home.configuration):\(Self.line(of: $0, in: bad, home)):1"
            }
            try daemon.rewrite(bad)
            let refused = try daemon.command("reload")
            #expect(refused.end == .exited(1))
            for location in locations {
                #expect(refused.errors.contains("\(location): unknown key"), "\(refused.report)")
            }
            #expect(refused.errors.contains("the old configuration stays in force") && refused.output.isEmpty)
            #expect(try daemon.exchange("/s").text == "one")
            #expect(try Self.verdict(daemon) == [0, 0, 1])
            let status = "STATUS=reload refused: \(locations[0]): unknown key 'nonsense'"
            #expect(daemon.notify.wait(for: status), "\(daemon.notify.received)")
            let told = try #require(daemon.notify.received.first { $0.hasPrefix(status) })
            #expect(told.contains("(and 1 more); serving on "), "\(told)")
            #expect(try daemon.command("status").output.contains("\nfiles          reload refused: \(locations[0])"))
            // Each line of the journal has its priority, also the second one of the refusal.
            let lines = daemon.errors.split(separator: "\n")
            #expect(lines.allSatisfy { $0.hasPrefix("<") }, "\(daemon.errors)")
            #expect(lines.contains { $0.hasPrefix("<6>") && $0.contains(" info drydock: serving on ") })
            #expect(lines.contains { $0.hasPrefix("<3>") && $0.contains(" error drydock: reload refused, ") })
            #expect(lines.contains { $0.hasPrefix("<3>\(locations[1]): ") }, "\(daemon.errors)")

            // As JSON, and by the signal; nobody but the log and the figures tells the verdict then.
            daemon.signal(SIGHUP)
            #expect(try eventually { try Self.verdict(daemon) == [0, 0, 2] })
            let json = try daemon.command("reload", "--json")
            #expect(json.end == .exited(1) && json.output.contains("\"is_reloaded\":false"), "\(json.report)")

            try daemon.rewrite(Self.settings("three"))
            let good = try daemon.command("reload")
            #expect(good.succeeded && good.output == "ok (1 service, 0 endpoints)\nservice s has changed\n")
            #expect(try daemon.exchange("/s").text == "three")
            #expect(try Self.verdict(daemon) == [1, 1, 3])
            #expect(try daemon.metric("drydock_config_reload_time_seconds") >= begun)
            #expect(!(try daemon.command("status").output.contains("reload refused")))
            #expect(eventually { daemon.notify.received.last?.hasPrefix("STATUS=serving on ") == true })
        }

        @Test("without JOURNAL_STREAM, and with that of another stream, lines have no priority")
        func noJournal() throws {
            for environment in [[:], ["JOURNAL_STREAM": "1:2"]] {
                let daemon = try Daemon(Self.settings("one"), environment: environment)
                #expect(eventually { daemon.errors.contains(" info drydock: serving on ") })
                #expect(!daemon.errors.contains("<"), "\(daemon.errors)")
            }
        }

        @Test("in the journal, a start and a reload that fail have the priority of an error in each line")
        func failures() throws {
            let home = try DaemonHome()
            let errors = try home.folder.write("errors.log", "")
            var file = stat()
            try #require(stat(errors, &file) == 0)
            let bad = Self.settings("one", more: "nonsense: 1\nservcies: []")
            let daemon = try Daemon(Self.settings("one"), at: home)
            try daemon.rewrite(bad)
            let stream = ["JOURNAL_STREAM": "\(file.st_dev):\(file.st_ino)"]
            for words in [["serve", "-c", home.configuration], ["reload", "--admin", "unix:" + home.adminSocket]] {
                try home.folder.write("errors.log", "")
                let command = try ChildProcess(
                    Daemon.binary(),
                    words,
                    environment: Shell.cleanEnvironment(adding: stream),
                    folder: home.folder.path,
                    errors: errors
                )
                #expect(command.waitForEnd() == refused(words[0]))
                let lines = home.folder.text("errors.log").split(separator: "\n").filter { !$0.hasPrefix("daemon: ") }
                #expect(lines.count == 3 && lines.allSatisfy { $0.hasPrefix("<3>") }, "\(lines)")
                #expect(lines.contains { $0.contains(":1: unknown key 'nonsense'") }, "\(lines)")
            }
        }

        @Test("serve --watch tells its verdict as a reload by command does, and so do changed files of answers")
        func watchingTellsToo() throws {
            let home = try DaemonHome()
            try home.folder.write("answer.txt", "one")
            var settings = DaemonSettings(
                "services: [{ name: s, match: { prefix: /s }, demo: { enabled: true, template: true, file: answer.txt } }]\n"
            )
            let watching = ["/bin/sh", "-c", "exec \"$@\" --watch", "sh"]
            let daemon = try Daemon(text: settings.text(at: home), at: home, launcher: watching)
            let rest = settings.rest
            settings.rest += "nonsense: 1\n"
            try daemon.rewrite(settings)
            let location = "\(home.configuration):\(Self.line(of: "nonsense", in: settings, home)):1"
            #expect(daemon.notify.wait(for: "STATUS=reload refused: \(location): unknown key"))
            #expect(daemon.errors.contains("\"level\":\"error\"") && daemon.errors.contains("reload refused"))
            #expect(try Self.verdict(daemon) == [0, 0, 1])
            settings.rest = rest
            try daemon.rewrite(settings)
            #expect(try eventually { try Self.verdict(daemon) == [1, 1, 1] })
            #expect(eventually { daemon.notify.received.last?.hasPrefix("STATUS=serving on ") == true })
            // A template with a mistake leaves the answers as they were.
            try home.folder.write("answer.txt", "\n {{reqest.path}}")
            #expect(daemon.notify.wait(for: "STATUS=changed files refused: "), "\(daemon.errors)")
            #expect(try Self.verdict(daemon) == [0, 1, 2])
            #expect(try daemon.exchange("/s").text == "one")
            try home.folder.write("answer.txt", "two")
            #expect(try eventually { try daemon.exchange("/s").text == "two" })
            #expect(try eventually { try Self.verdict(daemon) == [1, 2, 2] })
        }
    }
}
