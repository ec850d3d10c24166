// Requests that are made again: how often, after which failures, and who has a say in it.

import Foundation
import HTTPTypes
import InMemoryTracing
import LibrarySupport
import Logging
import MetricsTestKit
import TestSupport
import Testing

import struct ServiceCore.RetryBudget

@testable import Drydock

@Suite struct RetryTests {

    /// At once, so that no test waits.
    private static func quick(_ count: Int) -> RetryPolicy { RetryPolicy(count: count, delay: .zero) }

    /// Fails so many times, and then answers.
    private static func failing(
        _ count: Int,
        _ failure: @escaping @Sendable (OriginRequest) -> OriginReply
    ) -> ScriptedOrigin.Handler {
        let left = Monitor(count)
        return { request in
            let fails = left.update { left in
                left -= 1
                return left >= 0
            }
            return fails ? failure(request) : .answer(to: request, fields: [("ETag", "\"1\"")], "there")
        }
    }

    @Test func attemptsAreMadeUntilOneSucceeds() async throws {
        try await withManager {
            $0.retry = Self.quick(2)
        } _: {
            .answer(503, to: $0, "away")
        } _: { manager, origin async throws in
            let error = await failure { try await manager.download(origin.url()) }
            guard case .unacceptableStatus(let result) = error else {
                Issue.record("\(error as Any)")
                return
            }
            #expect(result.text == "away", "the last answer is the result")
            #expect(origin.count("GET") == 3, "the first attempt, and two more")
            #expect(manager.statistics.retries == 2)
        }
        let reply = Self.failing(2) { .answer(503, to: $0, "away") }
        try await withManager {
            $0.retry = Self.quick(3)
        } _: {
            reply($0)
        } _: { manager, origin async throws in
            #expect(try await manager.download(origin.url()).text == "there")
            #expect(origin.count("GET") == 3, "no further one after a success")
        }
    }

