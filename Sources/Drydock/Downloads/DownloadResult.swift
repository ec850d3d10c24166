// What a download brings, and how far it has come.

public import FoundationEssentials
public import HTTPTypes

/// A download that is whole.
public struct DownloadResult: Sendable, Hashable {
    /// What was asked for.
    public var url: URL
    /// Where it came from.
    public var outcome: DownloadOutcome
    /// Status and fields: those of the origin, with Age and Cache-Status as this cache has them.
    public var response: HTTPResponse
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

    /// The same, where the budget of retries has kept it from being repeated.
    var withoutRetry: DownloadResult {
        var result = self
        result.isRetryRefused = true
        return result
    }

    /// Makes a result, for a program's own tests.
    public init(
        url: URL,
        outcome: DownloadOutcome,
        response: HTTPResponse = HTTPResponse(status: .ok),
        data: Data = Data(),
        file: URL? = nil,
        age: Duration = .zero,
        validity: Duration? = nil
    ) {
        self.url = url
        self.outcome = outcome
        self.response = response
        self.data = data
        self.file = file
        self.age = age
        self.validity = validity
    }
}

/// How far a body has come, or the content of a request has gone.
public struct DownloadProgress: Sendable, Hashable {
    /// Bytes that this download has received, from whichever place they come: coded, where the body is. Of a request's
    /// content, bytes that have been sent.
    public var received: Int64
    /// Bytes of the whole; nil if they are not known.
    public var expected: Int64?

    /// Makes a progress of so many bytes.
    public init(received: Int64, expected: Int64? = nil) {
        self.received = received
        self.expected = expected
    }

    /// From 0 to 1; nil where the whole is not known.
    public var fraction: Double? {
        guard let expected else { return nil }
        return expected == 0 ? 1 : min(1, Double(received) / Double(expected))
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
