// The configured side of caching as the rules take it: policies and keys.

import Configuration
import HTTPCaching
import ServiceCore

extension RoutePlan {
    static func policy(
        _ cache: CacheConfiguration,
        targetedFields: [String] = ["CDN-Cache-Control"],
        success: StatusSet? = nil
    ) -> CachePolicy {
        var policy = CachePolicy(
            mode: cache.mode,
            ttl: cache.ttl,
            ttlByStatus: cache.ttlByStatus,
            overrideOrigin: cache.overrideOrigin,
            revalidate: cache.revalidate,
            staleIfError: cache.staleIfError,
            staleWhileRevalidate: cache.staleWhileRevalidate,
            maxVariants: cache.maxVariants,
            targetedFields: targetedFields,
            memory: cache.memory,
            disk: cache.disk,
            compare: cache.compare,
            checkPause: cache.checkPause,
            gone: cache.gone,
            minLength: Int64(cache.minLength),
            setCookie: cache.setCookie,
            cookies: cache.cookies
        )
        policy.success = success
        policy.otherVariant = cache.otherVariant
        return policy
    }

    static func key(_ cache: CacheConfiguration) -> KeyRules {
        KeyRules(ignoreQuery: cache.ignoreQuery, fields: cache.keyFields)
    }

    /// Inherited by a service of another mode, POST means nothing.
    static func storesPost(_ cache: CacheConfiguration) -> Bool {
        cache.mode == .library && cache.methods.contains(.post)
    }
}
