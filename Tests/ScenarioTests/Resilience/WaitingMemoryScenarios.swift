// What a request takes while it waits for its origin, in a queue, or parked: no more than it is counted with.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(5))) struct WaitingMemory {
        private static let number = 400
        /// Bytes that each of them is counted with, besides head and content.
        private static let counted = 36 << 10

        /// What a request waits for.
        enum Way: CaseIterable, Sendable {
            case origin, slot, parked
            /// For its origin, with all that stands between the two.
            case repeated

            /// Lines of its service.
            var settings: [String] {
                switch self {
                case .origin: []
                case .slot: ["max_concurrent: 1", "max_queue: { length: 1000, wait: 10m }"]
                case .parked: ["park: 10m"]
                case .repeated: ["retry: { count: 2 }", "redirects: follow", "breaker: { failures: 5 }", "park: 10m"]
                }
            }
        }

        /// Anonymous memory once it is the same twice.
        private static func memory(_ daemon: Daemon) throws -> Int {
            var last = -1
            #expect(
                try eventually {
                    defer { last = daemon.anonymousMemory }
                    _ = try daemon.metric("drydock_connections")
                    return last == daemon.anonymousMemory
                }
            )
            return last
        }

        private static func waiting(_ way: Way, _ daemon: Daemon, _ origin: ScriptedOrigin) throws -> Int {
            switch way {
            // One was made before.
            case .origin, .repeated: origin.requests() - 1
            case .slot: try daemon.metric("drydock_service_waiting") + 1
            case .parked: try daemon.metric("drydock_parked_calls")
            }
        }

        @Test(arguments: Way.allCases) func aRequestThatWaitsTakesNoMoreThanItIsCountedWith(_ way: Way) throws {
            let isOpen = Monitor(false)
            let origin = try ScriptedOrigin { request in
                if request.target != "/warm" { _ = isOpen.wait(240) { $0 } }
                return .answer(to: request, request.target)
            }
            let lines = ["- name: api", "  match: { prefix: /api }", "  base_url: \(origin.url)"]
            let text = (lines + way.settings.map { "  \($0)" }).map { "  \($0)\n" }.joined()
            var settings = DaemonSettings("services:\n\(text)")
            settings.loops = "1"
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/api/warm").status == 200)
            if way == .parked { origin.stop() }
            let before = try Self.memory(daemon)
            let clients = try (0..<Self.number).map { number in
                let client = try daemon.client()
                try client.request("GET", "/api/\(number)", host: "127.0.0.1:\(daemon.port)")
                return client
            }
            #expect(try eventually { try Self.waiting(way, daemon, origin) == Self.number })
            let each = (try Self.memory(daemon) - before) / Self.number
            #expect(each <= Self.counted, "\(each) bytes for each")
            // What is counted is not far from what is taken.
            #expect(each >= Self.counted / 4, "\(each) bytes for each")
            if way == .parked {
                let bytes = try daemon.metric("drydock_parked_bytes") / Self.number
                #expect(bytes >= Self.counted && bytes < Self.counted + 1024)
                try origin.restart()
            }
            isOpen.update { $0 = true }
            for client in clients { #expect(try client.readResponse().status == 200) }
        }
    }
}
