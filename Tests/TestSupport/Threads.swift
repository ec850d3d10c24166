// Threads for blocking work, so that the concurrency pool of the tests is never blocked.

import Foundation

/// Starts threads and joins them.
package enum Threads {
    /// Starts a detached thread with a small stack.
    package static func start(_ name: String = "test", _ body: @escaping @Sendable () -> Void) {
        let thread = Thread { body() }
        thread.name = name
        thread.stackSize = 512 * 1024
        thread.start()
    }

    /// Runs `body` on `count` threads at once and returns their results in order.
    ///
    /// - Throws: the first error that any of them threw, after all have ended; `TestSupportError.timedOut` when
    ///   they have not all ended after `seconds` (default 300).
    package static func run<Result: Sendable>(
        _ count: Int,
        seconds: Double = 300,
        _ body: @escaping @Sendable (Int) throws -> Result
    ) throws -> [Result] {
        let outcomes = Monitor([Int: Swift.Result<Result, any Error>]())
        for index in 0..<count {
            start { [outcomes] in
                let outcome = Swift.Result { try body(index) }
                outcomes.update { $0[index] = outcome }
            }
        }
        guard outcomes.wait(seconds, until: { $0.count == count }) else {
            let ended = outcomes.read { $0.count }
            throw TestSupportError.timedOut("\(count - ended) of \(count) threads still work after \(seconds) s")
        }
        return try outcomes.read { all in
            try (0..<count).compactMap { try all[$0]?.get() }
        }
    }
}

/// What goes wrong in the test support itself, with what to do about it.
package enum TestSupportError: Error, CustomStringConvertible {
    case system(call: String, code: Int32)
    case timedOut(String)
    case missing(String)
    case failed(String)

    package var description: String {
        switch self {
        case .system(let call, let code): "\(call): \(String(cString: strerror(code)))"
        case .timedOut(let what): "timed out: \(what)"
        case .missing(let what): "missing: \(what)"
        case .failed(let what): what
        }
    }
}

/// An executor that gives every job of a task a thread of its own, so that a test may block.
///
/// Use: `try await withTaskExecutorPreference(BlockingExecutor.shared) { try blockingWork() }`.
package final class BlockingExecutor: TaskExecutor {
    package static let shared = BlockingExecutor()

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = asUnownedTaskExecutor()
        let thread = Thread { job.runSynchronously(on: executor) }
        thread.name = "blocking test"
        thread.stackSize = 8 * 1024 * 1024
        thread.start()
    }
}
