// What outlives a reload: the admission, the resilience, the parked calls and the counters of each service, by the service's name.

import EventLoop
package import Policies
import Synchronization

/// One service's state.
///
/// Sendable: admission, resilience, parked calls, windows and the counts of rungs have mutexes of their own, the counters
/// are atomic.
package final class ServiceRuntime: Sendable {
    package let name: String
    package let admission: Admission
    package let resilience: Resilience
    package let parked: ParkedCalls
    package let rates = RateWindows()
    private let rungs = Mutex<[AnswerRung: Int]>([:])
    private let fetches = Atomic<Int>(0)
    private let redirects = Atomic<Int>(0)

    /// - Parameters:
    ///   - now: monotonic nanoseconds.
    ///   - onReport: called on any loop.
    package init(
        name: String,
        limits: AdmissionLimits,
        now: @escaping @Sendable () -> UInt64 = Monotonic.now,
        onReport: @escaping @Sendable (ServiceReport) -> Void = { _ in }
    ) {
        self.name = name
        admission = Admission(limits)
        resilience = Resilience(now: now, onReport: onReport)
        parked = ParkedCalls(admission, now: now, onReport: onReport)
    }

    /// Fetches begun since the start, HEAD checks among them.
    package var fetchCount: Int { fetches.load(ordering: .relaxed) }

    /// Redirects followed since the start.
    package var redirectCount: Int { redirects.load(ordering: .relaxed) }

    package func countRedirect() { redirects.wrappingAdd(1, ordering: .relaxed) }

    /// Answers since the start that a rung of a route with rungs has given.
    package func answerCount(of rung: AnswerRung) -> Int { rungs.withLock { $0[rung] ?? 0 } }

    func countAnswer(of rung: AnswerRung) { rungs.withLock { $0[rung, default: 0] += 1 } }

    package func countFetch() { fetches.wrappingAdd(1, ordering: .relaxed) }

    /// What has been counted since the start.
    package func count(of figure: ServiceFigure) -> Int {
        switch figure {
        case .redirects: redirectCount
        case .answers(let rung): answerCount(of: rung)
        case .retries: resilience.retryCount
        case .refusedRetries: resilience.unaffordableCount
        case .breakerOpenings: resilience.openingCount
        case .breakerRefusals: resilience.refusalCount
        case .limited: rates.refusedCount
        case .limitedEarly: rates.earlyCount
        case .parked: parked.counts.parked
        case .replayed: parked.counts.replayed
        case .parkExpired: parked.counts.expired
        case .parkDropped: parked.counts.dropped
        case .parkRefused: parked.counts.refused
        }
    }
}
