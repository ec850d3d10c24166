// One service of the configuration, with what it inherited.

import Content
package import Policies
package import Upstream

/// A service: where its requests are matched, where they go, and what happens to them on the way.
@dynamicMemberLookup
package struct ServiceConfiguration: Sendable, Equatable {
    /// Unique among the services.
    package var name: String
    package var match: ServiceMatch
    /// Host patterns under which a service that is matched by its prefix alone answers, besides localhost, the listen
    /// addresses and the machine's own names: a name, `*.DOMAIN` or an address, in lower case. Default: the daemon's.
    package var hosts: [String] = []
    /// Where requests go; nil only where every answer is a demo.
    package var baseURL: BaseURL?
    /// Which Host the origin sees. Default: that of `base_url`.
    package var host: HostPolicy
    package var auth: AuthConfiguration?
    /// Those that its endpoints inherit.
    package var settings: RouteSettings
    /// Fills in flight at once; nil: no limit.
    package var maxConcurrent: Int?
    package var maxQueue: QueueConfiguration
    /// When the origin is left alone; nil: never.
    package var breaker: BreakerPolicy?
    /// Whether calls wait for an origin that is away; nil: none does.
    package var park: ParkPolicy?
    /// The proxies that the origin is reached through. Default: none.
    package var upstreamProxy: UpstreamProxies
    package var tls = TLSConfiguration()
    /// Whether responses that break a rule of HTTP/1.1, but can be read in one way only, are taken. Default: true.
    package var lenient: Bool
    package var cors: CORSConfiguration
    /// Where there are rules, one of them must match a request.
    package var allow: [AccessConfiguration] = []
    /// These win.
    package var deny: [AccessConfiguration] = []
    /// The document that requests are checked by; nil: they are not.
    package var openAPI: OpenAPIConfiguration?
    /// What happens to paths that no endpoint names. Default: pass, or 404 where there is no `base_url`.
    package var unlisted: UnlistedPolicy
    package var endpoints: [EndpointConfiguration] = []
}

/// How requests find their service: by a prefix of the path, by Host, or by both. One of the two is there.
package struct ServiceMatch: Sendable, Hashable, CustomStringConvertible {
    /// A path that begins with `/` and does not end with one, or `/` itself; compared on segment boundaries. Nil for a
    /// service that has all paths of its host.
    package let prefix: String?
    /// A Host value in lower case, without a port; nil for a service that is matched by its prefix alone.
    package let host: String?

    private init(prefix: String?, host: String?) {
        self.prefix = prefix
        self.host = host
    }

    package static func prefix(_ prefix: String) -> ServiceMatch { ServiceMatch(prefix: prefix, host: nil) }

    /// - Parameter prefix: nil and `/` mean the same.
    package static func host(_ host: String, prefix: String? = nil) -> ServiceMatch {
        ServiceMatch(prefix: prefix == "/" ? nil : prefix, host: host)
    }

    /// `/github`, `api.localhost` or `api.localhost/github`.
    package var description: String { (host ?? "") + (prefix ?? "") }
}

/// Where a service's requests go.
package enum BaseURL: Sendable, Hashable {
    case origin(OriginURL)
    /// Another service of this configuration, in process.
    case service(String)

    /// Requests go by https.
    var isSecure: Bool { if case .origin(let url) = self { url.scheme == "https" } else { false } }
}

/// An absolute http or https URL without query, fragment and user information.
package struct OriginURL: Sendable, Hashable, CustomStringConvertible {
    /// `http` or `https`.
    package let scheme: String
    /// In lower case; an IPv6 address keeps its brackets.
    package let host: String
    /// Nil for the scheme's default port.
    package let port: UInt16?
    /// Empty, or begins with `/` and does not end with one.
    package let path: String

    package init(scheme: String, host: String, port: UInt16?, path: String) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path
    }

    /// `host[:port]`, as a Host field holds it.
    package var authority: String { port.map { "\(host):\($0)" } ?? host }

    /// The URL without a slash at its end, so that a path can be appended.
    package var description: String { "\(scheme)://\(authority)\(path)" }
}

/// Which Host the origin sees.
package enum HostPolicy: String, Sendable, CaseIterable {
    case baseURL = "base_url"
    case preserve
}

/// What happens to paths that no endpoint names.
package enum UnlistedPolicy: String, Sendable, CaseIterable {
    case pass
    case notFound = "404"
}

/// One field name with one value.
package struct HeaderValue: Sendable, Hashable {
    /// A token (RFC 9110 section 5.6.2), as the file spells it.
    package let name: String
    package let value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// What happens to fields with an underscore in their name.
package enum UnderscorePolicy: String, Sendable, CaseIterable {
    case pass, drop
}

/// The changes of a request's fields, in the order underscore, remove, set, add.
package struct HeaderRules: Sendable, Equatable {
    package var underscore: UnderscorePolicy
    package var set: [HeaderValue]
    package var add: [HeaderValue]
    package var remove: [String]

    package var isEmpty: Bool { self.set.isEmpty && add.isEmpty && remove.isEmpty && underscore == .pass }
}

/// A query name with its values.
package struct QueryRule: Sendable, Hashable {
    package let name: String
    /// In the order of the file; as written, not yet percent-encoded.
    package let values: [String]
    /// It has credentials: requests of foreign web pages are refused, and the value is never shown.
    /// Default: decided by its name.
    package let isSecret: Bool

    package init(name: String, values: [String], isSecret: Bool? = nil) {
        self.name = name
        self.values = values
        self.isSecret = isSecret ?? SecretNames.contains(name)
    }
}

/// Credentials that the daemon adds to requests.
package enum AuthConfiguration: Sendable, Hashable {
    case bearer(String)
    case basic(user: String, password: String)
    /// None, not even those of the service; endpoints only.
    case withheld

    /// Whether something is added to a request.
    package var addsCredentials: Bool { self != .withheld }
}

/// The queue in front of `max_concurrent`.
package struct QueueConfiguration: Sendable, Equatable {
    /// Fills that may wait. Default: 100.
    package var length: Int
    /// Nanoseconds that one may wait. Default: 5 s.
    package var wait: UInt64
}

/// TLS towards the origin.
package struct TLSConfiguration: Sendable, Equatable {
    /// Default: true.
    package var verify: Bool
    /// The absolute path of a PEM bundle that replaces the system's; nil: the system's.
    package var ca: String?
    /// The absolute path of a PEM certificate; comes with `clientKey`.
    package var clientCert: String?
    /// The absolute path of a PEM key; comes with `clientCert`.
    package var clientKey: String?
    /// Public keys of which the origin must have one, as `sha256//BASE64`; empty: any.
    package var pins: [String]
}
