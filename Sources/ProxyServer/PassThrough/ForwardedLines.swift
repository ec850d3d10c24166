// The lines that this proxy adds to a head that is forwarded unchanged.

import DownloadCore
import HTTPWire

/// The lines of a forwarded head that are not the origin's fields; they are often the same for many answers in a row.
///
/// An object, since it is copied with each of them.
final class ForwardedLines: Sendable {
    let forwardReason: ForwardReason
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

    init(forwardReason: ForwardReason, _ head: ResponseHead, cacheStatus: String, cache: CacheOutcome, bytes: [UInt8]) {
        self.forwardReason = forwardReason
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
