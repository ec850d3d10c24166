// Memory pressure around a real daemon, told by files that stand in for the kernel's: what is
// given back is really gone.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct MemoryPressure {

        private static func stall(_ folder: TemporaryFolder, _ microseconds: Int) throws {
            try folder.write("memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=\(microseconds)\n")
        }

        /// Bytes of the object with a number: mixed sizes, or all the same.
        @Test(arguments: [[20_000], [2_000, 70_000, 9_000, 300_000, 16_384, 1_500]])
        func whatIsGivenBackIsGone(_ sizes: [Int]) throws {
            let folder = try TemporaryFolder("drydock-pressure")
            try Self.stall(folder, 0)
            let fields = [("Cache-Control", "max-age=600")]
            let origin = try ScriptedOrigin { request in
                let number = Int(request.target.drop { !$0.isNumber }) ?? 0
                return .answer(to: request, fields: fields, String(repeating: "x", count: sizes[number % sizes.count]))
            }
            var settings = services(service("api", origin.url))
            settings.memory = "{ size: 96MiB }"
            settings.disk = nil
            let daemon = try Daemon(settings, environment: ["DRYDOCK_CGROUP": folder.path])
            let client = try daemon.client()
            let count = 64_000_000 / (sizes.reduce(0, +) / sizes.count)
            for number in 0..<count {
                let answer = try client.exchange("GET", "/api/\(number)", host: "127.0.0.1:\(daemon.port)")
                #expect(answer.status == 200)
            }
            let held = try daemon.metric("drydock_memory_bytes")
            #expect(held > 60_000_000)
            let before = daemon.anonymousMemory
            var stalled = 0
            // Until half of it has gone, a quarter of the rest at a time.
            let isGone = try eventually {
                stalled += 400_000
                try Self.stall(folder, stalled)
                return try daemon.metric("drydock_memory_bytes") < held / 2
            }
            #expect(isGone)
            // What has gone is counted when all of a turn has gone.
            var shed = 0
            let isCounted = try eventually {
                shed = try daemon.metric("drydock_memory_shed_bytes_total")
                return shed >= held / 2
            }
            #expect(isCounted, "\(shed) of \(held) bytes")
            #expect(try daemon.metric("drydock_memory_pressure_total") > 0)
            var fallen = 0
            let hasFallen = eventually {
                fallen = before - daemon.anonymousMemory
                return fallen * 10 >= shed * 8
            }
            #expect(hasFallen, "\(shed) bytes were shed, resident memory fell by \(fallen)")
            #expect(eventually { daemon.errors.contains("memory given back, tasks stood still") }, "\(daemon.errors)")
            // What is left still answers.
            #expect(try daemon.exchange("/api/\(count - 1)").status == 200)
        }

        @Test func itCanBeIgnored() throws {
            let folder = try TemporaryFolder("drydock-pressure")
            try Self.stall(folder, 0)
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "text") }
            var settings = services(service("api", origin.url))
            settings.memory = "{ size: 8MiB, pressure: ignore }"
            let daemon = try Daemon(settings, environment: ["DRYDOCK_CGROUP": folder.path])
            for number in 0..<50 { _ = try daemon.exchange("/api/\(number)") }
            var stalled = 0
            func wait(_ holds: () throws -> Bool) throws -> Bool {
                try eventually {
                    stalled += 1_000_000
                    try Self.stall(folder, stalled)
                    return try holds()
                }
            }
            #expect(try wait { try daemon.metric("drydock_memory_pressure_total") >= 2 })
            #expect(try daemon.metric("drydock_memory_shed_bytes_total") == 0)
            // A reload changes it.
            settings.memory = "{ size: 8MiB }"
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            let isShed = try wait { try daemon.metric("drydock_memory_shed_bytes_total") > 0 }
            #expect(isShed)
        }
    }
}
