// A representation of which only parts are stored, the table of such representations (RFC 9111 section 3.3), and the
// plan of a range that is requested from the origin.

import CacheStore
import HTTPCaching
import HTTPWire
import Synchronization

/// The stored parts of a representation with one strong validator, and the head that the whole would have. Any thread.
///
/// Sendable: its state is under its own mutex.
package final class IncompleteResponse: Sendable {
    private struct State {
        var head: StoredHead
        /// The invalidation token of the time when the first part was requested.
        var token: InvalidationToken
        /// The ranges that are being fetched.
        var claims: [(range: Range<Int64>, end: Latch<Void>)] = []
        var isCompleting = false
        var lastUse: UInt64 = 0
    }

    let key: CacheKey
    let extents: Extents
    /// The token as it was taken, without rules.
    private let noted: InvalidationToken
    private let state: Mutex<State>

    init(key: CacheKey, token: InvalidationToken, head: StoredHead, extents: Extents) {
        self.key = key
        noted = token
        self.extents = extents
        state = Mutex(State(head: head, token: token.concerned(by: InvalidationRule.concerning(head, key))))
    }

    /// The head with status 200 and the complete length, as the latest part or check has freshened it.
    var head: StoredHead { state.withLock { $0.head } }

    /// The token that was taken when the first part was requested, with the rules that match the latest head: a later
    /// invalidation drops the parts.
    var token: InvalidationToken { state.withLock { $0.token } }

    func update(_ head: StoredHead) {
        let token = noted.concerned(by: InvalidationRule.concerning(head, key))
        state.withLock { state in
            state.head = head
            state.token = token
        }
    }

    /// Claims missing bytes, so that only one request fetches them.
    /// - Returns: `isMine` is true if no other request is fetching any of these bytes; then the caller fetches them and
    ///   calls
    ///   ``release(_:)``. Otherwise it waits for `end`.
    func claim(_ range: Range<Int64>) -> (end: Latch<Void>, isMine: Bool) {
        state.withLock { state in
            if let other = state.claims.first(where: { $0.range.overlaps(range) }) { return (other.end, false) }
            let end = Latch<Void>()
            state.claims.append((range, end))
            return (end, true)
        }
    }

    func release(_ end: Latch<Void>) {
        state.withLock { $0.claims.removeAll { $0.end === end } }
        end.set(())
    }

    /// Claims the storing of the complete response; true for the first caller only.
    func beginCompletion() -> Bool {
        state.withLock { state in
            defer { state.isCompleting = true }
            return !state.isCompleting
        }
    }

    fileprivate var lastUse: UInt64 {
        get { state.withLock { $0.lastUse } }
        set { state.withLock { $0.lastUse = newValue } }
    }
}

/// The statistics of the table of incomplete responses.
package struct PartialStatistics: Sendable, Equatable {
    /// The number of representations of which parts are stored.
    package var objects = 0
    /// The bytes of parts in memory.
    package var heldBytes = 0
    /// The bytes reserved on the disk for files of parts.
    package var filedBytes = 0

    package init() {}
}

/// The incomplete responses, limited in number and bytes: the least recently used is dropped first. The table ends with
/// the process.
///
/// Sendable: its state is under its own mutex.
final class PartialTable: Sendable {
    /// The largest number of representations.
    static let limit = 1024
    /// The largest number of incomplete responses of one key.
    static let variants = 8

    private struct State {
        var partials: [CacheKey: [IncompleteResponse]] = [:]
        var count = 0
        var uses: UInt64 = 0
    }

    private let state = Mutex(State())
    /// The most bytes in memory.
    private let heldLimit: Int
    /// The most bytes on the disk.
    private let filedLimit: Int

    init(heldLimit: Int, filedLimit: Int) {
        self.heldLimit = heldLimit
        self.filedLimit = filedLimit
    }

