// How the table and the index learn of a file that is in the folder and that they do not know.

import CacheStore
import HTTPCaching
import Synchronization

/// Sendable: its members are.
final class DiskAdopter: Sendable {
    private let parts: DiskParts
    private let pins: DiskPins

    init(_ parts: DiskParts, _ pins: DiskPins) {
        self.parts = parts
        self.pins = pins
    }

    /// Tells the table and the index about a file that they do not know; under the file's lock.
    /// - Returns: nil where the key was removed, or purged by a rule, before the file was found.
    func adopt(_ file: StoredFile, _ hash: UInt64, _ name: StoredFileName) -> DiskTable.Slot? {
        let found = DiskTable.Slot(
            keyHash: hash,
            name: name,
            fileID: file.record.fileID,
            bodyLength: file.record.bodyLength,
            size: file.size,
            storedAt: file.record.head.responseTime,
            lastUse: UInt32(clamping: file.record.head.responseTime),
            isSeen: true
        )
        let (key, head) = (CacheKey(bytes: file.record.key), file.record.head)
        let (invalidations, rules) = (parts.invalidations, InvalidationRule.concerning(head, key))
        let isOurs = parts.state.withLock { $0.table.find(hash, name)?.fileID == found.fileID }
        let suspect = invalidations.suspectNumber
        // First, so that a rule that is made meanwhile has a greater number.
        invalidations.advance(past: max(found.fileID, head.number))
        if invalidations.verdict(head, key, rules) == .gone { return nil }
        if !isOurs, max(found.fileID, head.number) > suspect, invalidations.isConcerned(head, key, rules) { return nil }
        pins.note(key, hash)
        guard let slot = parts.state.withLock({ $0.adopt(found) }) else { return nil }
        parts.index.note(.put(IndexRow(slot: slot, key: file.record.key, head: file.record.head)))
        return slot
    }
}
