// Which tasks of a queue run, and which one is next: a value that events change, and that answers with whom to start.

import Policies
import ServiceCore

/// A task is queued, running, or waits for its retry. One that waits has no slot, and comes back to the end of its
/// priority. What it is told of a task that has left changes nothing.
struct QueueMachine {
    typealias ID = UInt64

    private enum Place: Equatable {
        /// - `ticket`: its number in the queue, which nobody has twice.
        case queued(ticket: UInt64)
        case running
        case waiting
    }

    private struct Entry {
        var place: Place
        let priority: FetchPriority
    }

    private var entries: [ID: Entry] = [:]
    private var queue = AdmissionQueue<ID>()
    private var nextTicket: UInt64 = 0
    /// Tasks that have a slot.
    private(set) var running = 0
    /// How many may have one; nil: any number.
    private var limit: Int?

    init(limit: Int?) { self.limit = limit }

    /// Tasks that have not left.
    var count: Int { entries.count }
    /// Tasks that wait for a slot.
    var queued: Int { queue.count }
    var maximum: Int? { limit }

    func isRunning(_ id: ID) -> Bool { entries[id]?.place == .running }

    // MARK: - Events; each returns whom to start, in order.

    mutating func add(_ id: ID, _ priority: FetchPriority) -> [ID] {
        entries[id] = Entry(place: .waiting, priority: priority)
        return enqueue(id)
    }

    /// A task has ended, or was cancelled wherever it was.
    mutating func leave(_ id: ID) -> [ID] {
        switch entries.removeValue(forKey: id)?.place {
        case .queued(let ticket): _ = queue.remove(ticket)
        case .running: running -= 1
        case .waiting, nil: break
        }
        return starts()
    }

    /// A task that ran has failed, and waits for its retry.
    mutating func wait(_ id: ID) -> [ID] {
        guard entries[id]?.place == .running else { return [] }
        entries[id]?.place = .waiting
        running -= 1
        return starts()
    }

    /// A task has waited long enough.
    mutating func due(_ id: ID) -> [ID] {
        guard entries[id]?.place == .waiting else { return [] }
        return enqueue(id)
    }

    mutating func setLimit(_ limit: Int?) -> [ID] {
        self.limit = limit
        return starts()
    }

    private mutating func enqueue(_ id: ID) -> [ID] {
        guard let priority = entries[id]?.priority else { return [] }
        nextTicket += 1
        entries[id]?.place = .queued(ticket: nextTicket)
        queue.append(nextTicket, id, priority)
        return starts()
    }

    private mutating func starts() -> [ID] {
        var starts: [ID] = []
        while running < limit ?? .max, let id = queue.popFirst() {
            entries[id]?.place = .running
            running += 1
            starts.append(id)
        }
        return starts
    }
}
