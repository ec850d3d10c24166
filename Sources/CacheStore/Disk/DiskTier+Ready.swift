// The files that the hot path answers from: made ready when they are found, and found again by the bytes of their key.

import Synchronization

extension DiskTier {
    /// Prepares the response of an open file for the hot path. Any thread; no disk access.
    /// - Parameters:
    ///   - headFormatID: as ``StoredResponse/headFormatID``; a response prepared for it already stays.
    ///   - make: makes the response without its body, as the memory tier would hold it.
    package func makeReady(_ response: StoredResponse, headFormatID: UInt64, _ make: () -> ResidentResponse?) {
        guard let entry = response.diskEntry else { return }
        openFiles.makeReady(entry.name, response, headFormatID: headFormatID) {
            make().flatMap { ReadyFile($0, response, name: entry.name, keyHash: keyHash(entry.key)) }
        }
    }

    /// The hot path: the only file of a key, if it is open, prepared, and unchanged since its head was read. Any
    /// thread; no disk access. The caller must check the invalidation rules.
    /// - Parameters:
    ///   - keyBytes: in the form of `CacheKey.bytes`.
    ///   - selects: whether the request selects a response that varies.
    package func readyFile(_ keyBytes: UnsafeRawBufferPointer, where selects: (ResidentResponse) -> Bool) -> ReadyFile?
    {
        let hash = StoredFileName(keyBytes, key: folder.fileNameKey).low
        let only = state.withLock { $0.isClosed ? nil : $0.table.findOnly(hash) }
        guard let only, let ready = openFiles.findReady(only.name, only.fileID),
            ready.held.keyBytes.elementsEqual(keyBytes), !ready.held.varies || selects(ready.held)
        else { return nil }
        return ready
    }

    /// Counts an answer. Any thread.
    package func noteUse(of ready: ReadyFile) { used(ready.keyHash, ready.name) }
}
