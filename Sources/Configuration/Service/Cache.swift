// How responses are stored and reused: `cache` of services, endpoints and forward mode.

package import HTTPCaching
package import Policies
import Upstream

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
                .choice(ValidationMethod.allCases.map(\.rawValue)),
                default: "head",
                "How a stale response is validated: by HEAD, by a conditional GET, by whichever costs less, or never (a stale response counts as missing, and in library mode no response becomes stale).",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "compare",
                .list(.choice(ComparisonRule.allCases.map(\.rawValue))),
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
                .choice(MissingRule.allCases.map(\.rawValue)),
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

/// How responses are stored and reused.
package struct CacheConfiguration: Sendable, Equatable {
    package enum StoredMethod: String, Sendable, CaseIterable {
        case post = "POST"
        case get = "GET"
    }

    package var mode: CacheMode
    /// The freshness lifetime of responses without explicit freshness, in seconds; nil for none. In library mode it
    /// applies to all responses, and is two hours by default.
    package var ttl: Int64?
    /// The freshness lifetime by status in seconds, which wins over `ttl`.
    package var ttlByStatus: [Int: Int64] = [:]
    /// Whether `ttl` and `ttl_by_status` win over what the origin says.
    package var overrideOrigin: Bool
    package var revalidate: ValidationMethod
    /// The seconds for which a stale response may be served while it is refreshed in the background, unless it has a
    /// directive of its own (RFC 5861 section 3). Default: 0.
    package var staleWhileRevalidate: Int64
    /// The seconds for which a stale response may be served while the origin fails. Default: 1 day; in library mode
    /// 36500 days.
    package var staleIfError: Int64
    /// Whether another variant answers while the origin fails. Default: none.
    package var otherVariant: OtherVariantPolicy
    /// The parts of a response that a validation by HEAD compares in library mode. Default: all of them.
    package var compare: [ComparisonRule]
    /// The seconds between a failed validation and the next one. Default: 30.
    package var checkPause: Int64
    /// The treatment of a stored response whose validation returns 404 or 410. Default: pass.
    package var gone: MissingRule
    /// The methods whose responses are stored. Default: GET.
    package var methods: [StoredMethod]
    /// The patterns of the names of query items that are not part of the cache key.
    package var ignoreQuery: [String]
    /// Request fields whose values are part of the cache key.
    package var keyFields: [String]
    /// The treatment of responses with Set-Cookie. Default: strict.
    package var setCookie: SetCookiePolicy
    /// The treatment of responses to requests with Cookie. Default: explicit.
    package var cookies: CookiePolicy
    /// The least bytes of a body that is stored. Default: 0.
    package var minLength: Int
    /// The most variants of one URL that are stored. Default: 32.
    package var maxVariants: Int
    package var memory: Bool
    package var disk: Bool
    /// The limits for requests that wait for a fetch of another request.
    package var collapse: CollapseLimits
    /// The folder of responses that exist before anything was fetched; nil for none.
    package var seed: SeedConfiguration?
    /// The path under the disk tier's `files` where the latest stored response is also kept as a plain file; nil for
    /// none. For endpoints only.
    package var storeAs: String?
    /// The answer while nothing is stored yet; nil for none.
    package var placeholder: PlaceholderConfiguration?
    /// The answer if the fetch fails and nothing is stored; nil for a problem document.
    package var fallback: StandInConfiguration?
    package var onClientAbort: AbandonmentPolicy
}

extension CacheConfiguration {
    private static let defaults = CacheConfiguration(SectionReader(nothingOf: KeyTable.serviceCache))

    package init() { self = .defaults }

    init(_ reader: SectionReader) {
        mode = reader.choice(always: "mode")
        ttl = reader.seconds("ttl")
        for entry in reader.map("ttl_by_status") {
            guard let status = Int(entry.key), case .leaf(let leaf) = entry.value.content,
                case .nanoseconds(let nanoseconds) = leaf.scalar
            else { continue }
            ttlByStatus[status] = Int64(nanoseconds / 1_000_000_000)
        }
        overrideOrigin = reader.bool("override_origin")
        revalidate = reader.choice(always: "revalidate")
        compare = reader.texts("compare").compactMap(ComparisonRule.init)
        checkPause = reader.seconds(always: "check_pause")
        gone = reader.choice(always: "gone")
        staleWhileRevalidate = reader.seconds(always: "stale_while_revalidate")
        staleIfError = reader.seconds(always: "stale_if_error")
        otherVariant = reader.choice(always: "other_variant")
        maxVariants = reader.int(always: "max_variants")
        memory = reader.bool("memory")
        disk = reader.bool("disk")
        methods = reader.texts("methods").compactMap(StoredMethod.init)
        ignoreQuery = reader.section("key").texts("ignore_query")
        keyFields = reader.section("key").texts("fields")
        setCookie = reader.choice(always: "set_cookie")
        cookies = reader.choice(always: "cookies")
        minLength = reader.bytes(always: "min_length")
        collapse = CollapseLimits(reader.section("collapse"))
        storeAs = reader.text("store_as")
        onClientAbort = reader.always { $0.text("on_client_abort").flatMap(AbandonmentPolicy.init(words:)) }
    }
}

extension CollapseLimits {
    fileprivate init(_ reader: SectionReader) {
        self.init(wait: reader.nanoseconds(always: "wait"), waiters: reader.int(always: "waiters"))
    }
}

extension Resolver {
    /// The longest duration that a file may have, in seconds.
    private static let unlimited: Int64 = 36_500 * 86_400
    /// The defaults of library mode in seconds, by key.
    static let libraryLifetimes = ["ttl": CachePolicy.libraryTTL, "stale_if_error": unlimited]

    /// Reads and checks a section `cache`.
    /// - Parameters:
    ///   - reader: the section with inherited keys.
    ///   - own: the section without inherited keys, which provides the positions of conflicts.
    mutating func cache(_ reader: SectionReader, own: SectionReader) -> CacheConfiguration {
        var result = CacheConfiguration(reader)
        result.seed = seed(reader)
        result.placeholder = placeholder(reader)
        result.fallback = standIn(reader, "fallback")
        if result.mode == .library {
            if reader.entry("ttl") == nil { result.ttl = CachePolicy.libraryTTL }
            if reader.entry("stale_if_error") == nil { result.staleIfError = Self.unlimited }
        }
        check(result, own)
        return result
    }

    /// The defaults that depend on the mode, for output.
    static func followed(_ cache: CacheConfiguration) -> [(key: String, leaf: Leaf)] {
        guard cache.mode == .library else { return [] }
        func leaf(_ seconds: Int64) -> Leaf {
            Leaf(text: Lifetimes.text(seconds), scalar: .nanoseconds(UInt64(seconds) * 1_000_000_000))
        }
        return [("stale_if_error", leaf(cache.staleIfError))] + (cache.ttl.map { [("ttl", leaf($0))] } ?? [])
    }

    private mutating func check(_ cache: CacheConfiguration, _ own: SectionReader) {
        if let position = own.position("compare"), !broken.contains(position), cache.compare.isEmpty {
            fail(
                position,
                "'cache.compare' is an empty list, so no validation could succeed; name etag, last-modified or length"
            )
        }
        if let position = own.position("methods"), !broken.contains(position) {
            if cache.methods.isEmpty {
                fail(position, "'cache.methods' is an empty list; name GET or POST, or write mode: none")
            } else if cache.mode != .library, cache.methods.contains(.post) {
                fail(
                    position,
                    "'cache.methods' names POST, whose responses are stored only in library mode; write mode: library, or remove POST"
                )
            }
        }
    }
}
