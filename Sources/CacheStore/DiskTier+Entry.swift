// The file of one stored response.

package import HTTPCaching

extension DiskTier {
    /// The file of the variant that `head` is, if there is one; any thread.
    package func entry(_ key: CacheKey, _ head: StoredHead) -> DiskEntry? {
        let name = name(key, head)
        return lookup(key).first { $0.name == name }
    }
}
