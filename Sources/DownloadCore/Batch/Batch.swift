// A list of resources to be sized or downloaded together: its items, their routes, and what has become of each. It is a
// value that can be written down.

package import CacheStore
package import EventLoop
package import HTTPWire
package import Policies

/// The state of a batch. Legal: queued → checking → checked or cancelled; queued or checked → running → done, failed,
/// stopped or cancelled; those three, and a batch that a restart has interrupted, → queued.
package enum BatchState: String, Sendable, Codable, CaseIterable {
    /// The batch waits for its turn.
    case queued
    /// The sizes of the items are being found out.
    case checking
    /// All sizes that can be known are known; nothing has been downloaded.
    case checked
    case running
    /// Every item is done.
    case done
    /// The batch has come to its end, and at least one item has failed.
    case failed
    /// An item has failed, and the items that were queued were not begun.
    case stopped
    case cancelled

    package var isRunning: Bool { self == .checking || self == .running }
    /// Whether nothing more happens to the batch by itself.
    package var isEnd: Bool { !isRunning && self != .queued }

    package func mayBecome(_ next: BatchState) -> Bool {
        switch self {
        case .queued: next == .checking || next == .running || next == .cancelled
        case .checking: next == .checked || next == .cancelled || next == .queued
        case .checked: next == .running || next == .queued || next == .cancelled
        case .running: next == .done || next == .failed || next == .stopped || next == .cancelled || next == .queued
        case .failed, .stopped, .cancelled: next == .queued
        case .done: false
        }
    }
}

package struct BatchOptions: Sendable, Equatable, Codable {
    /// The number of items under way at a time, at least 1; 10 by default. With 1, the items come one after the other.
    package var concurrency: Int
    /// The effect of a failure on the other items; they continue by default.
    package var onError: BatchFailurePolicy

    package init(concurrency: Int = 10, onError: BatchFailurePolicy = .continue) {
        self.concurrency = max(1, concurrency)
        self.onError = onError
    }
}

package struct Batch: Sendable, Equatable, Codable {
    package var options: BatchOptions
    package var state: BatchState
    /// The items and what has become of them, in the given order.
    package var entries: [BatchEntry]

    package init(_ items: [BatchItem], options: BatchOptions = BatchOptions()) {
        self.options = options
        state = .queued
        entries = items.map { BatchEntry($0) }
    }

    package var totals: BatchTotals { BatchTotals(entries) }

    /// The first item of the list that has failed.
    package var firstError: BatchEntry? { entries.first { $0.state == .failed } }

    /// Cancels a batch that has not begun, with all its items.
    package mutating func cancel() {
        guard state == .queued else { return }
        for index in entries.indices where entries[index].state == .queued { entries[index].state = .cancelled }
        state = .cancelled
    }

    /// Queues again the items that were being downloaded when the process ended.
    /// - Returns: whether anything was under way.
    package mutating func resume() -> Bool {
        for index in entries.indices where entries[index].state == .running { entries[index].requeue() }
        guard state.isRunning else { return false }
        state = .queued
        return true
    }
}

// MARK: - What has become of an item

/// The state of an item. Legal: queued → running → done, failed or cancelled, and back to queued if the batch goes on
/// after an end, a retry or a restart; queued → done, failed or cancelled without a download.
package enum BatchEntryState: String, Sendable, Codable, CaseIterable {
    case queued, running, done, failed, cancelled

    /// Whether nothing more happens to the item by itself.
    package var isEnd: Bool { self == .done || self == .failed || self == .cancelled }

    package func mayBecome(_ next: BatchEntryState) -> Bool {
        switch self {
        case .queued: next != .queued
        case .running: next != .running
        case .failed, .cancelled: next == .queued
        case .done: false
        }
    }
}

/// The result of finding out the size of an item; the raw value is what documents print.
package enum BatchCheck: String, Sendable, Codable, CaseIterable {
    /// A seed, a fresh stored response, or one that the origin calls current: nothing has to be downloaded.
    case valid
    case sized
    /// The origin does not answer HEAD, or its answer has no length; the item is downloaded anyway.
    case unknownSize = "unknown-size"
    case failed
    /// The item is the same as an earlier one.
    case duplicate
}

