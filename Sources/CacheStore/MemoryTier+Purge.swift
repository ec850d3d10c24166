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
}

extension RuleSubject {
    init(_ response: HeldResponse, _ pins: Pins) {
        let key = response.key
        // Most have no names; to take a head apart for them would take the longest of all.
        let names = response.hasNames ? InvalidationRule.concerning(response.head, key) : []
        self.init(key: key, names: names, arrivedAt: response.responseTime) { pins.contains(key) }
    }
}
