// A cache in memory for a program's own values: a limit of cost, a limit of count, and a word when something goes.

import CacheStore
import Synchronization

/// Keeps values in memory for as long as there is room for them.
///
/// What a value costs is for the caller to say: bytes, most often. When the cost or the number of values passes its
/// limit, those go that have been used the least (the order is S3-FIFO): a value that was asked for since it was last
/// looked over stays, so that a scan over many values does not push out the few that are used all the time.
///
/// ```swift
/// let thumbnails = MemoryCache<URL, Image>(costLimit: 64 << 20) { url, _ in print("\(url) has gone") }
/// thumbnails.insert(image, for: url, cost: image.byteCount)
/// if let image = thumbnails[url] { show(image) }
/// ```
///
/// While the system is short of memory, a quarter of what is held goes with every second, by itself: the system is what
/// the control group of the process says, or the whole machine.
///
/// Any thread or task may use it; no call waits for anything but another call on the same cache.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private typealias EvictionHandler = @Sendable (_ key: Key, _ value: Value) -> Void

    private struct State {
        var table = MemoryCacheTable<Key, Value>()
        var costLimit: Int
        var countLimit: Int
        var hits = 0
        var misses = 0
        var evictions = 0
    }

    private typealias Entry = (key: Key, value: Value)

    /// Nothing of a program runs while it is held: what leaves the table is released, and told of, afterwards.
    private let state: Mutex<State>
    private let onEviction: EvictionHandler?
    /// Set once, when the cache is whole; nil where it does not give way.
    private let member = Mutex<MemoryWatcher.Member?>(nil)

    /// Makes an empty cache.
    /// - Parameters:
    ///   - costLimit: what all values may cost together, in the unit of ``insert(_:for:cost:)``; below 0 counts
    ///     as 0. No limit by default.
    ///   - countLimit: how many values there may be; below 0 counts as 0. No limit by default.
    ///   - givesWayUnderPressure: whether values go by themselves while the system is short of memory; true by default.
    ///   - onEviction: called when a value has gone because there was no room for it, after it has gone, on the thread
    ///     that needed the room, or, where the system is short of memory, on one of the library's. The cache may be used
    ///     from within it. Values that the program removes or replaces itself are not told of. Nobody is told by default.
    public convenience init(
        costLimit: Int = .max,
        countLimit: Int = .max,
        givesWayUnderPressure: Bool = true,
        onEviction: (@Sendable (_ key: Key, _ value: Value) -> Void)? = nil
    ) {
        let watcher = givesWayUnderPressure ? MemoryWatcher.shared : nil
        self.init(costLimit: costLimit, countLimit: countLimit, watcher: watcher, onEviction: onEviction)
    }

    /// - Parameter watcher: says when the system is short of memory; nil: nobody does.
    init(
        costLimit: Int,
        countLimit: Int,
        watcher: MemoryWatcher?,
        onEviction: (@Sendable (_ key: Key, _ value: Value) -> Void)?
    ) {
        state = Mutex(State(costLimit: max(0, costLimit), countLimit: max(0, countLimit)))
        self.onEviction = onEviction
        guard let watcher else { return }
        let new = watcher.add { [weak self] _ in self?.giveWay() }
        member.withLock { $0 = new }
    }

    /// What all values may cost together. What is too much goes as soon as the limit falls; below 0 counts as 0.
    public var costLimit: Int {
        get { state.withLock { $0.costLimit } }
        set {
            tell(
                state.withLock { state in
                    state.costLimit = max(0, newValue)
                    return Self.evict(&state, cost: state.costLimit, count: state.countLimit)
                }
            )
        }
    }

    /// How many values there may be. What is too much goes as soon as the limit falls; below 0 counts as 0.
    public var countLimit: Int {
        get { state.withLock { $0.countLimit } }
        set {
            tell(
                state.withLock { state in
                    state.countLimit = max(0, newValue)
                    return Self.evict(&state, cost: state.costLimit, count: state.countLimit)
                }
            )
        }
    }

    /// The value under a key, if it is still there. Setting one gives it a cost of 1; setting nil removes it.
    public subscript(key: Key) -> Value? {
        get {
            state.withLock { state in
                let value = state.table.use(key)
                if value == nil { state.misses += 1 } else { state.hits += 1 }
                return value
            }
        }
        set {
            if let newValue { insert(newValue, for: key) } else { removeValue(for: key) }
        }
    }

    /// Stores a value in the place of the one that the key has now.
    /// - Parameters:
    ///   - value: what is stored.
    ///   - key: what it is found by.
    ///   - cost: what it counts against ``costLimit``; 1 by default, below 0 counts as 0.
    /// - Returns: false where it costs more than all values together may. Then the key has no value: the
    ///   one that it had is outdated.
    @discardableResult
    public func insert(_ value: Value, for key: Key, cost: Int = 1) -> Bool {
        let cost = max(0, cost)
        let (replaced, evicted) = state.withLock { state -> (Entry?, [Entry]?) in
            let replaced = state.table.remove(key)
            guard cost <= state.costLimit, state.countLimit > 0 else { return (replaced, nil) }
            let evicted = Self.evict(&state, cost: state.costLimit - cost, count: state.countLimit - 1)
            state.table.insert(key, value, cost: cost)
            return (replaced, evicted)
        }
        withExtendedLifetime(replaced) {}
        tell(evicted ?? [])
        return evicted != nil
    }

    /// Removes a value.
    /// - Returns: the value that was there.
    @discardableResult
    public func removeValue(for key: Key) -> Value? {
        let removed = state.withLock { $0.table.remove(key) }
        return removed?.value
    }

    /// Removes every value; nobody is told.
    public func removeAll() {
        let old = state.withLock { state in
            let old = state.table
            state.table = MemoryCacheTable()
            return old
        }
        withExtendedLifetime(old) {}
    }

    /// Gives memory back: the values that have been used the least go, until the others cost no more than `cost`.
    /// The limits stay as they are.
    public func shrink(toCost cost: Int) {
        tell(state.withLock { Self.evict(&$0, cost: max(0, cost), count: .max) })
    }

    private func giveWay() {
        let gone = state.withLock { state in
            let kept = Double(state.table.cost) * (1 - MemoryPressure.share)
            return Self.evict(&state, cost: Int(kept), count: .max)
        }
        tell(gone)
    }

    /// Values that are held.
    public var count: Int { state.withLock { $0.table.count } }

    /// The cost of all values that are held.
    public var cost: Int { state.withLock { $0.table.cost } }

    /// How many questions found a value since the cache was made.
    public var hits: Int { state.withLock { $0.hits } }

    /// How many questions found none.
    public var misses: Int { state.withLock { $0.misses } }

    /// How many values had to go for want of room, or of memory.
    public var evictions: Int { state.withLock { $0.evictions } }

    private static func evict(_ state: inout State, cost: Int, count: Int) -> [Entry] {
        var evicted: [Entry] = []
        while state.table.cost > cost || state.table.count > count, let entry = state.table.evict() {
            evicted.append(entry)
        }
        state.evictions += evicted.count
        return evicted
    }

    private func tell(_ evicted: [Entry]) {
        guard let onEviction else { return }
        for entry in evicted { onEviction(entry.key, entry.value) }
    }
}

