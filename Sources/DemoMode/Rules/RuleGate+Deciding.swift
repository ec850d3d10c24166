// When a gate is open: by the number of a request, and by the time.

package import Policies

extension RuleTurn {
    /// - Parameter count: how many requests came before.
    package func holds(_ count: UInt64) -> Bool {
        if let nth, count + 1 != UInt64(nth) { return false }
        if let first, count >= UInt64(first) { return false }
        if let every, (count + 1) % UInt64(every) != 0 { return false }
        return true
    }

    /// Which request it wants, for messages: `nth 3`.
    var description: String {
        let parts = [("nth", nth), ("first", first), ("every", every)]
        return parts.compactMap { name, value in value.map { "\(name) \($0)" } }.joined(separator: " and ")
    }
}

extension RuleOutage {
    /// - Parameter elapsed: nanoseconds since the beginning.
    package func isOpen(elapsed: UInt64) -> Bool {
        guard elapsed >= after else { return false }
        guard let duration else { return true }
        let since = elapsed - after
        return every.map { since % max(1, $0) < duration } ?? (since < duration)
    }

    /// Requests are counted for it.
    var countsRequests: Bool { afterRequests > 0 || requests != nil }

    /// - Parameter count: how many requests came before.
    package func isOpen(request count: UInt64) -> Bool {
        guard count >= UInt64(afterRequests) else { return false }
        return requests.map { count - UInt64(afterRequests) < UInt64($0) } ?? true
    }
}
