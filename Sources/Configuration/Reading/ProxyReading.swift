// The proxies that origins are reached through: a URL, or what the variables of the environment say.

import Upstream

enum ProxyReading {
    /// Parses the value of `upstream_proxy`: `none`, `env`, or `http://[USER:PASSWORD@]HOST:PORT`.
    /// - Parameter environment: the variables for `env`.
    static func proxies(_ text: String, _ environment: [String: String]) throws(ScalarProblem) -> UpstreamProxies {
        switch text {
        case "none": return .none
        case "env": return try variables(environment)
        default: return .one(try proxy(text))
        }
    }

    /// The text of a proxy without its user and password, for output.
    static func masked(_ text: String) -> String {
        guard let at = text.lastIndex(of: "@") else { return text }
        let scheme = text.firstRange(of: "://").map { text[..<$0.upperBound] } ?? ""
        return scheme + "(hidden)" + text[at...]
    }

    // MARK: - The environment

    /// Reads the variables as curl does: lower case first, then upper case, except for HTTP_PROXY, which a CGI server
    /// would take from a field of a request. An empty variable counts as one that is not set.
    private static func variables(_ environment: [String: String]) throws(ScalarProblem) -> UpstreamProxies {
        func value(_ names: [String]) -> (name: String, text: String)? {
            for name in names { if let text = environment[name], !text.isEmpty { return (name, text) } }
            return nil
        }
        func proxy(_ names: [String]) throws(ScalarProblem) -> UpstreamProxy? {
            guard let (name, text) = value(names + ["all_proxy", "ALL_PROXY"]) else { return nil }
            do throws(ScalarProblem) {
                return try Self.proxy(text.contains("://") ? text : "http://\(text)")
            } catch {
                throw ScalarProblem("reads the environment variable \(name): \(error.message)", isOfProcess: true)
            }
        }
        let http = try proxy(["http_proxy"])
        let https = try proxy(["https_proxy", "HTTPS_PROXY"])
        if http == nil, https == nil { return .none }
        let exceptions = ProxyExceptions(value(["no_proxy", "NO_PROXY"])?.text ?? "")
        return .byScheme(http: http, https: https, except: exceptions)
    }

    // MARK: - A URL

    /// Parses the URL of a proxy; no message contains its user and password.
    private static func proxy(_ text: String) throws(ScalarProblem) -> UpstreamProxy {
        let shown = masked(text)
        let scheme = text.firstRange(of: "://").map { text[..<$0.lowerBound].lowercased() }
        switch scheme {
        case "http": break
        case "https":
            throw ScalarProblem(
                "'\(shown)' is a proxy that is spoken to by TLS, which is not supported; write http://HOST:PORT, which https origins are reached through, too"
            )
        case let scheme? where scheme.hasPrefix("socks"):
            throw ScalarProblem(
                "'\(shown)' is a SOCKS proxy, which is not supported; name an HTTP proxy: http://HOST:PORT"
            )
        default:
            throw ScalarProblem("'\(shown)' is not a proxy; write none, env or http://[USER:PASSWORD@]HOST:PORT")
        }
        let rest = text.dropFirst(7)
        let at = rest.lastIndex(of: "@")
        var authority = at.map { rest[rest.index(after: $0)...] } ?? rest
        if authority.hasSuffix("/") { authority = authority.dropLast() }
        guard !authority.contains(where: { "/?#".contains($0) }) else {
            throw ScalarProblem("'\(shown)' has a path, which a proxy has not; write http://HOST:PORT")
        }
        guard let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") else {
            throw ScalarProblem(
                "'\(shown)' has no port, for which curl takes 1080 and other programs 80; write the one that is meant"
            )
        }
        guard let port = Digits.parse(authority[authority.index(after: colon)...]).flatMap({ UInt16(exactly: $0) }),
            port > 0
        else {
            throw ScalarProblem("'\(shown)' does not end in a port; write http://HOST:PORT, the port from 1 to 65535")
        }
        guard let host = TextRule.host(String(authority[..<colon])) else {
            throw ScalarProblem(
                "'\(shown)' does not name a host; write a name or an IP address, an IPv6 address in brackets"
            )
        }
        return UpstreamProxy(
            host: host,
            port: port,
            credentials: try at.map { (at) throws(ScalarProblem) in
                try credentials(rest[..<at])
            }
        )
    }

    /// Parses a user and a password, which are percent-encoded, with a colon between them.
    private static func credentials(_ text: Substring) throws(ScalarProblem) -> (user: String, password: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let user = try decoded(parts[0])
        let password = parts.count > 1 ? try decoded(parts[1]) : ""
        return (try TextRule.userName.check(user), password)
    }

    private static func decoded(_ text: Substring) throws(ScalarProblem) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.utf8.count == 2, let value = UInt8(digits, radix: 16), !digits.hasPrefix("+") else {
                throw ScalarProblem(
                    "has a percent sign in its user or password that encodes nothing; write %25 for it, and %40 for @"
                )
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        guard let result = String(validating: bytes, as: UTF8.self),
            result.unicodeScalars.allSatisfy({ $0.value >= 32 && $0.value != 127 })
        else {
            throw ScalarProblem(
                "has a control character, or bytes that are not UTF-8, in its user or password; correct it"
            )
        }
        return result
    }
}
