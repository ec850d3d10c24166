// What a download brings, how far it has come, and the eight ways in which it can end.

public import FoundationEssentials
package import HTTPCaching
public import HTTPTypes

/// A download that is whole.
public struct DownloadResult: Sendable, Hashable {
    /// What was asked for.
    public var url: URL
    /// Where it came from.
    public var outcome: DownloadOutcome
    /// Status and fields: those of the origin, with Age and Cache-Status as this cache has them.
    public var head: HTTPResponse
    /// The body; empty where it went to ``file``.
    public var data: Data
    /// Where the body was written to; nil where it is in ``data``.
    public var file: URL?
    /// How long the response has been stored since the origin made it, in whole seconds; zero where it came just now.
    public var age: Duration
    /// How much longer it stays valid, in whole seconds; negative where it has not been since then; nil where it is not
    /// stored, or has come just now.
    public var validity: Duration?
    /// It is a failure that would have been repeated, had the budget of retries not been used up.
    private(set) var isRetryRefused = false

    /// The result with the remark that the budget of retries has kept its request from being repeated.
    package var withoutRetry: DownloadResult {
        var result = self
        result.isRetryRefused = true
        return result
    }

    /// Makes a result, for a program's own tests.
    public init(
        url: URL,
        outcome: DownloadOutcome,
        head: HTTPResponse = HTTPResponse(status: .ok),
        data: Data = Data(),
        file: URL? = nil,
        age: Duration = .zero,
        validity: Duration? = nil
    ) {
        self.url = url
        self.outcome = outcome
        self.head = head
        self.data = data
        self.file = file
        self.age = age
        self.validity = validity
    }
}

/// How far a body has come, or the content of a request has gone.
public struct DownloadProgress: Sendable, Hashable {
    /// Bytes that this download has received, from whichever source they come: coded, where the body is. Of a request's
    /// content, bytes that have been sent.
    public var completed: Int64
    /// Bytes of the whole; nil if they are not known.
    public var total: Int64?

    /// Makes a progress of so many bytes.
    public init(completed: Int64, total: Int64? = nil) {
        self.completed = completed
        self.total = total
    }

    /// The part that is done, from 0 to 1; nil if the whole is not known.
    public var fraction: Double? {
        guard let total else { return nil }
        return total == 0 ? 1 : min(1, Double(completed) / Double(total))
    }
}

/// What happens in the course of a download.
public enum DownloadEvent: Sendable, Hashable {
    /// What is stored, although it is no longer valid, while the origin is asked; only with
    /// ``DownloadOptions/yieldsStaleFirst``. A final result follows. A download to a file has written it there,
    /// whole, and the final result takes its place; where there is none, it stays.
    case stale(DownloadResult)
    /// More of the request's content has been sent. It begins anew where the request is repeated or redirected.
    case uploaded(DownloadProgress)
    /// The head has come. So many bytes will follow, where anybody knows: coded, where the body is.
    case began(HTTPResponse, expected: Int64?)
    /// More bytes have come. The last one of a whole body has all of them.
    case progress(DownloadProgress)
    /// It is whole; nothing comes after this.
    case finished(DownloadResult)
}

// MARK: - Outcomes

/// Where the bytes of a download came from, and what was done to know that they are good.
///
/// Each case stands for one form of the Cache-Status field (RFC 9211) that the daemon would answer with.
public enum DownloadOutcome: String, Sendable, Hashable, CaseIterable, Codable {
    /// It came from a seed folder, which is searched first: `hit; detail=seed`.
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
    /// (``DownloadOptions/CachePolicy/storedOnly``): `hit; detail=unrefreshed`.
    case checkFailed
    /// It came from the origin, just now: `fwd=uri-miss; fwd-status=200; stored`, or `fwd=stale; …; detail=replaced`.
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
