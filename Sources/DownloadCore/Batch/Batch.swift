// A list of resources to be sized or downloaded together: its items, their routes, and what has become of each; a value
// that can be written down.

package import CacheStore
package import EventLoop
package import HTTPWire
package import Policies

/// Where a batch is. Legal: queued → checking → checked or cancelled; queued or checked → running → done, failed,
/// stopped or cancelled; those three, and what a restart has interrupted, → queued.
package enum BatchState: String, Sendable, Codable, CaseIterable {
    /// Waits for its turn.
    case queued
    /// Sizes are being looked for.
    case checking
    /// All sizes that can be known are; nothing has been downloaded.
    case checked
    case running
    /// Every item is done.
    case done
    /// It has come to its end, and items have failed.
    case failed
    /// An item has failed, and the rest was not begun.
    case stopped
    case cancelled

    package var isRunning: Bool { self == .checking || self == .running }
    /// Nothing more happens by itself.
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
    /// Items under way at a time, at least 1: with 1 they come one after the other. 10 by default.
    package var concurrency: Int
    /// What a failure means for the other items; they continue by default.
    package var onError: BatchFailurePolicy

    package init(concurrency: Int = 10, onError: BatchFailurePolicy = .continue) {
        self.concurrency = max(1, concurrency)
        self.onError = onError
    }
}

