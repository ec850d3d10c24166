// Groups of calls around a real daemon: order, failures, values, and the commands.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(3))) struct Groups {
        private static func settings(_ origin: ScriptedOrigin, _ groups: String) -> DaemonSettings {
            DaemonSettings("services:\n" + service("api", origin.url) + "groups:\n" + groups)
        }

        @Test("a group logs in, fetches with the token, and skips a call whose condition is not met")
        func logIn() throws {
            let origin = try ScriptedOrigin { request in
                if request.target == "/login" {
                    return .answer(to: request, fields: [("X-User", "7")], "{\"session\": {\"token\": \"s3cret/1\"}}")
                }
                let isKnown = request.field("Authorization") == "Bearer s3cret/1"
                return .answer(isKnown ? 200 : 401, to: request, "x")
            }
            let daemon = try Daemon(
                Self.settings(
                    origin,
                    """
                      - name: warm-up
                        calls:
                          - { service: api, path: /login, body: '{"user": "u"}', take: { token: body.session.token, user: header.X-User, code: status } }
                          - { service: api, path: /refused, when: { value: code, is_not: 200 } }
                          - { service: api, path: "/users/$(user)", query: { t: "$(token)" }, headers: { Authorization: "Bearer $(token)" } }

                    """
                )
            )
            let run = try daemon.command("run", "warm-up")
            #expect(
                run.output == """
                    done  200  api /login
                    skipped  api /refused  (the value 'code' does not want it)
                    done  200  api /users/$(user)
                    job 1 done, 3 calls: 3 done

                    """,
                "\(run.report)"
            )
            #expect(run.succeeded, "\(run.report)")
            #expect(origin.log.map { "\($0.method) \($0.target)" } == ["POST /login", "GET /users/7?t=s3cret%2F1"])
            #expect(origin.log.first?.field("Content-Type") == "application/json")
            let jobs = try daemon.command("jobs")
            #expect(jobs.output.hasPrefix("1  group  done  3 of 3 items"), "\(jobs.report)")
            let shown = try daemon.command("jobs", "show", "1", "--json")
            #expect(!shown.output.contains("s3cret"), "\(shown.report)")
        }

        @Test("a serial group never has two calls in flight, and begins none after a failure")
        func serial() throws {
            let home = try DaemonHome()
            let running = Monitor<[Int]>([])
            // While a call is at the origin, the job has no other under way.
            let origin = try ScriptedOrigin { request in
                let jobs = try? RawClient(unix: home.adminSocket).exchange("/v1/jobs").text
                let counts = (jobs ?? "").matches(of: /"running":([0-9]+)/).compactMap { Int($0.1) }
                running.update { $0.append(counts.reduce(0, +)) }
                return .answer(request.target == "/c" ? 500 : 200, to: request, "x")
            }
            let calls = ["a", "b", "c", "d"].map { "{ service: api, path: /\($0) }" }.joined(separator: ", ")
            let daemon = try Daemon(
                Self.settings(
                    origin,
                    "  - { name: stops, calls: [\(calls)] }\n  - { name: continues, on_error: continue, calls: [\(calls)] }\n"
                ),
                at: home
            )
            let stopped = try daemon.command("run", "stops")
            #expect(stopped.end == .exited(1), "\(stopped.report)")
            #expect(
                stopped.output.contains("failed  500  api /c  (the origin answered 500 Scripted)\nqueued  api /d\n")
            )
            #expect(stopped.output.hasSuffix("job 1 stopped, 4 calls: 2 done, 1 not begun, 1 failed\n"))
            #expect(origin.log.map(\.target) == ["/a", "/b", "/c"])
            origin.forgetRequests()
            #expect(try daemon.command("run", "continues").end == .exited(1))
            #expect(origin.log.map(\.target) == ["/a", "/b", "/c", "/d"])
            #expect(running.read { $0 } == Array(repeating: 1, count: 7))
        }

        @Test(
            "a concurrent group passes a barrier of all its calls; on the first error the origin sees the others close"
        )
        func concurrent() throws {
            let arrived = Monitor(0)
            let fails = Monitor(false)
            let origin = try ScriptedOrigin { request in
                arrived.update { $0 += 1 }
                guard arrived.wait(120, until: { $0 % 12 == 0 }) else { return .answer(504, to: request, "no barrier") }
                guard fails.read({ $0 }) else { return .answer(to: request, "x") }
                return request.target == "/7"
                    ? .answer(500, to: request, fields: [("Connection", "close")], "x") : .never
            }
            // More than the items that a batch has under way.
            let calls = (0..<12).map { "{ service: api, path: /\($0) }" }.joined(separator: ", ")
            let daemon = try Daemon(
                Self.settings(origin, "  - { name: all, mode: concurrent, on_error: cancel, calls: [\(calls)] }\n")
            )
            let passed = try daemon.command("run", "all")
            #expect(passed.output.hasSuffix("job 1 done, 12 calls: 12 done\n"), "\(passed.report)")
            fails.update { $0 = true }
            let failed = try daemon.command("run", "all")
            #expect(failed.end == .exited(1), "\(failed.report)")
            #expect(
                failed.output.hasSuffix("job 2 failed, 12 calls: 0 done, 11 cancelled, 1 failed\n"),
                "\(failed.report)"
            )
            // None of the eleven ends by itself at the origin.
            #expect(origin.waitForEnds(allBut: 1))
        }

        @Test("a call that an operator ends, ends its group, whatever follows a failure")
        func cancelledMember() throws {
            let origin = try ScriptedOrigin { request in request.target == "/a" ? .never : .answer(to: request, "x") }
            let daemon = try Daemon(
                Self.settings(
                    origin,
                    "  - { name: g, on_error: continue, calls: [{ service: api, path: /a }, { service: api, path: /b }] }\n"
                )
            )
            let begun = try daemon.command("run", "g", "--detach")
            #expect(begun.output == "job 1: 'drydock jobs show 1' shows its progress\n", "\(begun.report)")
            #expect(origin.waitForRequests(1))
            #expect(try daemon.command("cancel", "/api/a").output.hasPrefix("1 fetch ended"))
            #expect(try eventually { try daemon.command("jobs").output.hasPrefix("1  group  cancelled") })
            #expect(origin.log.map(\.target) == ["/a"])
        }

        @Test("an empty group is done at once; one that is not there names those that are")
        func emptyAndUnknown() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, "x") }
            let daemon = try Daemon(Self.settings(origin, "  - { name: empty }\n"))
            let empty = try daemon.command("run", "empty")
            #expect(empty.succeeded && empty.output == "job 1 done, 0 calls: 0 done\n", "\(empty.report)")
            let unknown = try daemon.command("run", "other")
            #expect(unknown.end == .exited(1) && unknown.errors.contains("groups: empty"), "\(unknown.report)")
            #expect(origin.log.isEmpty)
        }

        @Test("a group on a schedule runs by itself, and a service is found by its host, too")
        func schedule() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, "x") }
            let daemon = try Daemon(
                DaemonSettings(
                    "services: [{ name: api, match: { host: api.localhost }, base_url: '\(origin.url)' }]\n"
                        + "groups: [{ name: g, every: 1h, at_start: true, calls: [{ service: api, path: /a }] }]\n"
                )
            )
            #expect(origin.waitForRequests(1, target: "/a"))
            #expect(try eventually { try daemon.command("jobs").output.hasPrefix("1  group  done") })
        }
    }
}
