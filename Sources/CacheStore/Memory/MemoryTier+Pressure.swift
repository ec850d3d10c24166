// Memory given back while others need it.

import EventLoop

extension MemoryTier {
    /// Evicts a part of what is held, those whose turn it is, and gives the memory back to the kernel. Blocks for
    /// milliseconds: not on a loop.
    /// - Parameter share: of the bytes that are held, above 0 and at most 1.
    /// - Returns: how many bytes have gone.
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
