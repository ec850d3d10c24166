// A hit in memory allocates nothing: the release binary under a counter of its allocations.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Allocations {
        /// How a hit is asked for, and what else is done for it.
        struct Way: Sendable, CustomTestStringConvertible {
            var log: String
            var isForward = false
            var size = 1024
            /// Allocations meanwhile: hits alone cost none, but buffers full of lines are handed over.
            var allowed = 100
            /// The daemon looks at the machine's memory every second, which costs some thirty.
            static let allowedPerSecond = 60.0

            var testDescription: String {
                "\(isForward ? "forward" : "service"), \(size) bytes, log \(log), at most \(allowed)"
            }
        }

        static let requests = 2000

        static let ways = [
            Way(log: "off"),
            Way(log: "off", size: 0),
            Way(log: "off", size: 16384),
            Way(log: "off", isForward: true),
            Way(log: "json", allowed: 300),
            Way(log: "combined", allowed: 300),
            Way(log: "text", allowed: 300),
        ]

        /// Builds the counter that the benchmark uses.
        private func counter(_ folder: TemporaryFolder, file: StaticString = #filePath) throws -> String {
            let tests = URL(fileURLWithPath: "\(file)").deletingLastPathComponent().deletingLastPathComponent()
            let source = tests.deletingLastPathComponent().appendingPathComponent("Benchmarks/malloc_count.c").path
            let library = folder.file("malloc_count.so")
            try Shell.must("cc", ["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o", library, source])
            return library
        }

        private func count(_ path: String) throws -> Int {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            try #require(bytes.count == 8, "the counter was not loaded")
            return bytes.reversed().reduce(0) { $0 << 8 | Int($1) }
        }

        private func ask(_ client: RawClient, _ request: String, times: Int) throws {
            for _ in 0..<times {
                try client.send(request)
                let head = try client.readHead()
                _ = try client.readBody { _ in }
                let status = CacheStatusMember(head.field("Cache-Status"))
                guard head.status == 200, status?.isHit == true, status?.detail == "memory" else {
                    throw TestSupportError.failed("not a hit in memory: \(head)")
                }
            }
        }

        @Test(arguments: ways) func aHitInMemoryAllocatesNothing(_ way: Way) throws {
            let origin = try ScriptedOrigin { _ in .pattern(way.size, fields: [("Cache-Control", "max-age=600")]) }
            let home = try DaemonHome()
            var settings = DaemonSettings(
                "forward: { enabled: true, allow: [\"127.0.0.1\"] }\nservices:\n" + service("api", origin.url)
            )
            settings.loops = "1"
            settings.logLevel = "warning"
            if way.log != "off" { settings.accessFormat = way.log }
            var text = settings.text(at: home)
            if way.log == "off" { text.replace("access: \"\(home.accessLog)\"", with: "access: off") }
            let counts = home.folder.file("counts")
            let environment = ["LD_PRELOAD": try counter(home.folder), "MALLOC_COUNT": counts]
            let daemon = try Daemon(text: text, at: home, environment: environment)

            let target = way.isForward ? "\(origin.url)/thing" : "/api/thing"
            let host = way.isForward ? origin.authority : "127.0.0.1:\(daemon.port)"
            let request = "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nUser-Agent: counter/1\r\nAccept: */*\r\n\r\n"
            let client = try daemon.client()
            try client.send(request)
            #expect(try client.readResponse().body.count == way.size)
            // Every buffer that stays gets its size.
            try ask(client, request, times: Self.requests)
            let begin = ContinuousClock.now
            let start = try count(counts)
            try #require(start > 0, "the counter was not loaded")
            try ask(client, request, times: Self.requests)
            let once = try count(counts)
            try ask(client, request, times: 2 * Self.requests)
            let twice = try count(counts)
            let seconds = begin.duration(to: .now) / .seconds(1)
            let allowed = way.allowed + Int(seconds * Way.allowedPerSecond)
            // Whatever is done once falls out of the difference. A single one for each hit would be 2000.
            #expect((twice - once) - (once - start) <= allowed, "\(once - start), then \(twice - once)")
            #expect(origin.requests() == 1)
        }
    }
}
