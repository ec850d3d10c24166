// Sums the counters of the loops for the status document.

package import AdminAPI

extension AdminStatus {
    package mutating func count(_ counters: CounterValues) {
        connections = Int(clamping: counters.connections)
        tunnels = Int(clamping: counters[.tunnelsOpened] &- counters[.tunnelsClosed])
        answers = Int(clamping: counters.answers)
        hits = Int(clamping: counters[.cacheHit])
        misses = Int(clamping: counters[.cacheMiss])
    }
}
