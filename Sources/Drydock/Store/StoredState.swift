// What a program hears of a resource that may be stored.

import DownloadCore
import HTTPCaching

/// The state of a resource as it is stored; no origin is asked.
public enum StoredState: Sendable, Hashable {
    /// It would be downloaded.
    case absent
    /// A seed answers for it.
    case seeded
    /// It is stored, and valid for so many more seconds.
    case valid(Duration)
    /// It is stored, and has not been valid for so many seconds: it would be checked.
    case stale(Duration)
}

extension StoredState {
    init(_ explanation: StoredExplanation) {
        switch explanation.rules.decision {
        case .fresh(_, let ttl): self = .valid(.seconds(ttl))
        case .staleAllowed(_, let by, _), .stale(_, let by, _): self = .stale(.seconds(by))
        case .mismatch, .onlyIfCachedMiss, nil: self = .absent
        }
    }
}
