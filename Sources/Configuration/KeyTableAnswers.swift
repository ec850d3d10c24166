// The table of keys, third part: what services, endpoints and forward mode share.

extension KeyTable {
    static let collapse = SectionDescriptor(
        name: "collapse",
        keys: [
            KeyDescriptor(
                "wait",
                .duration,
                default: "30s",
                "How long a request waits for the head of a fetch that another one started.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "waiters",
                .integer(1...10_000_000),
                default: "10000",
                "Requests that may wait on one fetch.",
                inherited: .endpoints
            ),
        ]
    )

    static let cacheKey = SectionDescriptor(
        name: "key",
        keys: [
            KeyDescriptor(
                "ignore_query",
                .list(.text(.queryPattern)),
                default: "[]",
                "Names of query items that do not enter the key, such as \"utm_*\"; the origin gets them all the same.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "fields",
                .list(.text(.token)),
                default: "[]",
                "Request fields whose values enter the key.",
                inherited: .endpoints
            ),
        ]
    )

    static let serviceCache = SectionDescriptor(
        name: "cache",
        keys: [
            KeyDescriptor(
                "mode",
                .choice(CacheConfiguration.Mode.allCases.map(\.rawValue)),
                default: "standard",
                "standard is RFC 9111; library gives what succeeds the lifetime under ttl, whatever the origin says; none stores nothing.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "ttl",
                .word("none", or: .lifetime),
                default: "none",
                "Freshness for responses that bring none of their own; in library mode for all, 2h unless set, and 0s asks every time.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "ttl_by_status",
                .map(.status, .lifetime),
                "The same by status, such as { 404: 1m }.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "override_origin",
                .boolean,
                default: "false",
                "Whether ttl and ttl_by_status win over what the origin says.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "revalidate",
                .choice(CacheConfiguration.Revalidate.allCases.map(\.rawValue)),
                default: "head",
                "How a stale response is checked: by HEAD, by a conditional GET, by whichever costs less, or never (stale counts as absent, and in library mode nothing becomes stale).",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "compare",
                .list(.choice(CacheConfiguration.Compare.allCases.map(\.rawValue))),
                default: "[etag, last-modified, length]",
                "What of the answer to a HEAD must equal what is stored, in library mode.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "check_pause",
                .lifetime,
                default: "30s",
                "After a check that failed, how long what is stored answers before the next one.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "gone",
                .choice(CacheConfiguration.Gone.allCases.map(\.rawValue)),
                default: "pass",
                "What a check does that answers 404 or 410: pass hands it on and keeps what is stored, serve-stale answers with what is stored, evict removes it.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "stale_while_revalidate",
                .lifetime,
                default: "0s",
                "How long past its freshness a response may serve while it is refreshed behind, unless it says so itself.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "stale_if_error",
                .lifetime,
                default: "1d",
                "How long past its freshness a response may serve while the origin fails; without a limit in library mode, unless set.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "max_variants",
                .integer(1...10_000),
                default: "32",
                "Variants of one URL that are kept; the one stored or checked the longest ago goes.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "memory",
                .boolean,
                default: "true",
                "Whether the memory tier is used.",
                inherited: .endpoints
            ),
            KeyDescriptor("disk", .boolean, default: "true", "Whether the disk tier is used.", inherited: .endpoints),
            KeyDescriptor(
                "methods",
                .list(.choice(CacheConfiguration.StoredMethod.allCases.map(\.rawValue))),
                default: "[GET]",
                "Whose answers are stored: GET, which HEAD goes with, and in library mode POST, by the digest of its body.",
                inherited: .endpoints
            ),
            KeyDescriptor("key", .section(cacheKey), "What makes two requests the same one.", inherited: .endpoints),
            KeyDescriptor(
                "set_cookie",
                .choice(CacheConfiguration.SetCookie.allCases.map(\.rawValue)),
                default: "explicit",
                "Responses with Set-Cookie: explicit stores those with explicit freshness, strip stores them without the cookie, skip stores none.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "min_length",
                .size,
                default: "0B",
                "A 200 or 203 with a shorter body is passed on and not stored.",
                inherited: .endpoints
            ),
            KeyDescriptor("collapse", .section(collapse), "Waiting for a fetch in flight.", inherited: .endpoints),
        ] + seeds + phases
    )

    static let failure = SectionDescriptor(
        name: "failure",
        keys: [
            KeyDescriptor(
                "chance",
                .share,
                default: "0%",
                "The share of failures among the answers.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "status",
                .integer(200...599),
                default: "503",
                "The status of a failure.",
                inherited: .endpoints
            ),
            KeyDescriptor("file", .demoFile, "The body of a failure, relative to files.", inherited: .endpoints),
        ]
    )

    static let demo = SectionDescriptor(
        name: "demo",
        keys: [
            KeyDescriptor(
                "enabled",
                .boolean,
                default: "false",
                "Whether demo answers are given instead of asking the origin.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "files",
                .path,
                "The folder of the bodies; an endpoint's file in it is NAME.json unless file says otherwise.",
                inherited: .endpoints
            ),
            KeyDescriptor("file", .demoFile, "The body of the answer, relative to files.", inherited: .services),
            KeyDescriptor(
                "status",
                .integer(200...599),
                default: "200",
                "The status of the answer.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "headers",
                .map(.fieldName, .text(.fieldValue)),
                "Fields of the answer.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "latency",
                .latency,
                default: "0ms",
                "How long an answer takes: a duration, or a range such as 200ms..900ms.",
                inherited: .endpoints
            ),
            KeyDescriptor("failure", .section(failure), "Failures among the answers.", inherited: .endpoints),
            KeyDescriptor(
                "random_seed",
                .integer(0...Int.max),
                default: "0",
                "The seed of every draw; the same seed gives the same outcomes.",
                inherited: .endpoints
            ),
        ]
    )
}
