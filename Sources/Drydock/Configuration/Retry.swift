// How a request that failed is made again, when an origin that fails is left alone, and what errors say where the
// budget of retries had nothing left.

package import Policies
import ServiceCore

extension DownloadConfiguration {
    /// How a request to an origin is made again after a failure. Everybody who waits for the answer waits for its
    /// attempts together, and between two attempts the request has none of the ``DownloadConfiguration/maximumFetches``.
    public struct Retry: Sendable, Hashable {
        /// A failure after which a request may be made again.
        public enum Cause: Sendable, Hashable {
            /// The connection could not be made, or ended before the head of the answer. A certificate that does not
            /// verify is no such failure.
            case connect
            /// A timeout passed before the head of the answer.
            case timeout
            /// The body is not what ``DownloadOptions/expectation`` says, or ended before that was known, or the media
            /// type is none of ``DownloadConfiguration/acceptedContentTypes``.
            case content
            /// This status, 400 to 599.
            case status(Int)

            /// Every cause there is.
            public static let all = Set<Cause>([.connect, .timeout, .content] + (400...599).map { .status($0) })
        }

        /// Which methods are repeated where the origin may have acted on the first attempt.
        public enum Methods: String, Sendable, Hashable, CaseIterable {
            /// GET, HEAD, PUT, DELETE, OPTIONS and TRACE (RFC 9110 section 9.2.2).
            case idempotent
            /// All of them.
            case any
        }

        /// An attempt that failed, as ``Retry/shouldRetry`` sees it.
        public struct FailedAttempt: Sendable, Hashable {
            /// Which attempt it was, counted from 1.
            public var number: Int
            /// The method of the request.
            public var method: String
            /// Without the query, which may hold secrets.
            public var path: String
            /// What kind of failure it was.
            public var cause: Cause
            /// The status of the answer; nil if there was none.
            public var status: Int?
            /// What happened, for logs.
            public var detail: String

            /// Makes an attempt, for a program's own tests.
            public init(
                number: Int,
                method: String,
                path: String,
                cause: Cause,
                status: Int? = nil,
                detail: String = ""
            ) {
                self.number = number
                self.method = method
                self.path = path
                self.cause = cause
                self.status = status
                self.detail = detail
            }
        }

        /// Attempts after the first one; 0, the default, makes none.
        public var count: Int
        /// The wait before the first retry; 500 ms by default.
        public var delay: Duration
        /// By what the wait is multiplied for each further one; 2 by default, and 1 leaves it as it is.
        public var backoff: Int
        /// Share of each wait, from 0 to 1, by which it may be shorter, at random, so that many programs do not come
        /// back at the same moment; 0.2 by default.
        public var jitter: Double
        /// The failures that are repeated; ``Cause/connect``, ``Cause/timeout`` and the statuses 502, 503 and 504 by
        /// default.
        public var causes: Set<Cause>
        /// The longest Retry-After that is waited for; an answer that asks for more is final. 30 seconds by default.
        public var longestRetryAfter: Duration
        /// Which methods are repeated where the origin may have acted on the first attempt; ``Methods/idempotent`` by
        /// default. A request of which nothing reached the origin is repeated whatever its method.
        public var methods: Methods
        /// Retries as a share of the requests, from 0 to 1; 0.2 by default. Beside these there is one in each second,
        /// up to ten. The error, the log and the metrics say where it has kept a failure from being repeated. nil is no
        /// budget: there are as many retries as ``count`` says.
        public var budget: Double?

        private var predicate: Identified<@Sendable (FailedAttempt) -> Bool>?

        /// Asked about each failure that may be repeated by all that is said above; false makes it final. It cannot
        /// allow more than that. None by default.
        ///
        /// Called on a thread of the manager: it must not wait. Two settings are equal where one is a copy of the other.
        public var shouldRetry: (@Sendable (FailedAttempt) -> Bool)? {
            get { predicate?.value }
            set { predicate = newValue.map { Identified($0) } }
        }

