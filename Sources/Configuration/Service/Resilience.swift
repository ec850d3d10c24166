// The table of keys: what a service does about an origin that fails.

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
