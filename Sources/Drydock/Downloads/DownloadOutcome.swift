// The eight ways in which a download can end, and what Cache-Status says for each.

package import HTTPCaching

/// Where the bytes of a download came from, and what was done to know that they are good.
///
/// Each case stands for one form of the Cache-Status field (RFC 9211) that the daemon would answer with.
public enum DownloadOutcome: String, Sendable, Hashable, CaseIterable, Codable {
    /// From a seed folder, which is searched first: `hit; detail=seed`.
    case seeded
    /// Stored and valid; the origin was not asked: `hit; ttl=118; detail=memory`, or `disk`.
    case stillValid
    /// Stored and no longer valid; this is the stored response, while the origin is being asked: `hit; ttl=-5;
    /// detail=refreshing`. A final result follows where there are events to follow it.
    case beingChecked
    /// Stored and no longer valid; the origin said that it has not changed: `fwd=stale;
    /// fwd-status=304; detail=revalidated`.
    case confirmed
    /// Stored and no longer valid; the origin could not be asked, or did not answer as it should: `fwd=stale;
    /// detail=stale-if-error`, or `hit; detail=check-pause` for a while after that. Or it was not to be asked
    /// (``DownloadOptions/onlyStored``): `hit; detail=unrefreshed`.
    case checkFailed
    /// From the origin, just now: `fwd=uri-miss; fwd-status=200; stored`, or `fwd=stale; …; detail=replaced`.
    case downloaded
    /// Neither stored nor to be had. What carries it is a ``DownloadError``, whose ``DownloadError/outcome`` it is.
    case downloadFailed
    /// The request could not be asked. Only a ``DownloadError`` has this outcome, never a result.
    case invalid
}

extension DownloadOutcome {
    /// Reads what the download core says of an answer that has come.
    package init(_ status: CacheStatus?) {
        guard let status else {
            self = .downloaded
            return
        }
        let detail = status.detail.flatMap(CacheStatus.Detail.init(rawValue:))
        switch (status.hit, detail) {
        case (_, .seed): self = .seeded
        case (_, .fallback), (_, .placeholder): self = .downloadFailed
        case (true, .refreshing): self = .beingChecked
        case (true, .memory), (true, .disk): self = .stillValid
        // The response is stale and its origin was not asked: only stored responses are wanted, or a check failed a
        // moment ago.
        case (true, _): self = .checkFailed
        case (false, .revalidated): self = .confirmed
        case (false, .staleIfError), (false, .otherVariant): self = .checkFailed
        case (false, _): self = .downloaded
        }
    }
}
