// Which requests a service answers at all, and which web pages may call it.

/// A rule under `allow` or `deny`: a request matches it if all that it names hold. At least one condition is there.
package struct AccessConfiguration: Sendable, Equatable {
    /// What a refusal calls the rule; nil: only its place in the list.
    package var name: String?
    /// Empty: any.
    package var methods: [String]
    /// Below the service's prefix; nil: any.
    package var path: EndpointPath?
    /// `*` stands for any value.
    package var fields: [HeaderValue]
}

/// Which web pages may call a service.
package struct CORSConfiguration: Sendable, Equatable {
    /// As `scheme://host[:port]`, or `*`.
    package var origins: [String]
    /// Names of response fields.
    package var expose: [String]
    /// Default: false.
    package var credentials: Bool
    /// Default: false.
    package var privateNetwork: Bool
}
