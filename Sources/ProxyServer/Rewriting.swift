// Fields of an answer that point at the origin, turned to point at the proxy: Location, Content-Location, cookie paths.

package import HTTPWire
package import ServiceCore

/// Of one service.
package struct Rewriting: Sendable, Equatable {
    /// Where the service is mounted, without a slash at the end.
    private let prefix: String
    /// Where its requests end; nil where no origin is asked.
    package let origin: OriginAddress?

    package init(prefix: String, origin: OriginAddress?) {
        self.prefix = prefix
        self.origin = origin
    }

    package func apply(to fields: inout Fields) {
        guard let origin else { return }
        for field in [KnownField.location, .contentLocation] {
            if let value = fields.first(field), let rewritten = reference(value, origin) {
                fields.set(field, rewritten)
            }
        }
        if fields.contains(.setCookie), prefix != origin.basePath {
            let cookies = fields.all(.setCookie).map { cookie($0, origin) }
            fields.remove(.setCookie)
            for cookie in cookies { fields.append(.setCookie, cookie) }
        }
    }

    // MARK: - References (RFC 3986 section 4.2)

    /// Nil: leave it as it is. A reference relative to the path means the same below the prefix.
    private func reference(_ value: String, _ origin: OriginAddress) -> String? {
        if value.hasPrefix("//") {
            let absolute = origin.scheme + ":" + value
            return pathOnOrigin(absolute, origin) == nil ? nil : reference(absolute, origin) ?? absolute
        }
        if value.hasPrefix("/") {
            // Relative to the origin's root: below the base path it has a place here, elsewhere only there.
            return mounted(value, origin) ?? origin.root + value
        }
        guard let path = pathOnOrigin(value, origin) else { return nil }
        return mounted(path.hasPrefix("/") ? path : "/" + path, origin)
    }

    /// What follows scheme and authority, if these are the origin's; an explicit default port counts as none.
    private func pathOnOrigin(_ value: String, _ origin: OriginAddress) -> String? {
        let roots = [origin.root, "\(origin.scheme)://\(origin.host):\(origin.effectivePort)"]
        let lowered = value.lowercased()
        for root in roots where lowered.hasPrefix(root) {
            let rest = value.dropFirst(root.count)
            if let first = rest.first, !"/?#".contains(first) { continue }
            return String(rest)
        }
        return nil
    }

    /// Where a path of the origin is found here; nil outside the base path.
    private func mounted(_ path: String, _ origin: OriginAddress) -> String? {
        guard path.hasPrefix(origin.basePath) else { return nil }
        let rest = path.dropFirst(origin.basePath.count)
        if let first = rest.first, !"/?#".contains(first) { return nil }
        let result = prefix + rest
        // Two slashes at the start would name another host (RFC 3986 section 4.2).
        if result.hasPrefix("//") { return "/." + result }
        return result.hasPrefix("/") ? result : "/" + result
    }

    // MARK: - Cookies (RFC 6265 section 5.2)

    private func cookie(_ value: String, _ origin: OriginAddress) -> String {
        let parts = value.split(separator: ";", omittingEmptySubsequences: false)
        // The first part is the cookie itself, whatever its name.
        let attributes = parts.dropFirst().map { part in
            let pair = part.split(separator: "=", maxSplits: 1).map { $0.trimmed }
            guard pair.count == 2, pair[0].lowercased() == "path" else { return String(part) }
            return cookiePath(pair[1], origin).map { " Path=\($0)" } ?? String(part)
        }
        return ([String(parts.first ?? "")] + attributes).joined(separator: ";")
    }

    /// A path at or above the base covers all of the service, and nothing else here.
    private func cookiePath(_ path: String, _ origin: OriginAddress) -> String? {
        guard path.hasPrefix("/") else { return nil }
        let above = path.hasSuffix("/") ? String(path.dropLast()) : path
        if (origin.basePath + "/").hasPrefix(above + "/") { return prefix.isEmpty ? "/" : prefix }
        return mounted(path, origin)
    }
}

extension Substring {
    /// Without spaces and tabs at its ends.
    fileprivate var trimmed: String {
        let start = drop { $0 == " " || $0 == "\t" }
        return String(start.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }
}
