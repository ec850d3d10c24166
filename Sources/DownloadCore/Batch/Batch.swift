// A list of resources to be sized or downloaded together, and how far that is: a value that can be written down.

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
    /// In the order given.
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