    /// The incomplete responses of a key, the newest last.
    func variants(_ key: CacheKey) -> [IncompleteResponse] {
        state.withLock { state in
            guard let found = state.partials[key] else { return [] }
            state.uses += 1
            for partial in found { partial.lastUse = state.uses }
            return found
        }
    }

    /// The incomplete responses of a key, for explanations: the order of use stays as it is.
    func peek(_ key: CacheKey) -> [IncompleteResponse] { state.withLock { $0.partials[key] ?? [] } }

    /// Adds an incomplete response in place of the one that the same requests select.
    /// - Returns: the previous ones of the key; the caller releases them without a lock, because that may remove files.
    func insert(_ partial: IncompleteResponse) -> [IncompleteResponse] {
        state.withLock { state in
            state.uses += 1
            partial.lastUse = state.uses
            let head = partial.head
            let before = state.partials[partial.key] ?? []
            var left = before.filter { !$0.head.isSameVariant(as: head) }
            if left.count >= Self.variants { left.removeFirst() }
            state.count += left.count + 1 - before.count
            state.partials[partial.key] = left + [partial]
            return before
        }
    }

    func contains(_ partial: IncompleteResponse) -> Bool {
        state.withLock { $0.partials[partial.key]?.contains { $0 === partial } ?? false }
    }

    func remove(_ key: CacheKey) { remove(key) { _ in true } }

    func remove(_ partial: IncompleteResponse) { remove(partial.key) { $0 === partial } }

    func remove(_ key: CacheKey, where shouldRemove: (IncompleteResponse) -> Bool) {
        let before = state.withLock { state in
            guard let found = state.partials[key] else { return [IncompleteResponse]() }
            let left = found.filter { !shouldRemove($0) }
            state.count -= found.count - left.count
            state.partials[key] = left.isEmpty ? nil : left
            return found
        }
        // Released outside the mutex, because that may remove files.
        withExtendedLifetime(before) {}
    }

    var statistics: PartialStatistics {
        all.reduce(into: PartialStatistics()) { sum, partial in
            sum.objects += 1
            sum.heldBytes += partial.extents.heldBytes
            sum.filedBytes += partial.extents.file?.reserved ?? 0
        }
    }

    var all: [IncompleteResponse] { state.withLock { $0.partials.values.flatMap { $0 } } }

    /// Drops the least recently used incomplete responses until the limits are kept.
    func shrink() {
        var sum = statistics
        guard sum.objects > Self.limit || sum.heldBytes > heldLimit || sum.filedBytes > filedLimit else { return }
        for partial in all.sorted(by: { $0.lastUse < $1.lastUse }) {
            guard sum.objects > Self.limit || sum.heldBytes > heldLimit || sum.filedBytes > filedLimit else { return }
            remove(partial)
            sum.objects -= 1
            sum.heldBytes -= partial.extents.heldBytes
            sum.filedBytes -= partial.extents.file?.reserved ?? 0
        }
    }
}

// MARK: - The range that is requested from the origin

/// The plan of a request for one range.
struct RangeFetchPlan: Sendable {
    /// The stored incomplete response; nil if there is none.
    var partial: IncompleteResponse?
    /// The one range that is sent in Range.
    var asked: ByteRanges.Spec
    /// Whether the stored parts cover the request and need validation; if false, bytes are missing.
    var isCheck = false
    /// Whether the range is all that the client requested: an answer that cannot be stored can then be forwarded as it
    /// is.
    var isOwn = false

    /// Whether the response must be stored, because it is only a part of the answer.
    var needsKeeping: Bool { !isOwn && !isCheck }

    /// The missing bytes; nil if they depend on an unknown length.
    var hole: Range<Int64>? {
        guard let partial, !isCheck else { return nil }
        return asked.resolved(length: partial.extents.length)
    }

    /// Sets the range and its conditions, which replace the client's own. If nothing is stored, the client's If-Range
    /// stays: only the origin can evaluate it.
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
