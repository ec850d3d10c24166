// The errors of connections that failed or broke off, for both carriers.

import Glibc

enum ConnectionFailure {
    /// - Parameters:
    ///   - osError: `errno`; 0 if unknown.
    ///   - text: the message in that case.
    ///   - isProxied: the connection would have led to the proxy that `place` names.
    static func connect(_ place: String, _ osError: Int32, text: String, isProxied: Bool) -> UpstreamError {
        let reason = osError == 0 ? text : String(cString: strerror(osError))
        let isRefused = osError == ECONNREFUSED
        let advice =
            isRefused
            ? "check that the \(isProxied ? "proxy" : "origin") runs and listens on that port"
            : "check the network and its routes"
        let detail = "cannot connect to \(place): \(reason); \(advice)"
        switch osError {
        case ECONNREFUSED: return UpstreamError(.connectionRefused, detail: detail)
        case EMFILE, ENFILE, ENOBUFS, ENOMEM: return UpstreamError(.internal, detail: detail)
        case ETIMEDOUT: return UpstreamError(.timeout(.connect), detail: detail)
        default: return UpstreamError(.unreachable, detail: detail)
        }
    }

    /// A deadline has passed.
    static func timeout(_ place: String, _ phase: TimeoutPhase) -> UpstreamError {
        let what =
            switch phase {
            case .resolve:
                "the name of \(place) was not resolved in time: check the name servers, or raise timeout.connect"
            case .connect: "no connection to \(place) in time: check that the origin is up, or raise timeout.connect"
            case .firstByte:
                "\(place) took the request and sent no response head in time: raise timeout.first_byte if it is slow"
            case .idle: "\(place) neither sent nor took a byte for too long: raise timeout.idle if it is slow"
            case .total: "the exchange with \(place) took too long: raise timeout.total"
            }
        return UpstreamError(.timeout(phase), detail: what)
    }

    /// - Parameters:
    ///   - address: of the connection, with its port.
    ///   - text: how the connection ended.
    static func closed(_ place: String, _ address: String?, isHeadComplete: Bool, text: String) -> UpstreamError {
        let address = address.map { " at \($0)" } ?? ""
        let what =
            isHeadComplete ? "within the body: \(text)" : "before a response head: \(text); see its log"
        return UpstreamError(
            isHeadComplete ? .truncated : .closed,
            detail: "\(place)\(address) ended the connection \(what)",
            told: "\(place) ended the connection \(what)"
        )
    }
}