    @Test func whatIsNoCauseIsFinal() async throws {
        try await withManager {
            $0.retry = Self.quick(3)
        } _: {
            .answer(404, to: $0, "none")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url()) }
            #expect(origin.count("GET") == 1)
        }
    }

    @Test func withoutASettingNothingIsRepeated() async throws {
        try await withManager { _ in
            .cut
        } _: { manager, origin async throws in
            let failed = await failure { try await manager.download(origin.url()) }
            #expect(failed?.originKind == .cutShort)
            #expect(origin.count("GET") == 1)
        }
    }

    @Test func aPredicateMayRefuseAndSeesWhatHappened() async throws {
        let seen = Monitor<[RetryPolicy.FailedAttempt]>([])
        try await withManager {
            $0.retry = Self.quick(5)
            $0.retry.shouldRetry = { attempt in
                seen.update { $0.append(attempt) }
                return attempt.number < 2
            }
        } _: {
            .answer(503, to: $0, "away")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url("/a?token=secret")) }
            #expect(origin.count("GET") == 2)
            let attempts = seen.read { $0 }
            #expect(attempts.map(\.number) == [1, 2])
            #expect(attempts.allSatisfy { $0.status == 503 && $0.cause == .status(503) && $0.method == "GET" })
            #expect(attempts.allSatisfy { $0.path == "/a" }, "a query may hold secrets")
        }
    }

    @Test func aPredicateAllowsNoMoreThanTheRest() async throws {
        let isAsked = Monitor(false)
        try await withManager {
            $0.retry = Self.quick(5)
            $0.retry.shouldRetry = { _ in
                isAsked.update { $0 = true }
                return true
            }
        } _: {
            .answer(404, to: $0, "none")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url()) }
            #expect(origin.count("GET") == 1)
            #expect(!isAsked.read { $0 })
        }
    }

    @Test func aPredicateSeesConnectionsStatusesAndContents() async throws {
        let causes = Monitor<[RetryCause]>([])
        let replies = Monitor<[OriginReply]>([
            .cut, .answer(500, "broken"), .answer("no JSON at all"), .answer("{\"a\": 1}"),
        ])
        try await withManager {
            $0.retry = RetryPolicy.immediate(count: 3)
            $0.retry.shouldRetry = { attempt in
                causes.update { $0.append(attempt.cause) }
                return true
            }
        } _: { _ in
            replies.update { $0.removeFirst() }
        } _: { manager, origin async throws in
            let result = try await manager.download(origin.url(), options: .init(expectation: .json))
            #expect(result.text == "{\"a\": 1}")
            #expect(causes.read { $0 } == [.connect, .status(500), .content])
        }
    }

    @Test func oneDownloadMayHaveItsOwn() async throws {
        try await withManager {
            $0.retry = Self.quick(1)
        } _: {
            .answer(503, to: $0, "away")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url("/own"), options: .init(retry: Self.quick(3))) }
            _ = await failure { try await manager.download(origin.url("/none"), options: .init(retry: .never)) }
            _ = await failure { try await manager.download(origin.url("/shared")) }
            #expect(origin.count("GET", "/own") == 4)
            #expect(origin.count("GET", "/none") == 1)
            #expect(origin.count("GET", "/shared") == 2)
        }
    }

    @Test func presetOfDocker() async throws {
        var retry = RetryPolicy.steady(count: 2)
        #expect(retry.delay == .seconds(3))
        #expect(retry.backoff == 1)
        #expect(retry.jitter == 0)
        #expect(retry.causes == [.connect, .timeout])
        #expect(retry.methods == .idempotent && retry.budget == nil)
        // The rest of it shows without its wait.
        retry.delay = .zero
        let preset = retry
        try await withManager {
            $0.retry = preset
        } _: {
            $0.target == "/cut" ? .cut : .answer(503, to: $0, "away")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url("/cut")) }
            _ = await failure { try await manager.download(origin.url("/answer")) }
            #expect(origin.count("GET", "/cut") == 3)
            #expect(origin.count("GET", "/answer") == 1, "an answer, whatever its status, is final")
        }
    }

    @Test func presetOfMM() async throws {
        let retry = RetryPolicy.immediate(count: 20)
        #expect(retry.delay == .zero && retry.backoff == 1 && retry.jitter == 0)
        #expect(retry.causes == RetryCause.all)
        #expect(retry.methods == .any && retry.budget == nil)
        try await withManager {
            $0.retry = retry
        } _: {
            $0.target == "/cut" ? .cut : .answer(404, to: $0, "none")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url("/cut")) }
            _ = await failure { try await manager.download(origin.url("/none")) }
            #expect(origin.count("GET", "/cut") == 21, "no budget ends them before their count does")
            #expect(origin.count("GET", "/none") == 21)
            for path in ["/cut", "/none"] {
                _ = await failure { try await manager.download(origin.request(.patch, path), body: Data("a".utf8)) }
                #expect(origin.count("PATCH", path) == 21, "every method is repeated, whatever the origin has done")
            }
            #expect(manager.statistics.retries == 80 && manager.statistics.refusedRetries == 0)
        }
    }

    @Test(arguments: ["/cut", "/answer"]) func aBudgetThatIsUsedUpIsNamed(path: String) async throws {
        let (metrics, log) = (TestMetrics(), RecordedLog())
        let origin = Origin(try ScriptedOrigin { $0.target == "/cut" ? .cut : .answer(503, to: $0, "away") })
        var configuration = DownloadConfiguration()
        configuration.disk = nil
        configuration.retry = .immediate(count: 100)
        configuration.retry.budget = 0
        let manager = DownloadManager(
            configuration: configuration,
            logger: log.logger,
            telemetry: Telemetry(metrics, InMemoryTracer())
        )
        let error = await failure { try await manager.download(origin.url(path)) }
        #expect(error?.description.hasSuffix("it was not repeated: " + RetryBudget.refusal) == true, "\(error as Any)")
        #expect(manager.statistics.refusedRetries == 1)
        #expect(metrics.counterTotal(label: "drydock_retries_refused_total", dimensions: [("of", "downloads")]) == 1)
        let attempts = manager.statistics.retries + 1
        let why = path == "/cut" ? nil : "although the status was 503"
        let text = "GET \(path): no further attempt after \(attempts), "
        #expect(log.count(.warning, text) == 1 && log.count(.warning, why ?? RetryBudget.refusal) == 1)
        await manager.close()
    }

    @Test func theWaitIsKept() async throws {
        let clock = ContinuousClock()
        try await withManager {
            $0.retry = RetryPolicy(count: 2, delay: .milliseconds(100), backoff: 2, jitter: 0)
        } _: {
            .answer(503, to: $0, "away")
        } _: { manager, origin async throws in
            let start = clock.now
            _ = await failure { try await manager.download(origin.url()) }
            #expect(clock.now - start >= .milliseconds(300), "100 ms, and then twice as long")
        }
    }

    @Test func aLongRetryAfterIsFinal() async throws {
        try await withManager {
            $0.retry = Self.quick(2)
        } _: {
            .answer(503, to: $0, fields: [("Retry-After", "3600")], "away")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url()) }
            #expect(origin.count("GET") == 1)
        }
    }

    @Test func whoWaitsForARetryHoldsNobodyUpAndCanLeave() async throws {
        let hasFailed = Monitor(false)
        try await withManager {
            $0.maximumFetches = 1
            $0.abandonment = .abort
            $0.retry = RetryPolicy(count: 1, delay: .seconds(600), longestRetryAfter: .seconds(600)) { _ in
                hasFailed.update { $0 = true }
                return true
            }
        } _: {
            $0.target == "/fails" ? .answer(503, to: $0, "away") : .answer(to: $0, "there")
        } _: { manager, origin async throws in
            let waiting = Task { try await manager.download(origin.url("/fails")) }
            #expect(await eventually { hasFailed.read { $0 } })
            #expect(try await manager.download(origin.url("/other")).text == "there", "its slot is free")
            waiting.cancel()
            let failed = await failure { try await waiting.value }
            #expect(failed == .cancelled)
            #expect(try await manager.download(origin.url("/another")).text == "there")
            #expect(origin.count("GET", "/fails") == 1, "who has left makes no further attempt")
        }
    }

    @Test func whoWaitsForARetryDoesNotKeepTheManagerFromItsEnd() async throws {
        let hasFailed = Monitor(false)
        let origin = Origin(try ScriptedOrigin { .answer(503, to: $0, "away") })
        let manager = makeManager {
            $0.retry = RetryPolicy(count: 1, delay: .seconds(86_400)) { _ in
                hasFailed.update { $0 = true }
                return true
            }
        }
        let waiting = Task { try await manager.download(origin.url()) }
        #expect(await eventually { hasFailed.read { $0 } })
        await manager.close()
        let failed = await failure { try await waiting.value }
        #expect(failed == .cancelled)
        #expect(origin.count("GET") == 1)
    }

    @Test func manyWaitForTheSameAttempts() async throws {
        let reply = Self.failing(1) { .answer(503, to: $0, "away") }
        try await withManager {
            $0.retry = RetryPolicy(count: 2, delay: .milliseconds(20))
        } _: {
            reply($0)
        } _: { manager, origin async throws in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<8 { group.addTask { try await manager.download(origin.url()).text } }
                for try await text in group { #expect(text == "there") }
            }
            #expect(origin.count("GET") == 2)
        }
    }

    @Test(arguments: [(RetryMethods.idempotent, 1), (.any, 2)])
    func aPostIsRepeatedOnlyWhereThatIsWanted(methods: RetryMethods, count: Int) async throws {
        try await withManager {
            $0.retry = RetryPolicy(count: 1, delay: .zero, methods: methods)
        } _: {
            $0.body == Array("question".utf8) ? .cut : .answer(400, to: $0, "not the question")
        } _: { manager, origin async throws in
            var request = HTTPRequest(method: .post, scheme: "http", authority: origin.server.authority, path: "/a")
            request.headerFields[.contentType] = "text/plain"
            let asked = request
            let error = await failure { try await manager.download(asked, body: Data("question".utf8)) }
            #expect(error?.originKind == .cutShort)
            #expect(origin.count("POST") == count)
        }
    }

    @Test func settingsAreEqualToTheirCopies() {
        let one = RetryPolicy(count: 1) { _ in true }
        var other = one
        #expect(one == other)
        other.shouldRetry = { _ in true }
        #expect(one != other)
        #expect(RetryPolicy(count: 1) == RetryPolicy(count: 1))
    }
}
