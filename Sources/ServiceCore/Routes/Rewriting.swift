// The fields of an answer that contain the origin's URLs, rewritten to the proxy's. Stored responses keep the origin's.

package import HTTPWire

/// The rules of one service for rewriting fields.
package struct Rewriting: Sendable, Hashable {
    /// The prefix of the service, without a slash at the end.
    private let prefix: String
    /// The host that the service is matched by, in lower case; nil for a match by prefix.
    private let host: String?
    /// The origin at the end of the service's requests; nil if no origin is asked.
    package let origin: OriginAddress?
    /// Whether other services are matched by prefix, too, so that browsers see one web origin for all of them.
    private let sharesWebOrigin: Bool
    /// The query items that no client may see.
    package let secrets: SecretQuery
    /// Whether nothing may lead the client out of its tunnel.
    private var keepsInTunnel = false

    package init(
        prefix: String,
        host: String? = nil,
        origin: OriginAddress?,
        sharesWebOrigin: Bool = false,
        secrets: SecretQuery = SecretQuery()
    ) {
        self.prefix = prefix
        self.host = host
        self.origin = origin
        self.sharesWebOrigin = sharesWebOrigin
        self.secrets = secrets
    }

    /// The rules for each way to reach the service.
    var byReach: ByReach<Rewriting> {
        let proxied = forProxied
        var tunnelled = proxied
        tunnelled.keepsInTunnel = true
        return ByReach(direct: self, proxied: proxied, tunnelled: tunnelled)
    }

    /// The rules for answers to proxied requests. If the origin is the very host that the client knows, with the same
    /// paths, its URLs and cookies are right as they are.
    private var forProxied: Rewriting {
        guard let origin, let host, origin.host == host, origin.basePath == prefix else { return self }
        return Rewriting(prefix: prefix, host: host, origin: nil, secrets: secrets)
    }

    package func apply(to fields: inout Fields) {
        // It names other ways to the same authority (RFC 7838), such as HTTP/3, which no proxy sees.
        if keepsInTunnel { fields.remove("Alt-Svc") }
        guard let origin else { return hideSecrets(in: &fields) }
        let references = References(prefix: prefix, origin: origin)
        for field in [KnownField.location, .contentLocation] {
            change(field, in: &fields) { value in
                let shown = secrets.removed(from: value)
                return references.moved(shown) ?? shown
            }
        }
        if let value = fields.first("Refresh") {
            let shown = secrets.removed(from: value)
            let moved = references.moved(refresh: shown) ?? shown
            if moved != value { fields.set("Refresh", moved) }
        }
        hideSecretLinks(in: &fields)
        change(.setCookie, in: &fields) { Cookies(references, host: host).moved($0) }
        change(.serviceWorkerAllowed, in: &fields) { scope($0, references) }
        // A page of one service must not clear the data of the others.
        if sharesWebOrigin { fields.remove(.clearSiteData) }
        // It holds for every port of a host (RFC 6797 section 8.3): with a service that has none of its own, all of localhost.
        if host == nil { fields.remove(.strictTransportSecurity) }
    }

    /// Removes the secret query items from URLs that stay as the origin sent them.
    private func hideSecrets(in fields: inout Fields) {
        if secrets.isEmpty { return }
        for field in [KnownField.location, .contentLocation] {
            change(field, in: &fields) { secrets.removed(from: $0) }
        }
        if let value = fields.first("Refresh") {
            let shown = secrets.removed(from: value)
            if shown != value { fields.set("Refresh", shown) }
        }
        hideSecretLinks(in: &fields)
    }

    private func hideSecretLinks(in fields: inout Fields) {
        if secrets.isEmpty { return }
        let links = fields.all("Link")
        let shown = links.map { secrets.removed(from: $0) }
        if shown == links { return }
        fields.remove("Link")
        for link in shown { fields.append("Link", link) }
    }

    /// Replaces the value of each line by the result of `change`; nil removes the line.
    private func change(_ field: KnownField, in fields: inout Fields, _ value: (String) -> String?) {
        guard fields.contains(field) else { return }
        let old = fields.all(field)
        let new = old.compactMap(value)
        if new == old { return }
        if old.count == 1, let only = new.first { return fields.set(field, only) }
        fields.remove(field)
        for value in new { fields.append(field, value) }
    }

    /// The value of Service-Worker-Allowed (Service Workers section 7.2), which may widen a script's scope to the pages
    /// of its service, but never to those of others. Nil if no page of the service is meant; the scope is then the
    /// script's own folder.
    private func scope(_ value: String, _ references: References) -> String? {
        if prefix == references.origin.basePath, !sharesWebOrigin { return value }
        guard let path = references.path(value) else { return nil }
        let resolved = DotSegments.resolved(path)
        if references.isAtOrAboveBase(resolved) { return prefix + "/" }
        return references.mounted(resolved)
    }
}

/// References (RFC 3986 section 4.1) of one origin in the interpretation of browsers: tabs are removed, and a backslash
/// counts as a slash.
struct References {
    /// The prefix of the service, without a slash at the end.
    let prefix: String
    let origin: OriginAddress

    /// The rewritten reference; nil to leave it unchanged, such as one that is relative to the path, which means the
    /// same below the prefix.
    func moved(_ reference: String) -> String? {
        let value = Self.read(reference)
        if value.hasPrefix("//"), reference.hasPrefix("//") {
            let absolute = origin.scheme + ":" + value
            guard let path = pathOnOrigin(absolute) else { return nil }
            return mounted(path) ?? absolute
        }
        if value.hasPrefix("/") {
            // A reference relative to the root is rewritten if it is below the base path; otherwise it leads to the
            // origin itself.
            return mounted(value) ?? origin.root + value
        }
        return pathOnOrigin(value).flatMap { mounted($0) }
    }

