// Invalidation: which answers make stored responses invalid (RFC 9111 section 4.4), and the groups (RFC 9875) and tags
// that name several at once.

package import HTTPWire

extension Caching {
    /// Whether an answer with `status` to `method` invalidates what is stored under the target: a non-error answer (2xx
    /// or 3xx) to a method that is not known to be safe.
    package static func invalidates(method: Method, status: Int) -> Bool {
        !method.isSafe && (200..<400).contains(status)
    }

    /// The URLs that Location and Content-Location name on the same origin as `url` (absolute), without `url` itself:
    /// they are invalidated along with it. Scheme and host are in lower case, the port is there only if it is not the
    /// default.
    package static func invalidatedURLs(url: String, response: ResponseHead) -> [String] {
        guard let base = AbsoluteURL(url) else { return [] }
        var found: [String] = []
        for reference in [response.fields.first(.location), response.fields.first(.contentLocation)] {
            // Another origin must not be able to invalidate responses that are not its own (RFC 9111 section 4.4).
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

/// An http or https URL, with the parts that are needed to resolve references against it (RFC 3986 section 5.2).
private struct AbsoluteURL: Equatable, CustomStringConvertible {
    /// The origin as `scheme://host`, with the port if it is not the default.
    var origin: String
    /// The path, which begins with `/`.
    var path: String
    /// The query with its `?`, or empty.
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

    /// The URL without dot segments (RFC 3986 section 5.2.4).
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

// MARK: - Groups

// Groups of stored responses that become invalid together (RFC 9875).
extension Caching {
    /// The groups that a response belongs to, in order, each once (RFC 9875 section 2). They are exact strings, and
    /// mean something within one origin only.
    package static func cacheGroups(_ fields: Fields) -> [String] { groups(fields, "Cache-Groups") }

    /// The groups of the same origin that an answer to `method` invalidates (RFC 9875 section 3): none if the method is
    /// safe or the answer is an error, as with every other invalidation (RFC 9111 section 4.4).
    package static func invalidatedGroups(method: Method, response: ResponseHead) -> [String] {
        guard invalidates(method: method, status: response.status) else { return [] }
        return groups(response.fields, "Cache-Group-Invalidation")
    }

    /// The strings of a list; a field that is anything else is ignored as a whole (RFC 9651 section 4.2).
    private static func groups(_ fields: Fields, _ name: String) -> [String] {
        let lines = fields.values(named: name)
        guard !lines.isEmpty, let members = StructuredList.parse(lines) else { return [] }
        var found: [String] = []
        for member in members {
            guard case .string(let bytes) = member else { return [] }
            let group = String(decoding: bytes, as: UTF8.self)
            if !found.contains(group) { found.append(group) }
        }
        return found
    }
}

// MARK: - Tags

// Tags: names that an origin gives to responses, so that they can be purged together.
extension Caching {
    /// The tags of a response, each once: the members of `Cache-Tag` (between commas), of `Surrogate-Key` (between
    /// spaces) and of `Cache-Groups` (RFC 9875). They are compared byte by byte.
    package static func cacheTags(_ fields: Fields) -> [String] {
        var found: [String] = []
        var seen: Set<String> = []
        func add(_ tag: String) { if !tag.isEmpty, seen.insert(tag).inserted { found.append(tag) } }
        for line in fields.values(named: "Cache-Tag") {
            for member in line.split(separator: ASCII.comma) { add(text(ASCII.trim(member))) }
        }
        for line in fields.values(named: "Surrogate-Key") {
            for member in line.split(whereSeparator: { $0 == 0x20 || $0 == 0x09 }) { add(text(member)) }
        }
        for group in cacheGroups(fields) { add(group) }
        return found
    }

    private static func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }
}
