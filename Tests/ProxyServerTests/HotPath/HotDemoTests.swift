// Demo answers on the hot path: the same draws, lines and counts as on the waiting path.

import EventLoop
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct HotDemoTests {
    private static func text(_ folder: TemporaryFolder) throws -> String {
        let file = try folder.write("body.json", "{}")
        let page = try folder.write("down.html", "down")
        return """
            services:
              - name: shop
                match: { prefix: /shop }
                base_url: http://127.0.0.1:1/base
                demo: { enabled: true, file: "\(file)", random_seed: 7 }
                cors: { origins: ["http://a.test"] }
                endpoints:
                  - { name: plain, path: /plain, demo: { file: "\(file)" } }
                  - { name: odd-name, path: "/odd/:id", demo: { file: "\(file)", status: 201 } }
                  - name: fails
                    path: /fails
                    demo: { file: "\(file)", failure: { chance: 50%, file: "\(page)" } }
                  - { name: empty, path: /empty, demo: { status: 204 } }
                  - { name: late, path: /late, demo: { file: "\(file)", latency: 1ms } }
                  - name: fields
                    path: /fields
                    demo:
                      file: "\(file)"
                      headers: { Date: "Sun, 06 Nov 1994 08:49:37 GMT", Location: "/base/x", Drydock-Demo: no, Age: 3 }
            """
    }

    private static let targets = [
        "/shop/plain", "/shop/plain?q=1", "/shop/odd/1", "/shop/odd/2", "/shop/fails", "/shop/empty", "/shop/late",
        "/shop/fields", "/shop/other", "/shop/",
    ]

    private struct Seen: Equatable {
        var answers: [[String]] = []
        var counts: [String] = []
        var demo: UInt64 = 0
        var hot: [String] = []
    }

    private static func ask(_ fields: [(String, String)]) async throws -> Seen {
        let folder = try TemporaryFolder()
        let seen = Monitor(Seen())
        try await HandlerHarness.run(try text(folder)) { harness throws in
            let client = try harness.client()
            // The hot path knows a Host once it was answered for.
            _ = try client.exchange("/shop/warm")
            for _ in 0..<20 {
                for target in targets {
                    let got = try client.exchange(target, fields: fields)
                    let names = got.head.fields.map(\.name)
                    let lines = got.head.fields.map { name, value in
                        // Each run has files of its own.
                        name == "Date" && !target.hasSuffix("fields") || name == "Last-Modified"
                            ? name : "\(name): \(value)"
                    }
                    seen.update { seen in
                        seen.answers.append(["\(got.head.status) \(got.head.reason)"] + lines.sorted() + [got.text])
                        // The hot path writes Content-Length before the draw.
                        if let length = names.firstIndex(of: "Content-Length"),
                            let draw = names.firstIndex(of: "Drydock-Demo"),
                            length < draw, !seen.hot.contains(target)
                        {
                            seen.hot.append(target)
                        }
                    }
                }
            }
            let counts = try harness.counters()
            seen.update { seen in
                seen.counts = counts.answers.kinds
                seen.demo = counts.answers[.demo]
            }
        }
        return seen.read { $0 }
    }

    @Test func `both paths draw, answer and count alike`() async throws {
        let hot = try await Self.ask([("Cookie", "a=b")])
        let waiting = try await Self.ask([("Cookie", "a=b"), ("Cache-Control", "no-cache")])
        #expect(hot.answers == waiting.answers)
        #expect(hot.counts == waiting.counts && hot.demo == UInt64(20 * Self.targets.count + 1))
        #expect(waiting.hot.isEmpty)
        #expect(hot.hot == Self.targets.filter { !["/shop/empty", "/shop/late"].contains($0) })
        #expect(
            Set(hot.answers.compactMap(\.first)).isSuperset(of: ["200 OK", "201 Created", "503 Service Unavailable"])
        )
    }

    @Test func `a request with a condition or a range waits, and its draw is the one that was due`() async throws {
        let plain = try await Self.ask([])
        let conditional = try await Self.ask([("If-None-Match", "*"), ("Range", "bytes=0-0")])
        #expect(conditional.hot.isEmpty && conditional.demo == plain.demo)
        func draws(_ seen: Seen) -> [String] { seen.answers.flatMap { $0.filter { $0.hasPrefix("Drydock-Demo") } } }
        #expect(draws(conditional) == draws(plain))
        for (asked, got) in zip(plain.answers, conditional.answers) {
            #expect(got[0] == (asked[0] == "200 OK" ? "304 Not Modified" : asked[0]))
        }
    }

    @Test func `a request with Origin, a method without an answer of its own, and a loop wait`() async throws {
        let folder = try TemporaryFolder()
        try await HandlerHarness.run(try Self.text(folder)) { harness throws in
            let client = try harness.client()
            _ = try client.exchange("/shop/plain")
            let allowed = try client.exchange("/shop/plain", fields: [("Origin", "http://a.test")])
            #expect(allowed.field("Access-Control-Allow-Origin") == "http://a.test")
            let head = try client.exchange("HEAD", "/shop/plain", host: "localhost", fields: [], body: nil)
            #expect(head.status == 200 && head.text.isEmpty && head.field("Content-Length") == "2")
            #expect(try client.exchange("/shop/plain", fields: [("Via", "1.1 drydock")]).status == 508)
        }
    }
}
