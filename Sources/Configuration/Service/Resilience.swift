// The treatment of an origin that fails or is busy: retries, circuit breakers, queues, and calls that wait for it.

import Policies

extension KeyTable {
    static let retry = SectionDescriptor(
        name: "retry",
        keys: [
            KeyDescriptor(
                "count",
                .integer(0...20),
                default: "0",
                "How many attempts may follow the first one.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "preset",
                .choice(RetryPreset.allCases.map(\.rawValue)),
                "The habits of an old library as defaults of the other keys, without a budget: docker or mm.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "delay",
                .duration,
                default: "500ms",
                "The wait before the first retry.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "backoff",
                .integer(1...10),
                default: "2",
                "By what the wait is multiplied for each further retry; 1 leaves it as it is.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "max_delay",
                .word("none", or: .duration),
                default: "none",
                "The longest wait that backoff leads to.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "jitter",
                .share,
                default: "20%",
                "By how much a wait may be shorter, at random, so that many clients do not come back at once.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "when",
                .list(.text(.retryCause)),
                default: "[connect, timeout, 502, 503, 504]",
                "After which failures: connect, timeout, content (the body is not what response.expect says) and statuses.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "retry_after",
                .duration,
                default: "30s",
                "The longest Retry-After that is waited for; an answer that asks for more is passed on.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "methods",
                .choice(RetryMethods.allCases.map(\.rawValue)),
                default: "idempotent",
                "Which methods are repeated where the origin may have acted on the request; one that never reached it always is.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "budget",
                .share,
                default: "20%",
                "Retries as a share of the requests, beside one in each second.",
                inherited: .endpoints
            ),
        ]
    )

    static let breaker = SectionDescriptor(
        name: "breaker",
        keys: [
            KeyDescriptor(
                "failures",
                .word("none", or: .integer(1...1_000)),
                default: "none",
                "After how many failures in a row the origin is left alone.",
                inherited: .services
            ),
            KeyDescriptor(
                "window",
                .duration,
                default: "10s",
                "The time in which these failures must come.",
                inherited: .services
            ),
            KeyDescriptor(
                "open",
                .duration,
                default: "30s",
                "How long the origin is left alone before one request probes it.",
                inherited: .services
            ),
        ]
    )
}

extension KeyTable {
    static let maxQueue = SectionDescriptor(
        name: "max_queue",
        keys: [
            KeyDescriptor(
                "length",
                .integer(0...1_000_000),
                default: "100",
                "How many fetches may wait for max_concurrent.",
                inherited: .services
            ),
            KeyDescriptor("wait", .duration, default: "5s", "How long a fetch may wait.", inherited: .services),
        ]
    )
}

extension KeyTable {
    static let park = SectionDescriptor(
        name: "park",
        keys: [
            KeyDescriptor(
                "time",
                .word("none", or: .duration),
                default: "none",
                "How long a call may wait.",
                inherited: .services
            ),
            KeyDescriptor(
                "calls",
                .integer(1...100_000),
                default: "1000",
                "How many calls may wait at the same time.",
                inherited: .services
            ),
            KeyDescriptor(
                "size",
                .size,
                default: "64MiB",
                "How large they may be together: their heads and their contents.",
                inherited: .services
            ),
        ]
    )
}

/// The queue of fetches that wait for `max_concurrent`.
package struct QueueConfiguration: Sendable, Equatable {
    /// The most fetches that wait. Default: 100.
    package var length: Int
    /// The longest wait of a fetch in nanoseconds. Default: 5 s.
    package var wait: UInt64
}

extension QueueConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.maxQueue)) }

    init(_ reader: SectionReader) {
        length = reader.int(always: "length")
        wait = reader.nanoseconds(always: "wait")
    }
}

extension RetryPolicy {
    /// Reads the policy from the file, then from its preset, and then from the table of keys.
    /// - Parameter own: the section without inherited keys, because a preset wins over inherited keys.
    init(_ reader: SectionReader, own: SectionReader? = nil) {
        self.init(
            count: reader.int(always: "count"),
            delay: .nanoseconds(reader.nanoseconds(always: "delay")),
            backoff: reader.int(always: "backoff"),
            longestDelay: reader.nanoseconds("max_delay").map { .nanoseconds($0) },
            jitter: reader.always { $0.share("jitter") },
            causes: Set(reader.texts("when").compactMap { RetryCause($0) }),
            longestRetryAfter: .nanoseconds(reader.nanoseconds(always: "retry_after")),
            methods: reader.choice(always: "methods"),
            budget: reader.always { $0.share("budget") }
        )
        guard let preset = reader.text("preset").flatMap({ RetryPreset(rawValue: $0) })?.policy else { return }
        let beside = own.flatMap { $0.entry("preset") == nil ? nil : $0 } ?? reader
        if beside.entry("delay") == nil { delay = preset.delay }
        if beside.entry("backoff") == nil { backoff = preset.backoff }
        if beside.entry("jitter") == nil { jitter = preset.jitter }
        if beside.entry("when") == nil { causes = preset.causes }
        if beside.entry("methods") == nil { methods = preset.methods }
        if beside.entry("budget") == nil { budget = preset.budget }
    }
}

extension Resolver {
    /// Reports a longest wait that is shorter than the first one.
    /// - Parameters:
    ///   - own: the section `retry` of a service, an endpoint or forward mode, without what it inherited.
    ///   - label: the name of the section in messages.
    mutating func check(maxDelay own: SectionReader, _ policy: RetryPolicy, label: String) {
        guard let longest = policy.longestDelay, longest < policy.delay,
            let position = own.position("max_delay") ?? own.position("delay") ?? own.position("preset")
        else { return }
        fail(
            position,
            "'\(label).max_delay' is shorter than '\(label).delay', the wait before the first retry; raise it, or lower 'delay'"
        )
    }
}

extension BreakerPolicy {
    /// Reads the policy of a circuit breaker; nil if no number of failures opens it.
    init?(_ reader: SectionReader) {
        guard let failures = reader.int("failures") else { return nil }
        self.init(
            failures: failures,
            window: .nanoseconds(reader.nanoseconds(always: "window")),
            pause: .nanoseconds(reader.nanoseconds(always: "open"))
        )
    }
}

extension ParkPolicy {
    /// Reads the policy for waiting calls; nil if no call waits.
    init?(_ reader: SectionReader) {
        guard let time = reader.nanoseconds("time"), time > 0 else { return nil }
        self.init(time: time, calls: reader.int(always: "calls"), size: reader.bytes(always: "size"))
    }
}

extension Resolver {
    /// Checks the key `park`.
    /// - Parameters:
    ///   - own: the service without inherited keys.
    ///   - service: the service with inherited keys.
    mutating func check(park own: SectionReader, _ service: ServiceConfiguration, _ baseURL: BaseURL?) {
        guard let position = own.position("park") else { return }
        if service.park != nil, case .service(let name)? = baseURL {
            fail(position, "'park' is for a service with an origin of its own; set it in service '\(name)'")
        }
        if service.park != nil, service.asksNamedOrigin {
            fail(position, "'park' is for a service with an origin of its own; add a 'base_url', or remove 'park'")
        }
    }
}
