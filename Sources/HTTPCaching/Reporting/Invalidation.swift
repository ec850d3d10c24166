// Which answers make stored responses invalid, and which ones (RFC 9111 section 4.4).

package import HTTPWire

extension Caching {
    /// Whether an answer with `status` to `method` invalidates what is stored under the target: a non-error answer (2xx
    /// or 3xx) to a method that is not known to be safe.
    package static func invalidates(method: Method, status: Int) -> Bool {
        !method.isSafe && (200..<400).contains(status)
    }

    /// The URLs that Location and Content-Location name on the same origin as `url` (absolute), without `url` itself:
    /// they are invalidated along with it. Scheme and host in lower case, the port only where it is not the default.
    package static func invalidatedURLs(url: String, response: ResponseHead) -> [String] {
        guard let base = AbsoluteURL(url) else { return [] }
        var found: [String] = []
        for reference in [response.fields.first(.location), response.fields.first(.contentLocation)] {
            // RFC 9111 section 4.4: another origin must not be able to invalidate what is not its own.
            guard let reference, let target = base.resolving(reference), target.origin == base.origin else { continue }
            if target != base, !found.contains(target.description) { found.append(target.description) }
        }
        return found
    }

    /// Whether `reference`, resolved against `url` (absolute), names the same resource (RFC 9110 section 8.7).
    static func refers(_ reference: String, to url: String) -> Bool {
        guard let base = AbsoluteURL(url), let target = base.resolving(reference) else { return false }
        return target == base.withoutDots
    }
}

/// An http or https URL, as far as resolving references against it needs (RFC 3986 section 5.2).
private struct AbsoluteURL: Equatable, CustomStringConvertible {
    /// `scheme://host` with the port where it is not the default.
    var origin: String
    /// Begins with `/`.
    var path: String
    /// With its `?`, or empty.
    var query: String

    var description: String { origin + path + query }

    init?(_ text: String) {
        guard let target = try? RequestTarget.parse(text, method: .get),
            case .absolute(let scheme, let authority, let pathAndQuery) = target.form,
            scheme == "http" || scheme == "https"
        else { return nil }
        let isDefault = authority.port == nil || authority.port == (scheme == "http" ? 80 : 443)
        origin = "\(scheme)://\(authority.host)" + (isDefault ? "" : ":\(authority.port ?? 0)")
        let mark = pathAndQuery.firstIndex(of: "?") ?? pathAndQuery.endIndex
        path = String(pathAndQuery[..<mark])
        query = String(pathAndQuery[mark...])
        if !path.hasPrefix("/") { path = "/" + path }
    }

    func resolving(_ text: String) -> AbsoluteURL? {
        let reference = String(text.prefix { $0 != "#" })
        if reference.hasPrefix("//") { return AbsoluteURL(origin.prefix { $0 != "/" } + reference)?.withoutDots }
        let beforePath = reference.prefix { $0 != "/" && $0 != "?" }
        if beforePath.contains(":") { return AbsoluteURL(reference)?.withoutDots }
        let resolved: String
        if reference.isEmpty {
            resolved = path + query
        } else if reference.hasPrefix("/") {
            resolved = reference
        } else if reference.hasPrefix("?") {
            resolved = path + reference
        } else {
            resolved = path.prefix(through: path.lastIndex(of: "/") ?? path.startIndex) + reference
        }
        return AbsoluteURL(origin + resolved)?.withoutDots
    }

    /// RFC 3986 section 5.2.4.
    var withoutDots: AbsoluteURL {
        var kept: [Substring] = []
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (offset, segment) in segments.enumerated() {
            let isLast = offset == segments.count - 1
            if segment == ".." { _ = kept.popLast() }
            if segment == "." || segment == ".." {
                if isLast { kept.append("") }
            } else {
                kept.append(segment)
            }
        }
        var result = self
        result.path = "/" + kept.joined(separator: "/")
        return result
    }
}
