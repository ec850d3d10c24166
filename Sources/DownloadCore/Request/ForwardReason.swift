// Why a request goes to the origin, as Cache-Status says it.

package import HTTPCaching

/// The `fwd` of Cache-Status, and the reason behind it.
package struct ForwardReason: Sendable, Equatable {
    package var forward: CacheStatus.Forward
    /// The raw value of the reason that decided; nil where `forward` says it all.
    package var reason: String?

    package init(_ forward: CacheStatus.Forward, _ reason: String? = nil) {
        self.forward = forward
        self.reason = reason
    }

    /// Where a decision sends the request.
    init(_ decision: ReuseDecision) {
        switch decision {
        case .stale(_, _, let reason): self.init(decision.forward ?? .stale, reason.rawValue)
        case .mismatch(.vary): self.init(.varyMiss)
        case .mismatch(let reason): self.init(decision.forward ?? .miss, reason.rawValue)
        case .fresh, .staleAllowed, .onlyIfCachedMiss: self.init(.miss)
        }
    }
}
