// Whether a failure in a program is one after which a request may be made again: the errors of the library, and those
// to which the program gives a cause, for the one type that decides it.

import DownloadCore
import Drydock
import EventLoop
import FoundationEssentials
import HTTPTypes
import HTTPWire
import Policies
import ServiceCore
import Upstream

extension DownloadError {
    /// The end of the attempt as the modules below would have seen it.
    fileprivate var attemptEnd: AttemptEnd? {
        switch self {
        case .origin(let failure):
            guard let kind = failure.kind.upstream else { return nil }
            return .failed(.upstream(UpstreamError(kind, detail: failure.detail)))
        case .unacceptableStatus(let result): return AttemptEnd(result.head)
        default: return nil
        }
    }
}

extension ServiceError {
    fileprivate var attemptEnd: AttemptEnd? {
        switch self {
        case .transport(let error): error.attemptEnd
        case .status(let result, _): AttemptEnd(result.head)
        case .mapping(let error, _): .content("could not be mapped: \(error)")
        default: nil
        }
    }
}

extension ServiceError {
    /// Whether a request may be sent again after this failure: nothing of it has reached the origin, or the origin may
    /// act on it twice (RFC 9110 section 9.2.2).
    func allowsRepetition(of method: HTTPRequest.Method, _ methods: RetryMethods) -> Bool {
        methods == .any || HTTPWire.Method(method.rawValue).isIdempotent || isUnsent
    }

    private var isUnsent: Bool {
        guard case .transport(let error) = self else { return false }
        switch error {
        case .notStored, .busy: return true
        case .origin(let failure) where failure.kind == .leftAlone: return true
        default: return error.attemptEnd?.isUnsent ?? false
        }
    }
}

extension OriginFailure.Kind {
    /// The kind in the words of the modules below; nil for what no retry changes.
    fileprivate var upstream: UpstreamError.Kind? {
        switch self {
        case .unknownHost: .nameNotFound
        case .unreachable: .unreachable
        case .timeout: .timeout(.firstByte)
        case .cutShort: .closed
        case .untrusted, .leftAlone, .protocolViolation, .local: nil
        }
    }
}

extension AttemptEnd {
    fileprivate init(_ response: HTTPResponse) {
        self = .head(status: response.status.code, retryAfter: response.headerFields[.retryAfter])
    }

    /// The end of an attempt that an error of the library tells of; nil for an error that no retry repeats.
    fileprivate init?(_ error: any Error) {
        switch error {
        case let error as DownloadError:
            guard let end = error.attemptEnd else { return nil }
            self = end
        case let error as ServiceError:
            guard let end = error.attemptEnd else { return nil }
            self = end
        case let error as DecodingError: self = .content("could not be decoded: \(error)")
        default: return nil
        }
    }

    /// The end of an attempt with an error of the program's own, which has this cause.
    fileprivate init(_ error: any Error, _ cause: RetryCause) {
        switch cause {
        case .connect: self = .failed(.upstream(UpstreamError(.closed, detail: "\(error)")))
        case .timeout: self = .failed(.upstream(UpstreamError(.timeout(.firstByte), detail: "\(error)")))
        case .content: self = .content("\(error)")
        case .status(let status): self = .head(status: status, retryAfter: nil)
        }
    }
}

extension RetryPolicy {
    /// How long to wait before another attempt; nil where the failure is final.
    /// - Parameters:
    ///   - attempt: the number of the one that failed, 1 for the first.
    ///   - path: of the request, or the name of what failed.
    ///   - cause: that of an error which is none of the library's; nil: the failure is final.
    func delay(
        after error: any Error,
        attempt: Int,
        method: HTTPRequest.Method,
        path: String,
        cause: RetryCause? = nil
    ) -> Duration? {
        let end = AttemptEnd(error) ?? cause.map { AttemptEnd(error, $0) }
        return end.flatMap { delay(after: $0, attempt: attempt, method: method, path: path) }
    }

    /// How long to wait before another attempt after a response, as the function above says it after an error.
    func delay(
        after response: HTTPResponse,
        attempt: Int,
        method: HTTPRequest.Method,
        path: String
    ) -> Duration? {
        delay(after: AttemptEnd(response), attempt: attempt, method: method, path: path)
    }

    private func delay(
        after end: AttemptEnd,
        attempt: Int,
        method: HTTPRequest.Method,
        path: String
    ) -> Duration? {
        let policy = bounded
        let decision = RetryDecision.decide(
            end,
            policy,
            retry: attempt,
            method: HTTPWire.Method(method.rawValue),
            path: path,
            hasSentBody: false,
            now: WallClock().now(),
            draw: policy.jitter == 0 ? 0 : .random(in: 0...1)
        )
        guard case .retry(let wait) = decision else { return nil }
        return .nanoseconds(Int64(clamping: wait))
    }
}

// MARK: - Refused retries

extension ServiceError {
    /// The error with the remark that the budget of retries has kept its request from being repeated.
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
    /// The error with the remark that the budget of retries has kept its request from being repeated; an error of the program's
    /// own stays as it is.
    var withoutRetry: any Error {
        switch self {
        case let error as DownloadError: error.withoutRetry as DownloadError
        case let error as ServiceError: error.withoutRetry as ServiceError
        default: self
        }
    }
}
