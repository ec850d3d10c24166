// Checks that a document of OpenAPI describes a request: its path, method, parameters and content.

import HTTPWire
package import Matching
import Trees

/// A difference between a request and the document.
package struct RequestViolation: Sendable, Equatable, CustomStringConvertible {
    /// The part of the request, such as `query.limit`, or `body` with a JSON pointer: `body/items/0`.
    package let part: String
    package let reason: String
    /// The location in the document that describes the part.
    package let location: DocumentLocation

    package var description: String { "\(part) \(reason) (\(location))" }
}

/// Checks requests against one document. Any thread.
package struct RequestCheck: Sendable {
    private typealias Part = OpenAPIDocument.Part

    /// The operations of one path.
    private struct Path: Sendable {
        let segments: [Segment]
        var operations: [String: OpenAPIDocument.Operation] = [:]
        let location: DocumentLocation
    }

    /// A part of a path between slashes.
    private struct Segment: Sendable {
        /// The text before the parameter; the whole segment if there is no parameter.
        let before: String
        let after: String
        /// The name of the segment's parameter; nil if there is none; empty if there are several, whose values are not
        /// checked.
        let name: String?

        init(_ text: Substring) {
            guard let open = text.firstIndex(of: "{"), let close = text.lastIndex(of: "}"), open < close else {
                (before, after, name) = (String(text), "", nil)
                return
            }
            let inner = text[text.index(after: open)..<close]
            name = inner.contains("{") ? "" : String(inner)
            (before, after) = (String(text[..<open]), String(text[text.index(after: close)...]))
        }

        var literals: Int { before.utf8.count + after.utf8.count }

        /// The decoded value of the parameter; empty if there is none, and nil if the segment does not match.
        func value(_ segment: Substring) -> String? {
            guard name != nil else { return segment == before ? "" : nil }
            guard segment.hasPrefix(before), segment.hasSuffix(after), segment.utf8.count > literals else { return nil }
            let value = segment.utf8.dropFirst(before.utf8.count).dropLast(after.utf8.count)
            return String(decoding: PercentEncoding.decode(value), as: UTF8.self)
        }
    }

    private let document: OpenAPIDocument
    private let patterns: [String: Pattern]
    /// The requirements of the document that are not checked, each with its location.
    package let unchecked: [String]
    /// The paths, those with fewer parameters first, and among these the ones with more literal text.
    private let paths: [Path]
    /// Whether the document has a path; without one every request breaks its rules.
    package var hasPaths: Bool { !paths.isEmpty }
    /// The path of the first server; empty for none.
    private let server: String

    /// - Throws: an error if the bytes are not a document of OpenAPI 3.
    package init(_ bytes: [UInt8], file: String) throws(DocumentError) {
        let location = DocumentLocation(file: file)
        let tree: ContentTree
        do throws(TreeError) { tree = try DocumentReader.read(bytes) } catch {
            throw DocumentError(location, "this cannot be read: \(error)")
        }
        document = try OpenAPIDocument(tree, location)
        let words = SchemaWords(document)
        (patterns, unchecked) = (words.patterns, words.unchecked)
        var paths: [String: Path] = [:]
        for operation in document.operations {
            let segments = operation.path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
            var path =
                paths[operation.path] ?? Path(segments: segments.map(Segment.init), location: operation.item.location)
            path.operations[operation.method] = operation
            paths[operation.path] = path
        }
        func rank(_ path: Path) -> (Int, Int) {
            (path.segments.count { $0.name != nil }, -path.segments.reduce(0) { $0 + $1.literals })
        }
        self.paths = paths.sorted { one, other in
            let (first, second) = (rank(one.value), rank(other.value))
            return first == second ? one.key < other.key : first < second
        }.map(\.value)
        var server = document.server.flatMap { SourceURL($0)?.path ?? ($0.hasPrefix("/") ? $0 : nil) } ?? ""
        while server.hasSuffix("/") { server.removeLast() }
        self.server = server
    }

    // MARK: - Requests

    /// Whether the check of a request reads its content.
    package func needsContent(method: String, path: String) -> Bool {
        guard case .found(let operation, _) = find(method, path) else { return false }
        return operation.part.tree["requestBody"] != nil
    }

    /// The differences between a request and the document; empty if there are none. A content that was not read is not
    /// checked.
    /// - Parameter budget: the limit of the check; a value beyond it is reported as too large.
    package func violations(_ request: RequestParts, _ budget: SchemaBudget = SchemaBudget()) -> [RequestViolation] {
        switch find(request.method, request.path) {
        case .unknownPath:
            return [
                RequestViolation(
                    part: "path",
                    reason: "is none of the document",
                    location: document.root.location.within("paths")
                )
            ]
        case .unknownMethod(let location):
            // A browser sends OPTIONS before the request, and any client may ask for the allowed methods.
            if request.method == "OPTIONS" { return [] }
            return [
                RequestViolation(
                    part: "method",
                    reason: "is '\(request.method)', which the path does not have",
                    location: location
                )
            ]
        case .found(let operation, let values):
            var found = parameters(request, operation, values, budget)
            if let body = operation.part.part("requestBody"), let resolved = document.resolved(body) {
                found += content(request, resolved, budget)
            }
            return found
        }
    }

    private enum Match {
        case unknownPath
        case unknownMethod(DocumentLocation)
        case found(OpenAPIDocument.Operation, [String: String])
    }

    /// Finds the path as it is, or below the path of the document's server.
    private func find(_ method: String, _ path: String) -> Match {
        let whole = match(method, path)
        guard case .unknownPath = whole, !server.isEmpty, path.hasPrefix(server + "/") else { return whole }
        return match(method, String(path.dropFirst(server.count)))
    }

    private func match(_ method: String, _ path: String) -> Match {
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        var other: DocumentLocation?
        for candidate in paths where candidate.segments.count == segments.count {
            var values: [String: String] = [:]
            let isSame = zip(candidate.segments, segments).allSatisfy { wanted, segment in
                guard let value = wanted.value(segment) else { return false }
                if let name = wanted.name, values[name] == nil { values[name] = value }
                return true
            }
            guard isSame else { continue }
            guard let operation = candidate.operations[method] ?? (method == "HEAD" ? candidate.operations["GET"] : nil)
            else {
                other = other ?? candidate.location
                continue
            }
            return .found(operation, values)
        }
        return other.map { .unknownMethod($0) } ?? .unknownPath
    }

    // MARK: - Parameters

    private func parameters(
        _ request: RequestParts,
        _ operation: OpenAPIDocument.Operation,
        _ values: [String: String],
        _ budget: SchemaBudget
    ) -> [RequestViolation] {
        var found: [RequestViolation] = []
        var seen: Set<String> = []
        // The parameters of the operation take precedence over those of the path.
        for part in document.elements(operation.part.part("parameters"))
            + document.elements(operation.item.part("parameters"))
        {
            guard let name = part.tree["name"]?.text, let location = part.tree["in"]?.text,
                seen.insert("\(location) \(name)").inserted
            else { continue }
            let given: [String]
            switch location {
            case "path": given = values[name].map { [$0] } ?? []
            case "query": given = request.query(name)
            case "header":
                // The document describes these fields elsewhere (OpenAPI 3, Parameter Object).
                if ["accept", "content-type", "authorization"].contains(name.lowercased()) { continue }
                given = request.fields.all(name)
            case "cookie": given = request.cookies(name)
            default: continue
            }
            let label = "\(location).\(name)"
            guard !given.isEmpty else {
                if part.tree["required"]?.isTrue == true, location != "path" {
                    found.append(
                        RequestViolation(part: label, reason: "is missing", location: part.location.within("required"))
                    )
                }
                continue
            }
            guard let schema = part.part("schema") else { continue }
            // Origins use either the first or the last of several values, so each of them is checked.
            let isEmptyAllowed = location == "query" && part.tree["allowEmptyValue"]?.isTrue == true
            let checked = isEmptyAllowed ? given.filter { !$0.isEmpty } : given
            if !checked.isEmpty { found += check(checked, part, schema, label, budget) }
        }
        return found
    }

    /// Checks a value that is given as text: it has the type that the schema names, if it looks like one.
    private func check(
        _ given: [String],
        _ part: Part,
        _ schema: Part,
        _ label: String,
        _ budget: SchemaBudget
    ) -> [RequestViolation] {
        guard let resolved = document.resolved(schema) else { return [] }
        let shape = SchemaShape(resolved, document)
        let values: [ContentTree]
        switch SchemaShape.type(shape.tree) {
        case "object": return []
        case "array":
            let isOne = part.tree["explode"] == .bool(false) || part.tree["in"] != .string("query")
            let texts =
                isOne
                ? given.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) } : given
            let items = shape.part("items").flatMap { document.resolved($0) }
            values = [.array(texts.map { Self.value($0, items?.tree ?? .empty) })]
        default: values = given.map { Self.value($0, shape.tree) }
        }
        // One of the violations is enough.
        let violations = values.lazy.map { SchemaCheck.violations($0, schema, document, patterns, budget) }
            .first { !$0.isEmpty }
        return (violations ?? []).map { violation in
            RequestViolation(part: label + violation.pointer, reason: violation.reason, location: violation.location)
        }
    }

    private static func value(_ text: String, _ schema: ContentTree) -> ContentTree {
        switch SchemaShape.type(schema) {
        case "integer", "number":
            return ContentTree.number(spelled: text) ?? .string(text)
        case "boolean": return text == "true" || text == "false" ? .bool(text == "true") : .string(text)
        default: return .string(text)
        }
    }

    // MARK: - Contents

    private func content(
        _ request: RequestParts,
        _ body: Part,
        _ budget: SchemaBudget
    ) -> [RequestViolation] {
        let whole: WholeBody?
        switch request.body {
        case .unread: return []
        case .tooLong: whole = nil
        case .whole(let read): whole = read
        }
        if let whole, whole.bytes.isEmpty {
            return body.tree["required"]?.isTrue == true
                ? [RequestViolation(part: "body", reason: "is missing", location: body.location.within("required"))]
                : []
        }
        guard let content = body.part("content"), let types = content.tree.members?.map(\.name), !types.isEmpty else {
            return []
        }
        let type = MediaType.essence(request.fields.all("Content-Type").first ?? "")
        guard let known = types.first(where: { Self.includes($0, type) }), let media = content.part(known) else {
            let shown = type.isEmpty ? "is missing" : "is '\(type)', not \(types.joined(separator: " or "))"
            return [RequestViolation(part: "header.Content-Type", reason: shown, location: content.location)]
        }
        guard let schema = media.part("schema") else { return [] }
        let isJSON = type == "application/json" || type.hasSuffix("+json")
        guard isJSON || type == "application/x-www-form-urlencoded" else { return [] }
        guard let whole else {
            let reason = "is longer than 'body_limit', and cannot be checked"
            return [RequestViolation(part: "body", reason: reason, location: media.location)]
        }
        let value: ContentTree
        if isJSON {
            do throws(TreeError) { value = try JSONReader.read(whole.bytes) } catch {
                return [RequestViolation(part: "body", reason: "is no JSON: \(error)", location: media.location)]
            }
        } else {
            value = form(whole.bytes, schema)
        }
        return SchemaCheck.violations(value, schema, document, patterns, budget).map { violation in
            RequestViolation(part: "body" + violation.pointer, reason: violation.reason, location: violation.location)
        }
    }

    /// Whether a media type of a document, perhaps with an asterisk, covers the type of a content.
    private static func includes(_ pattern: String, _ type: String) -> Bool {
        let pattern = MediaType.essence(pattern)
        if pattern == "*/*" || pattern == type { return true }
        return pattern.hasSuffix("/*") && type.hasPrefix(pattern.dropLast())
    }

    /// The items of a form, with the types of the schema.
    private func form(_ bytes: [UInt8], _ schema: Part) -> ContentTree {
        let shape = document.resolved(schema).map { SchemaShape($0, document) }
        var members: [ContentTree.Member] = []
        for item in FormItems.list(Substring(String(decoding: bytes, as: UTF8.self))) where !item.name.isEmpty {
            let property = shape?.properties.first { $0.name.isSameName(as: item.name) }.flatMap {
                document.resolved($0.schema)
            }
            let isList = property.map { SchemaShape.type($0.tree) == "array" } ?? false
            let inner = isList ? property?.part("items").flatMap { document.resolved($0) } : property
            let value = Self.value(item.value, inner?.tree ?? .empty)
            if let index = members.firstIndex(named: item.name) {
                members[index].value = .array((members[index].value.elements ?? [members[index].value]) + [value])
            } else {
                members.append(.init(item.name, isList ? .array([value]) : value))
            }
        }
        return .object(members)
    }
}
