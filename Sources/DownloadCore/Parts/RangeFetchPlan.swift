// The range that is requested from the origin, and its conditions.

import CacheStore
import HTTPCaching
import HTTPWire

/// A request for one range.
struct RangeFetchPlan: Sendable {
    /// The stored incomplete response; nil where none is stored.
    var partial: IncompleteResponse?
    /// The one range that goes into Range.
    var asked: ByteRanges.Spec
    /// The stored parts cover the request and need validation; if false, bytes are missing.
    var isCheck = false
    /// The range is all that the client asked for: an answer that cannot be stored can be forwarded as it is.
    var isOwn = false

    /// The response must be kept, because it is only a part of the answer.
    var needsKeeping: Bool { !isOwn && !isCheck }

    /// The missing bytes; nil where they depend on a length that is unknown.
    var hole: Range<Int64>? {
        guard let partial, !isCheck else { return nil }
        return asked.resolved(length: partial.extents.length)
    }

    /// Replaces the client's own conditions. Where nothing is stored, its If-Range is forwarded: only
    /// the origin can evaluate it.
    func apply(to fields: inout Fields) {
        let ifRange = fields.all(.ifRange)
        fields.removeConditions()
        fields.set(.range, "bytes=" + asked.text)
        guard let partial else {
            for value in ifRange { fields.append(.ifRange, value) }
            return
        }
        let conditions = Caching.partConditions(partial.head, isCheck: isCheck)
        conditions.forEachLine { name, value, _ in fields.append(nameBytes: name, valueBytes: value) }
    }
}
