// The fetches under way, so that an operator can end them: everybody who waits is told, and what is stored stays.

package import CacheStore
internal import EventLoop
internal import Synchronization

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

extension DownloadCore {
    /// Ends fetches: who waits for a head is answered with ``FetchError/stopped(_:)``, and who reads a body is cut off.
    /// What is stored stays, with its lifetime; requests that come later fetch anew. Any thread.
    ///
    /// Requests with other methods than GET and HEAD go on, since they may have had their effect already.
    /// - Parameter isMeant: by the key; called once for each fetch under way.
    package func cancel(_ isMeant: (CacheKey) -> Bool) -> CancelledFetches {
        let error = FetchError.stopped("the fetch was ended by 'drydock cancel'; ask again to begin a new one")
        var result = CancelledFetches()
        for entry in fetches.take(isMeant) {
            result.fetches += 1
            result.waiters += entry.waiting()
            entry.stop(error)
        }
        counters.withLock { $0.cancelled += result.fetches }
        return result
    }
}

/// Sendable: sharded, each shard under its own mutex.
final class FetchTable: Sendable {
    fileprivate struct Entry: Sendable {
        let key: CacheKey
        let waiting: @Sendable () -> Int
        let told: @Sendable (FetchError) -> Void
        let link: FetchTicket.Link
        let loop: EventLoop

        func stop(_ error: FetchError) {
            told(error)
            loop.submit { [link] _ in link.ticket?.onStop?(error) }
        }
    }

    /// Where an entry is; `id` tells it from what was in the slot before.
    fileprivate struct Place: Sendable {
        var id: UInt64 = 0
        var slot = 0
    }

    /// Slots that are used again: coming and going needs no hash.
    private struct Slots: Sendable {
        var entries: [(id: UInt64, entry: Entry)?] = []
        var free: [Int] = []

        mutating func add(_ id: UInt64, _ entry: Entry) -> Int {
            guard let slot = free.popLast() else {
                entries.append((id, entry))
                return entries.count - 1
            }
            entries[slot] = (id, entry)
            return slot
        }

        /// Nil where it has gone already.
        mutating func remove(_ place: Place) -> Entry? {
            guard let found = entries[place.slot], found.id == place.id else { return nil }
            entries[place.slot] = nil
            free.append(place.slot)
            return found.entry
        }
    }

    private final class Shard: Sendable {
        let slots = Mutex(Slots())
    }

    private let shards = (0..<16).map { _ in Shard() }
    private let last = Atomic<UInt64>(0)

    fileprivate func add(_ entry: Entry) -> Place {
        let id = last.wrappingAdd(1, ordering: .relaxed).newValue
        return Place(id: id, slot: shards[Int(id & 15)].slots.withLock { $0.add(id, entry) })
    }

    /// Nil where it has gone already.
    @discardableResult fileprivate func remove(_ place: Place) -> Entry? {
        shards[Int(place.id & 15)].slots.withLock { $0.remove(place) }
    }

    /// Takes out those that are meant.
    fileprivate func take(_ isMeant: (CacheKey) -> Bool) -> [Entry] {
        // Not asked under the mutex: what decides is not known here.
        let all = shards.flatMap { shard in
            shard.slots.withLock { slots in
                slots.entries.enumerated().compactMap { slot, found in
                    found.map { (Place(id: $0.id, slot: slot), $0.entry.key) }
                }
            }
        }
        return all.filter { isMeant($0.1) }.compactMap { remove($0.0) }
    }
}

/// One fetch as others reach it. Loop-bound; the fetch can be found as long as this lives.
package final class FetchTicket {
    fileprivate final class Link: @unchecked Sendable {  // `ticket` is touched on the loop of the fetch only
        // Unowned: the ticket clears it when it goes.
        unowned var ticket: FetchTicket?
    }

    /// Called on the loop: the fetch must end with this error.
    package var onStop: ((FetchError) -> Void)?
    /// Called on the loop: somebody who waited has left.
    var onLeft: (() -> Void)?
    private let table: FetchTable
    private let link = Link()
    private let loop: EventLoop
    private var place = FetchTable.Place()

    /// - Parameters:
    ///   - waiting: how many requests wait for it; any thread.
    ///   - told: called when it is to end, before its loop hears of it; any thread.
    init(
        _ table: FetchTable,
        _ key: CacheKey,
        on loop: EventLoop,
        waiting: @escaping @Sendable () -> Int,
        told: @escaping @Sendable (FetchError) -> Void = { _ in }
    ) {
        self.table = table
        self.loop = loop
        link.ticket = self
        place = table.add(FetchTable.Entry(key: key, waiting: waiting, told: told, link: link, loop: loop))
    }

    deinit {
        link.ticket = nil
        table.remove(place)
    }

    /// Tells the loop of the fetch that somebody has left; any thread.
    var sendLeft: @Sendable () -> Void {
        { [link, loop] in loop.submit { _ in link.ticket?.onLeft?() } }
    }
}

@available(*, unavailable) extension FetchTicket: Sendable {}
