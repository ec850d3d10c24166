// How responses are stored and reused: the keys under `cache` of services, endpoints and forward mode.

extension Resolver {
    /// Two hours, in seconds.
    private static let libraryTTL: Int64 = 7200
    /// As long as a duration can be, in seconds.
    private static let unlimited: Int64 = 36_500 * 86_400

    /// - Parameters:
    ///   - reader: with everything that is inherited.
    ///   - own: what stands at this very place, which is where a conflict is told.
    mutating func cache(_ reader: SectionReader, own: SectionReader) -> CacheConfiguration {
        var result = CacheConfiguration()
        result.mode = reader.text("mode").flatMap(CacheConfiguration.Mode.init) ?? result.mode
        result.ttl = reader.seconds("ttl")
        for entry in reader.map("ttl_by_status") {
            guard let status = Int(entry.key), case .leaf(let leaf) = entry.value.content,
                case .nanoseconds(let nanoseconds) = leaf.scalar
            else { continue }
            result.ttlByStatus[status] = Int64(nanoseconds / 1_000_000_000)
        }
        result.overrideOrigin = reader.bool("override_origin")
        result.revalidate = reader.text("revalidate").flatMap(CacheConfiguration.Revalidate.init) ?? result.revalidate
        result.compare = reader.texts("compare").compactMap(CacheConfiguration.Compare.init)
        result.checkPause = reader.seconds("check_pause") ?? result.checkPause
        result.gone = reader.text("gone").flatMap(CacheConfiguration.Gone.init) ?? result.gone
        result.staleWhileRevalidate = reader.seconds("stale_while_revalidate") ?? result.staleWhileRevalidate
        result.staleIfError = reader.seconds("stale_if_error") ?? result.staleIfError
        result.maxVariants = reader.int("max_variants") ?? result.maxVariants
        result.memory = reader.bool("memory")
        result.disk = reader.bool("disk")
        result.methods = reader.texts("methods").compactMap(CacheConfiguration.StoredMethod.init)
        result.ignoreQuery = reader.section("key").texts("ignore_query")
        result.keyFields = reader.section("key").texts("fields")
        result.setCookie = reader.text("set_cookie").flatMap(CacheConfiguration.SetCookie.init) ?? result.setCookie
        result.cookies = reader.text("cookies").flatMap(CacheConfiguration.Cookies.init) ?? result.cookies
        result.minLength = reader.bytes("min_length") ?? result.minLength
        let collapse = reader.section("collapse")
        result.collapse.wait = collapse.nanoseconds("wait") ?? result.collapse.wait
        result.collapse.waiters = collapse.int("waiters") ?? result.collapse.waiters
        result.seed = seed(reader)
        result.storeAs = reader.text("store_as")
        result.placeholder = placeholder(reader)
        result.fallback = standIn(reader, "fallback")
        result.onClientAbort = reader.text("on_client_abort").flatMap(ClientAbortConfiguration.init) ?? .finish
        if result.mode == .library {
            if reader.entry("ttl") == nil { result.ttl = Self.libraryTTL }
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
