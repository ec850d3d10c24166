// Pieces of bodies in memory, each allocated once, shared by all readers and freed with its last user; and the budget
// that counts them.

package import EventLoop
import Glibc
import Synchronization

/// Bytes of a body, which never change after readers have got them.
///
/// Sendable: only the writer of a growing body fills the unused end of its last chunk, and publishes the new bytes
/// under the body's mutex; readers never read beyond the range that they got with the chunk.
package final class Chunk: Sendable {
    // The bytes. Only the writer of a growing body changes them, beyond what readers have got; freed in deinit, unless
    // `owner` has them.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer
    /// The memory file of the bytes; nil for bytes in the heap.
    package let file: MemoryFile?
    /// The owner of the bytes, which never change; held only to keep them alive.
    private nonisolated(unsafe) let owner: AnyObject?
    /// The size of the allocation in bytes; all of it is used if the chunk is a whole body.
    package let capacity: Int
    /// The budget that counts the bytes until the memory tier does; nil if they are not counted.
    private let budget: BodyBudget?
    private let account = Mutex(Account())

    /// The owner of the count of the bytes: the budget, or the tier.
    private struct Account {
        /// The number of entries of the memory tier that have the chunk.
        var entries = 0
        /// The counter of the bytes after the memory tier has dropped the chunk; nil if it never had the chunk.
        var lent: LentBytes?
    }

    /// Kept chunks of at least this many bytes are memory files of their own (memfd), which `sendfile` sends without a
    /// copy. For smaller ones the second call costs as much as the copy.
    package static let memfdThreshold = 64 << 10

    /// Makes a chunk.
    /// - Parameters:
    ///   - isKept: whether the chunk may be sent more than once: as a stored body, or to all readers of a growing one.
    ///   - files: the limit of memory files; beyond it the chunk is in the heap.
    ///   - budget: the budget that counts the bytes while the chunk lives, or until the memory tier counts them.
    init(capacity: Int, isKept: Bool = false, files: Int = MemoryFile.limit, budget: BodyBudget? = nil) {
        self.capacity = capacity
        self.budget = budget
        file = isKept && capacity >= Self.memfdThreshold ? MemoryFile(count: capacity, limit: files) : nil
        owner = nil
        base = file?.base ?? .allocate(byteCount: max(capacity, 1), alignment: 16)
        budget?.add(capacity)
    }

    /// A chunk that holds a copy of `bytes` and nothing else.
    package convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(capacity: bytes.count)
        fill(at: 0, with: bytes)
    }

    /// Makes a chunk with a copy of some bytes.
    /// - Parameter budget: the budget that counts the bytes while the chunk lives.
    package convenience init(_ bytes: [UInt8], isKept: Bool = false, budget: BodyBudget? = nil) {
        self.init(capacity: bytes.count, isKept: isKept, budget: budget)
        bytes.withUnsafeBytes { fill(at: 0, with: $0) }
    }

    /// Makes a chunk of bytes that neither move nor change while `owner` lives.
    /// - Parameter file: the memory file of the bytes; nil for none.
    package init(of bytes: UnsafeRawBufferPointer, in owner: AnyObject, file: MemoryFile? = nil) {
        capacity = bytes.count
        budget = nil
        self.owner = owner
        self.file = file
        // An empty range may have no address. This one replaces it, and is never read or written.
        let address = bytes.baseAddress ?? UnsafeRawPointer(Unmanaged.passUnretained(owner).toOpaque())
        base = UnsafeMutableRawPointer(mutating: address)
    }

    deinit {
        if owner == nil, file == nil { base.deallocate() }
        let (entries, lent) = account.withLock { ($0.entries, $0.lent) }
        if let lent {
            if entries == 0 { lent.add(-capacity) }
        } else {
            budget?.add(-capacity)
        }
    }

    // MARK: - Who counts it

    /// Called when an entry of a memory tier takes the chunk, whose bytes the tier counts from now on.
    /// - Parameter lent: the counter of that tier for dropped bodies in use.
    func enter(_ lent: LentBytes) {
        let isFirst = account.withLock { account in
            account.entries += 1
            guard account.lent == nil else {
                if account.entries == 1 { lent.add(-capacity) }
                return false
            }
            account.lent = lent
            return true
        }
        if isFirst { budget?.add(-capacity) }
    }

    /// Called when an entry of a memory tier drops the chunk.
    func leave() {
        account.withLock { account in
            account.entries -= 1
            if account.entries == 0 { account.lent?.add(capacity) }
        }
    }

    /// The offset of a range of the chunk in ``file``.
    package func fileOffset(_ range: Range<Int>) -> Int64 {
        file.map { Int64(base - $0.base + range.lowerBound) } ?? 0
    }

    /// Calls `body` with the whole allocation, of which only the range that came with the chunk may be read. The
    /// pointer is valid as long as the chunk is held, also after `body` has returned.
    package func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try body(UnsafeRawBufferPointer(start: base, count: capacity))
    }

    /// The bytes of the chunk, valid while the caller holds it.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: capacity) }

    /// The bytes of one range as an array; for slow paths and tests.
    package func array(_ range: Range<Int>) -> [UInt8] {
        withBytes { Array(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// Copies bytes into the chunk; only for its maker, before the bytes are published.
    func fill(at offset: Int, with bytes: UnsafeRawBufferPointer) {
        precondition(offset >= 0 && bytes.count <= capacity - offset)
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        (base + offset).copyMemory(from: source, byteCount: bytes.count)
    }

    /// The space for a read; only for the maker of the chunk, before the bytes are published.
    func room(_ range: Range<Int>) -> UnsafeMutableRawBufferPointer {
        precondition(range.lowerBound >= 0 && range.upperBound <= capacity)
        return UnsafeMutableRawBufferPointer(start: base + range.lowerBound, count: range.count)
    }
}

// MARK: - The budget

/// The budget of the bytes in chunks that no entry of the memory tier has. The more bytes are in use, the smaller is
/// the window of each body, down to ``minimumWindow``, and the fewer bodies are kept whole for the memory tier. No
/// writer waits for this budget, so that stalled readers cannot stop others.
///
/// Sendable: the counts are atomic.
package final class BodyBudget: Sendable {
    /// The bytes that a growing body may always hold, independently of the others.
    package static let minimumWindow = 64 * 1024

    /// The default of the limit, in bytes.
    package static let minimumLimit = 64 << 20

    /// The size of a small body, in bytes: bodies up to it are kept until the whole budget is used.
    package static let smallBody = 256 * 1024

    /// The limit of all bodies together, in bytes.
    package let limit: Int
    private let count = Atomic<Int>(0)
    private let refused = Atomic<Int>(0)

    /// Makes a budget.
    /// - Parameter limit: the limit in bytes.
    package init(limit: Int = BodyBudget.minimumLimit) { self.limit = max(1, limit) }

    /// Makes a budget of 64 MiB, or of four times the largest entry of the memory tier if that is more.
    /// - Parameter maxObject: the size of that entry in bytes.
    package convenience init(maxObject: Int) {
        let (limit, isTooMuch) = maxObject.multipliedReportingOverflow(by: 4)
        self.init(limit: isTooMuch ? .max : max(Self.minimumLimit, limit))
    }

    /// The bytes that are held at present; they may exceed the limit by the minimum of each body.
    package var used: Int { count.load(ordering: .relaxed) }

    /// Whether so much of the budget is used that senders should queue little.
    package var isTight: Bool { used > limit / 4 * 3 }

    /// The number of bodies that were not stored in memory because the budget was used up.
    package var refusals: Int { refused.load(ordering: .relaxed) }

    /// Adds to the bytes in use; a negative number subtracts.
    func add(_ bytes: Int) { count.wrappingAdd(bytes, ordering: .relaxed) }

    /// The bytes that one body may hold now, at most `wanted`. The last eighth of the budget is
    /// left to small kept bodies.
    func window(_ wanted: Int) -> Int { min(wanted, max(Self.minimumWindow, (limit / 8 * 7 - used) / 16)) }

    /// Whether a body of this size may be held as a whole for the memory tier. Large ones share half of the limit; a
    /// body that fits its window may always be held.
    /// - Parameter more: the bytes of it that are not counted yet.
    package func mayKeep(_ bytes: Int, more: Int = 0) -> Bool {
        let most = bytes <= Self.smallBody ? limit : limit / 2
        return bytes <= Self.minimumWindow || more <= most - used
    }

    /// Counts a body that the memory tier does not get because the budget is used up.
    package func noteRefusal() { refused.wrappingAdd(1, ordering: .relaxed) }
}

/// The counter of bytes in stored bodies that have left the memory tier, but are still sent or read.
///
/// Sendable: the count is atomic.
final class LentBytes: Sendable {
    private let bytes = Atomic<Int>(0)

    var count: Int { bytes.load(ordering: .relaxed) }

    func add(_ change: Int) { bytes.wrappingAdd(change, ordering: .relaxed) }
}