/// The result of downloading an item that did not fail; the raw value is what documents print.
package enum BatchOutcome: String, Sendable, Codable, CaseIterable {
    case seed
    /// A fresh response was stored already.
    case valid
    /// The origin validated the stored response: it is current.
    case revalidated
    /// The response was downloaded and is stored.
    case downloaded
    /// The response was downloaded and may not be stored; the item's reason says why.
    case notStored = "not-stored"
    case duplicate
    /// The item was not requested: one of its conditions did not hold, as its reason says.
    case skipped
}

package struct BatchEntry: Sendable, Equatable, Codable {
    package var item: BatchItem
    package var state: BatchEntryState
    /// The result of the check; nil before the item was checked.
    package var check: BatchCheck?
    package var outcome: BatchOutcome?
    /// The size of the body in bytes; nil while it is unknown.
    package var size: Int64?
    /// The bytes of the body that have arrived for this item in its last attempt.
    package var received: Int64
    /// The status of the answer that settled the item; nil without an answer.
    package var status: Int?
    /// The reason why the item failed, is not stored, or has no known size.
    package var reason: String?
    /// The position of the earlier item that this one repeats, counted from 0.
    package var duplicateOf: Int?

    package init(_ item: BatchItem) {
        self.item = item
        state = .queued
        received = 0
    }

    /// Whether nothing has to be downloaded for the item.
    var needsNothing: Bool {
        switch outcome {
        case .seed, .valid, .revalidated, .duplicate, .skipped: true
        case .downloaded, .notStored, nil: check == .valid || check == .duplicate
        }
    }

    /// Queues the item to be downloaded, or to be downloaded anew.
    mutating func requeue() {
        self = BatchEntry(item)
    }
}

/// What the items of a batch add up to; a member of the documents of jobs.
package struct BatchTotals: Sendable, Equatable, Codable {
    package var items = 0
    package var queued = 0
    package var running = 0
    package var done = 0
    package var failed = 0
    package var cancelled = 0
    /// The number of items whose size was looked up.
    package var checked = 0
    /// The number of done items that repeat an earlier item.
    package var duplicates = 0
    /// The number of done items that were stored and current, so that nothing was downloaded.
    package var valid = 0
    /// The number of done items that were downloaded, and may not be stored.
    package var notStored = 0
    /// The number of queued and running items of unknown size.
    package var unknownSize = 0
    /// The sum of the known sizes of what is to be downloaded, or has been; in bytes. An item that failed or was
    /// cancelled counts with the bytes that arrived.
    package var bytes: Int64 = 0
    /// The bytes of bodies that have arrived for this batch, and for no other.
    package var received: Int64 = 0
    /// The part of `bytes` that items queued or running still have to receive.
    package var remaining: Int64 = 0

    /// The largest length that counts, 16 TiB: an origin may claim any length, and no sum must overflow.
    private static let longest: Int64 = 1 << 44

    package init() {}

    init(_ entries: [BatchEntry]) { for entry in entries { count(entry, 1) } }

    /// Adds an entry (`sign` 1) or subtracts it (-1).
    mutating func count(_ entry: BatchEntry, _ sign: Int) {
        items += sign
        switch entry.state {
        case .queued: queued += sign
        case .running: running += sign
        case .done: done += sign
        case .failed: failed += sign
        case .cancelled: cancelled += sign
        }
        received &+= Int64(sign) &* entry.received
        if entry.check != nil { checked += sign }
        if entry.outcome == .notStored { notStored += sign }
        if entry.needsNothing {
            if entry.outcome == .duplicate { duplicates += sign } else { valid += sign }
        } else if let size = entry.size {
            let isLost = entry.state == .failed || entry.state == .cancelled
            let size = min(isLost ? min(size, entry.received) : size, Self.longest)
            bytes &+= Int64(sign) &* size
            if !entry.state.isEnd { remaining &+= Int64(sign) &* max(0, size - entry.received) }
        } else if !entry.state.isEnd {
            unknownSize += sign
        }
    }
}

// MARK: - Items

