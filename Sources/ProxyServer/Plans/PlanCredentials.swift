// Credentials that a service adds to requests: which configuration makes it one that web pages may not use.

import Configuration
import Content

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
