// What errors say where the budget of retries has kept them from being repeated.

import ServiceCore

extension DownloadResult {
    /// What descriptions of failures end with.
    var refusalText: String { isRetryRefused ? "; it was not repeated: \(RetryBudget.refusal)" : "" }
}

extension DownloadError {
    /// The same, where the budget of retries has kept it from being repeated.
    var withoutRetry: DownloadError {
        switch self {
        case .origin(let failure):
            .origin(
                OriginFailure(
                    kind: failure.kind,
                    detail: "\(failure.detail); it was not repeated: \(RetryBudget.refusal)"
                )
            )
        case .unacceptableStatus(let result): .unacceptableStatus(result.withoutRetry)
        default: self
        }
    }
}

extension ServiceError {
    /// The same, where the budget of retries has kept it from being repeated.
    var withoutRetry: ServiceError {
        switch self {
        case .transport(let error): .transport(error.withoutRetry)
        case .status(let result, let failure): .status(result.withoutRetry, failure: failure)
        case .mapping(let error, let result): .mapping(error, result.withoutRetry)
        default: self
        }
    }
}

extension Error {
    /// The same, where the budget of retries has kept it from being repeated; an error of the program's own as it is.
    var withoutRetry: any Error {
        switch self {
        case let error as DownloadError: error.withoutRetry as DownloadError
        case let error as ServiceError: error.withoutRetry as ServiceError
        default: self
        }
    }
}
