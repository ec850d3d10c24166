// The levels of the daemon's own log: of the configuration, set by an operator for a time, and what is no order.

import Configuration
import Glibc
import Logging
import Policies
import TestSupport
import Testing

@testable import DrydockDaemon
@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct LogControlTests {
    private static func settings(_ modules: [LogModule: LogConfiguration.Level] = [:]) -> LogSettings {
        var log = LogConfiguration()
        log.modules = modules
        return LogSettings(log)
    }

    @Test func `a module without a level of its own has that of the whole log`() {
        let settings = Self.settings([.download: .debug, .daemon: .error])
        let logger = Logger(label: "drydock") { StandardErrorLog(label: $0, settings: settings) }
        #expect(logger.logLevel == .error && logger.of(.daemon).logLevel == .error)
        #expect(logger.of(.download).logLevel == .debug)
        for module in LogModule.allCases where ![.daemon, .download].contains(module) {
            #expect(logger.of(module).logLevel == .info, "\(module)")
        }
        var log = LogConfiguration()
        (log.level, log.modules) = (.critical, [.tls: .trace])
        settings.set(log)
        #expect(logger.logLevel == .critical && logger.of(.tls).logLevel == .trace)
        #expect(logger.of(.download).logLevel == .critical)
    }

    @Test func `an operator's level wins over every configuration until its time is over`() {
        let settings = Self.settings([.download: .notice])
        settings.change([.download: .init(level: .debug, end: 10), .store: .init(level: .trace, end: 20)])
        #expect(settings.level(of: .download) == .debug && settings.level(of: .store) == .trace)
        #expect(settings.inForce.tracesRequests && settings.configured(.download) == .notice)
        settings.set(LogConfiguration())
        #expect(settings.level(of: .download) == .debug && settings.configured(.download) == .info)
        #expect(settings.endChanges(at: 9).isEmpty)
        #expect(settings.endChanges(at: 10) == [.download])
        #expect(settings.level(of: .download) == .info && !settings.inForce.tracesRequests)
        #expect(settings.endChanges(at: .max) == [.store] && settings.changes.isEmpty)
        #expect(settings.level(of: .store) == .info)
    }

    @Test func `each line of a text begins with the priority`() {
        func marked(_ text: String) -> String {
            String(decoding: DaemonLine.prioritized(Array(text.utf8), 3), as: UTF8.self)
        }
        #expect(marked("one\n") == "<3>one\n")
        #expect(marked("one\n  two\nthree\n") == "<3>one\n<3>  two\n<3>three\n")
    }

    @Test func `only the stream that systemd names is the journal's`() throws {
        var status = stat()
        try #require(fstat(STDERR_FILENO, &status) == 0)
        let own = "\(status.st_dev):\(status.st_ino)"
        #expect(StandardErrorLog.isRead(byJournalOf: ["JOURNAL_STREAM": own]))
        for other in ["\(status.st_dev):\(status.st_ino + 1)", "", "1", own + ":1"] {
            #expect(!StandardErrorLog.isRead(byJournalOf: ["JOURNAL_STREAM": other]), "\(other)")
        }
        #expect(!StandardErrorLog.isRead(byJournalOf: [:]))
    }

    // MARK: - Over the admin API

    private static func levels(_ response: RawResponse) throws -> [String: AdminLog.Module] {
        let document = try AdminJSON.decode(AdminLog.self, from: response.body)
        return Dictionary(document.modules.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    @Test func `levels are shown, set for a time, and those of the configuration again`() async throws {
        let text = "services: []\nlog: { level: notice, modules: { store: error } }"
        try await DaemonHarness.run(text) { harness throws in
            let shown = try Self.levels(try harness.ask("GET", "/v1/log"))
            #expect(Set(shown.keys) == Set(LogModule.allCases.map(\.rawValue)))
            #expect(shown["store"] == .init(name: "store", level: "error", configured: "error"))
            #expect(shown["tls"] == .init(name: "tls", level: "notice", configured: "notice"))

            let set = try Self.levels(try harness.ask("POST", "/v1/log?store=info&download=debug"))
            #expect(set["store"]?.level == "info" && set["store"]?.configured == "error")
            #expect(set["download"]?.level == "debug" && set["request"]?.level == "notice")
            #expect((500...600).contains(set["store"]?.left ?? 0) && set["request"]?.left == nil)
            // A reload changes what is behind the operator's levels, and not them.
            #expect(try harness.ask("POST", "/v1/reload").status == 200)
            #expect(try Self.levels(try harness.ask("GET", "/v1/log"))["download"]?.level == "debug")

            let all = try Self.levels(try harness.ask("POST", "/v1/log?all=trace&tls=error&for=1d"))
            #expect(all["batch"]?.level == "trace" && all["tls"]?.level == "error")
            #expect(try Self.levels(try harness.ask("POST", "/v1/log?reset")) == shown)
            #expect(harness.daemon.context.parts.logSettings.changes.isEmpty)
        }
    }

    @Test func `ids go on to origins while requests are traced`() async throws {
        let text = "services: []\nlog: { access: off }"
        try await DaemonHarness.run(text) { harness throws in
            let sink = harness.daemon.context.parts.sink
            #expect(!sink.passesIDs)
            for module in ["download", "request"] {
                #expect(try harness.ask("POST", "/v1/log?\(module)=debug").status == 200)
                #expect(sink.passesIDs)
                #expect(try harness.ask("POST", "/v1/reload").status == 200)
                #expect(sink.passesIDs)
                #expect(try harness.ask("POST", "/v1/log?reset").status == 200)
                #expect(!sink.passesIDs)
            }
            #expect(try harness.ask("POST", "/v1/log?store=trace").status == 200)
            #expect(!sink.passesIDs)
        }
    }

    @Test func `what is no order changes nothing, and says what there is`() async throws {
        try await DaemonHarness.run { harness throws in
            let before = try harness.ask("GET", "/v1/log").text
            for (query, words) in [
                ("", "MODULE=LEVEL"), ("?reset=1", "reset"), ("?reset&tls=info", "MODULE=LEVEL"),
                ("?reset&for=1m", "reset"), ("?for=1m", "MODULE=LEVEL"), ("?downlod=debug", "did you mean download?"),
                ("?everything=debug", "there are daemon, client"), ("?tls=loud", "there are trace, debug"),
                ("?tls=inof", "did you mean info?"), ("?tls=info&for=0s", "from 1s to 1d"),
                ("?tls=info&for=25h", "log.modules"), ("?tls=info&for=5", "for: "),
                ("?tls=info&for=1m&for=2m", "for is no module"), ("?tls", "is not a level"),
            ] {
                let answer = try harness.ask("POST", "/v1/log\(query)")
                #expect(answer.status == 400 && answer.text.contains(words), "\(query): \(answer.text)")
            }
            #expect(try harness.ask("GET", "/v1/log?tls").status == 400)
            #expect(try harness.ask("GET", "/v1/log").text == before)
        }
    }
}
