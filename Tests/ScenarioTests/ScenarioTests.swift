// The scenarios that start the release binary as a process, one after the other, each on a thread of its own.

import TestSupport
import Testing

/// The scenarios of the daemon; serialised, since each may load the whole machine.
@Suite(.serialized, .blocking)
struct Scenarios {}

/// Runs a test on a thread of its own, so that it may block without holding up other tests.
struct Blocking: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    @concurrent
    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
    }
}

extension Trait where Self == Blocking {
    static var blocking: Blocking { Blocking() }
}
