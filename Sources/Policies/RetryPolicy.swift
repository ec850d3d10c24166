// The treatment of an origin that fails: repeated fetches, the pause after failures, and calls that wait for it.

/// A failure after which a request may be made again.
public enum RetryCause: Hashable, Sendable {
    /// The connection could not be made, or ended before the head of the answer. A certificate that does not verify is
    /// no such failure.
    case connect
    /// A timeout passed before the head of the answer.
    case timeout
    /// The body does not meet the expectation of the request, or ended before that was known; or its media type is not
    /// an accepted one.
    case content
    /// The answer has this status, 400 to 599.
    case status(Int)

    /// Every cause there is.
    public static let all = Set<RetryCause>([.connect, .timeout, .content] + (400...599).map { .status($0) })

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

/// The methods that a retry may repeat if the origin may have acted on the first attempt; the raw value is the word in
/// files.
public enum RetryMethods: String, Sendable, CaseIterable {
    /// The methods GET, HEAD, PUT, DELETE, OPTIONS and TRACE (RFC 9110 section 9.2.2).
    case idempotent
    /// All methods.
    case any
}

/// The behaviour of the libraries that preceded Drydock; the raw value is the word in files, the name of the library.
package enum RetryPreset: String, Sendable, CaseIterable {
    /// A retry waits 3 s, and is made only if no answer came.
    case steady = "docker"
    /// Retries follow at once, after every failure, whatever the method is.
    case immediate = "mm"

    /// The waits, causes and methods of the preset. Neither library had a budget: the count alone limits retries.
    package var policy: RetryPolicy {
        switch self {
        case .steady: .steady(count: 0)
        case .immediate: .immediate(count: 0)
        }
    }
}

/// The policy for repeating a request after a failure. Everybody who waits for the answer waits for its attempts
/// together, and between two attempts the request has none of the slots of requests under way.
public struct RetryPolicy: Sendable, Hashable {
    /// An attempt that failed, as ``RetryPolicy/shouldRetry`` sees it.
    public struct FailedAttempt: Sendable, Hashable {
        /// The number of the attempt; 1 for the first.
        public var number: Int
        /// The method of the request.
        public var method: String
        /// The path without the query, which may hold secrets.
        public var path: String
        /// The kind of the failure.
        public var cause: RetryCause
        /// The status of the answer; nil if there was none.
        public var status: Int?
        /// What happened, for logs.
        public var detail: String

