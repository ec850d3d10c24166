// Tags: names that an origin gives to responses, so that they can be purged together.

package import HTTPWire

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
