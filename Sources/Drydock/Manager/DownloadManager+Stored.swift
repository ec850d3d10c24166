// The stored responses of a download manager: looked at, expired and removed.

import CacheStore
import DownloadCore
import EventLoop
public import FoundationEssentials
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

extension DownloadManager {
    /// The state of a resource as it is stored. No origin is asked, and nothing changes.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`, `.cancelled`.
    public func state(of url: URL) async throws(DownloadError) -> StoredState {
        let session = try await begin(try DownloadRequest(url, configuration, Options()))
        return try await session.storedState()
    }

    /// Removes what is stored of a resource, in memory and on disk, whatever it was asked with. A download under way is
    /// not stored, and is not joined by those that begin after this. Seeds stay.
    /// - Returns: how many stored responses there were.
    /// - Throws: `DownloadError.invalidRequest`, `.unavailable`, `.closed`.
    @discardableResult
    public func remove(_ url: URL) async throws(DownloadError) -> Int {
        let question = try DownloadRequest(url, configuration, Options())
        return try await purge(.url(question.key.description))
    }

    /// Removes what came, or was last confirmed, before so long a time, in memory and on disk.
    /// - Parameter age: in whole seconds.
    /// - Returns: how many stored responses there were.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @discardableResult
    public func remove(olderThan age: Duration) async throws(DownloadError) -> Int {
        try await purge(.olderThan(try await engine().core.clock.now() - age.wholeSeconds))
    }

    /// Removes everything that is stored. Seeds stay.
    /// - Returns: how many stored responses there were.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @discardableResult
    public func removeAll() async throws(DownloadError) -> Int { try await purge(.all) }

    /// Ends the validity of everything that is stored: the next download of each resource
    /// checks it. Nothing is removed.
    /// - Returns: how many stored responses there are.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    @discardableResult
    public func expireAll() async throws(DownloadError) -> Int { try await purge(.all, isSoft: true) }

    /// Gives back the memory that stored responses take; what is on disk stays.
    /// - Throws: `DownloadError.unavailable`, `.closed`.
    public func freeMemory() async throws(DownloadError) { try await engine().core.freeMemory() }

    private func purge(_ target: PurgeRule.Target, isSoft: Bool = false) async throws(DownloadError) -> Int {
        let engine = try await engine()
        do throws(PurgeError) {
            return try await engine.core.purge([PurgeRule(target, isSoft: isSoft)], on: engine.files)
        } catch {
            throw .unavailable("\(error)")
        }
    }
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
