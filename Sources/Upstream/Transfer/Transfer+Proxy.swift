// What a proxy on the way to the origin changes for a transfer.

import HTTPWire

extension Transfer {
    /// Where its connection may lead: what the rules say of the origin does not concern a proxy that the configuration
    /// names.
    var dialRules: TargetRules { destination?.proxy == nil ? request.terms.target : .any }

    /// Its proxy is asked for the URL as a whole (RFC 9112 section 3.2.2), and not for a tunnel.
    var asksProxy: Bool {
        guard let destination, destination.proxy != nil else { return false }
        return !destination.isTLS && !request.isUpgrade
    }

    /// What its proxy is asked for a tunnel with; nil: no tunnel of Drydock's own is needed.
    var tunnel: TunnelRequest? {
        guard let destination, let proxy = destination.proxy, request.isUpgrade else { return nil }
        return TunnelRequest(proxy, to: destination.url.host, destination.url.port, via: request.fields.all(.via))
    }
}
