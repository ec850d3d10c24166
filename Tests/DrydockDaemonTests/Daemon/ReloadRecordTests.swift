// What a daemon keeps of its reloads: the refusal in one line, and the figures of metrics.

import Foundation
import ProxyServer
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct ReloadRecordTests {
    private static func figures(_ record: ReloadRecord) -> [String: Int] {
        func named(_ gauge: Gauge) -> String {
            gauge.name + (gauge.label.map { "{\($0.name)=\"\($0.value)\"}" } ?? "")
        }
        return Dictionary(record.gauges.map { (named($0), $0.read()) }, uniquingKeysWith: { first, _ in first })
    }

    @Test func `a refusal stays until what was refused is read without errors`() {
        let record = ReloadRecord()
        #expect(record.refusal == nil && record.status("serving") == "serving")
        record.refuse(.configuration, .configuration("a.yaml:1:2: one\na.yaml:2:3: two\na.yaml:3:4: three"))
        #expect(record.refusal == "reload refused: a.yaml:1:2: one (and 2 more)")
        #expect(record.status("serving") == "reload refused: a.yaml:1:2: one (and 2 more); serving")
        // Files of answers that can be read are no configuration.
        record.accept(.answers)
        #expect(record.refusal?.hasPrefix("reload refused: ") == true)
        record.accept(.configuration)
        #expect(record.refusal == nil)
        record.refuse(.answers, .configuration("b.json: gone"))
        #expect(record.refusal == "changed files refused: b.json: gone")
        record.accept(.answers)
        #expect(record.refusal == nil)
        // A configuration is read with its answers.
        record.refuse(.answers, .configuration("b.json: gone"))
        record.accept(.configuration)
        #expect(record.refusal == nil)
    }

    @Test func `the line has room in a notification, however long the error is`() {
        let record = ReloadRecord()
        record.refuse(.configuration, .configuration(String(repeating: "é", count: 100_000) + "\nmore"))
        #expect((1000...1100).contains(record.refusal?.utf8.count ?? 0))
        #expect(record.refusal?.hasSuffix("… (and 1 more)") == true)
    }

    @Test func `figures tell the last verdict, its time, and how many there were`() {
        let begun = Int(time(nil))
        let record = ReloadRecord()
        let first = Self.figures(record)
        #expect(first["drydock_config_reload_success"] == 1)
        #expect(first["drydock_config_reload_time_seconds"].map { $0 >= begun } == true)
        record.refuse(.configuration, .start("no"))
        record.refuse(.answers, .start("no"))
        let refused = Self.figures(record)
        #expect(refused["drydock_config_reload_success"] == 0)
        #expect(refused["drydock_config_reload_time_seconds"] == first["drydock_config_reload_time_seconds"])
        #expect(refused["drydock_config_reloads_total{result=\"refused\"}"] == 2)
        record.accept(.configuration)
        let accepted = Self.figures(record)
        #expect(accepted["drydock_config_reload_success"] == 1)
        #expect(accepted["drydock_config_reloads_total{result=\"accepted\"}"] == 1)
        #expect(accepted["drydock_config_reloads_total{result=\"refused\"}"] == 2)
    }

    @Test func `a reload says what has changed`() async throws {
        let services = """
            services:
            - { name: a, match: { prefix: /a }, base_url: "http://127.0.0.1:9" }
            - { name: b, match: { prefix: /b }, base_url: "http://127.0.0.1:9" }
            """
        try await DaemonHarness.run(services) { harness throws in
            func reload() throws -> ReloadResult {
                try AdminJSON.decode(ReloadResult.self, from: try harness.ask("POST", "/v1/reload").body)
            }
            #expect(try reload().changes == [])
            let file = harness.folder.file("drydock.yaml")
            let before = try String(contentsOfFile: file, encoding: .utf8)
            var changed = before.replacingOccurrences(of: "name: b", with: "name: c")
            changed = changed.replacingOccurrences(of: "prefix: /a", with: "prefix: /z") + "\noffline: true\n"
            try changed.write(toFile: file, atomically: true, encoding: .utf8)
            #expect(
                try reload().changes == [
                    "service a has changed", "service c is new", "service b is gone",
                    "keys of the daemon itself have changed",
                ]
            )
            // One that is refused changes nothing, and the status says so.
            try (changed + "nonsense: 1\n").write(toFile: file, atomically: true, encoding: .utf8)
            let refused = try reload()
            #expect(!refused.isReloaded && refused.changes == nil)
            let status = try AdminJSON.decode(AdminStatus.self, from: try harness.ask("GET", "/v1/status").body)
            #expect(status.refusal?.hasPrefix("reload refused: \(file):") == true, "\(status.refusal ?? "")")
            #expect(status.refusal?.contains("'nonsense'") == true && status.isOffline)
        }
    }
}
