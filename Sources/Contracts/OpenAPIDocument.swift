// A document of OpenAPI 3: its operations, and the targets of its references.

package import Trees

/// A document whose references within itself are followed.
package struct OpenAPIDocument: Sendable {
    /// A part of the document.
    package struct Part: Sendable {
        package let tree: ContentTree
        package let location: DocumentLocation

        package func part(_ name: String) -> Part? {
            tree[name].map { Part(tree: $0, location: location.within(name)) }
        }
    }

    /// A method of a path.
    package struct Operation: Sendable {
        /// The method in capitals.
        package let method: String
        /// The path, with `{name}` for each parameter.
        package let path: String
        package let part: Part
        /// The item of the path, whose parameters apply to all of its operations.
        package let item: Part
    }

    /// The most references that are followed from one to the next.
    private static let longestChain = 16
    private static let methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]

    package let root: Part

    /// - Throws: an error if the tree is not a document of OpenAPI 3.0 or 3.1.
    package init(_ tree: ContentTree, _ location: DocumentLocation) throws(DocumentError) {
        root = Part(tree: tree, location: location)
        if tree["swagger"] != nil {
            throw DocumentError(location.within("swagger"), "this is Swagger 2; convert it to OpenAPI 3 first")
        }
        guard let version = tree["openapi"]?.scalar, version.hasPrefix("3.0") || version.hasPrefix("3.1") else {
            throw DocumentError(
                location.within("openapi"),
                "this is no version that can be read; it has to be 3.0 or 3.1"
            )
        }
        guard tree["paths"]?.members != nil else { throw DocumentError(location.within("paths"), "there are no paths") }
    }

    /// The part itself, or the target of its reference; nil if that is not in the document.
    package func resolved(_ part: Part) -> Part? {
        var part = part
        for _ in 0..<Self.longestChain {
            guard let reference = part.tree["$ref"] else { return part }
            guard let text = reference.text, let next = named(text) else { return nil }
            part = next
        }
        return nil
    }

    /// The reason why the reference of a part cannot be resolved.
    package func reason(unresolved part: Part) -> String {
        guard let reference = part.tree["$ref"]?.text else { return "what it refers to is not in this file" }
        if named(reference) != nil { return "'\(reference)' leads to itself" }
        if reference.hasPrefix("#") { return "'\(reference)' is not in this file" }
        return "'\(reference)' is in another file, and one file is read: bundle them into one"
    }

    /// The part that a JSON pointer after a `#` names.
    private func named(_ reference: String) -> Part? {
        guard reference.hasPrefix("#/") else { return nil }
        var part = root
        for segment in reference.dropFirst(2).split(separator: "/", omittingEmptySubsequences: false) {
            let decoded = String(decoding: PercentEncoding.decode(segment.utf8), as: UTF8.self)
            let name = decoded.replacing("~1", with: "/").replacing("~0", with: "~")
            if let next = part.part(name) {
                part = next
            } else if let values = part.tree.elements, let position = Int(name), values.indices.contains(position) {
                part = Part(tree: values[position], location: part.location.within(position))
            } else {
                return nil
            }
        }
        return part
    }

    /// The operations in the order of the document.
    package var operations: [Operation] {
        guard let paths = root.part("paths") else { return [] }
        return (paths.tree.members ?? []).flatMap { member -> [Operation] in
            guard member.name.hasPrefix("/"), let part = paths.part(member.name), let item = resolved(part) else {
                return []
            }
            return Self.methods.compactMap { method in
                item.part(method).map {
                    Operation(method: method.uppercased(), path: member.name, part: $0, item: item)
                }
            }
        }
    }

    /// The elements of a list, resolved.
    package func elements(_ part: Part?) -> [Part] {
        (part?.tree.elements ?? []).enumerated().compactMap { position, tree in
            part.flatMap { resolved(Part(tree: tree, location: $0.location.within(position))) }
        }
    }

    /// The URL of the first server, with the default values of its variables.
    package var server: String? {
        guard let server = root.tree["servers"]?.elements?.first, var url = server["url"]?.text else { return nil }
        for variable in server["variables"]?.members ?? [] {
            url = url.replacing("{\(variable.name)}", with: variable.value["default"]?.scalar ?? "")
        }
        return url
    }
}
