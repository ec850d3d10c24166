// Addresses to listen on, rules for clients, base URLs, and paths of endpoints.

package import EventLoop
import Matching

/// The parser of plain decimal digits, without sign, space or underscore.
enum Digits {
    static func parse(_ text: some StringProtocol) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
        return Int(text)
    }
}

/// The target of a service's requests.
package enum BaseURL: Sendable, Hashable {
    case origin(OriginURL)
    /// The name of another service of this configuration, which answers in process.
    case service(String)

    /// Whether requests are sent by https.
    var isSecure: Bool { if case .origin(let url) = self { url.scheme == "https" } else { false } }
}

/// An absolute http or https URL without query, fragment and user information.
package struct OriginURL: Sendable, Hashable, CustomStringConvertible {
    /// The scheme in lower case, `http` or `https`.
    package let scheme: String
    /// The host in lower case; an IPv6 address keeps its brackets.
    package let host: String
    /// The port; nil for the scheme's default.
    package let port: UInt16?
    /// The path, which is empty, or begins with `/` and does not end with one.
    package let path: String

    package init(scheme: String, host: String, port: UInt16?, path: String) {
        self.scheme = scheme
        self.host = host
        self.port = port
        self.path = path
    }

    /// The authority `host[:port]`, as in a Host field.
    package var authority: String { port.map { "\(host):\($0)" } ?? host }

    /// The URL without a slash at its end, so that a path can be appended.
    package var description: String { "\(scheme)://\(authority)\(path)" }
}

/// A path pattern such as `/users/:id` or `/files/*`.
package struct EndpointPath: Sendable, Hashable, CustomStringConvertible {
    package enum Segment: Sendable, Hashable {
        /// A segment that is compared byte for byte.
        case literal(String)
        /// A parameter with this name: one segment that is not empty.
        case parameter(String)
        /// The rest of the path, with slashes; it may be empty. Only at the end of a pattern.
        case rest
    }

    /// The pattern in the form of a configuration file.
    package let description: String
    /// The segments of the pattern; empty for `/`.
    package let segments: [Segment]

    /// The names of the pattern's parameters.
    var parameters: [String] {
        segments.compactMap { if case .parameter(let name) = $0 { name } else { nil } }
    }

    /// The pattern with anonymous parameters: two patterns of the same shape match the same paths.
    var shape: String {
        segments.map { segment in
            switch segment {
            case .literal(let text): "/" + text
            case .parameter: "/:"
            case .rest: "/*"
            }
        }.joined()
    }
}

/// How clients speak at an address.
package enum ListenScheme: String, Sendable, Hashable, CaseIterable {
    /// Plain.
    case http
    case https
    /// TLS if the first byte of a client begins it, and else plain.
    case any
}

/// An address at which clients connect, and how they speak there.
package struct ListenPoint: Sendable, Hashable, CustomStringConvertible {
    package var address: ListenAddress
    /// Default: http.
    package var scheme: ListenScheme

    package init(_ address: ListenAddress, scheme: ListenScheme = .http) {
        self.address = address
        self.scheme = scheme
    }

    /// As the configuration file writes it.
    package var description: String { scheme == .http ? "\(address)" : "\(scheme.rawValue)://\(address)" }
}

