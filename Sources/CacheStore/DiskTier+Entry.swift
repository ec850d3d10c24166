// The file of one stored response.

package import HTTPCaching

extension DiskTier {
    /// The file of the variant that `head` is, if there is one; any thread.
    package func entry(_ key: CacheKey, _ head: StoredHead) -> DiskEntry? {
        let name = name(key, head)
        return lookup(key).first { $0.name == name }
    }

    /// As ``lookup(_:)``, without the files of these variants.
    package func lookup(_ key: CacheKey, besides heads: [StoredHead]) -> [DiskEntry] {
        let known = Set(heads.map { name(key, $0) })
        return lookup(key).filter { !known.contains($0.name) }
    }
}
