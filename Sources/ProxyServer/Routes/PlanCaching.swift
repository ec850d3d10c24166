// The configured side of caching as the rules take it: policies, keys, and how requests wait for one another.

internal import Configuration
internal import DownloadCore
internal import HTTPCaching
internal import ServiceCore

extension RoutePlan {
    static func policy(
        _ cache: CacheConfiguration,
        targetedFields: [String] = ["CDN-Cache-Control"]
    ) -> CachePolicy {
        let mode: CacheMode =
            switch cache.mode {
            case .standard: .standard
            case .library: .library
            case .none: .none
            }
        let revalidate: RevalidateMethod =
            switch cache.revalidate {
            case .head: .head
            case .conditional: .conditional
            case .auto: .auto
            case .never: .never
            }
        let gone: GonePolicy =
            switch cache.gone {
            case .pass: .pass
            case .serveStale: .serveStale
            case .evict: .evict
            }
        let setCookie: SetCookiePolicy =
            switch cache.setCookie {
            case .strict: .strict
            case .explicit: .explicit
            case .strip: .strip
            case .skip: .skip
            }
        let cookies: CookiePolicy =
            switch cache.cookies {
            case .explicit: .explicit
            case .any: .any
            case .never: .never
            }
        return CachePolicy(
            mode: mode,
            ttl: cache.ttl,
            ttlByStatus: cache.ttlByStatus,
            overrideOrigin: cache.overrideOrigin,
            revalidate: revalidate,
            staleIfError: cache.staleIfError,
            staleWhileRevalidate: cache.staleWhileRevalidate,
            maxVariants: cache.maxVariants,
            targetedFields: targetedFields,
            memory: cache.memory,
            disk: cache.disk,
            compare: cache.compare.map { rule in
                switch rule {
                case .etag: .etag
                case .lastModified: .lastModified
                case .length: .length
                }
            },
            checkPause: cache.checkPause,
            gone: gone,
            minLength: Int64(cache.minLength),
            setCookie: setCookie,
            cookies: cookies
        )
    }

    static func collapse(_ cache: CacheConfiguration) -> CollapseLimits {
        CollapseLimits(wait: cache.collapse.wait, waiters: cache.collapse.waiters)
    }

    static func key(_ cache: CacheConfiguration) -> KeyRules {
        KeyRules(ignoreQuery: cache.ignoreQuery, fields: cache.keyFields)
    }

    /// Inherited by a service of another mode, POST means nothing.
    static func storesPost(_ cache: CacheConfiguration) -> Bool {
        cache.mode == .library && cache.methods.contains(.post)
    }
}