    /// The value of Refresh with its URL rewritten; nil if it has none, or one that does not change.
    func moved(refresh value: String) -> String? {
        let time = value.prefix { "0123456789. ".contains($0) }
        guard time.contains(where: \.isNumber) else { return nil }
        var rest = value[time.endIndex...]
        if let first = rest.first, first == ";" || first == "," { rest.removeFirst() }
        rest = rest.drop { $0 == " " || $0 == "\t" }
        if rest.prefix(3).lowercased() == "url" {
            let name = rest.dropFirst(3).drop { $0 == " " || $0 == "\t" }
            if name.first == "=" { rest = name.dropFirst().drop { $0 == " " || $0 == "\t" } }
        }
        if let quote = rest.first, quote == "'" || quote == "\"" { rest = rest.dropFirst().prefix { $0 != quote } }
        guard !rest.isEmpty, let moved = moved(String(rest)) else { return nil }
        return "\(time); url=\(moved)"
    }

    /// The path on the origin of a reference that is absolute or relative to the root; nil for any other.
    func path(_ reference: String) -> String? {
        let value = Self.read(reference)
        return value.hasPrefix("/") && !value.hasPrefix("//") ? value : pathOnOrigin(value)
    }

    /// Whether a path on the origin includes the whole service.
    func isAtOrAboveBase(_ path: String) -> Bool {
        let above = path.hasSuffix("/") ? String(path.dropLast()) : path
        return (origin.basePath + "/").hasPrefix(above + "/")
    }

    /// The proxy's path for a path of the origin; nil outside the base path.
    func mounted(_ path: String) -> String? {
        let path = DotSegments.resolved(path)
        guard path.hasPrefix(origin.basePath) else { return nil }
        var rest = String(path.dropFirst(origin.basePath.count))
        if rest.hasPrefix("\\") { rest = "/" + rest.dropFirst() }
        if let first = rest.first, !"/?#".contains(first) { return nil }
        let result = (prefix + rest).hasPrefix("/") ? prefix + rest : "/" + prefix + rest
        // Two slashes at the beginning would name another host (RFC 3986 section 4.2).
        let second = result.dropFirst().first
        return second == "/" || second == "\\" ? "/." + result : result
    }

    /// The part after scheme and authority, beginning with a slash, if these are the origin's; an explicit default port
    /// counts as none.
    private func pathOnOrigin(_ value: String) -> String? {
        let roots = [origin.root, "\(origin.scheme)://\(origin.host):\(origin.effectivePort)"]
        let lowered = value.lowercased()
        for root in roots where lowered.hasPrefix(root) {
            let rest = value.dropFirst(root.count)
            guard let first = rest.first else { return "/" }
            if first == "/" { return String(rest) }
            if first == "\\" { return "/" + rest.dropFirst() }
            if first == "?" || first == "#" { return "/" + rest }
        }
        return nil
    }

    /// The reference without tabs and other controls, which browsers remove anywhere, and with slashes instead of
    /// backslashes at the beginning.
    private static func read(_ reference: String) -> String {
        var value = reference
        value.unicodeScalars.removeAll { $0.value < 0x20 }
        return value.hasPrefix("\\") ? "/" + value.dropFirst() : value
    }
}

/// The cookies of one service (RFC 6265 section 5.2).
private struct Cookies {
    private let references: References
    /// The host that the service is matched by.
    private let host: String?
    /// Whether a path is the same for the proxy and for the origin.
    private let keepsPaths: Bool

    init(_ references: References, host: String?) {
        self.references = references
        self.host = host
        keepsPaths = references.prefix.isEmpty && references.origin.basePath.isEmpty
    }

    func moved(_ value: String) -> String {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false)
        // The first part is the cookie itself, whatever its name.
        let attributes = parts.dropFirst().compactMap { part -> String? in
            let pair = part.split(separator: "=", maxSplits: 1).map { $0.trimmed }
            guard pair.count == 2 else { return String(part) }
            switch pair[0].lowercased() {
            case "path": return keepsPaths ? String(part) : path(pair[1]).map { " Path=\($0)" } ?? String(part)
            case "domain": return covers(pair[1]) ? String(part) : nil
            default: return String(part)
            }
        }
        return ([String(parts.first ?? "")] + attributes).joined(separator: ";")
    }

    /// The rewritten path of a cookie: a path at or above the base path becomes the whole service, and nothing beyond
    /// it.
    private func path(_ path: String) -> String? {
        guard path.hasPrefix("/") else { return nil }
        if references.isAtOrAboveBase(path) { return references.prefix.isEmpty ? "/" : references.prefix }
        return references.mounted(path)
    }

    /// Whether a browser accepts a cookie with this domain from the service: only if the service is matched by a host
    /// within the domain. Otherwise the domain is the origin's, and would make the browser reject the cookie.
    private func covers(_ domain: String) -> Bool {
        guard let host else { return false }
        let bare = (domain.hasPrefix(".") ? String(domain.dropFirst()) : domain).lowercased()
        return bare.contains(".") && (host == bare || host.hasSuffix("." + bare))
    }
}

extension Substring {
    /// The text without spaces and tabs at both ends.
    fileprivate var trimmed: String {
        let start = drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
