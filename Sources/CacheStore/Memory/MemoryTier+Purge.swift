// What purges do to the memory tier: it is walked at once, so that no lookup of the hot path has to ask the rules.

import HTTPCaching

extension MemoryTier {
    /// Removes what hard purges concern, and makes stale what soft ones do. Not on a loop.
    /// - Parameters:
    ///   - number: of the purges: what was fetched or confirmed later is none of their business.
    ///   - now: the time of the purges, Unix seconds.
    ///   - pins: what purges for age spare.
    /// - Returns: the responses that have gone or become stale, as they were.
    package func purge(_ rules: [PurgeRule], number: UInt64, now: Int64, pins: Pins) -> [HeldResponse] {
        walk { response in
            guard response.headNumber <= number else { return .keep }
            let subject = RuleSubject(response, pins)
            let concerning = rules.filter { $0.concerns(subject) }
            if concerning.isEmpty { return .keep }
            return concerning.allSatisfy(\.isSoft) ? .replace(response.response.stale(since: now)) : .remove
        }
    }

    /// Removes what ``InvalidationRule/anyHost(of:)`` rules concern. Not on a loop.
    /// - Parameter number: of the rules: what was fetched or confirmed later is none of their business.
    package func remove(concerned rules: Set<InvalidationRule>, before number: UInt64) {
        walk { response in
            guard response.headNumber <= number, rules.contains(where: { $0.mayConcern(response.keyBytes) }),
                rules.contains(.anyHost(of: response.key))
            else { return .keep }
            return .remove
        }
    }

    /// Removes what rules have invalidated and nobody has met since. Not on a loop.
    package func removeInvalid(_ generations: Generations) {
        // Without a shard's mutex: whoever inserts holds that of the generations first.
        forEachSlice { responses in
            for response in responses where generations.isGone(response) {
                remove(response.key) { $0.isSame(as: response.response) }
            }
        }
    }
}

extension RuleSubject {
    init(_ response: HeldResponse, _ pins: Pins) {
        let key = response.key
        // Most have no names; to take a head apart for them would take the longest of all.
        let names = response.hasNames ? InvalidationRule.concerning(response.head, key) : []
        self.init(key: key, names: names, arrivedAt: response.responseTime) { pins.contains(key) }
    }
}
