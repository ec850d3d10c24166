// Which tiers take a response that may be stored, and why none does.

import CacheStore
import EventLoop
import HTTPCaching

/// Why no tier takes a response that may be stored; the raw value is what `Cache-Status` prints as `detail`.
package enum KeepRefusal: String, Sendable, CaseIterable {
    /// The policy keeps nothing in memory, and nothing on the disk or there is no disk tier.
    case tiersOff = "tiers-off"
    /// Larger than `max_object` of every tier.
    case tooLarge = "too-large"
    /// The disk has just refused as much for want of room, and memory does not take it.
    case noRoom = "no-room"
    /// The disk has just failed to write a file, and memory does not take it.
    case diskFails = "disk-fails"
    /// Memory alone takes it, and too much is on its way or still sent.
    case noMemory = "no-memory"
    /// Not what the route expects.
    case unexpectedContent = "unexpected-content"
    /// It lasts to the end of its TLS connection, and the one before ended without close_notify.
    case unprovenEnd = "unproven-end"
}

extension DownloadCore {
    /// Whether something is stored that may still answer, so that a server error must not take its place.
    func hasGood(_ ask: CacheAsk, besides errorStatus: Int, on loop: isolated EventLoop) async -> Bool {
        let heads = await store.heads(ask, on: loop) + partials.variants(ask.key).map(\.head)
        let now = clock.now()
        return heads.contains { Caching.mayStillServe($0, errorStatus: errorStatus, policy: ask.policy, now: now) }
    }
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
        let isFailing = disk?.isFailing ?? false
        let hasRoom = !isFailing && disk?.mayHaveRoom(for: bytes) ?? false
        let fitsMemory = policy.memory && bytes <= core.memoryMaxObject && core.memory.takes(bytes)
        inMemory = fitsMemory && core.memory.hasRoom(for: bytes) && core.budget.mayKeep(bytes, more: bytes)
        if fitsMemory, !inMemory { core.budget.noteRefusal() }
        onDisk = fitsDisk && hasRoom
        if inMemory || onDisk {
            refusal = nil
        } else if fitsMemory {
            refusal = .noMemory
        } else if !policy.memory && disk == nil {
            refusal = .tiersOff
        } else {
            refusal = fitsDisk ? (isFailing ? .diskFails : .noRoom) : .tooLarge
        }
    }
}
