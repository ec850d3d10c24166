// What is done about an origin that fails: when a fetch is made again, when the origin is left alone for a while, and
// whether calls wait for it.

/// A failure after which a fetch may be made again.
package enum RetryCause: Hashable, Sendable {
    /// The connection could not be made, or ended before the head of the answer.
    case connect
    /// A deadline passed before the head of the answer.
    case timeout
    /// The body is not what the route expects, or ended too early.
    case content
    /// A status, 400 to 599.
    case status(Int)

    /// Reads a cause as a configuration says it: a word, or a status.
    package init?(_ text: String) {
        switch text {
        case "connect": self = .connect
        case "timeout": self = .timeout
        case "content": self = .content
        default:
            guard text.utf8.count == 3, let status = Int(text), 400...599 ~= status else { return nil }
            self = .status(status)
        }
    }
}

extension RetryPreset {
    /// Waits, causes and methods. Neither library had a budget: there are as many retries as the count says.
    package var policy: RetryPolicy {
        switch self {
        case .docker:
            RetryPolicy(delay: 3_000_000_000, backoff: 1, jitter: 0, causes: [.connect, .timeout], budget: nil)
        case .mm:
            RetryPolicy(
                delay: 0,
                backoff: 1,
                jitter: 0,
                causes: Set([.connect, .timeout, .content] + (400...599).map { .status($0) }),
                methods: .any,
                budget: nil
            )
        }
    }
}

/// Which methods a retry may repeat where the origin may have acted on the first attempt.
package enum RetryMethods: String, Sendable, CaseIterable {
    /// GET, HEAD, PUT, DELETE, OPTIONS and TRACE (RFC 9110 section 9.2.2).
    case idempotent
    case any
}

/// The habits of the libraries that Drydock grew out of.
package enum RetryPreset: String, Sendable, CaseIterable {
    /// 3 s before each attempt, and only where no answer came.
    case docker
    /// Retries follow at once, after every failure, whatever the method is.
    case mm
}

/// How a fetch is repeated.
package struct RetryPolicy: Sendable, Equatable {
    /// Attempts after the first; 0: none.
    package var count: Int
    /// Nanoseconds before the first retry.
    package var delay: UInt64
    /// The factor by which the wait grows with each further retry; 1 keeps it as it is.
    package var backoff: Int
    /// Share of a wait, 0 to 1, by which it is drawn shorter, so that many do not come back at once.
    package var jitter: Double
    package var causes: Set<RetryCause>
    /// The longest Retry-After, in nanoseconds, that is waited for; an answer that asks for more is final.
    package var maxRetryAfter: UInt64
    package var methods: RetryMethods
    /// Retries as a share of requests, 0 to 1, beside one in each second; nil: as many as ``count`` says.
    package var budget: Double?

    package init(
        count: Int = 0,
        delay: UInt64 = 500_000_000,
        backoff: Int = 2,
        jitter: Double = 0.2,
        causes: Set<RetryCause> = [.connect, .timeout, .status(502), .status(503), .status(504)],
        maxRetryAfter: UInt64 = 30_000_000_000,
        methods: RetryMethods = .idempotent,
        budget: Double? = 0.2
    ) {
        self.count = count
        self.delay = delay
        self.backoff = backoff
        self.jitter = jitter
        self.causes = causes
        self.maxRetryAfter = maxRetryAfter
        self.methods = methods
        self.budget = budget
    }

    /// The wait before a retry, in nanoseconds.
    /// - Parameters:
    ///   - retry: 1 for the first.
    ///   - draw: 0 to 1; how much of the jitter is taken off.
    package func wait(beforeRetry retry: Int, draw: Double) -> UInt64 {
        // Beyond a day nobody waits; the bound keeps the product from overflowing.
        var wait = Double(delay)
        for _ in 1..<max(1, retry) { wait = min(wait * Double(backoff), 86_400e9) }
        return UInt64(wait * (1 - jitter * draw))
    }
}

// MARK: - Leaving an origin alone

/// When the circuit breaker of an origin opens, and for how long.
package struct BreakerPolicy: Sendable, Equatable {
    /// Failures in a row that open it, at least 1.
    package var failures: Int
    /// Nanoseconds within which they must come.
    package var window: UInt64
    /// Nanoseconds that it stays open before one request may probe the origin.
    package var open: UInt64

    package init(failures: Int = 5, window: UInt64 = 10_000_000_000, open: UInt64 = 30_000_000_000) {
        self.failures = failures
        self.window = window
        self.open = open
    }
}

// MARK: - Waiting for an origin

/// Whether calls wait for an origin that is away, and for how long; the bounds are those of one service.
package struct ParkPolicy: Sendable, Equatable {
    /// Nanoseconds that a call may wait in all.
    package var time: UInt64
    /// Calls that may wait at the same time, at least 1.
    package var calls: Int
    /// Bytes that they may take together: heads, contents, and 32 KiB for each call.
    package var size: Int

    package init(time: UInt64, calls: Int = 1000, size: Int = 64 << 20) {
        self.time = time
        self.calls = calls
        self.size = size
    }
}
