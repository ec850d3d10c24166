// The table of keys: faults, how long answers take, and quotas.

import Policies

extension KeyTable {
    static let latency = SectionDescriptor(
        name: "latency",
        keys: [
            KeyDescriptor(
                "range",
                .distribution,
                "A duration or a range, in which each latency is drawn as often as any other; also normal(MEAN, DEVIATION), lognormal(MEDIAN, p99=P99) and learned(SERVICE/ENDPOINT, x1.5).",
                inherited: .endpoints
            ),
            KeyDescriptor("normal", .section(normal), "The bell curve.", inherited: .endpoints),
            KeyDescriptor("lognormal", .section(lognormal), "The long tail of a network.", inherited: .endpoints),
            KeyDescriptor(
                "percentiles",
                .map(.percentile, .duration),
                "Percentiles that were measured, such as { 50: 80ms, 99: 1s }; what lies between them is on a straight line.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "learned",
                .shorthand(learned, key: "of"),
                "What an origin took before, as the daemon has measured it.",
                inherited: .endpoints
            ),
            KeyDescriptor("max", .duration, "Longer latencies are cut to this one.", inherited: .endpoints),
        ]
    )

    static let normal = SectionDescriptor(
        name: "normal",
        keys: [
            KeyDescriptor("mean", .duration, "The middle.", inherited: .endpoints, required: true),
            KeyDescriptor("deviation", .duration, "The standard deviation.", inherited: .endpoints, required: true),
        ]
    )

    static let lognormal = SectionDescriptor(
        name: "lognormal",
        keys: [
            KeyDescriptor(
                "median",
                .duration,
                "Half of the latencies are shorter.",
                inherited: .endpoints,
                required: true
            ),
            KeyDescriptor(
                "p99",
                .duration,
                "One latency of a hundred is longer.",
                inherited: .endpoints,
                required: true
            ),
        ]
    )

    private static let learned = SectionDescriptor(
        name: "learned",
        keys: [
            KeyDescriptor(
                "of",
                .text(.learnedPlace),
                "The service, or SERVICE/ENDPOINT, whose origin is meant; without it, that of the place where this stands.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "times",
                .text(.factor),
                default: "x1",
                "How many times as long each latency is, such as x1.5.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "otherwise",
                .duration,
                default: "0ms",
                "The latency while nothing is known.",
                inherited: .endpoints
            ),
        ],
        replaces: true
    )

    static let fault = SectionDescriptor(
        name: "faults[]",
        keys: [
            KeyDescriptor("profile", .text(.word), "In place of all other keys: the rules of a profile."),
            KeyDescriptor("name", .text(.word), "What answers and logs call the rule; without it, what the rule does."),
            KeyDescriptor("chance", .share, "The share of requests that the rule acts on; without it, all."),
            KeyDescriptor(
                "at",
                .oneOrMore(.choice(["all"] + FaultPoint.allCases.map(\.rawValue))),
                "The answers that the rule acts on, by where they come from; without it, all."
            ),
            KeyDescriptor(
                "origin",
                .choice(FaultOrigin.allCases.map(\.rawValue)),
                "Whether the origin is asked where nothing of its answer is left: without it, spare, it is not."
            ),
            KeyDescriptor(
                "first",
                .integer(1...1_000_000),
                "The rule acts on so many of the first requests of a path only."
            ),
            KeyDescriptor("every", .integer(1...1_000_000), "The rule acts on each so-many-th request of a path only."),
            KeyDescriptor("latency", .shorthand(latency, key: "range"), "How much later the answer begins."),
            KeyDescriptor("status", .integer(200...599), "The status that is sent in place of the answer."),
            KeyDescriptor(
                "retry_after",
                .latency,
                "With status: what Retry-After says, a duration or a range; it is sent in whole seconds."
            ),
            KeyDescriptor("file", .path, "With status: the body."),
            KeyDescriptor(
                "fault",
                .shorthand(wireFault, key: "kind"),
                "What happens to the bytes of the answer: a word, or a mapping such as { close: { after: 2KiB } }."
            ),
            KeyDescriptor("pace", .rate, "How fast the body is sent, such as 64KiB/s."),
            KeyDescriptor("dribble", .section(dribble), "In place of pace: the body is sent in pieces."),
            KeyDescriptor(
                "random_seed",
                .integer(0...Int.max),
                "The seed of the rule's draws: another one gives other draws."
            ),
        ]
    )

    static let dribble = SectionDescriptor(
        name: "dribble",
        keys: [
            KeyDescriptor("chunks", .integer(1...1_000_000), "The number of pieces.", required: true),
            KeyDescriptor("over", .duration, "The time until the last piece is sent.", required: true),
        ]
    )

    static let wireFault = SectionDescriptor(
        name: "fault",
        keys: [
            KeyDescriptor(
                "kind",
                .choice(WireFault.Kind.allCases.filter { $0 != .wrongLength }.map(\.rawValue)),
                "In place of a mapping: the word alone."
            ),
            KeyDescriptor("reset", .section(cut("reset")), "The connection is reset."),
            KeyDescriptor("close", .section(cut("close")), "The connection ends before the body does."),
            KeyDescriptor("bad_chunk", .section(cut("bad_chunk")), "A chunk of the body has no size."),
            KeyDescriptor("stalled_head", .section(stalledHead), "The head stops in its middle."),
            KeyDescriptor("stalled_body", .section(stalledBody), "The body stops in its middle."),
            KeyDescriptor("garbage", .section(garbage), "The client gets bytes that are no HTTP."),
            KeyDescriptor("wrong_length", .section(wrongLength), "Content-Length is wrong."),
        ],
        replaces: true
    )

    private static func cut(_ name: String) -> SectionDescriptor {
        SectionDescriptor(name: name, keys: [after], replaces: true)
    }

    private static let after = KeyDescriptor(
        "after",
        .size,
        "How much of the body is sent before it; without it, nothing, and of reset not even the head."
    )

    private static let hold = KeyDescriptor(
        "for",
        .duration,
        "How long nothing is sent before the connection ends; without it, until the client leaves."
    )

    private static let stalledHead = SectionDescriptor(name: "stalled_head", keys: [hold], replaces: true)
    private static let stalledBody = SectionDescriptor(name: "stalled_body", keys: [after, hold], replaces: true)

    private static let garbage = SectionDescriptor(
        name: "garbage",
        keys: [
            KeyDescriptor("after", .choice(["status_line"]), "What is sent properly before it; without it, nothing.")
        ],
        replaces: true
    )

    private static let wrongLength = SectionDescriptor(
        name: "wrong_length",
        keys: [
            KeyDescriptor(
                "by",
                .integer(-1_000_000_000...1_000_000_000),
                "How many bytes Content-Length says more than there are; less than 0: fewer.",
                required: true
            )
        ],
        replaces: true
    )

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

    /// Among the keys that services and endpoints share.
    static let rateLimitKey = KeyDescriptor(
        "rate_limit",
        .section(rateLimit),
        "How many requests are answered in a time.",
        inherited: .endpoints
    )

    /// Among the keys that services, endpoints and forward mode share.
    static let faultsKey = KeyDescriptor(
        "faults",
        .rules(fault, key: "profile"),
        "What goes wrong on purpose between answers and clients: a rule, a profile, or a list of them; [] for nothing.",
        inherited: .endpoints
    )

    static let faultProfilesKey = KeyDescriptor(
        "fault_profiles",
        .map(.profile, .rules(fault, key: "profile")),
        "Rules that 'faults' names; flaky-mobile, overloaded and 3g are there without it."
    )
}
