// The file of one stored response.

package import HTTPCaching

extension DiskTier {
    /// The file of the variant that `head` is, if there is one; any thread.
    package func entry(_ key: CacheKey, _ head: StoredHead) -> DiskEntry? {
        let name = name(key, head)
        return lookup(key, isCounted: false).first { $0.name == name }
    }

    /// Whether the disk is known to have a file of this variant. While the folders are being walked it may have more.
    package func holds(_ key: CacheKey, _ head: StoredHead) -> Bool { entry(key, head)?.isGuess == false }

    /// The files of a key except those of these variants, newest first; not counted as a lookup.
    package func lookup(_ key: CacheKey, besides heads: [StoredHead]) -> [DiskEntry] {
        let known = Set(heads.map { name(key, $0) })
        return lookup(key, isCounted: false).filter { !known.contains($0.name) }
    }

    /// How many files of a key are as new as `time` (Unix seconds) or newer.
    package func count(of key: CacheKey, since time: Int64) -> Int {
        lookup(key, isCounted: false).count { $0.storedAt >= time }
    }

    /// The file of the variant that `head` is, if it is the one with this number.
    package func entry(_ key: CacheKey, _ head: StoredHead, number: UInt64) -> DiskEntry? {
        entry(key, head).flatMap { $0.fileID == number ? $0 : nil }
    }

    /// Whether a file of this variant comes from a later fetch.
    package func hasNewer(_ key: CacheKey, _ head: StoredHead, than number: UInt64) -> Bool {
        entry(key, head).map { $0.fileID > number } ?? false
    }

    /// Removes the file of this variant if it is from an earlier fetch.
    package func remove(_ key: CacheKey, _ head: StoredHead, before number: UInt64) {
        if let entry = entry(key, head), entry.fileID < number { remove(entry) }
    }
}
