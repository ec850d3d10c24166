// Fields of an answer that speak of the origin's URLs, turned to speak of the proxy's. What is stored
// stays as the origin sent it.

package import HTTPWire

/// Of one service.
package struct Rewriting: Sendable, Hashable {
    /// Where the service is mounted, without a slash at the end.
    private let prefix: String
    /// The host that the service is matched by, in lower case; nil for one matched by prefix.
    private let host: String?
    /// The origin at the end of its requests; nil if no origin is asked.
    package let origin: OriginAddress?
    /// Other services are matched by prefix, too: to a browser all their pages are of one web origin.
    private let sharesWebOrigin: Bool
    /// Query items that no client may see.
    package let secrets: SecretQuery

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

    package func apply(to fields: inout Fields) {
        guard let origin else { return }
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
        if !secrets.isEmpty {
            let links = fields.all("Link")
            let shown = links.map { secrets.removed(from: $0) }
            if shown != links {
                fields.remove("Link")
                for link in shown { fields.append("Link", link) }
            }
        }
        change(.setCookie, in: &fields) { Cookies(references, host: host).moved($0) }
        change(.serviceWorkerAllowed, in: &fields) { scope($0, references) }
        // One service's pages must not have the data of the others' thrown away.
        if sharesWebOrigin { fields.remove(.clearSiteData) }
    }

    /// Puts what `value` answers in the place of each line's value; nil drops the line.
    private func change(_ field: KnownField, in fields: inout Fields, _ value: (String) -> String?) {
        guard fields.contains(field) else { return }
        let old = fields.all(field)
        let new = old.compactMap(value)
        if new == old { return }
        if old.count == 1, let only = new.first { return fields.set(field, only) }
        fields.remove(field)
        for value in new { fields.append(field, value) }
    }

    /// Service-Worker-Allowed (Service Workers section 7.2): a script may watch over the service's pages,
    /// never over those of the others. Nil where nothing of the service is meant; then the script's own folder
    /// is what it may watch over.
    private func scope(_ value: String, _ references: References) -> String? {
        if prefix == references.origin.basePath, !sharesWebOrigin { return value }
        guard let path = references.path(value) else { return nil }
        let resolved = DotSegments.resolved(path)
        if references.isAtOrAboveBase(resolved) { return prefix + "/" }
        return references.mounted(resolved)
    }
}

/// References (RFC 3986 section 4.1) of one origin, as a browser reads them: without tabs, and with a
/// backslash that counts as a slash.
struct References {
    /// Where the service is mounted, without a slash at the end.
    let prefix: String
    let origin: OriginAddress

    /// Where a reference leads here. Nil: leave it as it is. One that is relative to the path means
    /// the same below the prefix.
    func moved(_ reference: String) -> String? {
        let value = Self.read(reference)
        if value.hasPrefix("//"), reference.hasPrefix("//") {
            let absolute = origin.scheme + ":" + value
            guard let path = pathOnOrigin(absolute) else { return nil }
            return mounted(path) ?? absolute
        }
        if value.hasPrefix("/") {
            // Relative to the origin's root: below the base path it has a place here, elsewhere only there.
            return mounted(value) ?? origin.root + value
        }
        return pathOnOrigin(value).flatMap { mounted($0) }
    }

    /// The value of Refresh with its URL moved; nil where it has none, or one that stays.
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

    /// The path on the origin that an absolute reference, or one relative to the root, names; nil for any other.
    func path(_ reference: String) -> String? {
        let value = Self.read(reference)
        return value.hasPrefix("/") && !value.hasPrefix("//") ? value : pathOnOrigin(value)
    }

    /// Whether a path covers all of the service.
    func isAtOrAboveBase(_ path: String) -> Bool {
        let above = path.hasSuffix("/") ? String(path.dropLast()) : path
        return (origin.basePath + "/").hasPrefix(above + "/")
    }

    /// Where a path of the origin is found here; nil outside the base path.
    func mounted(_ path: String) -> String? {
        let path = DotSegments.resolved(path)
        guard path.hasPrefix(origin.basePath) else { return nil }
        var rest = String(path.dropFirst(origin.basePath.count))
        if rest.hasPrefix("\\") { rest = "/" + rest.dropFirst() }
        if let first = rest.first, !"/?#".contains(first) { return nil }
        let result = (prefix + rest).hasPrefix("/") ? prefix + rest : "/" + prefix + rest
        // Two slashes at the start would name another host (RFC 3986 section 4.2).
        let second = result.dropFirst().first
        return second == "/" || second == "\\" ? "/." + result : result
    }

    /// What follows scheme and authority, beginning with a slash, if these are the origin's; an explicit
    /// default port counts as none.
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

    /// Without tabs and other controls, which browsers drop wherever they stand, and with a slash for
    /// a backslash at the start.
    private static func read(_ reference: String) -> String {
        var value = reference
        value.unicodeScalars.removeAll { $0.value < 0x20 }
        return value.hasPrefix("\\") ? "/" + value.dropFirst() : value
    }
}

/// Cookies of one service (RFC 6265 section 5.2).
private struct Cookies {
    private let references: References
    /// The host that the service is matched by.
    private let host: String?
    /// Paths mean the same here and there.
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

    /// A path at or above the base covers all of the service, and nothing else here.
    private func path(_ path: String) -> String? {
        guard path.hasPrefix("/") else { return nil }
        if references.isAtOrAboveBase(path) { return references.prefix.isEmpty ? "/" : references.prefix }
        return references.mounted(path)
    }

    /// Whether a browser takes a cookie of this domain from the service: only where it is matched by a host within the
    /// domain. Otherwise the domain is the origin's, and the cookie would be thrown away with it.
    private func covers(_ domain: String) -> Bool {
        guard let host else { return false }
        let bare = (domain.hasPrefix(".") ? String(domain.dropFirst()) : domain).lowercased()
        return bare.contains(".") && (host == bare || host.hasSuffix("." + bare))
    }
}

extension Substring {
    /// Without spaces and tabs at its ends.
    fileprivate var trimmed: String {
        let start = drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