// MARK: - The storage

/// A value without a lock: `MemoryCache` keeps it under its mutex.
struct MemoryCacheTable<Key: Hashable, Value> {
    private struct Entry {
        let key: Key
        let value: Value
        let cost: Int
    }

    /// The entries by slot; nil in a free slot.
    private var entries: [Entry?] = []
    private var slots: [Key: Int] = [:]
    private var freeSlots: [Int] = []
    private var order = SlotOrder()
    private(set) var cost = 0

    var count: Int { slots.count }

    /// A use: what is found stays longer.
    mutating func use(_ key: Key) -> Value? {
        guard let slot = slots[key] else { return nil }
        order.use(slot)
        return entries[slot]?.value
    }

    /// The key must not be there.
    mutating func insert(_ key: Key, _ value: Value, cost added: Int) {
        let slot = freeSlots.popLast() ?? entries.count
        let entry = Entry(key: key, value: value, cost: added)
        if slot == entries.count { entries.append(entry) } else { entries[slot] = entry }
        slots[key] = slot
        order.add(slot, hash: Self.hash(key), cost: added)
        cost += added
    }

    /// - Returns: what was there with the key that the table had, so that the caller lets go of both.
    mutating func remove(_ key: Key) -> (key: Key, value: Value)? {
        guard let slot = slots[key] else { return nil }
        order.remove(slot)
        return take(slot)
    }

    /// Takes out the value whose turn it is to make room; nil where nothing is left.
    mutating func evict() -> (key: Key, value: Value)? {
        guard let slot = order.victim(), let key = entries[slot]?.key else { return nil }
        order.evict(slot, hash: Self.hash(key))
        return take(slot)
    }

    /// - Parameter slot: of an entry that is no longer in the order.
    private mutating func take(_ slot: Int) -> (key: Key, value: Value)? {
        guard let entry = entries[slot] else { return nil }
        entries[slot] = nil
        slots[entry.key] = nil
        freeSlots.append(slot)
        cost -= entry.cost
        return (entry.key, entry.value)
    }

    private static func hash(_ key: Key) -> UInt64 { UInt64(truncatingIfNeeded: key.hashValue) }
}
