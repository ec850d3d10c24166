// Who may ask a service, as plans: access rules, cross-origin rules, the credentials that a service adds, and the web origins
// that it shares with its neighbours.

import Configuration
import Content
import HTTPWire
import ServiceCore

extension AccessRules {
    init(_ service: ServiceConfiguration) {
        self.init(
            allow: service.allow.enumerated().map { AccessRule($1, "allow[\($0)]") },
            deny: service.deny.enumerated().map { AccessRule($1, "deny[\($0)]") }
        )
    }
}

extension AccessRule {
    /// - Parameter position: of the rule in its list.
    fileprivate init(_ rule: AccessConfiguration, _ position: String) {
        self.init(
            name: rule.name.map { "\(position) (\($0))" } ?? position,
            methods: rule.methods.map { Method($0) },
            path: rule.path.map { PathPattern($0) },
            fields: rule.fields.map { field in
                FieldCondition(name: field.name, value: field.value == "*" ? nil : field.value)
            }
        )
    }
}

extension CrossOriginRules {
    init(_ cors: CORSConfiguration) {
        self.init(
            origins: cors.origins,
            exposed: cors.expose,
            allowsCredentials: cors.credentials,
            allowsPrivateNetwork: cors.privateNetwork
        )
    }
}

extension PathPattern {
    init(_ path: EndpointPath) {
        self.init(
            segments: path.segments.map { segment in
                switch segment {
                case .literal(let text): .literal(Array(text.utf8))
                case .parameter(let name): .parameter(name)
                case .rest: .rest
                }
            }
        )
    }
}

/// The settings of a service that give its requests rights which the client has not (Documentation/guide/web-pages.md).
enum Credentials {
    /// `auth`, a client certificate, or a field or query item that carries a secret, for the service or an endpoint.
    static func areAdded(by service: ServiceConfiguration) -> Bool {
        let hasOwn = service.endpoints.contains { endpoint in
            endpoint.auth?.addsCredentials == true || endpoint.request?.body?.hasSecrets == true
        }
        if hasOwn { return true }
        if service.auth != nil || service.tls.clientCert != nil || !query(of: service).isEmpty { return true }
        return ([service.headers] + service.endpoints.map(\.headers)).contains { rules in
            (rules.set + rules.add).contains { SecretNames.contains($0.name) }
        }
    }

    /// The secret query items of a service and of its endpoints.
    static func query(of service: ServiceConfiguration) -> [QueryRule] {
        ([service.query] + service.endpoints.map(\.query)).flatMap { $0.filter(\.isSecret) }
    }
}

/// The facts about other services that the plan of a service depends on.
struct Neighbours {
    /// Services that are matched by their prefix alone.
    private let prefixCount: Int
    /// Services by their host.
    private let hostCounts: [String: Int]
    /// Hosts whose services leave some paths to services that have a prefix and no host.
    private let sharedHosts: Set<String>
    /// Services that get requests, directly or through others, from a service with secret query items.
    let askedInSecret: Set<String>

    init(_ configuration: Configuration) {
        let matches = configuration.services.map(\.match)
        prefixCount = matches.count { $0.host == nil }
        hostCounts = Dictionary(matches.compactMap { match in match.host.map { ($0, 1) } }, uniquingKeysWith: +)
        sharedHosts = Set(matches.compactMap { $0.prefix == nil ? nil : $0.host })
            .subtracting(matches.compactMap { $0.prefix == nil ? $0.host : nil })
        var asked: Set<String> = []
        for service in configuration.services where !Credentials.query(of: service).isEmpty {
            var next = service
            while case .service(let name)? = next.baseURL, let inner = configuration.service(named: name),
                asked.insert(name).inserted
            {
                next = inner
            }
        }
        askedInSecret = asked
    }

    /// Whether pages of other services are of the same web origin to a browser.
    func shareWebOrigin(_ match: ServiceMatch) -> Bool {
        guard let host = match.host else { return prefixCount > 1 || !sharedHosts.isEmpty }
        return hostCounts[host, default: 0] > 1 || sharedHosts.contains(host) && prefixCount > 0
    }
}
