// Forward mode: the targets that clients may reach, and the policy for them.

import EventLoop
package import HTTPWire
import Upstream

/// The rules of forward mode, for targets in absolute form and for CONNECT.
package struct ForwardPlan: Sendable {
    /// The way in which a target is allowed.
    package enum Verdict: Sendable, Equatable {
        /// A rule names this one host, so that internal addresses are allowed.
        case named
        /// Only rules for several hosts allow the target, `*` or `*.example.com`: internal addresses are refused, whatever
        /// its name resolves to.
        case anyPublic
        case refused
    }

    private let allow: [TargetPattern]
    private let connect: [TargetPattern]
    /// Which tunnels are read.
    package let interception: InterceptionRules
    /// The route of forward mode, whose requests name their origin.
    package let route: ServiceRoute

    /// Makes the rules.
    /// - Parameters:
    ///   - allow: the patterns of hosts that may be reached, such as `example.com` or `*.example.com:8443`.
    ///   - connect: the patterns for CONNECT and https.
    ///   - interception: the tunnels that are read; none by default.
    package init(
        allow: [String],
        connect: [String],
        interception: InterceptionRules = InterceptionRules(),
        route: ServiceRoute
    ) {
        self.allow = allow.map(TargetPattern.init)
        self.connect = connect.map(TargetPattern.init)
        self.interception = interception
        self.route = route
    }

    package func verdict(host: String, port: UInt16) -> Verdict {
        Self.verdict(allow.filter { $0.matches(host, port) }.map(\.host))
    }

    /// The verdict on the target of CONNECT, or of an https URL in absolute form: it needs a rule of `connect`, and, if
    /// all such rules are for every host, one of `allow` as well.
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

/// The tunnels that the daemon reads, and answers in.
package struct InterceptionRules: Sendable {
    private let hosts: [(text: String, pattern: TargetPattern)]
    private let except: [(text: String, pattern: TargetPattern)]

    /// - Parameters:
    ///   - hosts: the patterns of the targets whose tunnels are read.
    ///   - except: those of targets whose tunnels are not, whatever `hosts` says.
    package init(hosts: [String] = [], except: [String] = []) {
        self.hosts = hosts.map { ($0, TargetPattern($0)) }
        self.except = except.map { ($0, TargetPattern($0)) }
    }

    /// What the rules say of a target.
    package enum Ruling: Sendable, Equatable {
        /// The tunnel is read, by this pattern of `hosts`.
        case read(_ pattern: String)
        /// It is not, by this pattern of `except`.
        case excepted(_ pattern: String)
        /// No pattern is for it.
        case unnamed
    }

    package func ruling(on authority: Authority) -> Ruling {
        guard !hosts.isEmpty else { return .unnamed }
        let port = authority.port ?? 443
        guard let read = hosts.first(where: { $0.pattern.matches(authority.host, port) }) else { return .unnamed }
        let excepted = except.first { $0.pattern.matches(authority.host, port) }
        return excepted.map { .excepted($0.text) } ?? .read(read.text)
    }
}

/// A pattern of a host, with or without a port: `HOST`, `HOST:PORT` or `HOST:*`; an IPv6 address is in brackets.
package struct TargetPattern: Sendable {
    let host: HostPattern
    private let port: UInt16?

    init(_ rule: String) {
        let colon = rule.hasSuffix("]") ? rule.endIndex : rule.lastIndex(of: ":") ?? rule.endIndex
        host = HostPattern(String(rule[..<colon]))
        port = UInt16(rule[colon...].dropFirst())
    }

    /// Whether a target matches.
    /// - Parameter host: the host in lower case.
    func matches(_ host: String, _ port: UInt16) -> Bool {
        (self.port == nil || self.port == port) && self.host.matches(host)
    }
}

/// A pattern of hosts: `*`, `*.example.com`, `example.com`, or an address.
package struct HostPattern: Sendable, Equatable {
    private let pattern: String

    package init(_ pattern: String) { self.pattern = Self.canonical(pattern.lowercased()) }

    var isEveryHost: Bool { pattern == "*" }

    /// Whether the pattern names one host. A pattern for all names below a domain does not, because the owner of such a
    /// name chooses its address.
    var isOneHost: Bool { !pattern.hasPrefix("*") }

    /// The one host that the pattern names, in lower case; nil for a pattern of several.
    var name: String? { isOneHost ? pattern : nil }

    /// Whether a host matches.
    /// - Parameter host: the host in lower case.
    func matches(_ host: String) -> Bool {
        if pattern == "*" { return true }
        let host = Self.canonical(host)
        if pattern.hasPrefix("*.") {
            return host.hasSuffix(pattern.dropFirst(1)) && host.utf8.count >= pattern.utf8.count
        }
        return host == pattern
    }

    /// The normal spelling of a host: addresses as the system prints them, names without the dot of the DNS root.
    private static func canonical(_ host: String) -> String {
        let isBracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let bare = isBracketed ? String(host.dropFirst().dropLast()) : host
        // The system parses a lone star as a loopback address.
        if bare.hasPrefix("*") { return bare }
        if let address = SystemResolver.numeric(bare, port: 0) { return address.host }
        return bare.hasSuffix(".") ? String(bare.dropLast()) : bare
    }
}
