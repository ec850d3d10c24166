// The lines of a head that is passed on as it came, but for the fields of its origin.

import DownloadCore
import HTTPWire

/// The lines of a head that are not the fields of its origin; many answers in a row have the same.
///
/// An object, since it is copied with each of them.
final class PassedLines: Sendable {
    let way: Way
    let status: Int
    let reason: String
    /// As it goes on the wire, with its CRLF.
    let statusLine: [UInt8]
    /// The value of Cache-Status.
    let cacheStatus: String
    /// The same for the counters.
    let cache: CacheOutcome
    /// Via and Cache-Status as they go on the wire.
    let bytes: [UInt8]

    init(way: Way, _ head: ResponseHead, cacheStatus: String, cache: CacheOutcome, bytes: [UInt8]) {
        self.way = way
        status = head.status
        reason = head.reason
        var line: [UInt8] = []
        Serializer.writeStatusLine(head, into: &line)
        statusLine = line
        self.cacheStatus = cacheStatus
        self.cache = cache
        self.bytes = bytes
    }
}
