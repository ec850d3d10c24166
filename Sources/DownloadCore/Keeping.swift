// Which tiers take a response that may be stored, and why none does.

import CacheStore
import HTTPCaching

/// Why no tier takes a response that may be stored; the raw value is what `Cache-Status` prints as `detail`.
package enum KeepRefusal: String, Sendable, CaseIterable {
    /// The policy keeps nothing in memory, and nothing on the disk or there is no disk tier.
    case tiersOff = "tiers-off"
    /// Larger than `max_object` of every tier.
    case tooLarge = "too-large"
    /// The disk has just refused as much for want of room, and memory does not take it.
    case noRoom = "no-room"
    /// Not what the route expects.
    case unexpectedContent = "unexpected-content"
}

/// Where a response goes when all of it has come.
struct Keeping: Equatable {
    var inMemory: Bool
    var onDisk: Bool
    /// Nil where a tier takes it.
    var refusal: KeepRefusal?

    /// No tier takes it.
    init(refused refusal: KeepRefusal) { (inMemory, onDisk, self.refusal) = (false, false, refusal) }

    /// - Parameter length: of the body in bytes, where it is declared.
    init(_ policy: CachePolicy, _ core: DownloadCore, length: Int?) {
        let bytes = length ?? 0
        let disk = policy.disk ? core.disk : nil
        let fitsDisk = disk != nil && bytes <= core.diskMaxObject
        let hasRoom = disk?.mayHaveRoom(for: bytes) ?? false
        inMemory = policy.memory && bytes <= core.memoryMaxObject && core.memory.takes(bytes)
        onDisk = fitsDisk && hasRoom
        if inMemory || onDisk {
            refusal = nil
        } else if !policy.memory && disk == nil {
            refusal = .tiersOff
        } else {
            refusal = fitsDisk ? .noRoom : .tooLarge
        }
    }
}
