// Why a resource or a service brought no model.

/// A call that failed: each case says at which step.
public enum ServiceError: Error, Sendable {
    /// The request cannot be made: the text says why, and what to write instead. Nothing was sent.
    case invalidRequest(String)
    /// What the request was to contain cannot be encoded. Nothing was sent.
    case encoding(any Error)
    /// A veto kept the call from being sent.
    case vetoed(String)
    /// The task was cancelled, or the manager ended the call.
    case cancelled
    /// No response came, or not all of it.
    case transport(DownloadError)
    /// The status is no success: the response with its body, and the error that the resource has found in it.
    case status(DownloadResult, failure: (any Error)?)
    /// A success that the resource could make no model of.
    case mapping(any Error, DownloadResult)
}
