// How responses are stored and reused: the keys under `cache` of services, endpoints and forward mode.

import HTTPCaching

extension Resolver {
    /// As long as a duration of the file can be, in seconds.
    private static let unlimited: Int64 = 36_500 * 86_400

    /// - Parameters:
    ///   - reader: with everything that is inherited.
    ///   - own: what stands at this very place, which is where a conflict is told.
    mutating func cache(_ reader: SectionReader, own: SectionReader) -> CacheConfiguration {
        var result = CacheConfiguration(reader)
        result.seed = seed(reader)
        result.placeholder = placeholder(reader)
        result.fallback = standIn(reader, "fallback")
        if result.mode == .library {
            if reader.entry("ttl") == nil { result.ttl = CachePolicy.libraryTTL }
            if reader.entry("stale_if_error") == nil { result.staleIfError = Self.unlimited }
        }
        check(result, reader, own)
        return result
    }

    /// The defaults that follow the mode, as they are shown.
    static func followed(_ cache: CacheConfiguration) -> [(key: String, leaf: Leaf)] {
        guard cache.mode == .library else { return [] }
        func leaf(_ seconds: Int64) -> Leaf {
            Leaf(text: Lifetimes.text(seconds), scalar: .nanoseconds(UInt64(seconds) * 1_000_000_000))
        }
        return [("stale_if_error", leaf(cache.staleIfError))] + (cache.ttl.map { [("ttl", leaf($0))] } ?? [])
    }

    private mutating func check(_ cache: CacheConfiguration, _ reader: SectionReader, _ own: SectionReader) {
        if cache.overrideOrigin, cache.ttl == nil, cache.ttlByStatus.isEmpty,
            let place = reader.place("override_origin")
        {
            fail(
                place,
                "'cache.override_origin' has no lifetime to use instead of the origin's; set 'ttl' or 'ttl_by_status'"
            )
        }
        if let place = own.place("compare"), !broken.contains(place) {
            // As it is by default it says nothing.
            if cache.mode != .library, cache.compare != CacheConfiguration().compare {
                fail(
                    place,
                    "'cache.compare' is for 'mode: library'; in standard mode RFC 9111 section 4.3.5 decides what is compared; remove it, or set the mode"
                )
            } else if cache.compare.isEmpty {
                fail(
                    place,
                    "'cache.compare' is an empty list, so no validation could succeed; name etag, last-modified or length"
                )
            }
        }
        if let place = own.place("methods"), !broken.contains(place) {
            if cache.methods.isEmpty {
                fail(place, "'cache.methods' is an empty list; name GET or POST, or write mode: none")
            } else if cache.mode != .library, cache.methods.contains(.post) {
                fail(
                    place,
                    "'cache.methods' names POST, whose responses are stored only in library mode; write mode: library, or remove POST"
                )
            }
        }
    }
}
