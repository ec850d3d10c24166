// The files that the hot path answers from: made ready when they are found, and found again by the bytes of their key.

import Synchronization

extension DiskTier {
    /// Makes the response of a file that stays open ready for the hot path. Any thread; asks no disk.
    /// - Parameters:
    ///   - shape: as ``StoredResponse/shape``; what is ready for it already stays.
    ///   - make: gives the response without its body, as the memory tier would hold it.
    package func makeReady(_ response: StoredResponse, shape: UInt64, _ make: () -> HeldResponse?) {
        guard let entry = response.diskEntry else { return }
        openFiles.makeReady(entry.name, response, shape: shape) {
            make().flatMap { ReadyFile($0, response, name: entry.name, keyHash: keyHash(entry.key)) }
        }
    }

    /// The hot path: the file of a key that has no other, where it is open, ready, and as it was when its head was read. Any
    /// thread; asks no disk. Whether rules have invalidated the response is not looked at.
    /// - Parameters:
    ///   - keyBytes: in the form of `CacheKey.bytes`.
    ///   - selects: whether the request selects a response that varies.
    package func readyFile(_ keyBytes: UnsafeRawBufferPointer, where selects: (HeldResponse) -> Bool) -> ReadyFile? {
        let hash = Digest(keyBytes, key: folder.digestKey).low
        let only = state.withLock { $0.isClosed ? nil : $0.table.findOnly(hash) }
        guard let only, let ready = openFiles.findReady(only.name, only.fileID),
            ready.held.keyBytes.elementsEqual(keyBytes), !ready.held.varies || selects(ready.held)
        else { return nil }
        return ready
    }

    /// Counts an answer. Any thread.
    package func noteUse(of ready: ReadyFile) { used(ready.keyHash, ready.name) }
}
