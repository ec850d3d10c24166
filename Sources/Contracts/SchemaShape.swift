// A schema of a document with everything that its `allOf` adds to it.

package import Trees

/// A schema with all additions of its `allOf`.
package struct SchemaShape {
    package typealias Part = OpenAPIDocument.Part

    /// The most levels of nested `allOf`.
    private static let deepest = 8

    package let location: DocumentLocation
    /// The combined schema; the first part that describes a member counts.
    package private(set) var tree: ContentTree
    package private(set) var properties: [(name: String, schema: Part)] = []
    package private(set) var required: Set<MemberName> = []
    /// The schemas of `oneOf`, or else of `anyOf`.
    package private(set) var choices: [Part] = []
    /// The pointers to the locations in the document that the parts of the schema come from.
    package private(set) var pointers: [String] = []
    private var parts: [String: Part] = [:]

    /// - Parameter part: a schema that is not a reference.
    package init(_ part: Part, _ document: OpenAPIDocument) {
        location = part.location
        tree = part.tree.members == nil ? part.tree : .empty
        add(part, document, depth: 0)
    }

    package func part(_ name: String) -> Part? { parts[name] }

    /// The type that a schema names or implies; the first one of several that is not null.
    package static func type(_ schema: ContentTree) -> String {
        if let type = schema["type"]?.text { return type }
        if let types = schema["type"]?.elements { return types.compactMap(\.text).first { $0 != "null" } ?? "null" }
        if schema["properties"] != nil || schema["additionalProperties"]?.members != nil { return "object" }
        if schema["items"] != nil { return "array" }
        if schema["minimum"] != nil || schema["maximum"] != nil { return "number" }
        return schema == .bool(false) ? "null" : "string"
    }

    private mutating func add(_ part: Part, _ document: OpenAPIDocument, depth: Int) {
        guard depth < Self.deepest, !pointers.contains(part.location.pointer) else { return }
        pointers.append(part.location.pointer)
        required.formUnion((part.tree["required"]?.elements ?? []).compactMap(\.text).map(MemberName.init))
        for member in part.tree.members ?? [] {
            switch member.name {
            case "allOf", "required": continue
            case "properties":
                guard let own = part.part("properties") else { continue }
                for member in own.tree.members ?? []
                where !properties.contains(where: { $0.name.isSameName(as: member.name) }) {
                    if let schema = own.part(member.name) { properties.append((member.name, schema)) }
                }
            case "oneOf", "anyOf":
                guard choices.isEmpty, let own = part.part(member.name) else { continue }
                choices = (own.tree.elements ?? []).enumerated().map { position, tree in
                    Part(tree: tree, location: own.location.within(position))
                }
            default: if parts[member.name] == nil { parts[member.name] = part.part(member.name) }
            }
            if tree[member.name] == nil { tree = tree.adding(member.name, member.value) }
        }
        guard let all = part.part("allOf") else { return }
        for (position, tree) in (all.tree.elements ?? []).enumerated() {
            let part = Part(tree: tree, location: all.location.within(position))
            if let resolved = document.resolved(part) { add(resolved, document, depth: depth + 1) }
        }
    }
}