/// A resource of a batch, as a client would request it.
package struct BatchItem: Sendable, Equatable, Codable {
    package struct Field: Sendable, Equatable, Hashable, Codable {
        package var name: String
        package var value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package var url: String
    /// The method as it is sent; `GET` by default.
    package var method: String
    /// Further request fields, in order.
    package var fields: [Field]
    /// The content of the request; nil if it has none.
    package var body: [UInt8]?
    /// Whether the item is fetched from the origin even if a stored response is fresh; false by default. The stored
    /// response is removed only when its replacement is complete.
    package var force: Bool
    /// Whether a seed may answer; true by default.
    package var seed: Bool
    /// Whether the response is stored; true by default. If false, a response that is stored already stays as it is.
    package var store: Bool
    /// The file that the body is written to as well, as a path that ``BatchFiles`` accepts; nil for none.
    package var file: String?
    /// Distinguishes the item from items of the same request whose options differ in a way that the other properties do
    /// not show; nil if there is no such difference.
    package var kind: Int?

    package init(
        url: String,
        method: String = "GET",
        fields: [Field] = [],
        body: [UInt8]? = nil,
        force: Bool = false,
        seed: Bool = true,
        store: Bool = true,
        file: String? = nil,
        kind: Int? = nil
    ) {
        self.url = url
        self.method = method
        self.fields = fields
        self.body = body
        self.force = force
        self.seed = seed
        self.store = store
        self.file = file
        self.kind = kind
    }

    /// The fields of the request, with the Cache-Control directives that the options stand for (RFC 9111 section
    /// 5.2.1).
    /// - Throws: ``BatchRefusal`` if a name or a value is invalid.
    package func requestFields() throws(BatchRefusal) -> Fields {
        var result = Fields()
        for field in fields {
            // A line end in a value would begin another field, or end the head.
            let isOneLine = field.value.utf8.allSatisfy { $0 != 10 && $0 != 13 && $0 != 0 }
            guard isOneLine, result.append(field.name, field.value) else {
                throw BatchRefusal("'\(field.name): \(field.value)' is not a request field; correct its name or value")
            }
        }
        if force { result.appendMember(.cacheControl, "no-cache") }
        if !store { result.appendMember(.cacheControl, "no-store") }
        return result
    }
}

extension BatchItem {
    /// The item as a GET with the fields that clients usually send, so that these are served by what is stored of it.
    /// Fields of the item itself stay.
    /// - Parameter codings: whether the content codings that every client reads are requested; false if a program reads
    ///   the bytes.
    package func asClientsAsk(codings: Bool) -> BatchItem {
        guard method == "GET" else { return self }
        var item = self
        let names = Set(fields.map { $0.name.lowercased() })
        if !names.contains("accept") { item.fields.append(Field("Accept", "*/*")) }
        // A body that is written to a file must not be coded.
        if codings, file == nil, !names.contains("accept-encoding") {
            item.fields.append(Field("Accept-Encoding", "gzip, br"))
        }
        return item
    }
}

/// The reason why an item cannot be requested, with advice.
package struct BatchRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    package var description: String
    /// Whether the item is left out on purpose: it counts as done, not as failed.
    package var isSkip: Bool

    package init(_ description: String, isSkip: Bool = false) {
        self.description = description
        self.isSkip = isSkip
    }
}

// MARK: - Routes of items

/// The source of an item's answer. Loop-bound, because a fetch source is.
package enum BatchRoute {
    /// The answer comes from the store, or through it from the source.
    case store(CacheRequest, any FetchSource)
    /// The answer comes from elsewhere, under a key of its own: a method that is not stored, or a demo answer.
    case other(CacheKey, () async throws(BatchRefusal) -> Answer)

    var key: CacheKey {
        switch self {
        case .store(let ask, _): ask.key
        case .other(let key, _): key
        }
    }
}

/// Finds the route of an item. It sends no request, and is called more than once for each item.
package typealias BatchResolver =
    @Sendable (BatchItem, isolated EventLoop) async throws(BatchRefusal) -> BatchRoute

/// Finds the item that a redirect leads to, with the fields that may go there; nil if the answer is no redirect of the
/// item that can be followed. It sends no request, and throws the reason if the redirect must not be followed.
package typealias BatchFollower =
    @Sendable (BatchItem, ResponseHead, isolated EventLoop) throws(BatchRefusal) -> BatchItem?

/// A change of a batch, reported on its loop after the change.
package enum BatchChange: Sendable, Equatable {
    /// The state of the batch has changed.
    case state(BatchState)
    /// The item at this position has another state, size or outcome.
    case entry(Int)
    /// This many bytes have arrived for the item at this position.
    case received(Int, bytes: Int)
}
