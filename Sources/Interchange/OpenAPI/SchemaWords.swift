// What the schemas of a document ask of requests: its regular expressions, compiled, and the words that are not checked.

import Content
import Matching

/// Walks the parts of a document that requests are checked by, once, when the document is read.
struct SchemaWords {
    private typealias Part = OpenAPIDocument.Part

    /// Words of JSON Schema that narrow what a value may be, and that `SchemaCheck` does not know.
    private static let unknown: Set<String> = [
        "patternProperties", "propertyNames", "if", "then", "else", "dependentRequired", "dependentSchemas",
        "dependencies", "contains", "minContains", "maxContains", "prefixItems", "unevaluatedProperties",
        "unevaluatedItems", "$dynamicRef", "$recursiveRef", "contentEncoding", "contentMediaType", "contentSchema",
    ]
    /// Formats that only say how a program keeps a value; the type says all that can be checked.
    private static let plainFormats: Set<String> = ["int32", "int64", "float", "double", "password", "binary", "byte"]
    /// Schemas that are looked at.
    private static let most = 100_000

    /// By their text; one that PCRE2 does not take is not among them.
    private(set) var patterns: [String: Pattern] = [:]
    /// What is not checked, each with its place.
    private(set) var unchecked: [String] = []

    private let document: OpenAPIDocument
    private var visited: Set<String> = []

    init(_ document: OpenAPIDocument) {
        self.document = document
        if let security = document.root.part("security") { leave("security", security.place) }
        for operation in document.operations {
            for list in [operation.item.part("parameters"), operation.part.part("parameters")] {
                for parameter in document.elements(list) { visit(parameter: parameter) }
            }
            guard let body = operation.part.part("requestBody") else { continue }
            guard let content = document.resolved(body)?.part("content") else {
                leave("a body that is not in this file", body.place)
                continue
            }
            for member in content.tree.members ?? [] {
                if let schema = content.part(member.name)?.part("schema") { visit(schema) }
            }
        }
    }

    private mutating func leave(_ what: String, _ place: ImportPlace) {
        unchecked.append("\(what) (\(place))")
    }

    private mutating func visit(parameter: Part) {
        guard visited.insert(parameter.place.pointer).inserted else { return }
        if let content = parameter.part("content") { return leave("a parameter with content", content.place) }
        if let style = parameter.part("style"), let name = style.tree.text, !["form", "simple"].contains(name) {
            leave("the style \(name)", style.place)
        }
        guard let schema = parameter.part("schema") else { return }
        if let resolved = document.resolved(schema),
            SchemaSample.type(SchemaShape(resolved, document).tree) == "object"
        {
            leave("an object as a parameter", schema.place)
        }
        visit(schema)
    }

    private mutating func visit(_ schema: Part) {
        var rest = [schema]
        while let next = rest.popLast() {
            guard let part = document.resolved(next) else {
                leave("what is not in this file", next.place)
                continue
            }
            guard visited.count < Self.most, visited.insert(part.place.pointer).inserted else { continue }
            for member in part.tree.members ?? [] {
                guard let below = part.part(member.name) else { continue }
                switch member.name {
                case "allOf", "anyOf", "oneOf":
                    rest += (below.tree.elements ?? []).enumerated().map { position, tree in
                        Part(tree: tree, place: below.place.within(position))
                    }
                case "not", "items", "additionalProperties": rest.append(below)
                case "properties": rest += (below.tree.members ?? []).compactMap { below.part($0.name) }
                case "pattern": compile(below)
                case "format":
                    let format = below.tree.text ?? ""
                    if !SchemaCheck.formats.contains(format), !Self.plainFormats.contains(format) {
                        leave("the format \(format)", below.place)
                    }
                default: if Self.unknown.contains(member.name) { leave(member.name, below.place) }
                }
            }
        }
    }

    private mutating func compile(_ part: Part) {
        guard let text = part.tree.text, patterns[text] == nil else { return }
        do throws(Pattern.Malformed) { patterns[text] = try Pattern(text) } catch {
            leave("a pattern that is none, since \(error.reason)", part.place)
        }
    }
}
