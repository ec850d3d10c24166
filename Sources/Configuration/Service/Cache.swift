// The table of keys: `cache` of services, endpoints and forward mode.

import HTTPCaching

extension KeyTable {
    static let collapse = SectionDescriptor(
        name: "collapse",
        keys: [
            KeyDescriptor(
                "wait",
                .duration,
                default: "30s",
                "How long a request waits for the head of a fetch that another request began.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "waiters",
                .integer(1...10_000_000),
                default: "10000",
                "How many requests may wait for one fetch.",
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
                "Names of query items that are not part of the cache key, such as \"utm_*\"; they are sent to the origin only if the response may not be stored.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "fields",
                .list(.text(.token)),
                default: "[]",
                "Request fields whose values are part of the cache key.",
                inherited: .endpoints
            ),
        ]
    )

    static let serviceCache = SectionDescriptor(
        name: "cache",
        keys: [
            KeyDescriptor(
                "mode",
                .choice(CacheMode.allCases.map(\.rawValue)),
                default: "standard",
                "standard follows RFC 9111; library gives successful responses the lifetime of ttl, whatever the origin says; none stores nothing.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "ttl",
                .word("none", or: .lifetime),
                default: "none",
                "Freshness of a 200, 203, 204, 301 or 308 that brings none of its own; in library mode of all, 2h unless set, and 0s asks every time.",
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
                .choice(RevalidateMethod.allCases.map(\.rawValue)),
                default: "head",
                "How a stale response is validated: by HEAD, by a conditional GET, by whichever costs less, or never (a stale response counts as missing, and in library mode no response becomes stale).",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "compare",
                .list(.choice(CompareRule.allCases.map(\.rawValue))),
                default: "[etag, last-modified, length]",
                "Library mode: which parts of the answer to a HEAD must equal the stored response.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "check_pause",
                .lifetime,
                default: "30s",
                "After a failed validation, how long the stored response is used before the next attempt.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "gone",
                .choice(GonePolicy.allCases.map(\.rawValue)),
                default: "pass",
                "What happens if validation returns 404 or 410: pass sends it to the client and keeps the stored response, serve-stale answers with the stored response, evict removes it.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "stale_while_revalidate",
                .lifetime,
                default: "0s",
                "How long a stale response may be served while it is refreshed in the background, unless the response itself says how long.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "stale_if_error",
                .lifetime,
                default: "1d",
                "How long a stale response may be served while the origin fails; no limit in library mode, unless set.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "other_variant",
                .choice(OtherVariantPolicy.allCases.map(\.rawValue)),
                default: "none",
                "What answers while the origin fails and nothing stored for the request may: none is the failure, serve is another stored variant that Accept, Accept-Encoding and Accept-Language do not forbid.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "max_variants",
                .integer(1...10_000),
                default: "32",
                "The number of variants of one URL that are stored; beyond it, the one that was stored or validated the longest ago is removed.",
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
                "The methods whose responses are stored: GET, which includes HEAD, and in library mode POST, whose key includes a digest of the body.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "key",
                .section(cacheKey),
                "What the cache key consists of, besides the URL.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "set_cookie",
                .choice(SetCookiePolicy.allCases.map(\.rawValue)),
                default: "strict",
                "Responses with Set-Cookie: strict stores those with explicit freshness, without the cookie unless they have public or s-maxage; explicit stores them with the cookie; strip stores all without the cookie; skip stores none.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "cookies",
                .choice(CookiePolicy.allCases.map(\.rawValue)),
                default: "explicit",
                "Responses to requests with Cookie: explicit stores those with explicit freshness, any stores them like other responses, never stores none.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "min_length",
                .size,
                default: "0B",
                "A 200 or 203 with a shorter body is passed on and not stored.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "collapse",
                .section(collapse),
                "Waiting for a fetch that another request began.",
                inherited: .endpoints
            ),
        ] + seeds + phases
    )
}
