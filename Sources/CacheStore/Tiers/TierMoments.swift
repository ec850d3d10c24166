// Which moment of a shared tier its store knew when something began: the bridge between the store's
// numbers and the tier's order.

import Synchronization

/// The moments that a shared tier has told, with the store's numbers at which it did. They are thinned out towards the
/// past: what is found then is an earlier moment, with which a tier refuses more than it must, and never less.
///
/// Sendable: the history is under a mutex, held for a search.
package final class TierMoments: Sendable {
    private struct Pair {
        let number: UInt64
        let moment: UInt64
    }

    /// Pairs at most.
    private static let most = 1024
    private let history = Mutex<[Pair]>([])

    package init() {}

    /// The tier has told a moment.
    /// - Parameter invalidations: of the store.
    /// - Returns: the store's number for what the tier told with it: what begins later has a greater one.
    package func note(_ moment: UInt64, _ invalidations: Invalidations) -> UInt64 {
        history.withLock { history in
            let number = invalidations.nextNumber()
            // An answer that others have overtaken: a later moment is known already.
            guard moment > history.last?.moment ?? 0 else { return number }
            if history.count == Self.most {
                history = history.indices.filter { $0 % 2 == 1 }.map { history[$0] }
            }
            history.append(Pair(number: number, moment: moment))
            return number
        }
    }

    /// The last moment that had been told when what has this number began; 0 where none is remembered.
    package func last(before number: UInt64) -> UInt64 {
        history.withLock { history in
            var (low, high) = (0, history.count)
            while low < high {
                let middle = (low + high) / 2
                if history[middle].number <= number { low = middle + 1 } else { high = middle }
            }
            return low == 0 ? 0 : history[low - 1].moment
        }
    }
}
