// Server-sent events as curl and bare sockets see them: in their time, from where a client was, and to the end.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct EventStreams {
        private static func daemon() throws -> Daemon {
            let home = try DaemonHome()
            try home.folder.write(
                "demo/feed.txt",
                ": a comment\nid: one\ndata: first\ndata: line\n\nevent: tick\nretry: 500\ndata:second\r\n\r\ndata: last"
            )
            return try Daemon(
                DaemonSettings(
                    """
                    services:
                      - name: shop
                        match: { prefix: /shop }
                        demo: { enabled: true, body: none, files: "\(home.folder.file("demo"))" }
                        endpoints:
                          - name: prices
                            path: /prices
                            demo:
                              events:
                                list:
                                  - { event: price, data: { of: a, is: 1 } }
                                  - { data: "two\\nlines", retry: 3s }
                                every: 150ms
                                repeat: 2
                          - { name: feed, path: /feed, demo: { events: { file: feed.txt, every: 0s } } }
                          - { name: slow, path: /slow, demo: { events: { list: [{ data: a }], every: 1h, repeat: forever } } }
                          - name: wrong
                            path: /wrong
                            demo:
                              misbehave: [vary_star]
                              headers: { Cache-Control: no-cache }
                              rules: [{ name: said, when: { query: { ask: "1" } }, events: [{ data: yes }] }]
                              events: { list: [{ data: no }], every: 0s }
                      - { name: front, match: { prefix: /front }, base_url: "service:shop" }
                    """
                ),
                at: home
            )
        }

        @Test(arguments: ["/shop/prices", "/front/prices"]) func eventsComeInTheirTime(_ path: String) throws {
            let daemon = try Self.daemon()
            let began = ContinuousClock.now
            let text = try Shell.must("curl", ["-sSNi", "--noproxy", "*", "\(daemon.url)\(path)"])
                .replacingOccurrences(of: "\r", with: "")
            #expect(hasPassed(.milliseconds(450), since: began))
            #expect(
                text.hasPrefix("HTTP/1.1 200 OK\n") && text.contains("\nContent-Type: text/event-stream\n"),
                "\(text)"
            )
            #expect(text.contains("\nCache-Control: no-store\n"), "\(text)")
            let body = text.components(separatedBy: "\n\n").dropFirst()
            #expect(
                Array(body) == [
                    #"id: 1\#nevent: price\#ndata: {"of":"a","is":1}"#, "id: 2\nretry: 3000\ndata: two\ndata: lines",
                    #"id: 3\#nevent: price\#ndata: {"of":"a","is":1}"#, "id: 4\nretry: 3000\ndata: two\ndata: lines",
                    "",
                ]
            )
        }

        @Test func aClientGoesOnBehindItsLastEvent() throws {
            let daemon = try Self.daemon()
            func ids(_ path: String, _ last: String) throws -> [String] {
                let answer = try daemon.exchange(path, fields: [("Last-Event-ID", last)])
                #expect(answer.end == .complete && answer.status == 200)
                return answer.text.split(separator: "\n").filter { $0.hasPrefix("id: ") }.map {
                    String($0.dropFirst(4))
                }
            }
            #expect(try ids("/shop/prices", "2") == ["3", "4"])
            #expect(try ids("/shop/prices", "unknown") == ["1", "2", "3", "4"])
            #expect(try ids("/shop/prices", "9") == ["1", "2", "3", "4"])
            #expect(try ids("/shop/feed", "one") == ["2", "3"])
            // Whoever has the last one need not connect again.
            let done = try daemon.exchange("/shop/prices", fields: [("Last-Event-ID", "4")])
            #expect((done.status, done.body.count, done.field("Content-Type")) == (204, 0, nil))
        }

        @Test func aFileIsSentAsEvents() throws {
            let daemon = try Self.daemon()
            let answer = try daemon.exchange("/shop/feed")
            #expect(
                answer.text
                    == "id: one\ndata: first\ndata: line\n\nid: 2\nevent: tick\nretry: 500\ndata: second\n\nid: 3\ndata: last\n\n"
            )
            #expect(answer.framing == .chunked)
            let head = try daemon.exchange("HEAD", "/shop/feed")
            #expect((head.status, head.field("Content-Type"), head.body.count) == (200, "text/event-stream", 0))
            let own = try daemon.exchange("/shop/wrong")
            #expect(
                (own.field("Cache-Control"), own.field("Vary"), own.text) == ("no-cache", "*", "id: 1\ndata: no\n\n")
            )
            #expect(own.field("Drydock-Demo")?.contains("; misbehave=vary_star; ") == true)
            #expect(try daemon.exchange("/shop/wrong?ask=1").text == "id: 1\ndata: yes\n\n")
        }

        /// A stream whose next event is an hour away ends when its client does, and when the daemon does.
        @Test func aWaitingStreamEndsWithItsClientAndWithTheDaemon() throws {
            let daemon = try Self.daemon()
            func begin() throws -> RawClient {
                let client = try daemon.client()
                try client.send("GET /shop/slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try client.readHead().status == 200)
                #expect(try client.readRaw(20) == Array("f\r\nid: 1\ndata: a\n\n\r\n".utf8))
                return client
            }
            let left = try begin()
            // The line of a later answer is there, and none of the stream.
            #expect(try daemon.exchange("/shop/feed").status == 200)
            #expect(eventually { !daemon.accessLog.isEmpty })
            #expect(daemon.accessLog.allSatisfy { $0.contains("/shop/feed") })
            left.close()
            #expect(eventually { daemon.accessLog.contains { $0.contains("/shop/slow") } })
            let client = try begin()
            #expect(daemon.end() == .exited(0))
            #expect(try client.readToEnd() == Array("0\r\n\r\n".utf8))
        }
    }
}
