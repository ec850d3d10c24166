// The run of a group as a job: what it shows, how it is cancelled, and how it goes on.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct GroupRuns {
        @Test("a run shows the state of each call; cancelled, it goes on with the values that it has taken")
        func aRunIsCancelledAndGoesOn() throws {
            let isHanging = Monitor(true)
            let origin = try ScriptedOrigin { request in
                switch request.target {
                case "/login": .answer(to: request, "{\"token\": \"s3cret\"}")
                case "/slow" where isHanging.read { $0 }: .never
                default: .answer(to: request, "x")
                }
            }
            let header = "headers: { Authorization: \"Bearer $(token)\" }"
            let daemon = try Daemon(
                DaemonSettings(
                    "services:\n" + service("api", origin.url)
                        + """
                        groups:
                          - name: g
                            calls:
                              - { service: api, path: /login, method: POST, take: { token: body.token } }
                              - { service: api, path: /slow, \(header) }
                              - { service: api, path: /last, \(header) }

                        """
                )
            )
            #expect(try daemon.command("run", "g", "--detach").succeeded)
            #expect(origin.waitForRequests(1, target: "/slow"))
            let shown = try daemon.command("jobs", "show", "1")
            #expect(
                shown.output.hasPrefix(
                    """
                    done  200  api /login
                    running  api /slow
                    queued  api /last
                    1  group  running  1 of 3 items
                    """
                ),
                "\(shown.report)"
            )
            let cancelled = try daemon.command("jobs", "cancel", "1")
            #expect(cancelled.succeeded && cancelled.output.contains("cancelled"), "\(cancelled.report)")
            #expect(try daemon.command("jobs").output.hasPrefix("1  group  cancelled  1 of 3 items"))
            // The origin sees the call end; the one after it is never made.
            #expect(origin.waitForEnds(allBut: 1))
            #expect(origin.requests(target: "/last") == 0)

            isHanging.update { $0 = false }
            origin.forgetRequests()
            #expect(try daemon.command("jobs", "retry", "1").succeeded)
            #expect(try eventually { try daemon.command("jobs").output.hasPrefix("1  group  done  3 of 3 items") })
            #expect(origin.log.map(\.target) == ["/slow", "/last"])
            #expect(origin.log.allSatisfy { $0.field("Authorization") == "Bearer s3cret" })
        }

        @Test("runs of one group stand beside one another, each with its own values")
        func twoRuns() throws {
            let count = Monitor(0)
            let gate = Gate()
            let origin = try ScriptedOrigin { request in
                guard request.target == "/login" else {
                    return .answer(to: request, fields: [("Cache-Control", "no-store")], "x")
                }
                let number = count.update { number in
                    number += 1
                    return number
                }
                let answer = OriginReply.answer(to: request, "{\"token\": \"t\(number)\"}")
                return number == 1 ? OriginReply([.wait(gate)]).then(answer) : answer
            }
            let daemon = try Daemon(
                DaemonSettings(
                    "services:\n" + service("api", origin.url)
                        + """
                        groups:
                          - name: g
                            calls:
                              - { service: api, path: /login, method: POST, take: { token: body.token } }
                              - { service: api, path: /data, headers: { Authorization: "Bearer $(token)" } }

                        """
                )
            )
            #expect(try daemon.command("run", "g", "--detach").succeeded)
            #expect(origin.waitForRequests(1, target: "/login"))
            let second = try daemon.command("run", "g")
            #expect(second.output.hasSuffix("job 2 done, 2 calls: 2 done\n"), "\(second.report)")
            gate.open()
            #expect(try eventually { try daemon.command("jobs").output.hasPrefix("1  group  done  2 of 2 items") })
            let used = origin.log.filter { $0.target == "/data" }.compactMap { $0.field("Authorization") }
            #expect(used == ["Bearer t2", "Bearer t1"])
        }
    }
}
