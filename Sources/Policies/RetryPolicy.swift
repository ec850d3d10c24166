// The treatment of an origin that fails: repeated fetches, the pause after failures, and calls that wait for it.

/// A failure after which a fetch may be made again.
package enum RetryCause: Hashable, Sendable {
    /// The connection could not be opened, or ended before the head of the answer.
    case connect
    /// A deadline passed before the head of the answer.
    case timeout
    /// The body does not meet the expectation of the route, or ended too early.
    case content
    /// The answer has this status, 400 to 599.
    case status(Int)

    /// Reads a cause in the form of a configuration: a word, or a status.
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
    /// The waits, causes and methods of the preset. Neither library had a budget: the count alone limits retries.
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

/// The methods that a retry may repeat if the origin may have acted on the first attempt.
package enum RetryMethods: String, Sendable, CaseIterable {
    /// The methods GET, HEAD, PUT, DELETE, OPTIONS and TRACE (RFC 9110 section 9.2.2).
    case idempotent
    case any
}

/// The behaviour of the libraries that preceded Drydock.
package enum RetryPreset: String, Sendable, CaseIterable {
    /// A retry waits 3 s, and is made only if no answer came.
    case docker
    /// Retries follow at once, after every failure, whatever the method is.
    case mm
}

/// The policy for repeating a fetch.
package struct RetryPolicy: Sendable, Equatable {
    /// The most attempts after the first; 0 for none.
    package var count: Int
    /// The nanoseconds before the first retry.
    package var delay: UInt64
    /// The factor by which the wait grows with each further retry; 1 to keep it.
    package var backoff: Int
    /// The longest wait in nanoseconds, at least ``delay``; nil for a day.
    package var maxDelay: UInt64?
    /// The share of a wait, 0 to 1, by which it is randomly shortened, so that clients do not retry at the same time.
    package var jitter: Double
    package var causes: Set<RetryCause>
    /// The longest Retry-After to wait for, in nanoseconds; an answer that asks for more is final.
    package var maxRetryAfter: UInt64
    package var methods: RetryMethods
    /// The share of requests, 0 to 1, that may be retries, besides one in each second; nil if only ``count`` limits
    /// them.
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
    ///   - retry: the number of the retry; 1 for the first.
    ///   - draw: 0 to 1; the part of the jitter that is taken off.
    package func wait(beforeRetry retry: Int, draw: Double) -> UInt64 {
        // No wait is longer than a day; the limit keeps the product from overflowing.
        let longest = min(maxDelay.map { Double($0) } ?? 86_400e9, 86_400e9)
        var wait = Double(delay)
        for _ in 1..<max(1, retry) { wait = min(wait * Double(backoff), longest) }
        return UInt64(wait * (1 - jitter * draw))
    }
}

// MARK: - Leaving an origin alone

/// The conditions for opening the circuit breaker of an origin, and for how long.
package struct BreakerPolicy: Sendable, Equatable {
    /// The number of failures in a row that open it, at least 1.
    package var failures: Int
    /// The nanoseconds within which they must occur.
    package var window: UInt64
    /// The nanoseconds for which it stays open before one request may probe the origin.
    package var open: UInt64

    package init(failures: Int = 5, window: UInt64 = 10_000_000_000, open: UInt64 = 30_000_000_000) {
        self.failures = failures
        self.window = window
        self.open = open
    }
}

// MARK: - Waiting for an origin

/// The limits of calls that wait for an origin that cannot be reached, for one service.
package struct ParkPolicy: Sendable, Equatable {
    /// The longest wait of a call in nanoseconds.
    package var time: UInt64
    /// The most calls that wait at the same time, at least 1.
    package var calls: Int
    /// The most bytes of the waiting calls together: heads, contents, and 32 KiB for each call.
    package var size: Int

    package init(time: UInt64, calls: Int = 1000, size: Int = 64 << 20) {
        self.time = time
        self.calls = calls
        self.size = size
    }
}
