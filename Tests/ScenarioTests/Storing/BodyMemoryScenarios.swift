// What a real daemon takes for bodies: many that stop before their end, clients that read and clients that do not.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct BodyMemory {
        private static let size = 4 << 20
        private static let count = 100
        /// What the daemon's own code, threads and connections grow by, and what allocators keep.
        private static let slack = 64 << 20

        /// Bodies of 4 MiB that stop before their last bytes until the gate opens.
        private static func origin(_ gate: Gate, _ asked: Counter) throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                guard request.target.contains("/still") else { return .answer(to: request, fields: [], "another") }
                asked.add()
                let fields = [("Content-Length", "\(size)"), ("Cache-Control", "max-age=600")]
                return OriginReply([
                    OriginReply.head(200, fields: fields), .pattern(size - 1000, from: 0), .wait(gate),
                    .pattern(1000, from: size - 1000),
                ])
            }
        }

        @Test(arguments: [true, false])
        func stalledBodiesStayWithinTheirBudget(disk: Bool) throws {
            allowManyFiles()
            let (gate, asked, holding) = (Gate(), Counter(), Counter())
            let origin = try Self.origin(gate, asked)
            var settings = services(service("api", origin.url))
            settings.memory = "{ size: 32MiB, max_object: 4MiB }"
            if !disk { settings.disk = nil }
            let daemon = try Daemon(settings)
            _ = try daemon.exchange("/api/warm")
            let before = daemon.residentMemory
            let read = Monitor<Result<[Int], any Error>?>(nil)
            Threads.start("clients") {
                let counts = Result { try Self.readAll(daemon, holding, until: gate) }
                read.update { $0 = counts }
            }
            defer { gate.open() }
            #expect(asked.wait(for: Self.count) && holding.wait(for: Self.count / 2))
            var (arriving, looks) = (0, 0)
            // Until nothing comes any more, of which nobody tells: the same in some looks.
            let isStill = try eventually {
                rest(0.05)
                let last = arriving
                arriving = try daemon.metric("drydock_arriving_bytes")
                looks = arriving == last && arriving > 1 << 20 ? looks + 1 : 0
                return looks == 5
            }
            #expect(isStill)
            for number in 0..<10 {
                let answer = try daemon.exchange("/api/other\(number)")
                #expect(answer.status == 200 && answer.text == "another", "a miss waits for those who stall")
            }
            let limit = try daemon.metric("drydock_arriving_limit_bytes")
            #expect(limit == 64 << 20)
            #expect(arriving > 1 << 20 && arriving <= limit + Self.count * 512 << 10)
            let grown = daemon.residentMemory - before
            #expect(grown <= 32 << 20 + limit + Self.slack, "\(grown) bytes for \(Self.count) bodies")
            gate.open()
            #expect(read.wait(150) { $0 != nil })
            let counts = try read.read { $0 }?.get()
            #expect(counts == Array(repeating: Self.size, count: Self.count))
            let isGivenBack = try eventually { try daemon.metric("drydock_arriving_bytes") == 0 }
            #expect(isGivenBack)
        }

        /// Every second client reads nothing of its body before the gate opens.
        /// - Returns: right bytes of each.
        private static func readAll(_ daemon: Daemon, _ holding: Counter, until gate: Gate) throws -> [Int] {
            try Threads.run(count) { number -> Int in
                let client = try daemon.client(receiveBuffer: 16_384)
                try client.request("GET", "/api/still\(number)")
                guard try client.readHead().status == 200 else { return 0 }
                var bytes = 0
                let check = { (piece: UnsafeRawBufferPointer) in
                    if Pattern.matches(piece, at: bytes) { bytes += piece.count }
                }
                if number % 2 == 0 {
                    _ = try client.readBody(upTo: size - 300_000, check)
                    holding.add()
                }
                if !gate.wait() { return 0 }
                let end = try client.readBody(check)
                return end == .complete ? bytes : 0
            }
        }
    }
}
