// The table of fetches under way, by which an operator can end them: every waiting request gets an error, and stored
// responses stay.

package import CacheStore
import EventLoop
import Synchronization

/// The number of fetches that an operator has ended, and of their requests.
package struct CancelledFetches: Sendable, Equatable {
    package var fetches: Int
    /// The number of requests that waited for them or read their bodies.
    package var waiters: Int

    package init(fetches: Int = 0, waiters: Int = 0) {
        self.fetches = fetches
        self.waiters = waiters
    }
}

/// A fetch as other threads see it: one object, so that registering and removing it moves one reference.
///
/// `@unchecked Sendable`: `fetch` is used on the loop of the fetch only; all other members are constant, also in
/// subclasses.
package class FetchEntry: @unchecked Sendable {  // protected as the comment above says
    package let key: CacheKey
    fileprivate let loop: EventLoop
    // Unowned: the listing clears it when it is released, on the fetch's loop and before the fetch is.
    fileprivate unowned(unsafe) var fetch: (any ListedFetch)?

    init(_ key: CacheKey, on loop: EventLoop) {
        self.key = key
        self.loop = loop
    }

    /// The number of requests that wait for the fetch; any thread.
    func waiting() -> Int { 1 }

    /// Answers the requests that wait for the fetch, and lets it go on; any thread.
    /// - Returns: their number; nil if the fetch does not go on without them, or if they have its head.
    func dropWaiters(_ error: FetchError) -> Int? { nil }

    /// Keeps the fetch going for the store even if all clients leave; any thread.
    func keepGoing() {}

    /// Called when the fetch has to end, before its loop learns of that; any thread.
    func told(_ error: FetchError) {}

    fileprivate final func stop(_ error: FetchError) {
        told(error)
        loop.submit { _ in self.fetch?.stop(error) }
    }
}

/// The fetches under way. Sendable: sharded, each shard under its own mutex.
final class FetchTable: Sendable {
    /// The slot of an entry; it is valid as long as no other entry has got the slot.
    fileprivate struct Address: Sendable {
        var shard = 0
        var slot = 0
    }

    /// The entries of a shard in slots that are reused, so that adding and removing needs no hash.
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

        /// Removes an entry.
        /// - Returns: false if it is not in the slot any more.
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

    fileprivate func add(_ entry: FetchEntry) -> Address {
        let shard = last.wrappingAdd(1, ordering: .relaxed).newValue & 15
        return Address(shard: shard, slot: shards[shard].slots.withLock { $0.add(entry) })
    }

    /// Removes an entry.
    /// - Returns: false if it is not in its place any more.
    @discardableResult fileprivate func remove(_ entry: FetchEntry, at address: Address) -> Bool {
        shards[address.shard].slots.withLock { $0.remove(entry, at: address.slot) }
    }

    /// Ends the selected fetches. Any thread.
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

    /// Drops the requests that wait for the heads of the selected fetches; the fetches go on. Any thread.
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

    /// Keeps the selected fetches going for the store even if all clients leave. Any thread.
    /// - Parameter isMeant: selects fetches by their key; called once for each fetch under way.
    func keepGoing(_ isMeant: (CacheKey) -> Bool) {
        for (_, entry) in all() where isMeant(entry.key) { entry.keepGoing() }
    }

    /// Removes the selected fetches from the table, and returns them.
    private func take(_ isMeant: (CacheKey) -> Bool) -> [FetchEntry] {
        // `isMeant` is the caller's code, so it runs outside the mutex.
        all().filter { isMeant($0.entry.key) && remove($0.entry, at: $0.address) }.map(\.entry)
    }

    private func all() -> [(address: Address, entry: FetchEntry)] {
        shards.enumerated().flatMap { number, shard in
            shard.slots.withLock { slots in
                slots.entries.enumerated().compactMap { slot, entry in
                    entry.map { (address: Address(shard: number, slot: slot), entry: $0) }
                }
            }
        }
    }
}

/// A fetch that an operator can end. Loop-bound.
package protocol ListedFetch: AnyObject {
    /// Ends the fetch with this error.
    func stop(_ error: FetchError)
}

/// The registration of a fetch in the table: the fetch is listed as long as this lives. Loop-bound.
package struct FetchListing: ~Copyable {
    private let table: FetchTable
    private let entry: FetchEntry
    private let address: FetchTable.Address

    /// Registers a fetch.
    /// - Parameter fetch: not retained; it outlives the listing.
    init(in table: FetchTable, _ entry: FetchEntry, _ fetch: any ListedFetch) {
        self.table = table
        self.entry = entry
        address = table.add(entry)
        assert(entry.loop.isCurrent)
        // Set after the registration, because it is read on this loop alone.
        entry.fetch = fetch
    }

    deinit {
        entry.fetch = nil
        table.remove(entry, at: address)
    }
}

@available(*, unavailable) extension FetchListing: Sendable {}

/// The registration of one fetch in the table, with a closure that ends it. Loop-bound; the fetch is listed as long as
/// this lives.
final class FetchRegistration: ListedFetch {
    /// Called on the loop with the error that the fetch must end with.
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

    /// Registers a fetch.
    /// - Parameters:
    ///   - waiting: the number of requests that wait for the fetch; any thread.
    ///   - told: called when an operator ends the fetch, before its loop does so; any thread.
    ///   - dropWaiters: answers the waiting requests, and lets the fetch go on; returns their number, or nil if the
    ///     fetch does
    ///     not go on without them. Any thread.
    ///   - keepGoing: keeps the fetch going for the store even if all clients leave. Any thread.
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
