// Which files are pinned: the list of pins has URLs, the table knows its files by the hashes of their keys.

import CacheStore
import EventLoop
import Synchronization

/// Sendable: its member is.
final class DiskPins: Sendable {
    private let parts: DiskParts

    init(_ parts: DiskParts) { self.parts = parts }

    /// A URL was pinned, or let go of: files of it make no room for others from now on, or do again.
    func takeOver(_ url: String) async {
        try? await parts.index.thread.run { [self] in takeOverNow([url]) }
    }

    /// The pins of an earlier process, before anything can make room for something else.
    func takeOverAll() async {
        let urls = parts.invalidations.pins.all
        if !urls.isEmpty { try? await parts.index.thread.run { [self] in takeOverNow(urls) } }
    }

    /// On the index's thread.
    private func takeOverNow(_ urls: [String]) {
        // After passing each lock, every file stored before is in the index; later commits check the pins themselves.
        parts.passLocks()
        parts.index.writeBatch()
        for url in urls {
            guard parts.invalidations.pins.contains(url) else {
                parts.state.withLock { $0.unpin(url) }
                continue
            }
            // Those without a row are met by the walk.
            let hashes = (try? parts.index.keyHashes(of: url)) ?? []
            parts.state.withLock { $0.pin(url, hashes) }
        }
    }

    /// A file of this key is there now; under the file's lock.
    func note(_ key: CacheKey, _ keyHash: UInt64) {
        if parts.invalidations.pins.contains(key) { parts.state.withLock { $0.pin(key.description, [keyHash]) } }
    }
}
