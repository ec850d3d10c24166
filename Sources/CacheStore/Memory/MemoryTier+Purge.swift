// What purges do to the memory tier: it is walked at once, so that no lookup of the hot path has to ask the rules.

import HTTPCaching

extension MemoryTier {
    /// Removes the responses of hard purges, and makes those of soft purges stale. Not on a loop.
    /// - Parameters:
    ///   - number: of the purges: responses that were fetched or validated later stay.
    ///   - now: the time of the purges, Unix seconds.
    ///   - pins: spared by purges for age.
    /// - Returns: the responses that were removed or made stale, as they were before.
    package func purge(_ rules: [PurgeRule], number: UInt64, now: Int64, pins: Pins) -> [ResidentResponse] {
        walk { response in
            guard response.headNumber <= number else { return .keep }
            let subject = RuleSubject(response, pins)
            let concerning = rules.filter { $0.concerns(subject) }
            if concerning.isEmpty { return .keep }
            return concerning.allSatisfy(\.isSoft) ? .replace(response.response.stale(since: now)) : .remove
        }
    }

    /// Removes the responses that ``InvalidationRule/anyHost(of:)`` rules match. Not on a loop.
    /// - Parameter number: of the rules: responses that were fetched or validated later stay.
    package func remove(concerned rules: Set<InvalidationRule>, before number: UInt64) {
        walk { response in
            guard response.headNumber <= number, rules.contains(where: { $0.mayConcern(response.keyBytes) }),
                rules.contains(.anyHost(of: response.key))
            else { return .keep }
            return .remove
        }
    }

    /// Removes invalidated responses that no request has met since. Not on a loop.
    package func removeInvalid(_ invalidations: Invalidations) {
        // Outside the shard's mutex: an insertion takes the mutex of the invalidations first, so the
        // other order could deadlock.
        forEachSlice { responses in
            for response in responses where invalidations.isGone(response) {
                remove(response.key) { $0.isSame(as: response.response) }
            }
        }
    }
}

extension RuleSubject {
    init(_ response: ResidentResponse, _ pins: Pins) {
        let key = response.key
        // Most have no names; to take a head apart for them would take the longest of all.
        let names = response.hasNames ? InvalidationRule.concerning(response.head, key) : []
        self.init(key: key, names: names, arrivedAt: response.responseTime) { pins.contains(key) }
    }
}
