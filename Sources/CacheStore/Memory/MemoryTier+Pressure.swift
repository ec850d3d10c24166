// Memory given back while others need it.

import EventLoop

extension MemoryTier {
    /// Evicts a part of the entries, in the order of eviction, and gives the memory back to the kernel. Blocks for
    /// milliseconds: not on a loop.
    /// - Parameter share: of the bytes in use, above 0 and at most 1.
    /// - Returns: the count of freed bytes.
    @discardableResult
    package func shed(_ share: Double) -> Int {
        let before = statistics.bytes
        let wanted = Int((Double(before) * min(1, max(0, share))).rounded(.up))
        shrink(toBytes: max(0, before - wanted))
        BlockHeap.shared.giveBack()
        ProcessMemory.giveBack()
        return max(0, before - statistics.bytes)
    }
}
