// Several stored responses under one URL: which of them a 304 updates (RFC 9111 section 4.3.4).

package import HTTPWire

extension Caching {
    /// The indices of the stored responses that a 304 with `notModified` updates, most recent first, out of
    /// those whose validators the request `asked` for (RFC 9111 section 4.3.4): with a strong entity tag all
    /// that have it; with weak validators only the most recent that matches; without validators only a response
    /// that is the only candidate.
    ///
    /// Empty: the 304 is about none of them, and the response has to be fetched without conditions.
    package static func variantsUpdated(
        by notModified: Fields,
        among variants: [StoredHead],
        asked: Revalidation
    ) -> [Int] {
        let variants = variants.map(\.asOrigin)
        let named = variants.indices.filter { isNamed(variants[$0], in: asked.conditions) }
        let chosen = named.map { variants[$0] }
        var hasOtherVariants = false
        if case .tags(let tags)? = EntityTagList(asked.conditions, .ifNoneMatch) {
            // A client's own list may name tags of responses that are not stored.
            hasOtherVariants = tags.contains { tag in !chosen.contains { entityTag($0.fields) == tag } }
        }
        return identified(by: notModified, among: chosen, hasOtherVariants: hasOtherVariants).map { named[$0] }
    }

    /// The same for a request that named all of `variants`; with `hasOtherVariants`, it also named
    /// responses that are not stored.
    static func identified(
        by notModified: Fields,
        among variants: [StoredHead],
        hasOtherVariants: Bool = false
    ) -> [Int] {
        let recent = variants.indices.sorted { isMoreRecent(variants[$0], than: variants[$1]) }
        if let tag = entityTag(notModified) {
            let same = recent.filter { index in
                entityTag(variants[index].fields).map(tag.isWeak ? tag.matchesWeakly : tag.matchesStrongly) ?? false
            }
            return tag.isWeak ? Array(same.prefix(1)) : same
        }
        if let date = lastModified(notModified, now: 0) {
            let same = recent.filter { lastModified(variants[$0].fields, now: 0) == date }
            if !same.isEmpty { return Array(same.prefix(1)) }
            // A date that contradicts the stored one is another response's.
            if recent.contains(where: { lastModified(variants[$0].fields, now: 0) != nil }) { return [] }
        }
        if hasOtherVariants { return [] }
        return recent.count == 1 ? recent : []
    }

    private static func isNamed(_ variant: StoredHead, in conditions: Fields) -> Bool {
        if case .tags(let tags)? = EntityTagList(conditions, .ifNoneMatch) {
            return entityTag(variant.fields).map(tags.contains) ?? false
        }
        return variant.fields.contains(.lastModified)
            && variant.fields.first(.lastModified) == conditions.first(.ifModifiedSince)
    }
}
