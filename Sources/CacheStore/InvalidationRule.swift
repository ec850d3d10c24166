// What one invalidation may be about besides a key: a name that many stored responses share.

package import HTTPCaching

/// A name that stored responses have in common; making it a rule invalidates all of them at once.
package struct InvalidationRule: Hashable, Sendable, CustomStringConvertible {
    /// What kind of name it is, then the name itself.
    let bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    /// A cache group (RFC 9875 section 2.1): groups of the same name on another origin, or of another service, are others.
    package static func group(_ name: String, of key: CacheKey) -> InvalidationRule {
        InvalidationRule(bytes: [UInt8(ascii: "g")] + key.originBytes + [0] + Array(name.utf8))
    }

    /// The rules that would invalidate a stored response.
    package static func concerning(_ head: StoredHead, _ key: CacheKey) -> [InvalidationRule] {
        Caching.cacheGroups(head.fields).map { group($0, of: key) }
    }

    /// The name, with where it holds.
    package var description: String {
        let parts = bytes.dropFirst().split(separator: 0, omittingEmptySubsequences: false)
        let name = String(decoding: parts.last ?? [], as: UTF8.self)
        let origin = parts.dropFirst().first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        return "\(name) of \(origin)"
    }
}
