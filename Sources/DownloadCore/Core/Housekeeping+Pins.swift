// Pins: responses stored under a pinned URL are not evicted, and not purged for their age.

import CacheStore
import EventLoop

extension Housekeeping {
    /// ``DownloadCore/pin(_:on:)``
    func pin(_ url: String, on pool: IOPool) async throws(PinError) -> Bool {
        try await change(url, on: pool) { (pins, url) throws(PinError) in try pins.add(url) }
    }

    /// ``DownloadCore/unpin(_:on:)``
    func unpin(_ url: String, on pool: IOPool) async throws(PinError) -> Bool {
        try await change(url, on: pool) { (pins, url) throws(PinError) in try pins.remove(url) }
    }

    private func change(
        _ url: String,
        on pool: IOPool,
        _ change: @escaping @Sendable (Pins, String) throws(PinError) -> Bool
    ) async throws(PinError) -> Bool {
        let url = PurgeRule.normalised(url)
        let work = { @Sendable [self] () -> Result<Bool, PinError> in
            let result = Result { () throws(PinError) in try change(context.invalidations.pins, url) }
            context.store.memory.takeOverPins()
            return result
        }
        let result = try? await pool.run(work)
        for tier in context.store.tiers { await tier.takeOverPin(url) }
        guard let result else { throw .ended }
        return try result.get()
    }
}
