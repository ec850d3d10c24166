// Two gibibytes each way with a slow reader: the daemon holds windows, not bodies.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Volume {
        static let size = 2 << 30
        static let allowedGrowth = 16 << 20

        /// The largest anonymous memory that was seen, sampled by whoever moves bytes.
        final class Watch: Sendable {
            private let largest: Monitor<Int>
            private let daemon: Daemon
            let baseline: Int

            init(_ daemon: Daemon) {
                self.daemon = daemon
                baseline = daemon.anonymousMemory
                largest = Monitor(baseline)
            }

            func sample() {
                let now = daemon.anonymousMemory
                largest.update { $0 = max($0, now) }
            }

            var growth: Int { largest.read { $0 } - baseline }
        }

        /// Warms every pool that stays, so that only the transfer's own memory is counted.
        private func warm(_ daemon: Daemon) throws {
            for _ in 0..<20 { _ = try daemon.exchange("/api/small") }
            _ = try daemon.exchange("/api/warm")
        }

        static func reply(_ request: OriginRequest, cacheControl: String) -> OriginReply {
            switch request.target {
            case "/small": .answer("small", fields: [("Cache-Control", "no-store")])
            case "/warm": .pattern(4 << 20, fields: [("Cache-Control", "no-store")])
            case "/up": .answer("\(request.bodyLength) \(request.bodyIsPattern)")
            default: .pattern(size, fields: [("Cache-Control", cacheControl)])
            }
        }

        @Test(arguments: ["no-store", "max-age=600"])
        func twoGibibytesDownToASlowReader(_ cacheControl: String) throws {
            let origin = try ScriptedOrigin { Self.reply($0, cacheControl: cacheControl) }
            let rest = "services:\n" + service("api", origin.url)
            var settings = DaemonSettings(rest)
            // The storable one spills to a file of at most max_object, so let it be larger than the body.
            settings.disk = "4GiB, max_object: 3GiB"
            let daemon = try Daemon(settings)
            try warm(daemon)
            let watch = Watch(daemon)
            let client = try daemon.client()
            try client.request("GET", "/api/down")
            #expect(try client.readHead().status == 200)
            var bytes = 0
            var isPattern = true
            var end: RawBodyEnd?
            while end == nil {
                end = try client.readBody(upTo: 64 << 20) { piece in
                    isPattern = isPattern && Pattern.matches(piece, at: bytes)
                    bytes += piece.count
                }
                watch.sample()
                usleep(10_000)
                watch.sample()
            }
            #expect(end == .complete)
            #expect(isPattern)
            #expect(bytes == Self.size)
            #expect(watch.growth < Self.allowedGrowth, "grew by \(watch.growth >> 10) KiB")
        }

        @Test func twoGibibytesUpToASlowOrigin() throws {
            let steps = Counter()
            let watching = Monitor<Watch?>(nil)
            let hook: ScriptedOrigin.BodyHook = { request in
                guard request.bodyLength >> 26 > steps.value else { return }
                steps.add()
                watching.read { $0 }?.sample()
                usleep(10_000)
                watching.read { $0 }?.sample()
            }
            let origin = try ScriptedOrigin(bodyHook: hook) { Self.reply($0, cacheControl: "no-store") }
            let daemon = try Daemon(services(service("api", origin.url)))
            try warm(daemon)
            let watch = Watch(daemon)
            watching.update { $0 = watch }
            let client = try daemon.client()
            try client.send("POST /api/up HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(Self.size)\r\n\r\n")
            try client.sendPattern(Self.size)
            let answer = try client.readResponse(method: "POST")
            #expect(answer.text == "\(Self.size) true")
            #expect(steps.value == 32)
            #expect(watch.growth < Self.allowedGrowth, "grew by \(watch.growth >> 10) KiB")
        }

        @Test func aReaderThatStopsHoldsTheOriginBackNotMemory() throws {
            let origin = try ScriptedOrigin { Self.reply($0, cacheControl: "no-store") }
            let daemon = try Daemon(services(service("api", origin.url)))
            try warm(daemon)
            let watch = Watch(daemon)
            let client = try daemon.client(receiveBuffer: 65_536)
            try client.request("GET", "/api/down")
            #expect(try client.readHead().status == 200)
            // Meanwhile the same origin sends others five times as much as it may be ahead of the one that does not read.
            for _ in 0..<20 {
                #expect(try daemon.exchange("/api/warm").body.count == 4 << 20)
                watch.sample()
            }
            #expect(watch.growth < Self.allowedGrowth, "grew by \(watch.growth >> 10) KiB")
            client.reset()
            #expect(try daemon.exchange("/api/small").text == "small")
        }
    }
}
