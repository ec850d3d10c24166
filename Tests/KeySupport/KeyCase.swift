// Every key of the table with the way to it: what tests that walk the table go through.

package import Configuration

/// A key with the way to it.
package struct KeyCase: Sendable, CustomStringConvertible {
    package struct Step: Sendable {
        package let name: String
        package let isList: Bool
    }
    package let way: [Step]
    package let section: SectionDescriptor
    package let key: KeyDescriptor

    /// Such as `services[].cache.ttl`.
    package var description: String {
        (way.map { $0.name + ($0.isList ? "[]" : "") } + [key.name]).joined(separator: ".")
    }

    /// Every key of a section and of the sections below it.
    package static func all(_ section: SectionDescriptor = KeyTable.root, way: [Step] = []) -> [KeyCase] {
        section.keys.flatMap { key -> [KeyCase] in
            let own = KeyCase(way: way, section: section, key: key)
            guard let below = key.kind.section else { return [own] }
            return [own] + all(below, way: way + [Step(name: key.name, isList: key.kind.isList)])
        }
    }
}
