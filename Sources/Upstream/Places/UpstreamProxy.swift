// An HTTP proxy on the way to origins, and how it fails.

import HTTPWire

/// An HTTP proxy through which origins are reached; compared by value. It is an object, so that terms copy one
/// reference.
///
/// Sendable: nothing in it changes.
package final class UpstreamProxy: Sendable, Hashable {
    /// Lower case; an IPv6 address keeps its brackets.
    package let host: String
    package let port: UInt16
    /// The value of Proxy-Authorization, which is a secret; nil: the proxy gets none.
    let authorization: String?

    /// - Parameter credentials: sent by the scheme Basic (RFC 7617), whether the proxy asks for them or not.
    package init(host: String, port: UInt16, credentials: (user: String, password: String)? = nil) {
        self.host = host
        self.port = port
        authorization = credentials.map { "Basic " + Base64.encode(Array("\($0.user):\($0.password)".utf8)) }
    }

    /// Host and port, for messages; never the credentials.
    package var place: String { "\(host):\(port)" }

    package static func == (one: UpstreamProxy, other: UpstreamProxy) -> Bool {
        one === other
            || one.port == other.port && one.host == other.host && one.authorization == other.authorization
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
    }
}

extension UpstreamError {
    /// The same of a proxy's name, which is not the one that was asked for.
    func of(_ proxy: UpstreamProxy) -> UpstreamError {
        UpstreamError(kind, detail: "the proxy \(proxy.place) cannot be asked: \(detail)")
    }
}

extension UpstreamProxy {
    /// The proxy refused a tunnel, or, with 407, a request.
    /// - Parameter origin: host and port.
    func refusal(of origin: String, status: Int) -> UpstreamError {
        let what =
            switch status {
            case 407 where authorization == nil:
                "wants credentials for the way to \(origin) (407): write upstream_proxy: http://USER:PASSWORD@\(place)"
            case 407:
                "does not take the user and the password that it gets for the way to \(origin) (407): correct them in upstream_proxy"
            case 508:
                "has had the request to \(origin) before (508): it leads back to this daemon; correct upstream_proxy"
            case 500...: "did not reach \(origin) (\(status)): see its log"
            default:
                "refuses the way to \(origin) (\(status)): have it allowed there, or write upstream_proxy: none where it is not needed"
            }
        return UpstreamError(.proxy(status), detail: "the proxy \(place) \(what)")
    }

    /// The proxy was asked for a tunnel, and ended the connection or said something that is no answer.
    func silence(about origin: String, _ text: String) -> UpstreamError {
        UpstreamError(.proxy(nil), detail: "the proxy \(place) opened no way to \(origin): \(text); see its log")
    }
}
