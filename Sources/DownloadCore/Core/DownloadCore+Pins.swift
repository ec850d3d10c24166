// Pins: what is stored under a pinned URL makes no room for others, and is not purged for its age.

package import CacheStore
package import EventLoop

extension DownloadCore {
    /// Pins a URL, for what is stored and for what will be; returns when a restart does not undo it.
    /// - Parameter pool: for what blocks.
    /// - Returns: false where it was pinned already.
    package func pin(_ url: String, on pool: IOPool) async throws(PinError) -> Bool {
        try await change(url, on: pool) { (pins, url) throws(PinError) in try pins.add(url) }
    }

    /// Lets go of a URL.
    /// - Returns: false where it was not pinned.
    package func unpin(_ url: String, on pool: IOPool) async throws(PinError) -> Bool {
        try await change(url, on: pool) { (pins, url) throws(PinError) in try pins.remove(url) }
    }

    private func change(
        _ url: String,
        on pool: IOPool,
        _ change: @escaping @Sendable (Pins, String) throws(PinError) -> Bool
    ) async throws(PinError) -> Bool {
        let url = PurgeRule.normalised(url)
        let work = { @Sendable [self] () -> Result<Bool, PinError> in
            let result = Result { () throws(PinError) in try change(generations.pins, url) }
            memory.takeOverPins()
            return result
        }
        let result = try? await pool.run(work)
        await disk?.takeOverPin(url)
        guard let result else { throw .ended }
        return try result.get()
    }
}
