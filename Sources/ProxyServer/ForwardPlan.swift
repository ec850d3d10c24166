// Forward mode: which targets a client may be forwarded to, and under which policy.

internal import Configuration
internal import EventLoop
package import HTTPWire
package import ServiceCore
package import Upstream

/// The rules of forward mode (http proxy by absolute-form, and CONNECT).
package struct ForwardPlan: Sendable {
    /// How a target was allowed.
    package enum Verdict: Sendable, Equatable {
        /// A rule names the host or its domain, so that it may be an internal one.
        case named
        /// Only `*` allows it: internal addresses stay refused, whatever its name resolves to.
        case anyPublic
        case refused
    }

    private let allow: [HostPattern]
    private let connect: [(host: HostPattern, port: UInt16?)]
    package let request: RequestPlan
    package let shape: UInt64
    /// Which targets say all of their key.
    let hotKey: HotKey
    package let runtime: ServiceRuntime
    package let tls: TLSOptions

    init(_ configuration: ForwardConfiguration, request: RequestPlan, shape: UInt64, runtime: ServiceRuntime) {
        allow = configuration.allow.map(HostPattern.init)
        connect = configuration.connectAllow.map { rule in
            let colon = rule.lastIndex(of: ":") ?? rule.endIndex
            return (HostPattern(String(rule[..<colon])), UInt16(rule[colon...].dropFirst()))
        }
        self.request = request
        self.shape = shape
        hotKey = HotKey(request.key)
        self.runtime = runtime
        tls = TLSOptions()
    }

    package func verdict(host: String) -> Verdict { Self.verdict(allow.filter { $0.matches(host) }) }

    /// CONNECT needs a rule for host and port, and a host that forward mode allows.
    package func verdict(connect authority: Authority) -> Verdict {
        guard let port = authority.port else { return .refused }
        let byPort = connect.filter { ($0.port == nil || $0.port == port) && $0.host.matches(authority.host) }
        let byHost = allow.filter { $0.matches(authority.host) }
        if byPort.isEmpty || byHost.isEmpty && byPort.allSatisfy({ $0.host.isEveryHost }) { return .refused }
        return Self.verdict(byPort.map(\.host) + byHost)
    }

    private static func verdict(_ matching: [HostPattern]) -> Verdict {
        if matching.isEmpty { return .refused }
        return matching.contains { $0.isOneHost } ? .named : .anyPublic
    }
}

/// `*`, `*.example.com`, `example.com`, or an address.
struct HostPattern: Sendable, Equatable {
    private let pattern: String

    init(_ pattern: String) { self.pattern = Self.canonical(pattern.lowercased()) }

    var isEveryHost: Bool { pattern == "*" }

    /// The rule names one host. A rule for all names below a domain does not: whoever has such a name resolved decides
    /// where it leads.
    var isOneHost: Bool { !pattern.hasPrefix("*") }

    /// - Parameter host: in lower case.
    func matches(_ host: String) -> Bool {
        if pattern == "*" { return true }
        let host = Self.canonical(host)
        if pattern.hasPrefix("*.") {
            return host.hasSuffix(pattern.dropFirst(1)) && host.utf8.count >= pattern.utf8.count
        }
        return host == pattern
    }

    /// One spelling of a host: addresses as the system prints them, names without the root's dot.
    private static func canonical(_ host: String) -> String {
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let bare = isBracketed ? String(host.dropFirst().dropLast()) : host
        // The system takes a lone star for a loopback address.
        if bare.hasPrefix("*") { return bare }
        if let address = SystemResolver.numeric(bare, port: 0) { return address.host }
        return bare.hasSuffix(".") ? String(bare.dropLast()) : bare
    }
}
