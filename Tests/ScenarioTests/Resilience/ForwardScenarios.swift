// Retries, breakers and the limit of fetches in forward mode, where each request names its origin.

import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct ForwardResilience {
        private static func daemon(_ keys: String) throws -> Daemon {
            try Daemon("forward: { allow: [\"127.0.0.1\"], \(keys) }")
        }

        @Test func aFetchThatFailedIsMadeAgain() throws {
            let origin = try ScriptedOrigin { request in .answer(request.target == "/bad" ? 503 : 200, to: request, "x")
            }
            let daemon = try Self.daemon("retry: { count: 3, delay: 1ms }")
            #expect(try daemon.exchange("\(origin.url)/good").status == 200)
            #expect(try daemon.exchange("\(origin.url)/bad").status == 503)
            #expect(origin.requests(target: "/good") == 1)
            #expect(origin.requests(target: "/bad") == 4)
            #expect(try daemon.metric("drydock_retries_total") == 3)
            #expect(daemon.errors.contains("forward mode: GET /bad: attempt 2 of 4 in "), "\(daemon.errors)")
        }

        @Test func eachOriginHasItsBreaker() throws {
            let bad = try ScriptedOrigin { .answer(503, to: $0, "down") }
            let good = try ScriptedOrigin { .answer(to: $0, "fine") }
            let daemon = try Self.daemon("breaker: { failures: 2, open: 60s }, retry: { count: 5, delay: 1ms }")
            #expect(try daemon.exchange("\(bad.url)/a").status == 503)
            // The second failure opens it, and no attempt follows.
            #expect(bad.requests() == 2)
            let refused = try daemon.exchange("\(bad.url)/b")
            expectProblem(refused, 503)
            #expect(refused.text.contains("forward mode: the circuit breaker of \(bad.url) is open"), "\(refused.text)")
            #expect(refused.field("Retry-After") != nil)
            #expect(bad.requests() == 2)
            #expect(try daemon.exchange("\(good.url)/a").text == "fine")
            #expect(try daemon.metric("drydock_breakers_open") == 1)
            #expect(
                try daemon.command("status").output.contains(
                    "forward http_proxy -> the URL of the request (breaker open for 1 origin)"
                )
            )
            #expect(
                daemon.errors.contains("forward mode: the circuit breaker of \(bad.url) opened"),
                "\(daemon.errors)"
            )
        }

        @Test func allOriginsShareTheLimit() throws {
            let gate = Gate()
            let slow = try ScriptedOrigin { _ in OriginReply([.wait(gate)]).then(.answer("slow")) }
            let other = try ScriptedOrigin { .answer(to: $0, "other") }
            let keys = "max_concurrent: 1, max_queue: { length: 0 }"
            let daemon = try Self.daemon(keys)
            let first = Monitor(0)
            Threads.start {
                let status = try? daemon.exchange("\(slow.url)/a").status
                first.update { $0 = status ?? -1 }
            }
            #expect(eventually { slow.requests() == 1 })
            let refused = try daemon.exchange("\(other.url)/b")
            expectProblem(refused, 503)
            #expect(refused.text.contains("forward mode has 1 fetches under way"), "\(refused.text)")
            // A reload has its say while the fetch is under way.
            try daemon.rewrite(DaemonSettings("forward: { allow: [\"127.0.0.1\"], max_concurrent: 2 }"))
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.exchange("\(other.url)/b").text == "other")
            gate.open()
            #expect(first.wait(120) { $0 == 200 })
        }
    }
}
