// Which part the origin is asked for, and under which conditions.

import CacheStore
import HTTPCaching
import HTTPWire

/// A request for one range.
struct PartPlan: Sendable {
    /// What is stored already; nil where nothing is.
    var partial: Partial?
    /// The one range that goes into Range.
    var asked: ByteRanges.Spec
    /// What is stored covers the request and is to be checked; else bytes are missing.
    var isCheck = false
    /// The range is all that the client asked for: an answer that cannot be stored can be passed on as it is.
    var isOwn = false

    /// What comes has to be kept: it is not all of the answer.
    var needsKeeping: Bool { !isOwn && !isCheck }

    /// The bytes that are missing; nil where that depends on a length that nobody knows yet.
    var hole: Range<Int64>? {
        guard let partial, !isCheck else { return nil }
        return asked.resolved(length: partial.extents.length)
    }

    /// Replaces the client's own conditions. Where nothing is stored its If-Range goes on: only the origin can tell.
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
