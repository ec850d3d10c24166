// Tasks that fail and are tried again: after which errors, how often, after which waits, and what happens meanwhile.

import Drydock
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Logging
import MetricsTestKit
import Synchronization
import TestSupport
import Testing

import struct ServiceCore.RetryBudget

@testable import DrydockServices

/// Fails with these errors, and then returns how many there were.
private final class Failing: Sendable {
    private let errors: Mutex<[any Error]>
    private let runs = Atomic<Int>(0)

    init(_ errors: [any Error]) { self.errors = Mutex(errors) }

    var count: Int { runs.load(ordering: .relaxed) }

    func run() throws -> Int {
        runs.wrappingAdd(1, ordering: .relaxed)
        let error = errors.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        if let error { throw error }
        return count
    }
}

/// An error of a program's own, to which it gives this cause.
private struct Own: Error {
    var cause: RetryCause?
}

extension Work {
    /// The same work, with the causes of ``Own``.
    fileprivate func withOwnCauses() -> Self {
        var work = self
        work.retryCause = { ($0 as? Own)?.cause }
        return work
    }
}

@Suite struct TaskRetryTests {

    private static let timeout = origin(.timeout)

    private static func origin(_ kind: OriginFailure.Kind) -> DownloadError {
        .origin(OriginFailure(kind: kind, detail: "\(kind)"))
    }

    private static func status(_ status: HTTPResponse.Status, _ fields: HTTPFields = HTTPFields()) -> DownloadResult {
        DownloadResult(
            url: URL(fileURLWithPath: "/a"),
            outcome: .downloadFailed,
            head: HTTPResponse(status: status, headerFields: fields)
        )
    }

    @Test func aTaskIsTriedUntilItSucceeds() async throws {
        let failing = Failing([Self.timeout, ServiceError.transport(Self.origin(.unreachable)), Self.timeout])
        let task = WorkQueue().add(Work("a", retry: .immediate(count: 3)) { try failing.run() })
        #expect(try await task.value == 4)
        #expect(task.state.phase == .done && task.state.attempts == 4)
    }

    @Test func theCountIsThatOfTheAttemptsAfterTheFirst() async throws {
        let failing = Failing(Array(repeating: Self.timeout, count: 10))
        let task = WorkQueue().add(Work(retry: .immediate(count: 2)) { try failing.run() })
        await #expect(throws: WorkError.self) { try await task.value }
        #expect(failing.count == 3)
        #expect(task.state.phase == .failed && task.state.attempts == 3)
        #expect(task.state.error as? DownloadError == Self.timeout)
    }

    @Test func withoutARetryTheFirstFailureIsTheLast() async throws {
        let failing = Failing([Self.timeout])
        let task = WorkQueue().add(Work { try failing.run() })
        await #expect(throws: WorkError.self) { try await task.value }
        #expect(failing.count == 1)
    }

    /// An error, the policy, and whether it is repeated.
    struct Case: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var error: any Error
        var retry: RetryPolicy
        var isRepeated: Bool

