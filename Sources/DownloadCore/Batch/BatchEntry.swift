// One item of a batch and what has become of it.

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
    /// The same as an earlier item.
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
    /// Nil before a check has looked for the size.
    package var check: BatchCheck?
    package var outcome: BatchOutcome?
    /// Of the body, in bytes; nil while it is unknown.
    package var size: Int64?
    /// Bytes of the body that have come for this item, in its last attempt.
    package var received: Int64
    /// Of the answer that settled it.
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

    /// To be downloaded, or downloaded anew.
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
    /// Of those done: repeat an earlier item.
    package var duplicates = 0
    /// Of those done: nothing had to be downloaded.
    package var valid = 0
    /// Of those done: came, and may not be stored.
    package var notStored = 0
    /// Items queued or running whose size is unknown.
    package var unknownSize = 0
    /// The known sizes of what is to be downloaded, or has been; in bytes. What has failed or was cancelled
    /// counts as far as it came.
    package var bytes: Int64 = 0
    /// Bytes of bodies that have come for this batch, and for no other.
    package var received: Int64 = 0
    /// Of `bytes`, those of items queued or running that have not come yet.
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
