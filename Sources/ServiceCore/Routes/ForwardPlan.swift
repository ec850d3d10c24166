// Forward mode: which targets a client may be forwarded to, and under which policy.

import EventLoop
package import HTTPWire
import Upstream

/// The rules of forward mode (absolute-form targets, and CONNECT).
package struct ForwardPlan: Sendable {
    /// How a target was allowed.
    package enum Verdict: Sendable, Equatable {
        /// A rule names the host or its domain, so that it may be an internal one.
        case named
        /// Only `*` allows it: internal addresses stay refused, whatever its name resolves to.
        case anyPublic
        case refused
    }

    private let allow: [TargetPattern]
    private let connect: [TargetPattern]
    /// The service whose requests name their origin.
    package let route: ServiceRoute

    /// - Parameters:
    ///   - allow: the hosts that may be asked, such as `example.com` or `*.example.com:8443`.
    ///   - connect: the same of CONNECT and https.
    package init(allow: [String], connect: [String], route: ServiceRoute) {
        self.allow = allow.map(TargetPattern.init)
        self.connect = connect.map(TargetPattern.init)
        self.route = route
    }

    package func verdict(host: String, port: UInt16) -> Verdict {
        Self.verdict(allow.filter { $0.matches(host, port) }.map(\.host))
    }

    /// CONNECT, and an https URL in absolute form, needs a rule for host and port, and a target
    /// that forward mode allows.
    package func verdict(connect authority: Authority) -> Verdict {
        guard let port = authority.port else { return .refused }
        let byPort = connect.filter { $0.matches(authority.host, port) }
        let byHost = allow.filter { $0.matches(authority.host, port) }
        if byPort.isEmpty || byHost.isEmpty && byPort.allSatisfy({ $0.host.isEveryHost }) { return .refused }
        return Self.verdict((byPort + byHost).map(\.host))
    }

    private static func verdict(_ matching: [HostPattern]) -> Verdict {
        if matching.isEmpty { return .refused }
        return matching.contains { $0.isOneHost } ? .named : .anyPublic
    }
}

/// A host, and a port where the rule is for one alone: `HOST`, `HOST:PORT` or `HOST:*`, an IPv6 address in brackets.
package struct TargetPattern: Sendable {
    let host: HostPattern
    private let port: UInt16?

    init(_ rule: String) {
        let colon = rule.hasSuffix("]") ? rule.endIndex : rule.lastIndex(of: ":") ?? rule.endIndex
        host = HostPattern(String(rule[..<colon]))
        port = UInt16(rule[colon...].dropFirst())
    }

    /// - Parameter host: in lower case.
    func matches(_ host: String, _ port: UInt16) -> Bool {
        (self.port == nil || self.port == port) && self.host.matches(host)
    }
}

/// `*`, `*.example.com`, `example.com`, or an address.
package struct HostPattern: Sendable, Equatable {
    private let pattern: String

    package init(_ pattern: String) { self.pattern = Self.canonical(pattern.lowercased()) }

    var isEveryHost: Bool { pattern == "*" }

    /// The rule names one host. A rule for all names below a domain does not: the owner of any such name chooses its
    /// address.
    var isOneHost: Bool { !pattern.hasPrefix("*") }

    /// The one host that the rule names, in lower case; nil for a rule for several.
    var name: String? { isOneHost ? pattern : nil }

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
