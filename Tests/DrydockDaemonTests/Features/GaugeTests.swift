// The gauges of a daemon as values: their names, and what they read.

import DownloadCore
import EventLoop
import Logging
import Plans
import ProxyServer
import ServiceCore
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite struct GaugeTests {
    /// A daemon on sockets of its own; `disk` has a disk tier.
    private static func daemon(in folder: TemporaryFolder, disk: Bool) async throws -> DrydockDaemon.Daemon {
        let file = try folder.write(
            "drydock.yaml",
            """
            listen: unix:\(folder.file("proxy.sock"))
            admin: unix:\(folder.file("admin.sock"))
            forward: { enabled: true }
            \(disk ? "cache: { disk: { path: \(folder.file("store")) } }" : "")
            """
        )
        return try await Daemon.start(.file(path: file), environment: [:]) { _ in
            Logger(label: "drydock") { _ in SwiftLogNoOpLogHandler() }
        }
    }

    @Test(
        "each gauge has a name of its own in Prometheus spelling, and those alone that count up end in _total",
        arguments: [false, true]
    )
    func names(disk: Bool) async throws {
        let folder = try TemporaryFolder()
        let daemon = try await Self.daemon(in: folder, disk: disk)
        let gauges = daemon.metrics.gauges
        await daemon.stop()
        let names = gauges.map(\.name)
        #expect(Set(gauges.map { $0.name + ($0.label?.value ?? "") }).count == gauges.count)
        // Those of one name follow one another, so that it is described once.
        let runs = names.indices.count { $0 == 0 || names[$0] != names[$0 - 1] }
        #expect(Set(names).count == runs)
        #expect(names.contains { $0.hasPrefix("drydock_disk_") } == disk)
        for gauge in gauges {
            #expect(gauge.name.hasPrefix("drydock_"))
            #expect(
                gauge.name.utf8.allSatisfy { $0 == UInt8(ascii: "_") || (0x61...0x7A).contains($0) },
                "\(gauge.name)"
            )
            #expect(gauge.name.hasSuffix("_total") == gauge.isCounter, "\(gauge.name)")
            #expect(gauge.help.hasSuffix("."), "\(gauge.name)")
        }
    }

    @Test("the version is a label, and the time since the beginning never falls") func process() async throws {
        let folder = try TemporaryFolder()
        let daemon = try await Self.daemon(in: folder, disk: false)
        let gauges = daemon.metrics.gauges
        await daemon.stop()
        let version = try #require(gauges.first { $0.name == "drydock_build_info" })
        #expect(
            version.label?.name == "version" && version.label?.value == DrydockVersion.current && version.read() == 1
        )
        let uptime = try #require(gauges.first { $0.name == "drydock_uptime_seconds" })
        let first = uptime.read()
        #expect(first >= 0 && uptime.read() >= first)
    }

    @Test("a service that a reload removes gives back what it has, and what it has counted stays")
    func aRemovedService() async throws {
        let folder = try TemporaryFolder()
        func write(_ names: [String]) throws -> String {
            let services = names.map { name in
                """
                  - name: \(name)
                    match: { prefix: /\(name) }
                    base_url: http://127.0.0.1:9
                    demo: { enabled: true, body: hello, latency: learned }

                """
            }
            return try folder.write(
                "drydock.yaml",
                "listen: unix:\(folder.file("proxy.sock"))\nadmin: none\nforward: { enabled: false }\nservices:\n"
                    + services.joined()
            )
        }
        let file = try write(["a", "b"])
        let daemon = try await Daemon.start(.file(path: file), environment: [:]) { _ in
            Logger(label: "drydock") { _ in SwiftLogNoOpLogHandler() }
        }
        let registry = daemon.context.parts.compiler.registry
        #expect(Set(registry.services.all.map(\.name)) == ["a", "b"] && registry.demoStateCount == 2)
        registry.services.all.first { $0.name == "b" }?.countRedirect()
        for name in ["a", "b"] { registry.latencies.latency(of: name).record(1_000_000) }
        for round in 0..<3 {
            _ = try write(["a", "c\(round)"])
            try await daemon.reloadConfiguration()
            #expect(Set(registry.services.all.map(\.name)) == ["a", "c\(round)"])
            #expect(registry.demoStateCount == 2)
            #expect(registry.latencies.all.map(\.name) == ["a", "c\(round)"])
        }
        // What was refused leaves nothing, either.
        _ = try write(["a", "d"])
        try folder.write(
            "drydock.yaml",
            folder.text("drydock.yaml") + "cache: { disk: { path: \(folder.file("store")) } }\n"
        )
        await #expect(throws: DaemonError.self) { try await daemon.reloadConfiguration() }
        #expect(Set(registry.services.all.map(\.name)) == ["a", "c2"])
        let redirects = daemon.metrics.gauges.first { $0.name == "drydock_redirects_followed_total" }?.read()
        #expect(redirects == 1)
        await daemon.stop()
    }

    @Test("a gauge reads what is in force at the moment")
    func readings() async throws {
        let folder = try TemporaryFolder()
        let daemon = try await Self.daemon(in: folder, disk: false)
        func read(_ name: String) -> Int? { daemon.metrics.gauges.first { $0.name == name }?.read() }
        #expect(read("drydock_offline") == 0)
        daemon.switches.switchOffline(true)
        #expect(read("drydock_offline") == 1)
        daemon.context.parts.core.clock.advance(seconds: 60)
        #expect(read("drydock_clock_ahead_seconds") == 60)
        #expect(read("drydock_memory_entries") == 0)
        #expect(read("drydock_jobs") == 0)
        #expect(read("drydock_standing_still") == 0)
        #expect(await daemon.metrics.text(.text).contains("\ndrydock_clock_ahead_seconds 60\n"))
        await daemon.stop()
    }
}
