// How urgent a fetch is that no client waits for, as long as that is so.

package import Policies
import Synchronization

/// The priority of a fetch, which rises when somebody joins it for whom it is more urgent, and never falls. A request
/// without this is a client's.
///
/// Sendable: the priority is atomic, and who hears of a change is under a mutex; they are called outside of it.
package final class FetchUrgency: Sendable {
    /// A closure right under a mutex would be wrapped once more with each look.
    private final class Observer: Sendable {
        let tell: @Sendable (FetchPriority) -> Void

        init(_ tell: @escaping @Sendable (FetchPriority) -> Void) { self.tell = tell }
    }

    private let value: Atomic<UInt8>
    private let observers = Mutex<(last: UInt64, all: [UInt64: Observer])>((0, [:]))

    package init(_ priority: FetchPriority) { value = Atomic(priority.rawValue) }

    /// As it is at this moment. Any thread.
    package var priority: FetchPriority {
        FetchPriority(rawValue: value.load(ordering: .sequentiallyConsistent)) ?? .client
    }

    /// Somebody joins. Any thread.
    package func raise(to priority: FetchPriority) {
        let before = value.min(priority.rawValue, ordering: .sequentiallyConsistent).oldValue
        guard before > priority.rawValue else { return }
        for observer in observers.withLock({ Array($0.all.values) }) { observer.tell(priority) }
    }

    /// - Parameter tell: called on any thread with each higher priority, until ``forget(_:)``. One that came before this
    ///   call is not told: look at ``priority`` afterwards.
    /// - Returns: what ``forget(_:)`` takes.
    package func observe(_ tell: @escaping @Sendable (FetchPriority) -> Void) -> UInt64 {
        let observer = Observer(tell)
        return observers.withLock { observers in
            observers.last += 1
            observers.all[observers.last] = observer
            return observers.last
        }
    }

    package func forget(_ observer: UInt64) {
        // Let go of without the mutex.
        let old = observers.withLock { $0.all.removeValue(forKey: observer) }
        withExtendedLifetime(old) {}
    }
}

extension FetchUrgency? {
    /// Of a request that may have none.
    package var priority: FetchPriority { self?.priority ?? .client }
}

/// A fetch is at least as urgent as who waits for it, for as long as that waits. Any thread.
struct Lift {
    private let waiting: FetchUrgency
    private let observer: UInt64

    /// - Parameters:
    ///   - fetch: what is raised; nil where it is a client's, and nothing is to be done.
    ///   - waiting: of who waits; nil where that is a client.
    init?(_ fetch: FetchUrgency?, by waiting: FetchUrgency?) {
        guard let fetch, fetch !== waiting else { return nil }
        guard let waiting else {
            fetch.raise(to: .client)
            return nil
        }
        self.waiting = waiting
        observer = waiting.observe { fetch.raise(to: $0) }
        fetch.raise(to: waiting.priority)
    }

    func end() { waiting.forget(observer) }
}
