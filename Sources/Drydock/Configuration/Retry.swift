// What errors say where the budget of retries had nothing left for what has failed.

import ServiceCore

extension DownloadResult {
    /// What descriptions of failures end with.
    package var refusalText: String { isRetryRefused ? "; it was not repeated: \(RetryBudget.refusal)" : "" }
}

extension DownloadError {
    /// The error with the remark that the budget of retries has kept its request from being repeated.
    package var withoutRetry: DownloadError {
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
