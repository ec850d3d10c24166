// Which tiers store a response, and the reason where none does.

import CacheStore
import EventLoop
import HTTPCaching

/// Where a response goes when all of it has come.
struct TierPlacement: Equatable {
    var inMemory: Bool
    var onDisk: Bool
    /// Nil where a tier takes it.
    var refusal: UnstoredReason?

    /// No tier takes it.
    init(refused refusal: UnstoredReason) { (inMemory, onDisk, self.refusal) = (false, false, refusal) }

    /// - Parameter length: the declared length of the body in bytes, if any.
    init(_ policy: CachePolicy, _ context: FetchContext, length: Int?) {
        let bytes = length ?? 0
        let hasDisk = policy.disk && context.store.hasTiersBehind
        let fitsDisk = hasDisk && bytes <= context.diskMaxObject
        let refused = fitsDisk ? context.store.refusal(of: bytes) : nil
        let fitsMemory = policy.memory && context.fitsMemory(bytes)
        inMemory = fitsMemory && context.store.hasMemory(for: bytes) && context.budget.mayKeep(bytes, more: bytes)
        if fitsMemory, !inMemory { context.budget.noteRefusal() }
        onDisk = fitsDisk && refused == nil
        if inMemory || onDisk {
            refusal = nil
        } else if fitsMemory {
            refusal = .noMemory
        } else if !policy.memory && !hasDisk {
            refusal = .tiersOff
        } else {
            refusal = fitsDisk ? (refused == .fails ? .diskFails : .noRoom) : .tooLarge
        }
    }

    /// Why no tier has a complete response that was to be stored: the memory tier does not take it, and
    /// no file of it was written.
    /// - Parameters:
    ///   - length: of the body in bytes; it may have been unknown when the fetch began.
    ///   - isWindowed: the body was to be written to the disk from memory.
    func shortfall(_ context: FetchContext, length: Int, isWindowed: Bool) -> UnstoredReason {
        if inMemory && context.fitsMemory(length) || onDisk && isWindowed { return .noMemory }
        return onDisk ? .diskFails : .tooLarge
    }
}
