// What a queue has done so far, in numbers, and how it counts and logs it.

import CoreMetrics
import Drydock
import HTTPTypes
import Logging
import ServiceCore
import Synchronization

/// The numbers of what a queue has done since it was made.
struct WorkStatistics: Hashable {
    var done = 0
    var failed = 0
    var cancelled = 0
    var retries = 0
    var refusedRetries = 0
    var groups = 0
}

/// The record of one queue. Sendable: its numbers are under a mutex, and nobody is called under it.
final class WorkJournal: Sendable {
    private let numbers = Mutex(WorkStatistics())
    private let logger: Logger
    private let metrics: WorkMetrics?
    private let refused: RefusedRetries

    init(_ logger: Logger, _ factory: any MetricsFactory) {
        self.logger = logger
        metrics = WorkMetrics(factory)
        refused = RefusedRetries(of: .tasks, factory)
    }

    var statistics: WorkStatistics { numbers.withLock { $0 } }

    func ended<Value>(_ end: WorkEnd<Value>) {
        numbers.withLock { numbers in
            switch end.state.phase {
            case .done: numbers.done += 1
            case .cancelled: numbers.cancelled += 1
            default: numbers.failed += 1
            }
        }
        metrics?.countEnd(end.state.phase)
        logger.debug(
            "task ended",
            metadata: Self.metadata(end.name, end.method, end.state.attempts, end.state.error)
                .merging(["end": "\(end.state.phase)"]) { one, _ in one }
        )
    }

    func repeats(_ name: String, _ method: HTTPRequest.Method, attempts: Int, _ error: any Error, in wait: Duration) {
        numbers.withLock { $0.retries += 1 }
        metrics?.countRetry()
        logger.debug(
            "task is tried again",
            metadata: Self.metadata(name, method, attempts, error).merging(["wait": "\(wait)"]) { one, _ in one }
        )
    }

    func refused(
        _ name: String,
        _ method: HTTPRequest.Method,
        attempts: Int,
        _ error: any Error,
        _ refusal: RetryBudget.Refusal
    ) {
        numbers.withLock { $0.refusedRetries += 1 }
        refused.count()
        logger.log(
            level: refusal == .first ? .warning : .info,
            "task not tried again after a failure: \(RetryBudget.refusal)",
            metadata: Self.metadata(name, method, attempts, error)
        )
    }

    /// A group has ended.
    /// - Parameter members: of the group.
    func groupEnded(_ phase: WorkState.Phase, members: Int, _ error: WorkError?) {
        numbers.withLock { $0.groups += 1 }
        metrics?.countGroup(phase)
        logger.debug(
            "group ended",
            metadata: [
                "end": "\(phase.nameOfGroup)", "members": "\(members)", "error": "\(error.map { "\($0)" } ?? "")",
            ]
        )
    }

    private static func metadata(
        _ name: String,
        _ method: HTTPRequest.Method,
        _ attempts: Int,
        _ error: (any Error)?
    ) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["task": "\(name)", "method": "\(method.rawValue)", "attempts": "\(attempts)"]
        if let error { metadata["error"] = "\(error)" }
        return metadata
    }
}
