// The fetches under way, so that an operator can end them: every waiting request gets an error,
// and stored responses stay.

package import CacheStore
import EventLoop
import Synchronization

/// What an operator has ended.
package struct CancelledFetches: Sendable, Equatable {
    package var fetches: Int
    /// Requests that waited for them or read their bodies.
    package var waiters: Int

    package init(fetches: Int = 0, waiters: Int = 0) {
        self.fetches = fetches
        self.waiters = waiters
    }
}

/// A fetch as other threads reach it: one object, so that coming and going moves one reference.
///
/// `@unchecked Sendable`: `fetch` is touched on the loop of the fetch only; all else is constant, in subclasses, too.
package class FetchEntry: @unchecked Sendable {  // protected as the comment above says
    package let key: CacheKey
    fileprivate let loop: EventLoop
    // Unowned: the listing clears it when it goes, which is with the fetch at the latest, on their loop.
    fileprivate unowned(unsafe) var fetch: (any ListedFetch)?

    init(_ key: CacheKey, on loop: EventLoop) {
        self.key = key
        self.loop = loop
    }

    /// How many requests wait for it; any thread.
    func waiting() -> Int { 1 }

    /// Answers the requests that wait for it, and lets it go on; any thread.
    /// - Returns: how many there were; nil where it does not go on without them, or they have its head.
    func dropWaiters(_ error: FetchError) -> Int? { nil }

    /// It goes on for the store, whoever leaves; any thread.
    func keepGoing() {}

    /// It is to end, and its loop has not heard of that yet; any thread.
    func told(_ error: FetchError) {}

    fileprivate final func stop(_ error: FetchError) {
        told(error)
        loop.submit { _ in self.fetch?.stop(error) }
    }
}

/// Sendable: sharded, each shard under its own mutex.
final class FetchTable: Sendable {
    /// The slot of an entry, as long as no other entry has taken it.
    fileprivate struct Place: Sendable {
        var shard = 0
        var slot = 0
    }

    /// Slots that are used again: coming and going needs no hash.
    private struct Slots: Sendable {
        var entries: [FetchEntry?] = []
        var free: [Int] = []

        mutating func add(_ entry: FetchEntry) -> Int {
            guard let slot = free.popLast() else {
                entries.append(entry)
                return entries.count - 1
            }
            entries[slot] = entry
            return slot
        }

        /// False where it has gone already.
        mutating func remove(_ entry: FetchEntry, at slot: Int) -> Bool {
            guard entries[slot] === entry else { return false }
            entries[slot] = nil
            free.append(slot)
            return true
        }
    }

    private final class Shard: Sendable {
        let slots = Mutex(Slots())
    }

    private let shards = (0..<16).map { _ in Shard() }
    private let last = Atomic<Int>(0)

    fileprivate func add(_ entry: FetchEntry) -> Place {
        let shard = last.wrappingAdd(1, ordering: .relaxed).newValue & 15
        return Place(shard: shard, slot: shards[shard].slots.withLock { $0.add(entry) })
    }

    /// False where it has gone already.
    @discardableResult fileprivate func remove(_ entry: FetchEntry, at place: Place) -> Bool {
        shards[place.shard].slots.withLock { $0.remove(entry, at: place.slot) }
    }

    /// Ends those that are meant. Any thread.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    func cancel(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches {
        let error = FetchError.stopped("the fetch was ended by 'drydock cancel'; ask again to begin a new one")
        var result = CancelledFetches()
        for entry in take(isMeant) {
            result.fetches += 1
            result.waiters += entry.waiting()
            entry.stop(error)
        }
        return result
    }

    /// Drops those who wait for the heads of those that are meant; the fetches go on. Any thread.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    func dropWaiters(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches {
        let error = FetchError.stopped(
            "the wait was ended by 'drydock cancel --waiters'; the fetch goes on for the store"
        )
        var result = CancelledFetches()
        for (_, entry) in all() where isMeant(entry.key) {
            guard let count = entry.dropWaiters(error) else { continue }
            result.fetches += 1
            result.waiters += count
        }
        return result
    }

    /// Lets those that are meant go on for the store, whoever leaves. Any thread.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    func keepGoing(_ isMeant: (CacheKey) -> Bool) {
        for (_, entry) in all() where isMeant(entry.key) { entry.keepGoing() }
    }

    /// Takes out those that are meant.
    private func take(_ isMeant: (CacheKey) -> Bool) -> [FetchEntry] {
        // `isMeant` is foreign code, so it runs outside the mutex.
        all().filter { isMeant($0.entry.key) && remove($0.entry, at: $0.place) }.map(\.entry)
    }

    private func all() -> [(place: Place, entry: FetchEntry)] {
        shards.enumerated().flatMap { number, shard in
            shard.slots.withLock { slots in
                slots.entries.enumerated().compactMap { slot, entry in
                    entry.map { (place: Place(shard: number, slot: slot), entry: $0) }
                }
            }
        }
    }
}

