// The memory that bodies take beside the memory tier: on their way, in parts, and as long as somebody still sends them.

import Synchronization

/// Counts the bytes of chunks that no entry of the memory tier has. The more bytes are in use, the smaller is the
/// window of each body, down to ``minimumWindow``, and the fewer bodies are kept whole for the memory tier. No writer
/// ever waits for this budget, so readers that stand still cannot stop others.
///
/// Sendable: the counts are atomic.
package final class BodyBudget: Sendable {
    /// In bytes; a growing body may always hold this much, however much the others hold.
    package static let minimumWindow = 64 * 1024

    /// In bytes; the default.
    package static let minimumLimit = 64 << 20

    /// In bytes; bodies up to this size are kept until the whole budget is used.
    package static let smallBody = 256 * 1024

    /// In bytes.
    package let limit: Int
    private let count = Atomic<Int>(0)
    private let refused = Atomic<Int>(0)

    /// - Parameter limit: bytes.
    package init(limit: Int = BodyBudget.minimumLimit) { self.limit = max(1, limit) }

    /// 64 MiB, or four times the largest entry of the memory tier where that is more.
    /// - Parameter maxObject: bytes.
    package convenience init(maxObject: Int) {
        let (limit, isTooMuch) = maxObject.multipliedReportingOverflow(by: 4)
        self.init(limit: isTooMuch ? .max : max(Self.minimumLimit, limit))
    }

    /// Bytes that are held now; it may exceed the limit by what each body may always hold.
    package var used: Int { count.load(ordering: .relaxed) }

    /// Whether so much is in use that senders should queue little.
    package var isTight: Bool { used > limit / 4 * 3 }

    /// Bodies that the memory tier would have had if less had been on its way.
    package var refusals: Int { refused.load(ordering: .relaxed) }

    /// Adds to the bytes in use; a negative count subtracts.
    func add(_ bytes: Int) { count.wrappingAdd(bytes, ordering: .relaxed) }

    /// The bytes that one body may hold now, at most `wanted`. The last eighth of the budget is
    /// left to small kept bodies.
    func window(_ wanted: Int) -> Int { min(wanted, max(Self.minimumWindow, (limit / 8 * 7 - used) / 16)) }

    /// Whether a body of which so much has come, or will come, may be held as a whole for the memory tier. Large ones
    /// share half of the limit; what its window holds in any case always may.
    /// - Parameter more: bytes of it that are not counted yet.
    package func mayKeep(_ bytes: Int, more: Int = 0) -> Bool {
        let most = bytes <= Self.smallBody ? limit : limit / 2
        return bytes <= Self.minimumWindow || more <= most - used
    }

    /// The memory tier will not have a body for want of room here.
    package func noteRefusal() { refused.wrappingAdd(1, ordering: .relaxed) }
}

/// Counts the bytes of stored bodies that have left the memory tier, and that somebody still sends or reads.
///
/// Sendable: the count is atomic.
final class LentBytes: Sendable {
    private let bytes = Atomic<Int>(0)

    var count: Int { bytes.load(ordering: .relaxed) }

    func add(_ change: Int) { bytes.wrappingAdd(change, ordering: .relaxed) }
}
