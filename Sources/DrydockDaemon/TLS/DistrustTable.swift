// The clients that do not trust the local authority, each with the host that it has asked for.

/// A bounded table of clients and hosts, of which those go first that were added first. A value: whoever has it protects it.
struct DistrustTable: Sendable {
    /// A client that has shown that it does not trust the certificate for a host.
    struct Entry: Sendable, Equatable {
        /// The address as logs have it.
        let client: String
        /// The host and the port of the tunnel.
        let target: String
        /// What it did.
        var reason: String
        /// How often.
        var times: Int
        /// When it did so first, in seconds since 1970.
        let since: Int64
        /// Nanoseconds of a clock that never goes back.
        fileprivate let began: UInt64
    }

    private struct Key: Hashable {
        let client: String
        let target: String
    }

    private let capacity: Int
    private let lifetime: UInt64
    private var entries: [Key: Entry] = [:]
    /// In the order in which they were added.
    private var order: [Key] = []

    /// - Parameters:
    ///   - capacity: the most entries; 1,000 by default.
    ///   - lifetime: nanoseconds after which an entry counts no more; an hour by default.
    init(capacity: Int = 1_000, lifetime: UInt64 = 3_600_000_000_000) {
        self.capacity = max(1, capacity)
        self.lifetime = lifetime
    }

    /// Adds what a client did.
    /// - Parameters:
    ///   - wallTime: seconds since 1970.
    ///   - now: nanoseconds of a clock that never goes back.
    /// - Returns: whether this was not known of the client and the host.
    mutating func note(client: String, target: String, _ reason: String, wallTime: Int64, now: UInt64) -> Bool {
        removeOld(now)
        let key = Key(client: client, target: target)
        if entries[key] != nil {
            entries[key]?.times += 1
            entries[key]?.reason = reason
            return false
        }
        if order.count == capacity { entries[order.removeFirst()] = nil }
        entries[key] = Entry(client: client, target: target, reason: reason, times: 1, since: wallTime, began: now)
        order.append(key)
        return true
    }

    func contains(client: String, target: String, now: UInt64) -> Bool {
        entries[Key(client: client, target: target)].map { isCurrent($0, now) } ?? false
    }

    /// The entries that count, in the order in which they were added.
    func current(_ now: UInt64) -> [Entry] { order.compactMap { entries[$0] }.filter { isCurrent($0, now) } }

    mutating func removeAll() {
        entries = [:]
        order = []
    }

    private func isCurrent(_ entry: Entry, _ now: UInt64) -> Bool { now < entry.began || now - entry.began < lifetime }

    private mutating func removeOld(_ now: UInt64) {
        while let first = order.first, let entry = entries[first], !isCurrent(entry, now) {
            entries[first] = nil
            order.removeFirst()
        }
    }
}
