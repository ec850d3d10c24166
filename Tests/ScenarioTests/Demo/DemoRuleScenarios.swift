// Rules of demo mode in the daemon: outcomes that hang on the requests alone, and what explain says of them.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct DemoRules {
        static let targets = 200
        static let rounds = 5

        static func settings(_ home: DaemonHome) throws -> DaemonSettings {
            try home.folder.write("demo/user.json", #"{"name": "Ada"}"#)
            return DaemonSettings(
                """
                limits: { connections: 500, per_client: 500 }
                services:
                  - name: people
                    match: { prefix: /people }
                    base_url: http://127.0.0.1:9
                    demo: { enabled: true, files: \(home.folder.file("demo")), random_seed: 42 }
                    endpoints:
                      - name: user
                        path: "/users/:id"
                        demo:
                          latency: 0ms..2ms
                          status: { 200: 70%, 429: 30% }
                          rules:
                            - { name: fails-first, when: { query: { retry: { present: true } }, first: 2 }, status: 503 }
                            - name: job
                              when: { query: { job: { matches: "^[0-9]+$" } } }
                              sequence: [{ status: 202 }, { status: 202 }, { file: user.json }]
                              after: repeat
                            - name: weighted
                              when: { params: { id: { matches: "[02468]$" } } }
                              answers: [{ weight: 90%, status: 201 }, { weight: 10%, status: 500 }]
                              failure: { chance: 5%, status: 504 }
                """
            )
        }

        static func target(_ number: Int) -> String {
            "/people/users/\(number)" + (number % 5 == 0 ? "?retry" : number % 7 == 0 ? "?job=\(number)" : "")
        }

        /// What the daemon said to each request of each target, over so many connections; a target is one connection's.
        static func play(_ daemon: Daemon, connections: Int, rounds: Range<Int>) throws -> [[String]] {
            let shares = try Threads.run(connections) { index in
                let client = try daemon.client()
                return try stride(from: index, to: targets, by: connections).map { number -> (Int, [String]) in
                    let answers = try rounds.map { _ in
                        let answer = try client.exchange(target(number))
                        return "\(answer.status) \(answer.field("Drydock-Demo") ?? "none") \(answer.text)"
                    }
                    return (number, answers)
                }
            }
            return shares.joined().sorted { $0.0 < $1.0 }.map(\.1)
        }

        @Test func outcomesHangOnTheRequestsAlone() throws {
            let home = try DaemonHome()
            let daemon = try Daemon(Self.settings(home), at: home)
            let one = try Self.play(daemon, connections: 1, rounds: 0..<Self.rounds)
            try daemon.restart()
            // The second half comes behind a reload.
            let before = try Self.play(daemon, connections: 64, rounds: 0..<2)
            #expect(try daemon.command("reload").succeeded)
            let behind = try Self.play(daemon, connections: 64, rounds: 2..<Self.rounds)
            #expect(zip(before, behind).map { $0 + $1 } == one)
            try daemon.restart(SIGKILL)
            #expect(try Self.play(daemon, connections: 64, rounds: 0..<Self.rounds) == one)
            let all = one.joined()
            for part in [
                "rule=fails-first; ", "rule=job; ", "rule=weighted; ", "status=429", "status=504", "status=500",
            ] {
                #expect(all.contains { $0.contains(part) }, "\(part)")
            }
            #expect(one[5].map { $0.prefix(3) }.prefix(2) == ["503", "503"])
            #expect(one[7].map { $0.prefix(3) } == ["202", "202", "200", "202", "202"])
        }

        @Test func explainSaysWhichRuleWouldAnswerAndWhyTheOthersDoNot() throws {
            let home = try DaemonHome()
            let daemon = try Daemon(Self.settings(home), at: home)
            for _ in 0..<3 {
                let said = try daemon.command("explain", "/people/users/2?job=x").output
                for line in [
                    "demo           rule fails-first: query.retry is missing, not any value",
                    "demo           rule job: query.job is 'x', not a text with a match of ^[0-9]+$",
                    "demo           rule weighted: answers",
                ] { #expect(said.contains(line), "\(said)") }
                #expect(!said.contains("its own answer"))
                let own = try daemon.command("explain", "/people/users/3").output
                #expect(own.contains("demo           its own answer: answers"), "\(own)")
            }
            // Explaining has counted nothing.
            #expect(try daemon.exchange("/people/users/5?retry").status == 503)
            let next = try daemon.command("explain", "/people/users/5?retry").output
            #expect(next.contains("rule fails-first: answers"), "\(next)")
        }
    }
}
