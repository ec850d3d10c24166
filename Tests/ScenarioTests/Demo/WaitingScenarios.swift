// Demo answers that wait: what each of them costs, and what becomes of those whose clients leave.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct WaitingAnswers {
        private static let service = """
            journal: 4MiB
            shutdown: 1h
            limits: { connections: 4000, per_client: 4000 }
            services:
              - name: late
                match: { prefix: /late }
                demo: { enabled: true, body: late, latency: 1h }
                endpoints:
                  - { name: soon, path: /soon, demo: { body: "{{request.query.q}}", template: true, latency: 30ms } }
                  - name: rules
                    path: /rules
                    demo:
                      latency: 30ms
                      rules:
                        - { name: second, when: { query: { q: b } }, body: b, state: { scenario: s, is: started, then: over } }
                        - { name: others, body: others, sequence: [{ body: one }, { body: two }], count: rule }
            """

        @Test func aWaitingAnswerTakesLessThanFourKibibytes() throws {
            let daemon = try Daemon(Self.service)
            // What the first ones need is not what each one does.
            let first = try daemon.begin("/late/x", count: 100)
            let (before, count) = (daemon.anonymousMemory, 2000)
            let clients = try daemon.begin("/late/x", count: count)
            let each = (daemon.anonymousMemory - before) / count
            #expect((500..<4096).contains(each), "\(each) bytes for each answer that waits")
            withExtendedLifetime((first, clients)) {}
        }

        /// Neither who breaks off nor what was waited for is held, and the end waits for nobody. The journal has them all.
        @Test func whoLeavesIsForgotten() throws {
            let daemon = try Daemon(Self.service)
            for _ in 0..<3 {
                let clients = try daemon.begin("/late/x", count: 200)
                for client in clients { client.reset() }
            }
            // The one that asks is a connection, too.
            #expect(try eventually { try daemon.metric("drydock_connections") <= 1 })
            let verified = try daemon.command("verify", "GET /late/x", "--service", "late", "--times", "600")
            #expect(verified.succeeded, "\(verified.report)")
            // It would wait an hour for a client.
            #expect(daemon.end() == .exited(0))
        }

        /// What is drawn before the wait is what is drawn behind it: the same rule, the same ordinals, the same answer.
        @Test func drawsAreThoseThatTheCommandRepeats() throws {
            let daemon = try Daemon(Self.service)
            let client = try daemon.client()
            var said: [String] = []
            for number in 1...4 {
                let answer = try client.exchange("/late/soon?q=%22\(number)")
                #expect(answer.text == "\"\(number)")
                let draw = try #require(answer.field("Drydock-Demo"))
                #expect(draw.hasPrefix("endpoint=soon; outcome=success; status=200; latency=30ms; draw="))
                said.append(draw)
            }
            #expect(Set(said).count == 4)
            let again = try client.exchange("/late/soon?q=%221")
            #expect(again.field("Drydock-Demo")?.hasSuffix(".2") == true, "the second request of its target")
            for draw in said { #expect(try daemon.command("demo", "replay", draw).succeeded) }
        }

        @Test func rulesScenariosAndSequencesAreCountedOnce() throws {
            let daemon = try Daemon(Self.service)
            let client = try daemon.client()
            let texts = try ["b", "b", "b", "c"].map { try client.exchange("/late/rules?q=\($0)").text }
            #expect(texts == ["b", "one", "two", "two"])
        }

        /// Answers on one connection come in the order of their requests, whatever each waits for.
        @Test func pipelinedRequestsAreAnsweredInTheirOrder() throws {
            let daemon = try Daemon(Self.service)
            let client = try daemon.client()
            _ = try client.exchange("/late/soon?q=0")
            try client.send(
                (1...5).map { "GET /late/soon?q=\($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined()
            )
            let texts = try (1...5).map { _ in try client.readResponse().text }
            #expect(texts == ["1", "2", "3", "4", "5"])
        }

        /// Who waits when the daemon begins to end, or reads another configuration, gets the answer that it waits for.
        @Test func aDrainAndAReloadLeaveTheAnswerAsItIs() throws {
            let settings = DaemonSettings(Self.service.replacing("latency: 1h", with: "latency: 1500ms"))
            let daemon = try Daemon(settings)
            _ = try daemon.exchange("/late/soon?q=0")
            let clients = try (0..<8).map { _ in try daemon.client() }
            for client in clients { _ = try client.exchange("/late/soon?q=0") }
            let request = "GET /late/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
            try daemon.waitUntilRead(8 * request.utf8.count) { for client in clients { try client.send(request) } }
            try daemon.rewrite(DaemonSettings(Self.service.replacing("body: late, latency: 1h", with: "body: new")))
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.exchange("/late/x").text == "new")
            daemon.signal(SIGTERM)
            for client in clients { #expect(try client.readResponse().text == "late") }
        }
    }
}
