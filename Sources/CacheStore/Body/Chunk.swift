// Pieces of bodies in memory, each allocated once, shared by all readers and freed with its last user, and the budget
// that they are counted in.

package import EventLoop
import Glibc
import Synchronization

/// Bytes of a body. Bytes that readers have got never change.
///
/// Sendable: only the writer of a growing body fills the unused end of its last chunk, and publishes the new bytes
/// under the body's mutex; readers never read beyond the range that they got with the chunk.
package final class Chunk: Sendable {
    // Written only as the type's comment says; freed in deinit, unless they are the owner's.
    private nonisolated(unsafe) let base: UnsafeMutableRawPointer
    /// The file that the bytes lie in; nil where they are in the heap.
    package let file: MemoryFile?
    /// Owns the bytes, which never change; held only to keep them alive.
    private nonisolated(unsafe) let owner: AnyObject?
    /// Size of the allocation in bytes; all of it is in use where the chunk is a whole body.
    package let capacity: Int
    /// Counts the bytes until the memory tier does; nil if they are not counted.
    private let budget: BodyBudget?
    private let account = Mutex(Account())

    /// The budget or the tier that counts the bytes.
    private struct Account {
        /// Entries of the memory tier that have the chunk.
        var entries = 0
        /// Counts them once the memory tier has had the chunk, and has it no more.
        var lent: LentBytes?
    }

    /// Kept chunks of at least this many bytes are memory files of their own (memfd), which `sendfile` sends without a
    /// copy. For smaller ones the second call costs as much as the copy.
    package static let memfdThreshold = 64 << 10

    /// - Parameters:
    ///   - isKept: the chunk may be sent more than once: as a stored body, or to all readers of a growing one.
    ///   - files: the limit of memory files; beyond it the chunk gets none.
    ///   - budget: counts the bytes while the chunk lives, or until the memory tier counts them.
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

    /// - Parameter budget: counts the bytes while the chunk lives.
    package convenience init(_ bytes: [UInt8], isKept: Bool = false, budget: BodyBudget? = nil) {
        self.init(capacity: bytes.count, isKept: isKept, budget: budget)
        bytes.withUnsafeBytes { fill(at: 0, with: $0) }
    }

    /// Bytes that neither move nor change while `owner` lives.
    /// - Parameter file: the memory file that holds them, if any.
    package init(of bytes: UnsafeRawBufferPointer, in owner: AnyObject, file: MemoryFile? = nil) {
        capacity = bytes.count
        budget = nil
        self.owner = owner
        self.file = file
        // An empty range may have no address. This one stands for it, and is never read or written.
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

    /// Called when an entry of a memory tier takes the chunk: the tier counts the bytes from now on.
    /// - Parameter lent: of that tier.
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

    /// An entry that had it has gone.
    func leave() {
        account.withLock { account in
            account.entries -= 1
            if account.entries == 0 { account.lent?.add(capacity) }
        }
    }

    /// Where a range of it begins in ``file``.
    package func fileOffset(_ range: Range<Int>) -> Int64 {
        file.map { Int64(base - $0.base + range.lowerBound) } ?? 0
    }

    /// The whole allocation; only the range that came with the chunk may be read. The pointer is valid as long as the
    /// chunk is held, also after `body` has returned.
    package func withBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try body(UnsafeRawBufferPointer(start: base, count: capacity))
    }

    /// The bytes of the chunk, valid while the caller holds it.
    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: capacity) }

    /// The bytes of one range as an array; for slow paths and tests.
    package func array(_ range: Range<Int>) -> [UInt8] {
        withBytes { Array(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// Copies bytes into the chunk; only its maker may, before the bytes are published.
    func fill(at offset: Int, with bytes: UnsafeRawBufferPointer) {
        precondition(offset >= 0 && bytes.count <= capacity - offset)
        guard let source = bytes.baseAddress, !bytes.isEmpty else { return }
        (base + offset).copyMemory(from: source, byteCount: bytes.count)
    }

    /// Space for a read; for the maker of the chunk, before the bytes are published.
    func room(_ range: Range<Int>) -> UnsafeMutableRawBufferPointer {
        precondition(range.lowerBound >= 0 && range.upperBound <= capacity)
        return UnsafeMutableRawBufferPointer(start: base + range.lowerBound, count: range.count)
    }
}

// MARK: - The budget

/// Counts the bytes of chunks that no entry of the memory tier has. The more bytes are in use, the smaller is the
/// window of each body, down to ``minimumWindow``, and the fewer bodies are kept whole for the memory tier. No writer
/// ever waits for this budget, so readers that stand still cannot stop others.
///
/// Sendable: the counts are atomic.
package final class BodyBudget: Sendable {
    /// The bytes that a growing body may always hold, however much the others hold.
    package static let minimumWindow = 64 * 1024

    /// The default of the limit, in bytes.
    package static let minimumLimit = 64 << 20

    /// The size of a small body, in bytes: bodies up to it are kept until the whole budget is used.
    package static let smallBody = 256 * 1024

    /// The limit of all bodies together, in bytes.
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
