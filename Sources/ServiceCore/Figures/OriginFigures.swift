// What the requests of one service to origins came to.

import Synchronization
import Upstream

/// The figures about a service's requests to origins since the start, in sums over all loops.
///
/// Sendable: the bytes are atomic, and all else is behind a mutex, which is taken once or twice for each request.
package final class OriginFigures: Sendable {
    /// The sums at one moment.
    package struct Values: Sendable {
        /// Requests by what they came to: a class of status such as `2xx`, a kind of error, or `cancelled`.
        package fileprivate(set) var results: [OriginResult: UInt64] = [:]
        /// The time of dialling, TLS included, of requests that had no connection waiting.
        package fileprivate(set) var connecting = TimeHistogram()
        /// The time from the request to the head of the response.
        package fileprivate(set) var firstByte = TimeHistogram()
        /// Bytes of content that origins have sent.
        package fileprivate(set) var bytes: UInt64 = 0
        package fileprivate(set) var began: UInt64 = 0

        package init() {}
    }

    /// The sums that are not atomic. Results are by their raw values, since to hash one would take longer than all else.
    private struct Sums {
        var results = [UInt64](repeating: 0, count: OriginResult.allCases.count)
        var connecting = TimeHistogram()
        var firstByte = TimeHistogram()
    }

    private let sums = Mutex(Sums())
    private let bytes = Atomic<UInt64>(0)
    private let began = Atomic<UInt64>(0)

    package init() {}

    package var values: Values {
        let sums = sums.withLock { $0 }
        var values = Values()
        for result in OriginResult.allCases where sums.results[result.rawValue] > 0 {
            values.results[result] = sums.results[result.rawValue]
        }
        (values.connecting, values.firstByte) = (sums.connecting, sums.firstByte)
        values.bytes = bytes.load(ordering: .relaxed)
        values.began = began.load(ordering: .relaxed)
        return values
    }

    func begin() { began.wrappingAdd(1, ordering: .relaxed) }

    func add(bytes count: Int) { bytes.wrappingAdd(UInt64(count), ordering: .relaxed) }

    /// Counts a request that has ended.
    /// - Parameters:
    ///   - connecting: the nanoseconds of dialling; nil if a connection was waiting, or none came about.
    ///   - firstByte: the nanoseconds to the head of the response; nil if none came.
    func add(_ result: OriginResult, connecting: UInt64?, firstByte: UInt64?) {
        sums.withLock { sums in
            sums.results[result.rawValue] &+= 1
            if let connecting { sums.connecting.add(connecting) }
            if let firstByte { sums.firstByte.add(firstByte) }
        }
    }
}

/// What a request to an origin came to.
package enum OriginResult: Int, Sendable, CaseIterable {
    case informational, success, redirection, clientError, serverError
    case request, name, address, connection, tls, proxy, timeout, cut, invalid, content, `internal`
    /// Nobody needed the answer any longer.
    case cancelled

    init(status: Int) {
        self =
            switch status {
            case ..<200: .informational
            case ..<300: .success
            case ..<400: .redirection
            case ..<500: .clientError
            default: .serverError
            }
    }

    init(_ error: UpstreamError) {
        self =
            switch error.kind {
            case .request: .request
            case .nameNotFound, .resolver: .name
            case .addressRefused: .address
            case .connectionRefused, .unreachable: .connection
            case .certificate, .tls, .tlsFile: .tls
            case .proxy: .proxy
            case .timeout: .timeout
            case .closed, .truncated: .cut
            case .protocolViolation, .unexpectedStatus: .invalid
            case .requestBody: .content
            case .cancelled: .cancelled
            case .internal: .internal
            }
    }

    /// The value of the label `result`.
    package var label: String {
        switch self {
        case .informational: "1xx"
        case .success: "2xx"
        case .redirection: "3xx"
        case .clientError: "4xx"
        case .serverError: "5xx"
        default: "\(self)"
        }
    }

    /// Whether there was no whole answer, through no wish of the daemon.
    package var isError: Bool {
        switch self {
        case .informational, .success, .redirection, .clientError, .serverError, .cancelled: false
        default: true
        }
    }
}
