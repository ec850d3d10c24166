// What of a request enters the cache key besides its URL, and what of the URL does not.

package import HTTPWire

/// How the configuration changes the key of a service's requests. Without rules the key is the URL.
package struct KeyRules: Sendable, Hashable {
    /// Patterns of names; query items with such a name do not enter the key, and the origin gets them only where
    /// nothing may be stored. `*` stands for any run of characters; names are compared as they are sent,
    /// percent-encoding and case included.
    package var ignoreQuery: [String]
    /// Lower-case names of request fields whose values enter the key.
    package var fields: [String]

    package init(ignoreQuery: [String] = [], fields: [String] = []) {
        self.ignoreQuery = ignoreQuery
        self.fields = fields.map { $0.lowercased() }
    }

    /// `path`, which may have a query, without the items that do not count; the others stay byte for byte and in their
    /// order. An item with a semicolon always counts: some origins split there, and find items of other names in it.
    package func path(_ path: String) -> String {
        guard !ignoreQuery.isEmpty, let mark = path.utf8.firstIndex(of: UInt8(ascii: "?")) else { return path }
        let items = path.utf8[path.utf8.index(after: mark)...].split(
            separator: UInt8(ascii: "&"),
            omittingEmptySubsequences: false
        )
        let kept = items.filter { item in
            if item.contains(UInt8(ascii: ";")) { return true }
            let name = item.prefix { $0 != UInt8(ascii: "=") }
            return !ignoreQuery.contains { StarPattern.matches(Array($0.utf8)[...], Array(name)[...]) }
        }
        if kept.count == items.count { return path }
        let base = String(path[..<mark])
        return kept.isEmpty ? base : base + "?" + kept.map { String($0) ?? "" }.joined(separator: "&")
    }

    /// What the request's fields add to the key, a line for each name: `name: value`, its lines joined, or `name` alone
    /// where the request has none.
    package func lines(_ request: Fields) -> [String] {
        fields.map { name in request.combined(name).map { "\(name): \($0)" } ?? name }
    }

    /// Whether the field of this name, in any case, enters the key.
    package func names(_ name: UnsafeRawBufferPointer) -> Bool {
        fields.contains { ASCII.equalIgnoringCase($0.utf8, name) }
    }

    /// Whether a field of this name reads like one that enters the key where `_` and `-` are the same (CGI, WSGI,
    /// Rack), and is another one.
    package func hasTwin(of name: UnsafeRawBufferPointer) -> Bool { fields.contains { ASCII.isTwin($0.utf8, name) } }

    /// What a POST adds to the key of its URL: the digest of its content, and what says how to read it.
    /// - Parameter content: the whole of it.
    package static func lines(post content: [UInt8], _ request: Fields) -> [String] {
        let about: [KnownField] = [.contentType, .contentEncoding]
        // Without a digest the content itself names itself.
        let name = ContentDigest.sha256.hex(content).map { "sha-256=\($0)" } ?? "content=\(content)"
        return ["POST \(name)"]
            + about.compactMap { field in request.combined(field).map { "\(field.name.lowercased()): \($0)" } }
    }
}
