// Groups of stored responses that become invalid together (RFC 9875).

package import HTTPWire

extension Caching {
    /// The groups that a response belongs to, in order, each once (RFC 9875 section 2): exact strings, which mean
    /// something within one origin only.
    package static func cacheGroups(_ fields: Fields) -> [String] { groups(fields, "Cache-Groups") }

    /// The groups of the same origin that an answer to `method` invalidates (RFC 9875 section 3): none where the method
    /// is safe, or where the answer is an error, as with every other invalidation (RFC 9111 section 4.4).
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
