// Credentials that a service adds to requests: which configuration makes it one that web pages may not use,
// and how Basic is written.

import Configuration

/// What in a service's configuration gives its requests rights that the client has not (http-rules.md 42).
enum Credentials {
    /// `auth`, a client certificate, or a field or query item that carries a secret, for the service or an endpoint.
    static func areAdded(by service: ServiceConfiguration) -> Bool {
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

/// Base64 (RFC 4648 section 4), for Basic credentials.
enum Base64 {
    static func encode(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.enumerated().reduce(UInt32(0)) { $0 | UInt32($1.element) << (16 - 8 * UInt32($1.offset)) }
            for position in 0..<4 {
                let isPadding = position > group.count
                text.append(isPadding ? "=" : alphabet[Int(bits >> (18 - 6 * UInt32(position)) & 63)])
            }
        }
        return text
    }
}
