// Which files are pinned: the list of pins has URLs, the table knows its files by the hashes of their keys.

import EventLoop
import Synchronization

extension DiskTier {
    /// A URL was pinned, or let go of: files of it make no room for others from now on, or do again.
    package func takeOverPin(_ url: String) async {
        try? await index.thread.run { [self] in takeOverNow([url]) }
    }

    /// The pins of an earlier process, before anything can make room for something else.
    func takeOverPins() async {
        let urls = invalidations.pins.all
        if !urls.isEmpty { try? await index.thread.run { [self] in takeOverNow(urls) } }
    }

    /// On the index's thread.
    private func takeOverNow(_ urls: [String]) {
        // After passing each lock, every file stored before is in the index; later commits check the pins themselves.
        passLocks()
        index.writeBatch()
        for url in urls {
            // Those without a row are met by the walk.
            let hashes = (try? index.keyHashes(of: url)) ?? []
            let isPinned = invalidations.pins.contains(url)
            state.withLock { state in
                if isPinned { state.pinned.formUnion(hashes) } else { state.pinned.subtract(hashes) }
            }
        }
    }

    /// A file of this key is there now.
    func notePin(_ key: CacheKey, _ keyHash: UInt64) {
        if invalidations.pins.contains(key) { state.withLock { _ = $0.pinned.insert(keyHash) } }
    }
}
