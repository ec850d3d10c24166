// An origin that fails now and then, or stays away: attempts, Retry-After, and the circuit breaker, as
// clients and operators see them.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Retries {
        private static let fast = "retry: { count: 3, delay: 20ms, jitter: 0% }"

        /// Answers with the statuses in turn, and with the last one for ever.
        private static func origin(
            _ statuses: [Int],
            fields: [(String, String)] = [("Cache-Control", "max-age=60")]
        ) throws -> ScriptedOrigin {
            let left = Monitor(statuses)
            return try ScriptedOrigin { request in
                let status = left.update { $0.count > 1 ? $0.removeFirst() : $0[0] }
                return .answer(status, to: request, fields: fields, "answer \(status)")
            }
        }

        @Test func threeRetriesAreFourRequests() throws {
            let origin = try Self.origin([503], fields: [])
            let daemon = try Daemon(services(service("api", origin.url, Self.fast)))
            let answer = try daemon.exchange("/api/a")
            #expect(answer.status == 503 && answer.text == "answer 503")
            #expect(origin.requests() == 4)
            #expect(try daemon.metric("drydock_retries_total") == 3)
        }

        @Test func whoWaitsForOneFetchWaitsForItsAttempts() throws {
            let origin = try Self.origin([503, 502, 200])
            let daemon = try Daemon(services(service("api", origin.url, Self.fast)))
            let answers = try Threads.run(10) { _ in try daemon.exchange("/api/a") }
            #expect(answers.allSatisfy { $0.status == 200 && $0.text == "answer 200" })
            #expect(origin.requests() == 3)
            #expect(try daemon.exchange("/api/a").field("Cache-Status")?.contains("hit") == true)
            #expect(daemon.errors.contains("attempt 2 of 4 in 20 ms, since the status was 503"))
            #expect(daemon.errors.contains("attempt 3 of 4 in 40 ms, since the status was 502"))
        }

        @Test func anEndpointHasItsOwn() throws {
            let origin = try Self.origin([503], fields: [])
            let endpoints =
                "endpoints: [{ name: once, path: /once, retry: { count: 1 } }, { name: not, path: /not, retry: { count: 0 } }]"
            let daemon = try Daemon(services(service("api", origin.url, Self.fast, endpoints)))
            for (path, count) in [("once", 2), ("not", 1), ("other", 4)] {
                #expect(try daemon.exchange("/api/\(path)").status == 503)
                #expect(origin.requests(target: "/\(path)") == count, "\(path)")
            }
        }

        @Test func whatIsOnlyPassedOnIsRepeatedToo() throws {
            let origin = try Self.origin([503, 200])
            let daemon = try Daemon(services(service("api", origin.url, Self.fast, "cache: { mode: none }")))
            #expect(try daemon.exchange("/api/a").status == 200)
            #expect(origin.requests() == 2)
        }

        @Test func anUnsafeRequestIsNotRepeatedUnlessItNeverArrived() throws {
            let origin = try Self.origin([503])
            let daemon = try Daemon(services(service("api", origin.url, Self.fast)))
            #expect(try daemon.exchange("POST", "/api/a", body: Array("once".utf8)).status == 503)
            #expect(origin.requests() == 1)
            #expect(try daemon.exchange("DELETE", "/api/b").status == 503)
            #expect(origin.requests(target: "/b") == 4)
        }

        /// The refusal of a service that another one asks is an answer like an origin's.
        @Test(.timeLimit(.minutes(1))) func theRefusalOfAnInnerServiceIsRepeatedToo() throws {
            let origin = try Self.origin([200])
            let inner = service("inner", origin.url, "unlisted: 404", "endpoints: [{ name: a, path: /a }]")
            let outer = service("outer", "service:inner", "retry: { count: 2, delay: 10ms, when: [404] }")
            let daemon = try Daemon(services(outer, inner))
            let answer = try daemon.exchange("/outer/none")
            #expect(answer.status == 404 && answer.text.contains("service inner answers only what its endpoints name"))
            #expect(try daemon.metric("drydock_retries_total") == 2)
            #expect(try daemon.exchange("/outer/a").status == 200)
        }

        @Test func aPresetOfAnEndpointWinsOverTheServicesKeys() throws {
            let origin = try Self.origin([418], fields: [])
            let service = service(
                "api",
                origin.url,
                "retry: { count: 2, delay: 1h, when: [503] }",
                "endpoints: [{ name: all, path: /all, retry: { preset: mm } }]"
            )
            let daemon = try Daemon(services(service))
            #expect(try daemon.exchange("/api/all").status == 418)
            #expect(origin.requests() == 3)
        }

        @Test func aDemoFailureIsDrawnAgain() throws {
            let demo =
                "demo: { enabled: true, status: 204, random_seed: 7, failure: { chance: 50%, status: 503 } }"
            let retry = "retry: { count: 20, delay: 1ms, jitter: 0%, budget: 100% }"
            let daemon = try Daemon(
                services(
                    service("plain", "http://127.0.0.1:9", demo),
                    service("again", "http://127.0.0.1:9", demo, retry)
                )
            )
            let plain = try (0..<30).map { _ in try daemon.exchange("/plain/a").status }
            #expect(Set(plain) == [204, 503])
            #expect(try daemon.metric("drydock_retries_total") == 0)
            for _ in 0..<8 { #expect(try daemon.exchange("/again/a").status == 204) }
            #expect(try daemon.metric("drydock_retries_total") > 0)
            #expect(daemon.errors.contains("attempt 2 of 21 in 1 ms, since the status was 503"))
            // What is not idempotent is not repeated: some of these fail.
            let posts = try (0..<30).map { _ in try daemon.exchange("POST", "/again/p", body: [1]).status }
            #expect(Set(posts) == [204, 503])
        }

        @Test func retryAfterIsWaitedForOrPassedOn() throws {
            let origin = try Self.origin([503, 200], fields: [("Retry-After", "1")])
            let daemon = try Daemon(services(service("api", origin.url, Self.fast)))
            let begin = ContinuousClock.now
            #expect(try daemon.exchange("/api/a").status == 200)
            #expect(hasPassed(.seconds(1), since: begin))
            let patient = try Self.origin([503], fields: [("Retry-After", "3600")])
            let other = try Daemon(services(service("api", patient.url, Self.fast)))
            let answer = try other.exchange("/api/a")
            #expect(answer.status == 503 && answer.field("Retry-After") == "3600")
            #expect(patient.requests() == 1)
        }

        @Test func aBodyThatIsNotWhatTheRouteExpectsIsFetchedAgain() throws {
            let bodies = Monitor(["<html>busy</html>", "{}"])
            let origin = try ScriptedOrigin { request in
                .answer(
                    to: request,
                    fields: [("Cache-Control", "max-age=60")],
                    bodies.update { $0.count > 1 ? $0.removeFirst() : $0[0] }
                )
            }
            let retry = "retry: { count: 1, delay: 0s, when: [content] }"
            let daemon = try Daemon(services(service("api", origin.url, retry, "response: { expect: json }")))
            #expect(try daemon.exchange("/api/a").text == "{}")
            #expect(origin.requests() == 2)
        }

        @Test func theBreakerLeavesAFailingOriginAloneAndStaleAnswersStandIn() throws {
            let isUp = Monitor(true)
            let origin = try ScriptedOrigin { request in
                isUp.read { $0 }
                    ? .answer(to: request, fields: [("Cache-Control", "max-age=1")], "fine")
                    : .answer(503, to: request, "no")
            }
            let cache = "cache: { revalidate: conditional, check_pause: 0s }"
            var settings = services(
                service("api", origin.url, "breaker: { failures: 2, window: 10m, open: 1h }", cache),
                service("soon", origin.url, "breaker: { failures: 2, window: 10m, open: 1s }", cache)
            )
            settings.rest += "clock: { movable: true }\n"
            let daemon = try Daemon(settings)
            for path in ["/api/a", "/soon/a"] { #expect(try daemon.exchange(path).text == "fine") }
            #expect(try daemon.command("clock", "advance", "10s").succeeded)
            isUp.update { $0 = false }
            for _ in 0..<2 { #expect(try daemon.exchange("/api/b").status == 503) }
            let asked = origin.requests()
            let refused = try daemon.exchange("/api/c")
            #expect(refused.status == 503)
            #expect(refused.text.contains("circuit breaker of \(origin.url) is open"))
            #expect(refused.field("Proxy-Status")?.contains("error=destination_unavailable") == true)
            #expect((3000...3600).contains(refused.field("Retry-After").flatMap { Int($0) } ?? 0))
            #expect(try daemon.command("status").output.contains("(breaker open)"))
            #expect(try daemon.metric("drydock_breakers_open") == 1)
            // Its lifetime is over, and nobody asks the origin.
            func expectStale(_ path: String) throws {
                let stale = try daemon.exchange(path)
                #expect(stale.status == 200 && stale.text == "fine", "\(stale.head)")
            }
            try expectStale("/api/a")
            #expect(origin.requests() == asked)
            #expect(try daemon.metric("drydock_breaker_openings_total") == 1)
            // A probe that fails leaves the stored response to answer, and the breaker opens again.
            for _ in 0..<2 { #expect(try daemon.exchange("/soon/b").status == 503) }
            #expect(origin.requests() == asked + 2)
            let isProbed = try eventually {
                try expectStale("/soon/a")
                return origin.requests() > asked + 2
            }
            #expect(isProbed && origin.requests() == asked + 3)
            #expect(try daemon.metric("drydock_breaker_openings_total") == 3)
            isUp.update { $0 = true }
            let isBack = try eventually {
                let answer = try daemon.exchange("/soon/c")
                if answer.text == "fine" { return true }
                #expect(answer.status == 503 && answer.field("Retry-After") == "1", "\(answer.head)")
                return false
            }
            #expect(isBack && origin.requests() == asked + 4)
            // That of the other service.
            #expect(try daemon.metric("drydock_breakers_open") == 1)
            #expect(try daemon.metric("drydock_breaker_openings_total") == 3)
            #expect(daemon.errors.contains("opened after 2 failures in a row"))
            #expect(daemon.errors.contains("closed: the origin answers again"))
        }

        @Test func aChangedBreakerIsInForceAfterAReload() throws {
            let origin = try Self.origin([503], fields: [])
            var settings = services(service("api", origin.url, "breaker: { failures: 1, open: 1h }"))
            let daemon = try Daemon(settings)
            for _ in 0..<2 { #expect(try daemon.exchange("/api/a").status == 503) }
            let seconds = try daemon.exchange("/api/a").field("Retry-After").flatMap { Int($0) }
            #expect((3000...3600).contains(seconds ?? 0))
            #expect(origin.requests() == 1)
            settings.rest = services(service("api", origin.url)).rest
            try daemon.rewrite(settings)
            #expect(try daemon.command("reload").succeeded)
            #expect(try daemon.exchange("/api/a").text == "answer 503")
            #expect(origin.requests() == 2)
            #expect(try daemon.metric("drydock_breakers_open") == 0)
        }
    }
}
