// Who waits for a slot, and who gets the next one: a value.

package import Policies

/// A queue of four classes. Within a class, first come, first served. Of the classes, the more urgent one is served
/// first, but of five in a row that leave the queue at most four pass over those of a lower class: the fifth is
/// one of these, and among these the same holds. So nobody starves, and a client waits for at most a fifth of the slots.
///
/// Each operation takes constant time on average: who leaves from the middle is skipped later.
package struct AdmissionQueue<Waiter> {
    /// How many of a class may come in a row while lower ones wait.
    package static var inARow: Int { 4 }

    private struct Lane {
        /// Identifiers in order; those that are elsewhere, or gone, are skipped.
        var order: [UInt64] = []
        var first = 0
        var count = 0
        /// How many have left in a row while lower ones waited.
        var inARow = 0

        mutating func append(_ id: UInt64) {
            order.append(id)
            count += 1
        }

        mutating func popFirst() -> UInt64? {
            guard first < order.count else { return nil }
            defer {
                first += 1
                if first * 2 > order.count {
                    order.removeSubrange(..<first)
                    first = 0
                }
            }
            return order[first]
        }

        mutating func popLast() -> UInt64? { first < order.count ? order.popLast() : nil }

        /// Forgets those that have gone, once they are most of it.
        mutating func tidy(_ isHere: (UInt64) -> Bool) {
            guard order.count - first > 2 * count + 16 else { return }
            order = order[first...].filter(isHere)
            first = 0
        }
    }

    private var lanes: [Lane] = FetchPriority.allCases.map { _ in Lane() }
    private var waiters: [UInt64: (priority: FetchPriority, waiter: Waiter)] = [:]

    package init() {}

    package var count: Int { waiters.count }
    package var isEmpty: Bool { waiters.isEmpty }
    package func count(of priority: FetchPriority) -> Int { lanes[Int(priority.rawValue)].count }

    /// - Parameter id: of no other that is or was in the queue.
    package mutating func append(_ id: UInt64, _ waiter: Waiter, _ priority: FetchPriority) {
        waiters[id] = (priority, waiter)
        lanes[Int(priority.rawValue)].append(id)
    }

    /// Who gets the slot that is free; nil where nobody waits.
    package mutating func popFirst() -> Waiter? {
        guard let chosen = nextLane(), let id = take(chosen, { $0.popFirst() }) else { return nil }
        return remove(id)
    }

    /// Takes out the last one of the lowest class below `priority`, to make room; nil where there is none.
    package mutating func displace(below priority: FetchPriority) -> Waiter? {
        let last = lanes.indices.last { $0 > Int(priority.rawValue) && lanes[$0].count > 0 }
        guard let last, let id = take(last, { $0.popLast() }) else { return nil }
        return remove(id)
    }

    /// Takes out one that waits no longer; nil where it has left already.
    package mutating func remove(_ id: UInt64) -> Waiter? {
        guard let (priority, waiter) = waiters.removeValue(forKey: id) else { return nil }
        let index = Int(priority.rawValue)
        lanes[index].count -= 1
        lanes[index].tidy { waiters[$0]?.priority == priority }
        return waiter
    }

    /// Puts one at the end of a more urgent class.
    package mutating func raise(_ id: UInt64, to priority: FetchPriority) {
        guard let (old, waiter) = waiters[id], old < priority, let _ = remove(id) else { return }
        append(id, waiter, priority)
    }

    /// The class whose turn it is, counted; nil where nobody waits.
    private mutating func nextLane() -> Int? {
        var chosen: Int?
        for index in lanes.indices where lanes[index].count > 0 {
            chosen = index
            let lowerWait = lanes[(index + 1)...].contains { $0.count > 0 }
            guard lowerWait, lanes[index].inARow >= Self.inARow else {
                lanes[index].inARow = lowerWait ? lanes[index].inARow + 1 : 0
                break
            }
            lanes[index].inARow = 0
        }
        return chosen
    }

    /// The next identifier of a lane that is still in it.
    private mutating func take(_ lane: Int, _ pop: (inout Lane) -> UInt64?) -> UInt64? {
        while let id = pop(&lanes[lane]) {
            if waiters[id].map({ Int($0.priority.rawValue) }) == lane { return id }
        }
        return nil
    }
}

extension AdmissionQueue: Sendable where Waiter: Sendable {}