enum Addresses {
    /// Parses a listen address: `ADDRESS:PORT`, `[IPV6]:PORT`, `localhost:PORT`, `:PORT` or `*:PORT` for all addresses,
    /// or `unix:/PATH`.
    static func listen(_ text: String) throws(ScalarProblem) -> ListenAddress {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard path.hasPrefix("/"), !path.hasSuffix("/") else {
                throw ScalarProblem(
                    "'\(text)' is not the absolute path of a socket; write unix:/run/drydock/proxy.sock"
                )
            }
            guard path.utf8.count <= 107 else {
                throw ScalarProblem(
                    "the path has \(path.utf8.count) bytes, but a unix socket's path may have only 107; choose a shorter one"
                )
            }
            return .unix(path: path)
        }
        let help =
            "write ADDRESS:PORT such as 127.0.0.1:8080 or [::1]:8080, localhost:PORT, :PORT for all addresses, or unix:/PATH"
        if Digits.parse(text) != nil { throw ScalarProblem("an address needs a host; write localhost:\(text)") }
        guard let colon = text.lastIndex(of: ":") else { throw ScalarProblem("'\(text)' has no port; \(help)") }
        guard let port = Digits.parse(text[text.index(after: colon)...]).flatMap({ UInt16(exactly: $0) }) else {
            throw ScalarProblem("'\(text)' does not end in a port; \(help)")
        }
        let host = String(text[..<colon])
        if host.lowercased() == "localhost" { return .tcp(host: "localhost", port: port) }
        if host.isEmpty || host == "*" { return .tcp(host: "*", port: port) }
        let bracketed = host.hasPrefix("[") && host.hasSuffix("]")
        let bare = bracketed ? String(host.dropFirst().dropLast()) : host
        guard let bytes = AddressBytes.parse(bare), bracketed == (bytes.count == 16) else {
            throw ScalarProblem("'\(host)' is not an IP address; \(help)")
        }
        return .tcp(host: bare, port: port)
    }

    /// An address, after `http://`, `https://` or `any://` if they are there.
    static func listener(_ text: String) throws(ScalarProblem) -> ListenPoint {
        for scheme in ListenScheme.allCases where text.hasPrefix("\(scheme.rawValue)://") {
            let address = try listen(String(text.dropFirst(scheme.rawValue.utf8.count + 3)))
            guard scheme == .http || !address.isUnix else {
                throw ScalarProblem("'\(text)' is a unix socket, where clients speak plain; write \(address)")
            }
            return ListenPoint(address, scheme: scheme)
        }
        return ListenPoint(try listen(text))
    }

    /// `loopback`, `any`, an address or a network.
    static func client(_ text: String) throws(ScalarProblem) -> ClientRule {
        if text == "loopback" { return .loopback }
        if text == "any" { return .any }
        guard let network = NetworkPrefix(text) else {
            if text.contains("/"), AddressBytes.parse(String(text.prefix { $0 != "/" })) != nil {
                throw ScalarProblem(
                    "'\(text)' is not a network; the prefix length must be valid, and the bits after it must be zero, as in 192.168.0.0/16"
                )
            }
            let near = Suggestions.nearest(to: text, among: ["loopback", "any"]).map { "; did you mean '\($0)'?" }
            throw ScalarProblem(
                "'\(text)' is not a client rule\(near ?? "; write loopback, any, an IP address, or a network such as 192.168.0.0/16")"
            )
        }
        return .network(network)
    }

    /// Parses a base URL: `http://…`, `https://…` or `service:NAME`.
    static func baseURL(_ text: String) throws(ScalarProblem) -> BaseURL {
        if text.hasPrefix("service:") {
            return .service(try TextRule.word.check(String(text.dropFirst(8))))
        }
        guard let origin = try origin(text) else {
            throw ScalarProblem("'\(text)' is not a base URL; write http://HOST, https://HOST or service:NAME")
        }
        return .origin(origin)
    }

    /// Parses the URL of a collector, below which spans are sent to `/v1/traces`.
    static func collector(_ text: String) throws(ScalarProblem) -> OriginURL {
        // The user and the password are checked first, so that no other message prints a password.
        guard !text.contains("@"), !text.contains("?"), !text.contains("#") else {
            throw ScalarProblem(
                "a collector is asked without a user, a password, a query or a fragment; write http://HOST:4318, and let a collector there pass spans on to who needs them"
            )
        }
        guard let url = try origin(text) else {
            throw ScalarProblem(
                "'\(text)' is not the URL of a collector; write http://HOST:4318 or https://HOST, or remove the key, and tracing is off"
            )
        }
        guard !url.path.hasSuffix("/v1/traces") else {
            throw ScalarProblem("'/v1/traces' is added to the URL of a collector; leave it out")
        }
        return url
    }

    /// Parses an origin, `http://…` or `https://…`; nil for a text with another beginning.
    static func origin(_ text: String) throws(ScalarProblem) -> OriginURL? {
        guard let scheme = ["https", "http"].first(where: { text.lowercased().hasPrefix($0 + "://") }) else {
            return nil
        }
        let rest = text.dropFirst(scheme.utf8.count + 3)
        let authority = rest.prefix { $0 != "/" }
        // The user and the password are checked first, so that no other message prints a password.
        guard !authority.contains("@") else {
            throw ScalarProblem("a base URL must not contain a user and a password; put them under 'auth'")
        }
        guard text.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 92 }) else {
            throw ScalarProblem("'\(text)' contains a character that must be percent-encoded")
        }
        guard !text.contains("?"), !text.contains("#") else {
            throw ScalarProblem("a base URL must not contain a query or a fragment; put query items under 'query'")
        }
        var path = String(rest.dropFirst(authority.count))
        while path.hasSuffix("/") { path.removeLast() }
        var host = String(authority)
        var port: UInt16?
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            host = String(authority[..<colon])
            guard
                let number = Digits.parse(authority[authority.index(after: colon)...]).flatMap({ UInt16(exactly: $0) }),
                number > 0
            else { throw ScalarProblem("'\(authority)' does not end in a port; write 1 to 65535") }
            port = number == (scheme == "http" ? 80 : 443) ? nil : number
        }
        guard let known = TextRule.host(host) else {
            throw ScalarProblem("'\(host)' is not a host; write a name or an IP address")
        }
        return OriginURL(scheme: scheme, host: known, port: port, path: path)
    }

    /// The name of a parameter that is written in braces, as other tools have it; nil if there is none. URIs have no
    /// braces (RFC 3986 section 2).
    static func braced(_ text: some StringProtocol) -> String? {
        guard let open = text.firstIndex(of: "{") else { return nil }
        let name = text[open...].dropFirst().prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        return !name.isEmpty && text[name.endIndex...].hasPrefix("}") ? String(name) : nil
    }

    /// Parses a path pattern, such as `/users/:id` or `/files/*`.
    static func endpointPath(_ text: String) throws(ScalarProblem) -> EndpointPath {
        guard text.hasPrefix("/") else { throw ScalarProblem("a path must begin with a slash; write /\(text)") }
        if text == "/" { return EndpointPath(description: text, segments: []) }
        let parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        var segments: [EndpointPath.Segment] = []
        var names: Set<Substring> = []
        for (index, part) in parts.enumerated() {
            if part == "*" {
                guard index == parts.count - 1 else {
                    throw ScalarProblem("'*' matches the rest of a path, so it must be at the end")
                }
                segments.append(.rest)
            } else if part.hasPrefix(":") {
                let name = part.dropFirst()
                guard !name.isEmpty, name.utf8.allSatisfy({ TextRule.isAlphanumeric($0) || $0 == 95 }) else {
                    throw ScalarProblem("'\(part)' is not a parameter; write a colon and a name, such as :id")
                }
                guard names.insert(name).inserted else {
                    throw ScalarProblem("the parameter ':\(name)' occurs twice; rename one")
                }
                segments.append(.parameter(String(name)))
            } else if let name = braced(part) {
                throw ScalarProblem(
                    "'\(part)' has a parameter of another tool; a parameter is a whole segment, written :\(name)"
                )
            } else {
                guard part != ".", part != "..", !part.contains("*"),
                    part.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 35 && $0 != 63 })
                else {
                    throw ScalarProblem(
                        "'\(part)' is not a path segment; leave out dots, '?' and '#', percent-encode what is not ASCII, and put '*' alone at the end"
                    )
                }
                segments.append(.literal(String(part)))
            }
        }
        return EndpointPath(description: text, segments: segments)
    }
}