        init(_ name: String, _ error: any Error, _ retry: RetryPolicy, _ isRepeated: Bool) {
            (testDescription, self.error, self.retry, self.isRepeated) = (name, error, retry, isRepeated)
        }
    }

    private static let decoding = DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: "no JSON"))
    private static let failed = status(.internalServerError)

    static let cases: [Case] = [
        Case("network, docker", origin(.unreachable), .steady(count: 1), true),
        Case("no host, docker", origin(.unknownHost), .steady(count: 1), true),
        Case("cut short, docker", origin(.cutShort), .steady(count: 1), true),
        Case("timeout, docker", timeout, .steady(count: 1), true),
        Case("status, docker", DownloadError.unacceptableStatus(failed), .steady(count: 1), false),
        Case("no model, docker", ServiceError.mapping(Broken(), failed), .steady(count: 1), false),
        Case("network, mm", origin(.unreachable), .immediate(count: 1), true),
        Case("status, mm", DownloadError.unacceptableStatus(failed), .immediate(count: 1), true),
        Case("status of a service, mm", ServiceError.status(failed, failure: nil), .immediate(count: 1), true),
        Case("no model, mm", ServiceError.mapping(Broken(), failed), .immediate(count: 1), true),
        Case("not decoded, mm", decoding, .immediate(count: 1), true),
        Case("an error of the program's, mm", Broken(), .immediate(count: 1), false),
        Case("one that says so", Own(cause: .status(503)), .immediate(count: 1), true),
        Case("one that is like a timeout", Own(cause: .timeout), .steady(count: 1), true),
        Case("one that is like no connection", Own(cause: .connect), .steady(count: 1), true),
        Case("one that is like a parse error", Own(cause: .content), .steady(count: 1), false),
        Case("one that says the contrary", Own(cause: nil), .immediate(count: 1), false),
        Case("a certificate, mm", origin(.untrusted), .immediate(count: 1), false),
        Case("an origin that is left alone, mm", origin(.leftAlone), .immediate(count: 1), false),
        Case("no request, mm", DownloadError.invalidRequest("no"), .immediate(count: 1), false),
        Case("no request of a service, mm", ServiceError.invalidRequest("no"), .immediate(count: 1), false),
    ]

    @Test(arguments: cases) func whatIsRepeated(_ one: Case) async throws {
        let (clock, failing) = (ManualClock(), Failing([one.error]))
        let queue = WorkQueue(clock: clock)
        let task = queue.add(Work(retry: one.retry) { try failing.run() }.withOwnCauses())
        if one.isRepeated {
            if one.retry.delay > .zero {
                try await clock.waitForSleepers(1)
                #expect(task.state.phase == .waitingForRetry && task.state.retryDelay == one.retry.delay)
                clock.advance(by: one.retry.delay)
            }
            #expect(try await task.value == 2)
        } else {
            await #expect(throws: WorkError.self) { try await task.value }
            #expect(failing.count == 1)
        }
    }

    @Test func theErrorsSayTheirCause() {
        func isRepeated(_ error: any Error, _ causes: Set<RetryCause>) -> Bool {
            RetryPolicy(count: 1, causes: causes).delay(after: error, attempt: 1, method: .get, path: "/") != nil
        }
        for (error, cause) in [
            (Self.timeout as any Error, RetryCause.timeout), (Self.origin(.cutShort), .connect),
            (ServiceError.status(Self.failed, failure: nil), .status(500)),
            (ServiceError.mapping(Broken(), Self.failed), .content),
        ] {
            #expect(isRepeated(error, [cause]) && !isRepeated(error, RetryCause.all.subtracting([cause])), "\(error)")
        }
        #expect(!isRepeated(DownloadError.closed, RetryCause.all))
        #expect(!isRepeated(ServiceError.cancelled, RetryCause.all))
    }

    @Test func whatAnOriginMayHaveActedOnIsRepeatedWhereThatIsAllowed() async throws {
        for (methods, runs) in [(RetryMethods.idempotent, 1), (.any, 2)] {
            let failing = Failing([Self.timeout])
            let retry = RetryPolicy(count: 1, delay: .zero, methods: methods)
            let task = WorkQueue().add(Work("post", retry: retry, method: .post) { try failing.run() })
            _ = try? await task.value
            #expect(failing.count == runs)
        }
        // Nothing of it was sent.
        let failing = Failing([Self.origin(.unreachable)])
        _ = try await WorkQueue().run(
            Work(retry: RetryPolicy(count: 1, delay: .zero), method: .post) { try failing.run() }
        )
        #expect(failing.count == 2)
    }

    @Test func aPredicateMayRefuseAndSeesWhatHappened() async throws {
        let seen = Mutex<[RetryPolicy.FailedAttempt]>([])
        let failing = Failing(Array(repeating: DownloadError.unacceptableStatus(Self.failed), count: 5))
        var retry = RetryPolicy.immediate(count: 4)
        retry.shouldRetry = { attempt in
            seen.withLock { $0.append(attempt) }
            return attempt.number < 2
        }
        let task = WorkQueue().add(Work("users", retry: retry, method: .put) { try failing.run() })
        await #expect(throws: WorkError.self) { try await task.value }
        #expect(failing.count == 2)
        let attempts = seen.withLock { $0 }
        #expect(attempts.map(\.number) == [1, 2])
        #expect(attempts.first?.path == "users" && attempts.first?.method == "PUT")
        #expect(attempts.first?.status == 500 && attempts.first?.cause == .status(500))
    }

    @Test func theWaitsGrow() async throws {
        let clock = ManualClock()
        let failing = Failing(Array(repeating: Self.timeout, count: 3))
        let retry = RetryPolicy(count: 3, delay: .seconds(1), backoff: 3, jitter: 0)
        let task = WorkQueue(clock: clock).add(Work(retry: retry) { try failing.run() })
        for (attempt, seconds) in [1, 3, 9].enumerated() {
            try await clock.waitForSleepers(1)
            #expect(task.state.attempts == attempt + 1)
            #expect(task.state.retryDelay == .seconds(seconds))
            clock.advance(by: .seconds(seconds) - .nanoseconds(1))
            #expect(clock.sleeperCount == 1)
            clock.advance(by: .nanoseconds(1))
        }
        #expect(try await task.value == 4)
    }

    @Test func jitterMakesAWaitShorterAndNeverLonger() async throws {
        let clock = ManualClock()
        let retry = RetryPolicy(count: 1, delay: .seconds(10), jitter: 0.5)
        let queue = WorkQueue(clock: clock)
        let tasks = (0..<8).map { _ in
            let failing = Failing([Self.timeout])
            return queue.add(Work(retry: retry) { try failing.run() })
        }
        try await clock.waitForSleepers(8)
        let delays = tasks.compactMap(\.state.retryDelay)
        #expect(delays.count == 8 && delays.allSatisfy { $0 >= .seconds(5) && $0 <= .seconds(10) })
        #expect(Set(delays).count > 1)
        clock.advance(by: .seconds(10))
        for task in tasks { #expect(try await task.value == 2) }
    }

    @Test func retryAfterIsWaitedForAsFarAsItMay() async throws {
        let clock = ManualClock()
        var fields = HTTPFields()
        fields[.retryAfter] = "7"
        let error = ServiceError.status(Self.status(.serviceUnavailable, fields), failure: nil)
        for (longest, waits) in [(Duration.seconds(10), true), (.seconds(5), false)] {
            let failing = Failing([error])
            let retry = RetryPolicy(count: 1, delay: .seconds(1), longestRetryAfter: longest)
            let task = WorkQueue(clock: clock).add(Work(retry: retry) { try failing.run() })
            if waits {
                try await clock.waitForSleepers(1)
                #expect(task.state.retryDelay == .seconds(7))
                clock.advance(by: .seconds(7))
                #expect(try await task.value == 2)
            } else {
                await #expect(throws: WorkError.self) { try await task.value }
            }
        }
    }

    @Test func theBudgetOfAQueueEndsRetries() async throws {
        let queue = WorkQueue(clock: ManualClock())
        var runs = 0
        for _ in 0..<12 {
            let failing = Failing([Self.timeout])
            var retry = RetryPolicy.immediate(count: 1)
            retry.budget = 0
            _ = try? await queue.run(Work(retry: retry) { try failing.run() })
            runs += failing.count
        }
        // Ten retries for all of them: a queue whose origin is down does not double its load.
        #expect(runs == 12 + 10)
        #expect(queue.statistics.refusedRetries == 2)
    }

    @Test func aPresetHasNoBudget() async throws {
        let failing = Failing(Array(repeating: Self.timeout, count: 60))
        let queue = WorkQueue(clock: ManualClock())
        #expect(try await queue.run(Work(retry: .immediate(count: 60), method: .post) { try failing.run() }) == 61)
        #expect(queue.statistics.retries == 60 && queue.statistics.refusedRetries == 0)
    }

    @Test func aBudgetThatIsUsedUpIsNamed() async throws {
        let (metrics, log) = (TestMetrics(), RecordedLog())
        let queue = WorkQueue(maximumRunning: nil, clock: ManualClock(), logger: log.logger, metrics)
        var retry = RetryPolicy.immediate(count: 100)
        retry.budget = 0
        for (count, error) in [
            Self.timeout as any Error, ServiceError.transport(Self.timeout), Own(cause: .connect),
        ]
        .enumerated() {
            let failing = Failing(Array(repeating: error, count: 20))
            let told = await #expect(throws: WorkError.self) {
                try await queue.run(Work("load", retry: retry) { try failing.run() }.withOwnCauses())
            }
            // An error of the program's own stays what it is.
            let isNamed = told?.description.hasSuffix("it was not repeated: " + RetryBudget.refusal) == true
            #expect(isNamed == !(error is Own), "\(told as Any)")
            #expect(queue.statistics.refusedRetries == count + 1)
        }
        #expect(log.count(.warning, "task not tried again after a failure: \(RetryBudget.refusal)") == 1)
        #expect(log.count(.info, "task not tried again after a failure: \(RetryBudget.refusal)") == 2)
        #expect(metrics.counterTotal(label: "drydock_retries_refused_total", dimensions: [("of", "tasks")]) == 3)
        #expect(metrics.counterTotal(label: "drydock_task_retries_total") == 10)
    }

    // MARK: - The slot

    @Test func whoWaitsForARetryHasNoSlotAndComesBackToTheEnd() async throws {
        let (clock, journal) = (ManualClock(), Journal())
        let queue = WorkQueue(maximumRunning: 1, clock: clock)
        let (failing, work) = (Failing([Self.timeout]), ManualClock())
        let first = queue.add(
            Work(retry: .steady(count: 1)) {
                journal.note("first")
                return try failing.run()
            }
        )
        try await clock.waitForSleepers(1)
        #expect(queue.runningCount == 0 && queue.count == 1 && queue.queuedCount == 0)
        let others = ["second", "third"].map { name in
            queue.add(
                Work {
                    journal.note(name)
                    try await work.sleep(for: .seconds(1))
                }
            )
        }
        try await work.waitForSleepers(1)
        clock.advance(by: .seconds(3))
        // It is due, and behind the third.
        #expect(await first.states.first { $0.phase == .queued } != nil)
        work.advance(by: .seconds(1))
        try await work.waitForSleepers(1)
        work.advance(by: .seconds(1))
        for task in others { try await task.value }
        #expect(try await first.value == 2)
        #expect(journal.all == ["first", "second", "third", "first"])
    }

    @Test func whoIsCancelledWhileItWaitsIsNotTriedAgain() async throws {
        let clock = ManualClock()
        let failing = Failing([Self.timeout])
        let queue = WorkQueue(clock: clock)
        let task = queue.add(Work(retry: .steady(count: 5)) { try failing.run() })
        try await clock.waitForSleepers(1)
        task.cancel()
        let error = await #expect(throws: WorkError.self) { try await task.value }
        guard case .cancelled = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(await eventually { clock.sleeperCount == 0 })
        clock.advance(by: .seconds(60))
        #expect(queue.count == 0)
        #expect(failing.count == 1 && task.state.phase == .cancelled && task.state.attempts == 1)
        #expect(task.state.error as? DownloadError == Self.timeout)
    }
}
