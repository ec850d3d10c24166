// The credentials of a service, and TLS to its origin: certificates and keys of both sides.

extension KeyTable {
    static let basic = SectionDescriptor(
        name: "basic",
        keys: [
            KeyDescriptor("user", .text(.userName), "The user name, without a colon.", required: true),
            KeyDescriptor("password", .text(.fieldValue), "The password.", secret: true, required: true),
        ],
        replaces: true
    )

    static let auth = SectionDescriptor(
        name: "auth",
        keys: [
            KeyDescriptor("bearer", .text(.bearerToken), "A bearer token.", inherited: .services, secret: true),
            KeyDescriptor("basic", .section(basic), "A user and a password.", inherited: .services),
        ],
        replaces: true
    )

    static let tls = SectionDescriptor(
        name: "tls",
        keys: [
            KeyDescriptor(
                "verify",
                .boolean,
                default: "true",
                "Whether the origin's certificate is checked.",
                inherited: .services
            ),
            KeyDescriptor(
                "ca",
                .path,
                "A file of certificate authorities (PEM) that replaces the system's.",
                inherited: .services
            ),
            KeyDescriptor(
                "client_cert",
                .path,
                "The client certificate (PEM); it needs client_key.",
                inherited: .services
            ),
            KeyDescriptor(
                "client_key",
                .path,
                "The key of the client certificate (PEM); it needs client_cert.",
                inherited: .services
            ),
            KeyDescriptor(
                "pin",
                .oneOrMore(.text(.publicKeyPin)),
                "The public key that the origin must have, or a list of which it must have one: sha256//BASE64, as for curl --pinnedpubkey.",
                inherited: .services
            ),
        ]
    )
}

/// Credentials that the daemon adds to requests.
package enum AuthConfiguration: Sendable, Hashable {
    case bearer(String)
    case basic(user: String, password: String)
    /// No credentials, not even those of the service; for endpoints only.
    case withheld

    /// Whether credentials are added to requests.
    package var addsCredentials: Bool { self != .withheld }
}

/// The settings of TLS to the origin.
package struct TLSConfiguration: Sendable, Equatable {
    /// Whether the origin's certificate is verified. Default: true.
    package var verify: Bool
    /// The absolute path of a PEM bundle that replaces the system's; nil for the system's.
    package var ca: String?
    /// The absolute path of the client certificate in PEM; present if `clientKey` is.
    package var clientCert: String?
    /// The absolute path of the client's key in PEM; present if `clientCert` is.
    package var clientKey: String?
    /// The public keys of which the origin must have one, as `sha256//BASE64`; empty for any key.
    package var pins: [String]
}

extension TLSConfiguration {
    package init() { self.init(SectionReader(nothingOf: KeyTable.tls)) }

    init(_ reader: SectionReader) {
        verify = reader.bool("verify")
        ca = reader.text("ca")
        clientCert = reader.text("client_cert")
        clientKey = reader.text("client_key")
        pins = reader.texts("pin")
    }
}

extension Resolver {
    mutating func auth(_ service: SectionReader) -> AuthConfiguration? {
        let reader = service.section("auth")
        let basic = reader.section("basic")
        switch (reader.text("bearer"), reader.entry("basic")) {
        case (let token?, nil): return .bearer(token)
        case (nil, _?):
            guard let user = basic.text("user"), let password = basic.text("password") else { return nil }
            return .basic(user: user, password: password)
        case (_?, _?):
            let second = reader.entries.last?.position ?? position(service, "auth")
            fail(second, "'auth' takes bearer or basic, not both; remove one")
            return nil
        case (nil, nil):
            if let position = service.position("auth") {
                fail(position, "'auth' is empty; write { bearer: \"${TOKEN}\" }, or remove it")
            }
            return nil
        }
    }

    /// Reads and checks the credentials of an endpoint.
    /// - Parameter endpoint: the endpoint without inherited keys.
    mutating func endpointAuth(_ endpoint: SectionReader) -> AuthConfiguration? {
        let reader = endpoint.section("auth")
        guard reader.text("mode") != nil else { return auth(endpoint) }
        if reader.entries.count > 1 {
            fail(position(reader, "mode"), "'auth' takes none or credentials, not both; remove one")
        }
        return .withheld
    }

    /// Reads and checks the settings of TLS.
    /// - Parameter own: the service without inherited keys.
    mutating func tls(_ service: SectionReader, own: SectionReader, _ baseURL: BaseURL?) -> TLSConfiguration {
        let reader = service.section("tls")
        let result = TLSConfiguration(reader)
        for (key, path) in [("ca", result.ca), ("client_cert", result.clientCert), ("client_key", result.clientKey)] {
            guard let path, let problem = FileChecks.readable(path) else { continue }
            fail(position(reader, key), file: "'tls.\(key)' \(problem)")
        }
        if (result.clientCert == nil) != (result.clientKey == nil) {
            let (given, other) =
                result.clientCert == nil ? ("client_key", "client_cert") : ("client_cert", "client_key")
            fail(position(reader, given), "'tls.\(given)' needs 'tls.\(other)', too")
        }
        if !result.pins.isEmpty, baseURL.map({ !$0.isSecure }) ?? false,
            let position = own.section("tls").position("pin")
        {
            fail(position, "'tls.pin' is for an origin that is asked by https; correct 'base_url', or remove the pin")
        }
        return result
    }
}