/// A fetch that an operator can end. Loop-bound.
package protocol ListedFetch: AnyObject {
    /// It must end with this error.
    func stop(_ error: FetchError)
}

/// A place in the table: the fetch can be found there as long as this lives. Loop-bound.
package struct FetchListing: ~Copyable {
    private let table: FetchTable
    private let entry: FetchEntry
    private let place: FetchTable.Place

    /// - Parameter fetch: not held: it outlives this.
    init(in table: FetchTable, _ entry: FetchEntry, _ fetch: any ListedFetch) {
        self.table = table
        self.entry = entry
        place = table.add(entry)
        assert(entry.loop.isCurrent)
        // Looked at on this loop alone, so not before this.
        entry.fetch = fetch
    }

    deinit {
        entry.fetch = nil
        table.remove(entry, at: place)
    }
}

@available(*, unavailable) extension FetchListing: Sendable {}

/// One fetch as others reach it. Loop-bound; the fetch can be found as long as this lives.
final class FetchRegistration: ListedFetch {
    /// Called on the loop: the fetch must end with this error.
    var onStop: ((FetchError) -> Void)?
    private var listing: FetchListing?

    /// The entry of a fetch that any number of requests may wait for.
    private final class SharedEntry: FetchEntry, @unchecked Sendable {  // constant, as its superclass asks for
        private let count: @Sendable () -> Int
        private let tell: @Sendable (FetchError) -> Void
        private let drop: @Sendable (FetchError) -> Int?
        private let keep: @Sendable () -> Void

        init(
            _ key: CacheKey,
            on loop: EventLoop,
            _ count: @escaping @Sendable () -> Int,
            _ tell: @escaping @Sendable (FetchError) -> Void,
            _ drop: @escaping @Sendable (FetchError) -> Int?,
            _ keep: @escaping @Sendable () -> Void
        ) {
            self.count = count
            self.tell = tell
            self.drop = drop
            self.keep = keep
            super.init(key, on: loop)
        }

        override func waiting() -> Int { count() }
        override func told(_ error: FetchError) { tell(error) }
        override func dropWaiters(_ error: FetchError) -> Int? { drop(error) }
        override func keepGoing() { keep() }
    }

    /// - Parameters:
    ///   - waiting: counts the requests that wait for the fetch; any thread.
    ///   - told: called when an operator ends the fetch, before its loop does so; any thread.
    ///   - dropWaiters: answers those who wait, and lets the fetch go on; how many there were, or nil where it does
    ///     not go on without them. Any thread.
    ///   - keepGoing: lets it go on for the store, whoever leaves. Any thread.
    init(
        _ table: FetchTable,
        _ key: CacheKey,
        on loop: EventLoop,
        waiting: @escaping @Sendable () -> Int,
        told: @escaping @Sendable (FetchError) -> Void = { _ in },
        dropWaiters: @escaping @Sendable (FetchError) -> Int? = { _ in nil },
        keepGoing: @escaping @Sendable () -> Void = {}
    ) {
        let entry = SharedEntry(key, on: loop, waiting, told, dropWaiters, keepGoing)
        listing = FetchListing(in: table, entry, self)
    }

    func stop(_ error: FetchError) { onStop?(error) }
}

@available(*, unavailable) extension FetchRegistration: Sendable {}