        /// Makes an attempt, for a program's own tests.
        public init(
            number: Int,
            method: String,
            path: String,
            cause: RetryCause,
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

    /// The most attempts after the first; 0, the default, makes none.
    public var count: Int
    /// The wait before the first retry; 500 ms by default.
    public var delay: Duration
    /// The factor by which the wait grows with each further retry; 2 by default, and 1 keeps it.
    public var backoff: Int
    /// The longest wait that ``backoff`` leads to, at least ``delay``; a day where it is nil, as by default.
    public var longestDelay: Duration?
    /// The share of a wait, 0 to 1, by which it is randomly shortened, so that clients do not come back at the same
    /// moment; 0.2 by default.
    public var jitter: Double
    /// The failures that are repeated; ``RetryCause/connect``, ``RetryCause/timeout`` and the statuses 502, 503 and 504
    /// by default.
    public var causes: Set<RetryCause>
    /// The longest Retry-After to wait for; an answer that asks for more is final. 30 seconds by default.
    public var longestRetryAfter: Duration
    /// The methods that are repeated if the origin may have acted on the first attempt; ``RetryMethods/idempotent`` by
    /// default. A request of which nothing reached the origin is repeated whatever its method.
    public var methods: RetryMethods
    /// The share of requests, 0 to 1, that may be retries; 0.2 by default. Beside these there is one in each second, up
    /// to ten. The error, the log and the metrics say where the budget has kept a failure from being repeated. Nil is no
    /// budget: ``count`` alone limits retries.
    public var budget: Double?

    private var predicate: Identified<@Sendable (FailedAttempt) -> Bool>?

    /// A program's own condition, asked about each failure that may be repeated by all that is said above; false makes
    /// the failure final. It cannot allow more than that. None by default.
    ///
    /// It is called on a thread of the library: it must not wait. Two policies are equal where one is a copy of the
    /// other.
    public var shouldRetry: (@Sendable (FailedAttempt) -> Bool)? {
        get { predicate?.value }
        set { predicate = newValue.map { Identified($0) } }
    }

    /// Makes a policy; what is left out is the default.
    public init(
        count: Int = 0,
        delay: Duration = .milliseconds(500),
        backoff: Int = 2,
        longestDelay: Duration? = nil,
        jitter: Double = 0.2,
        causes: Set<RetryCause> = [.connect, .timeout, .status(502), .status(503), .status(504)],
        longestRetryAfter: Duration = .seconds(30),
        methods: RetryMethods = .idempotent,
        budget: Double? = 0.2,
        shouldRetry: (@Sendable (FailedAttempt) -> Bool)? = nil
    ) {
        self.count = count
        self.delay = delay
        self.backoff = backoff
        self.longestDelay = longestDelay
        self.jitter = jitter
        self.causes = causes
        self.longestRetryAfter = longestRetryAfter
        self.methods = methods
        self.budget = budget
        self.shouldRetry = shouldRetry
    }

    /// The policy without retries.
    public static let never = RetryPolicy()

    /// Retries 3 seconds after one another, only where no answer came, and without a budget. A method that is not
    /// idempotent is repeated only where nothing of the request was sent.
    public static func steady(count: Int) -> RetryPolicy {
        RetryPolicy(
            count: count,
            delay: .seconds(3),
            backoff: 1,
            jitter: 0,
            causes: [.connect, .timeout],
            budget: nil
        )
    }

    /// Retries at once, after every failure, and without a budget. Every method is repeated: an origin that had acted on
    /// a POST before it failed acts on it again.
    public static func immediate(count: Int) -> RetryPolicy {
        RetryPolicy(
            count: count,
            delay: .zero,
            backoff: 1,
            jitter: 0,
            causes: RetryCause.all,
            methods: .any,
            budget: nil
        )
    }

    /// The policy within what makes sense: whatever a program has set, no number is negative, shares are 0 to 1, and
    /// statuses are failures.
    package var bounded: RetryPolicy {
        var policy = self
        policy.count = max(0, count)
        policy.backoff = max(1, backoff)
        policy.jitter = min(max(0, jitter), 1)
        policy.causes = causes.filter { if case .status(let status) = $0 { 400...599 ~= status } else { true } }
        policy.budget = budget.map { min(max(0, $0), 1) }
        return policy
    }

    /// The wait before a retry, in nanoseconds.
    /// - Parameters:
    ///   - retry: the number of the retry; 1 for the first.
    ///   - draw: 0 to 1; the part of the jitter that is taken off.
    package func wait(beforeRetry retry: Int, draw: Double) -> UInt64 {
        // No wait is longer than a day; the limit keeps the product from overflowing.
        var wait = Double(delay.wholeNanoseconds)
        let longest = min(longestDelay.map { Double($0.wholeNanoseconds) } ?? 86_400e9, 86_400e9)
        for _ in 1..<max(1, retry) { wait = min(wait * Double(backoff), longest) }
        return UInt64(wait * (1 - jitter * draw))
    }
}

// MARK: - Leaving an origin alone

/// The conditions for leaving an origin alone after failures, and for how long. Each origin has a breaker of its own:
/// scheme, host and port.
public struct BreakerPolicy: Sendable, Hashable {
    /// The number of failures in a row that open the breaker, at least 1; 5 by default. A failure is an answer that does
    /// not come, and a 502, 503 or 504.
    public var failures: Int
    /// The time within which all of them must occur; 10 seconds by default.
    public var window: Duration
    /// The time for which nobody asks the origin then, before one request finds out whether it answers again; 30
    /// seconds by default.
    public var pause: Duration

    /// Makes a breaker; what is left out is the default.
    public init(failures: Int = 5, window: Duration = .seconds(10), pause: Duration = .seconds(30)) {
        self.failures = failures
        self.window = window
        self.pause = pause
    }

    /// The policy within what makes sense, whatever a program has set.
    package var bounded: BreakerPolicy {
        BreakerPolicy(failures: max(1, failures), window: window, pause: pause)
    }
}

// MARK: - Waiting for an origin

/// The limits of calls that wait for an origin that cannot be reached, for one service.
package struct ParkPolicy: Sendable, Equatable {
    /// The longest wait of a call in nanoseconds.
    package var time: UInt64
    /// The most calls that wait at the same time, at least 1.
    package var calls: Int
    /// The most bytes of the waiting calls together: heads, contents, and 36 KiB for each call.
    package var size: Int

    package init(time: UInt64, calls: Int = 1000, size: Int = 64 << 20) {
        self.time = time
        self.calls = calls
        self.size = size
    }
}

// MARK: - Values of settings

extension Duration {
    /// The seconds, rounded down; zero where the duration is negative.
    package var wholeSeconds: Int64 { max(0, components.seconds) }

    /// The nanoseconds; zero where the duration is negative, and the greatest number where it is too long.
    package var wholeNanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? .max : product.addingReportingOverflow(UInt64(attoseconds / 1_000_000_000)).partialValue
    }
}

/// A value that has no equality of its own, such as a closure, with that of its box.
package struct Identified<Value: Sendable>: Sendable, Hashable {
    private final class Box: Sendable {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private let box: Box

    package init(_ value: Value) { box = Box(value) }

    package var value: Value { box.value }

    package static func == (left: Self, right: Self) -> Bool { left.box === right.box }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(box)) }
}
