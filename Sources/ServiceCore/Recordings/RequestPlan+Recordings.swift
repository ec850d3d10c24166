// The cache status of replayed answers.

import CacheStore
import DownloadCore
import HTTPCaching
import HTTPWire

extension Answer {
    /// Tells in Cache-Status that a recording has answered, if one has.
    mutating func tellRecording() {
        guard head.fields.first(ReplayedFetch.fieldName) != nil, let status = cacheStatus else { return }
        cacheStatus = CacheStatus(
            cacheName: status.cacheName,
            hit: true,
            detail: CacheStatus.Detail.recording.rawValue
        )
    }
}
