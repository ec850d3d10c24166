// The file of one stored response.

package import HTTPCaching

extension DiskTier {
    /// The file of the variant that `head` is, if there is one; any thread.
    package func entry(_ key: CacheKey, _ head: StoredHead) -> DiskEntry? {
        let name = name(key, head)
        return lookup(key, isCounted: false).first { $0.name == name }
    }

    /// The files of a key besides those of these variants, newest first; not counted as a lookup.
    package func lookup(_ key: CacheKey, besides heads: [StoredHead]) -> [DiskEntry] {
        let known = Set(heads.map { name(key, $0) })
        return lookup(key, isCounted: false).filter { !known.contains($0.name) }
    }

    /// How many files of a key are as new as `time` (Unix seconds) or newer.
    package func count(of key: CacheKey, since time: Int64) -> Int {
        lookup(key, isCounted: false).count { $0.storedAt >= time }
    }
}
