// Fields of an answer that point at the origin, turned to point at the proxy: Location, Content-Location, cookie paths.

package import HTTPWire
package import ServiceCore

/// Of one service.
package struct Rewriting: Sendable, Equatable {
    /// Where the service is mounted, without a slash at the end.
    private let prefix: String
    private let origin: OriginAddress?

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

    /// Nil: leave it as it is.
    private func reference(_ value: String, _ origin: OriginAddress) -> String? {
        if value.hasPrefix("//") {
            return value.lowercased().hasPrefix("//" + origin.authority)
                ? reference(origin.scheme + ":" + value, origin) : nil
        }
        if value.hasPrefix("/") {
            // Relative to the origin's root: below the base path it has a place here, elsewhere only there.
            return mounted(value, origin) ?? origin.root + value
        }
        guard let path = pathOnOrigin(value, origin) else { return nil }
        return mounted(path.isEmpty ? "/" : path, origin)
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

    private func mounted(_ path: String, _ origin: OriginAddress) -> String? {
        guard path.hasPrefix(origin.basePath) else { return nil }
        let rest = path.dropFirst(origin.basePath.count)
        if let first = rest.first, !"/?#".contains(first) { return nil }
        let result = prefix + rest
        return result.hasPrefix("/") ? result : "/" + result
    }

    private func cookie(_ value: String, _ origin: OriginAddress) -> String {
        value.split(separator: ";", omittingEmptySubsequences: false).map { part in
            let attribute = part.drop { $0 == " " }
            guard attribute.lowercased().hasPrefix("path=") else { return String(part) }
            let path = String(attribute.dropFirst(5))
            guard let moved = mounted(path, origin) else { return String(part) }
            return " Path=\(moved)"
        }.joined(separator: ";")
    }
}