package struct Batch: Sendable, Equatable, Codable {
    package var options: BatchOptions
    package var state: BatchState
    /// The items and what has become of them, in the order given.
    package var entries: [BatchEntry]

    package init(_ items: [BatchItem], options: BatchOptions = BatchOptions()) {
        self.options = options
        state = .queued
        entries = items.map { BatchEntry($0) }
    }

    package var totals: BatchTotals { BatchTotals(entries) }

    /// The first item of the list that has failed.
    package var firstError: BatchEntry? { entries.first { $0.state == .failed } }

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

/// Where an item is. Legal: queued → running → done, failed or cancelled, and back to queued where the batch goes on
/// after an end, a retry or a restart; queued → done, failed or cancelled without a download.
package enum BatchEntryState: String, Sendable, Codable, CaseIterable {
    case queued, running, done, failed, cancelled

    /// Nothing more happens to it by itself.
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

/// What looking for the size of an item came to; the raw value is what documents print.
package enum BatchCheck: String, Sendable, Codable, CaseIterable {
    /// A seed, a fresh stored response, or one that the origin says is current: nothing is to be downloaded.
    case valid
    case sized
    /// The origin does not answer HEAD, or its answer has no length; the item is downloaded anyway.
    case unknownSize = "unknown-size"
    case failed
    /// The item is the same as an earlier one.
    case duplicate
}

/// What downloading an item came to, where it did not fail; the raw value is what documents print.
package enum BatchOutcome: String, Sendable, Codable, CaseIterable {
    case seed
    /// A fresh response was stored.
    case valid
    /// The origin validated the stored response: it is current.
    case revalidated
    /// It came, and is stored.
    case downloaded
    /// It came, and may not be stored; the reason says why.
    case notStored = "not-stored"
    case duplicate
    /// It was not asked for: a condition of the item did not hold, as the reason says.
    case skipped
}

package struct BatchEntry: Sendable, Equatable, Codable {
    package var item: BatchItem
    package var state: BatchEntryState
    /// What a check has found out about the size; nil before it has looked.
    package var check: BatchCheck?
    package var outcome: BatchOutcome?
    /// The size of the body in bytes; nil while it is unknown.
    package var size: Int64?
    /// Bytes of the body that have come for this item, in its last attempt.
    package var received: Int64
    /// The status of the answer that settled the item.
    package var status: Int?
    /// Why it failed, is not stored, or has no known size.
    package var reason: String?
    /// The position of the earlier item that it repeats, counted from 0.
    package var duplicateOf: Int?

    package init(_ item: BatchItem) {
        self.item = item
        state = .queued
        received = 0
    }

    /// Nothing is to be downloaded for it.
    var needsNothing: Bool {
        switch outcome {
        case .seed, .valid, .revalidated, .duplicate, .skipped: true
        case .downloaded, .notStored, nil: check == .valid || check == .duplicate
        }
    }

    /// Queues the item to be downloaded, or downloaded anew.
    mutating func requeue() {
        self = BatchEntry(item)
    }
}

/// What the items of a batch add up to.
package struct BatchTotals: Sendable, Equatable, Codable {
    package var items = 0
    package var queued = 0
    package var running = 0
    package var done = 0
    package var failed = 0
    package var cancelled = 0
    /// Somebody has looked for their size.
    package var checked = 0
    /// Items done that repeat an earlier item.
    package var duplicates = 0
    /// Items done for which nothing had to be downloaded.
    package var valid = 0
    /// Items done that came, and may not be stored.
    package var notStored = 0
    /// Items queued or running whose size is unknown.
    package var unknownSize = 0
    /// The known sizes of what is to be downloaded, or has been; in bytes. What has failed or was cancelled
    /// counts as far as it came.
    package var bytes: Int64 = 0
    /// Bytes of bodies that have come for this batch, and for no other.
    package var received: Int64 = 0
    /// The part of `bytes` that items queued or running still have to get.
    package var remaining: Int64 = 0

    /// An origin may claim any length: longer ones count as 16 TiB, so that no sum overflows.
    private static let longest: Int64 = 1 << 44

    package init() {}

    init(_ entries: [BatchEntry]) { for entry in entries { count(entry, 1) } }

    /// Adds an entry (`sign` 1) or takes it away (-1).
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

/// One resource of a batch, as a client would ask for it.
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
    /// The content of the request; nil where it has none.
    package var body: [UInt8]?
    /// Fetches from the origin even where a stored response is fresh. The stored response is removed only when its
    /// replacement is complete. False by default.
    package var force: Bool
    /// A seed may answer; true by default.
    package var seed: Bool
    /// Stores the response; true by default. If false, a response that is stored already stays as it is.
    package var store: Bool
    /// The file that the body is written to as well: a path as ``BatchFiles`` takes it; nil for none.
    package var file: String?
    /// Tells it from items of the same request whose wishes differ in what does not stand here; nil: nothing does.
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

    /// The fields of the request, with the Cache-Control directives that the options stand for
    /// (RFC 9111 section 5.2.1).
    /// - Throws: ``BatchRefusal`` where a name or a value is none.
    package func requestFields() throws(BatchRefusal) -> Fields {
        var result = Fields()
        for field in fields {
            // A line end would begin a field of its own, or end the head.
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
    /// A GET as clients ask, so that what is stored of it serves them: a variant that no client asks for answers nobody.
    /// Fields that the item brings itself stay.
    /// - Parameter codings: those that everybody reads are asked for; false where a program reads the bytes.
    package func asClientsAsk(codings: Bool) -> BatchItem {
        guard method == "GET" else { return self }
        var item = self
        let names = Set(fields.map { $0.name.lowercased() })
        if !names.contains("accept") { item.fields.append(Field("Accept", "*/*")) }
        // What is written to a file must not be coded.
        if codings, file == nil, !names.contains("accept-encoding") {
            item.fields.append(Field("Accept-Encoding", "gzip, br"))
        }
        return item
    }
}

/// Why an item cannot be asked for, and what to do.
package struct BatchRefusal: Error, Sendable, Equatable, CustomStringConvertible {
    package var description: String
    /// The item is not wanted: it is done, and has not failed.
    package var isSkip: Bool

    package init(_ description: String, isSkip: Bool = false) {
        self.description = description
        self.isSkip = isSkip
    }
}

// MARK: - Routes of items

/// The source of an item's answer. Loop-bound, because a fetch source is.
package enum BatchRoute {
    /// The answer comes from the store, or from the source through it.
    case store(CacheRequest, any FetchSource)
    /// The answer comes from elsewhere, under a key of its own: a method that is not stored, a demo answer.
    case other(CacheKey, () async throws(BatchRefusal) -> Answer)

    var key: CacheKey {
        switch self {
        case .store(let ask, _): ask.key
        case .other(let key, _): key
        }
    }
}

/// Finds the route of an item. It sends no request, and is called more than once for an item.
package typealias BatchResolver =
    @Sendable (BatchItem, isolated EventLoop) async throws(BatchRefusal) -> BatchRoute

/// The item that an answer sends on to: the target of a redirect, with the fields that may go there. Nil where the
/// answer is no redirect of the item that can be followed. It sends no request, and throws why one must not be followed.
package typealias BatchFollower =
    @Sendable (BatchItem, ResponseHead, isolated EventLoop) throws(BatchRefusal) -> BatchItem?

/// What has changed in a batch; told on its loop, after the change.
package enum BatchChange: Sendable, Equatable {
    /// The batch as a whole.
    case state(BatchState)
    /// The item at this position has another state, size or outcome.
    case entry(Int)
    /// This many bytes have come for the item at this position.
    case received(Int, bytes: Int)
}
