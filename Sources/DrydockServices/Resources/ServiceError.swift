// Why a resource or a service brought no model.

public import Drydock
import FoundationEssentials
import HTTPTypes

/// A call that failed: each case says at which step.
public enum ServiceError: Error, Sendable {
    /// The request cannot be made: the text says why, and what to write instead. Nothing was sent.
    case invalidRequest(String)
    /// Nothing is there to fill a parameter of the path with: its name, and the path. Nothing was sent.
    case missingParameter(String, path: String)
    /// What the request was to contain cannot be encoded. Nothing was sent.
    case encoding(any Error)
    /// ``ServiceHooks/shouldStart`` kept the call from being sent: its reason.
    case vetoed(String)
    /// The task was cancelled, or the manager ended the call.
    case cancelled
    /// No response came, or not all of it.
    case transport(DownloadError)
    /// The status is no success: the response with its body, and the error that the resource has found in it.
    indirect case status(DownloadResult, failure: (any Error)?)
    /// A success that the resource could make no model of: why, often a ``MappingError`` or a `DecodingError`.
    indirect case mapping(any Error, DownloadResult)

    /// The response, where one came as a whole.
    public var result: DownloadResult? {
        switch self {
        case .status(let result, _), .mapping(_, let result): result
        case .transport(.unacceptableStatus(let result)): result
        default: nil
        }
    }
}

extension ServiceError: CustomStringConvertible {
    /// What happened and what to do.
    public var description: String {
        switch self {
        case .invalidRequest(let text): text
        case .missingParameter(let name, let path):
            "'\(path)' cannot be filled: there is no '\(name)'; add it to the path parameters"
        case .encoding(let error): "the request cannot be encoded: \(error)"
        case .vetoed(let reason): "the call was not to start: \(reason)"
        case .cancelled: "the call was cancelled"
        case .transport(let error): error.description
        case .status(let result, failure: nil):
            "\(result.shownURL) answered \(result.head.status.code)\(result.refusalText)"
        case .status(let result, let failure?):
            "\(result.shownURL) answered \(result.head.status.code): \(failure)\(result.refusalText)"
        case .mapping(let error, let result):
            "the answer of \(result.shownURL) is not what was expected: \(error)\(result.refusalText)"
        }
    }
}

extension DownloadResult {
    /// The URL without the query, which may hold secrets.
    fileprivate var shownURL: String { String(url.absoluteString.prefix { $0 != "?" }) }
}
