// Services answer the same over either carrier: from memory on the hot path, passed on without a task, and on the waiting
// path.

import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct CarriedServiceTests {
    private static func text(_ origin: ScriptedOrigin) -> String {
        """
        services:
          - { name: kept, match: { prefix: /kept }, base_url: "\(origin.url)", cache: { ttl: 1h } }
          - { name: past, match: { prefix: /past }, base_url: "\(origin.url)", cache: { mode: none } }
          - name: made
            match: { prefix: /made }
            demo: { enabled: true }
            endpoints: [{ name: all, path: /x, demo: { body: "made up" } }]
          - name: broken
            match: { prefix: /broken }
            base_url: "\(origin.url)"
            cache: { mode: none }
            faults: { fault: { close: { after: 3B } } }
        """
    }

    private struct Asked: CustomTestStringConvertible, Sendable {
        var target: String
        var method = "GET"
        var fields: [(String, String)] = []
        var body: [UInt8]?
        var status = 200
        /// The answer is there already, so that it is a hit over either carrier.
        var isStored = false

        var testDescription: String { "\(method) \(target) \(fields)" }
    }

    private static let asked = [
        Asked(target: "/kept/a", isStored: true),
        Asked(target: "/kept/long", isStored: true),
        Asked(target: "/kept/a", method: "HEAD", isStored: true),
        Asked(target: "/kept/a", fields: [("If-None-Match", "\"v1\"")], status: 304, isStored: true),
        Asked(target: "/kept/long", fields: [("Range", "bytes=100-4999")], status: 206, isStored: true),
        Asked(target: "/past/a"), Asked(target: "/past/long"), Asked(target: "/past/chunks"),
        Asked(target: "/past/a", method: "HEAD"),
        Asked(target: "/past/a", method: "POST", body: Pattern.bytes(0..<90_000)),
        Asked(target: "/made/x"), Asked(target: "/nowhere", status: 404),
    ]

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let fields = [
                ("ETag", "\"v1\""), ("X-Got", "\(request.bodyLength)"),
            ]
            return switch request.target {
            case let target where target.hasSuffix("long"): .pattern(300_000, fields: fields)
            case let target where target.hasSuffix("chunks"): .chunked(["one", "two", "three"], fields: fields)
            default: .answer(to: request, fields: fields, "an answer")
            }
        }
    }

    @Test(arguments: asked)
    private func `an answer is the same over either carrier`(asked: Asked) async throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        try await HandlerHarness.run(Self.text(origin), connections: KnockingTransport.both) { harness in
            func answer(_ carriage: Carriage) throws -> CarriedAnswer {
                let client = try CarriedClient(port: harness.port, carriage)
                var last = CarriedAnswer()
                // The second is over a connection that has had one.
                for _ in 0..<2 {
                    last = try client.ask(asked.target, method: asked.method, fields: asked.fields, body: asked.body)
                }
                last.fields.removeAll { $0.hasPrefix("Age:") || $0.hasPrefix("Drydock-Demo:") }
                // The lifetime that is left may be a second shorter.
                last.fields = last.fields.map { $0.replacing(/; ttl=\d+/, with: "") }.sorted()
                return last
            }
            if asked.isStored {
                let client = try CarriedClient(port: harness.port, .framed)
                #expect(try client.ask(asked.target).isWhole)
                try harness.settle()
            }
            let (plain, framed) = (try answer(.http1), try answer(.framed))
            #expect(plain.status == asked.status && plain.isWhole)
            // Chunks are no length, and frames have one each.
            #expect(plain == framed)
            guard asked.isStored else { return }
            #expect(origin.requests() == 1)
            // The hot path makes no exchange, and so takes no number of one.
            let first = try harness.ask { $0.context.nextExchange() }
            _ = try answer(.framed)
            let next = try harness.ask { $0.context.nextExchange() }
            #expect(next - first == (asked.method == "GET" ? 1 : 3))
        }
    }

    @Test func `what is passed on takes no task over either carrier, and a fault cuts it`() async throws {
        let origin = try Self.origin()
        defer { origin.stop() }
        try await HandlerHarness.run(Self.text(origin), connections: KnockingTransport.both) { harness in
            for (index, carriage) in Carriage.allCases.enumerated() {
                let client = try CarriedClient(port: harness.port, carriage)
                for target in ["/past/a", "/past/long"] { #expect(try client.ask(target).isWhole) }
                // The first request of a host is routed on the waiting path, which remembers it.
                #expect(try harness.ask { $0.directRequests } == (index == 0 ? 1 : 3))
                let cut = try client.ask("/broken/a")
                #expect(cut.status == 200 && cut.text == "an " && !cut.isWhole)
            }
        }
    }
}
