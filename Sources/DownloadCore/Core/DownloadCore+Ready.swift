// What the hot path may answer from the disk: a response of which the search would come to the same.

package import CacheStore

extension DownloadCore {
    /// The stored response of a GET that needs no decision but whether it is fresh: nothing of its key is in memory, the disk
    /// has it alone, its file is open and as it was, and no rule concerns it. Any thread; asks no disk.
    /// - Parameters:
    ///   - keyBytes: in the form of `CacheKey.bytes`.
    ///   - hash: `CacheKey.hash(keyBytes)`.
    ///   - selects: whether the request selects a response that varies.
    package func readyFile(
        _ keyBytes: UnsafeRawBufferPointer,
        hash: UInt64,
        where selects: (HeldResponse) -> Bool
    ) -> ReadyFile? {
        guard let disk, !memory.holds(keyBytes, hash: hash), let file = disk.readyFile(keyBytes, where: selects),
            generations.verdict(file.response) == .valid
        else { return nil }
        return file
    }

    /// Counts an answer from a file. Any thread.
    package func noteUse(of file: ReadyFile) { disk?.noteUse(of: file) }
}
