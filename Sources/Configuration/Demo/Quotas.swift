// Quotas: the number of requests that are answered in a window of time.

import Policies

extension KeyTable {
    static let rateLimit = SectionDescriptor(
        name: "rate_limit",
        keys: [
            KeyDescriptor(
                "limit",
                .word("none", or: .integer(1...1_000_000_000)),
                default: "none",
                "How many requests are answered in a window.",
                inherited: .endpoints
            ),
            KeyDescriptor("window", .lifetime, default: "1m", "The time of a window.", inherited: .endpoints),
            KeyDescriptor(
                "status",
                .integer(400...599),
                default: "429",
                "The status of the answer to a request that is one too many.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "count",
                .choice(RateLimitPolicy.Counted.allCases.map(\.rawValue)),
                default: "all",
                "What counts: all requests, or only those that reach the origin.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "by",
                .choice(RateLimitPolicy.Client.allCases.map(\.rawValue)),
                default: "client",
                "Whether each client address has a quota of its own, or all have one together.",
                inherited: .endpoints
            ),
        ]
    )

    /// The key `rate_limit` of services and endpoints.
    static let rateLimitKey = KeyDescriptor(
        "rate_limit",
        .section(rateLimit),
        "How many requests are answered in a time.",
        inherited: .endpoints
    )
}

extension Resolver {
    /// Reads and checks a quota; nil for none.
    /// - Parameter scope: the endpoint that has a quota of its own; empty for the service.
    mutating func rateLimit(_ reader: SectionReader, scope: String) -> RateLimitPolicy? {
        let section = reader.section("rate_limit")
        let window = section.nanoseconds(always: "window")
        if window == 0, let position = section.position("window") {
            fail(position, "'rate_limit.window' is zero; write 1s or more")
        }
        guard let limit = section.int("limit"), window > 0 else { return nil }
        return RateLimitPolicy(
            scope: scope,
            limit: limit,
            window: window,
            status: section.int(always: "status"),
            count: section.choice(always: "count"),
            by: section.choice(always: "by")
        )
    }
}