        /// Retries as these say; what is left out is the default.
        public init(
            count: Int = 0,
            delay: Duration = .milliseconds(500),
            backoff: Int = 2,
            jitter: Double = 0.2,
            causes: Set<Cause> = [.connect, .timeout, .status(502), .status(503), .status(504)],
            longestRetryAfter: Duration = .seconds(30),
            methods: Methods = .idempotent,
            budget: Double? = 0.2,
            shouldRetry: (@Sendable (FailedAttempt) -> Bool)? = nil
        ) {
            self.count = count
            self.delay = delay
            self.backoff = backoff
            self.jitter = jitter
            self.causes = causes
            self.longestRetryAfter = longestRetryAfter
            self.methods = methods
            self.budget = budget
            self.shouldRetry = shouldRetry
        }

        /// No retries.
        public static let never = Retry()

        /// As the library Docker: 3 seconds before each attempt, only where no answer came, and without a budget. Unlike
        /// there, a method that is not idempotent is repeated only where nothing of the request was sent.
        public static func docker(count: Int) -> Retry { Retry(.docker, count: count) }

        /// As the library MMNetworkingKit: at once, after every failure, and without a budget. Every method is repeated:
        /// an origin that had acted on a POST before it failed acts on it again.
        public static func mm(count: Int) -> Retry { Retry(.mm, count: count) }

        private init(_ preset: RetryPreset, count: Int) {
            let policy = preset.policy
            self.init(
                count: count,
                delay: .nanoseconds(policy.delay),
                backoff: policy.backoff,
                jitter: policy.jitter,
                causes: Set(policy.causes.map(Cause.init)),
                longestRetryAfter: .nanoseconds(policy.maxRetryAfter),
                methods: policy.methods == .any ? .any : .idempotent,
                budget: policy.budget
            )
        }
    }

    /// When an origin that fails is left alone. Each origin has a breaker of its own: scheme, host and port.
    public struct Breaker: Sendable, Hashable {
        /// Failures in a row that open it; 5 by default. A failure is an answer that does not come, and a 502, 503 or
        /// 504.
        public var failures: Int
        /// How long all of them may take; 10 seconds by default.
        public var window: Duration
        /// How long nobody asks the origin then, before one request finds out whether it answers again; 30 seconds by
        /// default.
        public var open: Duration

        /// A breaker with these numbers.
        public init(failures: Int = 5, window: Duration = .seconds(10), open: Duration = .seconds(30)) {
            self.failures = failures
            self.window = window
            self.open = open
        }
    }
}

extension DownloadConfiguration.Retry {
    /// In the words of the modules below, within what makes sense.
    package var policy: RetryPolicy {
        RetryPolicy(
            count: max(0, count),
            delay: delay.wholeNanoseconds,
            backoff: max(1, backoff),
            jitter: min(max(0, jitter), 1),
            causes: Set(causes.compactMap(\.rule)),
            maxRetryAfter: longestRetryAfter.wholeNanoseconds,
            methods: methods == .any ? .any : .idempotent,
            budget: budget.map { min(max(0, $0), 1) }
        )
    }
}

extension DownloadConfiguration.Retry.Cause {
    package init(_ cause: RetryCause) {
        switch cause {
        case .connect: self = .connect
        case .timeout: self = .timeout
        case .content: self = .content
        case .status(let status): self = .status(status)
        }
    }

    /// The cause in the words of the modules below; nil for a status that is no failure.
    fileprivate var rule: RetryCause? {
        switch self {
        case .connect: .connect
        case .timeout: .timeout
        case .content: .content
        case .status(let status): 400...599 ~= status ? .status(status) : nil
        }
    }
}

extension DownloadConfiguration.Breaker {
    var policy: BreakerPolicy {
        BreakerPolicy(
            failures: max(1, failures),
            window: window.wholeNanoseconds,
            open: open.wholeNanoseconds
        )
    }
}

// MARK: - Refused retries

extension DownloadResult {
    /// What descriptions of failures end with.
    package var refusalText: String { isRetryRefused ? "; it was not repeated: \(RetryBudget.refusal)" : "" }
}

extension DownloadError {
    /// The error with the remark that the budget of retries has kept its request from being repeated.
    package var withoutRetry: DownloadError {
        switch self {
        case .origin(let failure):
            .origin(
                OriginFailure(
                    kind: failure.kind,
                    detail: "\(failure.detail); it was not repeated: \(RetryBudget.refusal)"
                )
            )
        case .unacceptableStatus(let result): .unacceptableStatus(result.withoutRetry)
        default: self
        }
    }
}
