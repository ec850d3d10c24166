// What a program is asked when an origin refuses a request for want of credentials.

import HTTPWire

/// A 401, and what it asks for.
public struct AuthenticationChallenge: Sendable, Hashable {
    /// One of the ways in which the origin wants to be shown credentials (RFC 9110 section 11.6.1).
    public struct Scheme: Sendable, Hashable {
        /// `basic`, `bearer`, in lower case.
        public var name: String
        /// What follows the name where that is no list of parameters.
        public var token: String?
        /// By their names in lower case.
        public var parameters: [String: String]

        /// The realm, where it names one.
        public var realm: String? { parameters["realm"] }

        /// A way with these parameters.
        public init(name: String, token: String? = nil, parameters: [String: String] = [:]) {
            self.name = name
            self.token = token
            self.parameters = parameters
        }
    }

    /// Scheme, host and port, such as `https://example.com:8443`.
    public var origin: String
    /// What its WWW-Authenticate names, in its order.
    public var schemes: [Scheme]
    /// What was shown to it, and refused; nil where nothing was.
    public var refused: Credentials?

    /// A challenge, such as one for the tests of a program.
    public init(origin: String, schemes: [Scheme], refused: Credentials? = nil) {
        self.origin = origin
        self.schemes = schemes
        self.refused = refused
    }
}

extension AuthenticationChallenge {
    init(_ account: Account, _ fields: Fields) {
        self.init(
            origin: account.origin,
            schemes: FieldChallenge.all(in: fields).map {
                Scheme(name: $0.scheme, token: $0.token, parameters: $0.parameters)
            },
            refused: account.credentials
        )
    }
}
