// OpenAPI 3 read as demo answers: an endpoint for each operation, with the examples of the document, or with values
// that its schemas allow.

import Contracts
import HTTPWire
import Trees

/// Reads one document.
struct OpenAPIImport {
    private let document: OpenAPIDocument
    private let options: ImportOptions
    private var draft: ImportDraft
    private var names: Set<String> = []
    private var shapes: [String: DocumentLocation] = [:]

    private typealias Part = OpenAPIDocument.Part

    /// One possible content of a response.
    private struct Example {
        let type: String
        /// The example's name in `examples`; nil for other examples.
        let name: String?
        let bytes: [UInt8]
    }

    /// Reads a document.
    /// - Throws: an error if the tree is not such a document.
    static func read(
        _ tree: ContentTree,
        at location: DocumentLocation,
        _ options: ImportOptions
    ) throws(DocumentError) -> ImportedConfiguration {
        var reader = OpenAPIImport(try OpenAPIDocument(tree, location), options)
        return try reader.configuration()
    }

    private init(_ document: OpenAPIDocument, _ options: ImportOptions) {
        self.document = document
        self.options = options
        draft = ImportDraft(options)
    }

    private mutating func configuration() throws(DocumentError) -> ImportedConfiguration {
        let title = options.service ?? document.root.tree["info"]?["title"]?.text?.lowercased() ?? "api"
        var service = ImportedService(name: WordName.word(title, or: "api"), prefix: "/")
        (service.prefix, service.baseURL) = Self.server(document.server)
        for operation in document.operations {
            if let endpoint = endpoint(operation, of: service.name) { service.endpoints.append(endpoint) }
        }
        if document.root.tree["webhooks"] != nil {
            draft.leaveOut(document.root.location.within("webhooks"), "Drydock sends no requests by itself")
        }
        return try ImportedConfiguration([service.tree], rules: service.endpoints.count, draft, document.root.location)
    }

    /// The prefix and the base URL for a server.
    private static func server(_ text: String?) -> (prefix: String, baseURL: String?) {
        guard let text else { return ("/", nil) }
        let url = SourceURL(text)
        var path = url?.path ?? SourceURL.target(Substring(text)).path
        while path.hasSuffix("/") { path.removeLast() }
        let isPrefix =
            path.hasPrefix("/") && EndpointPaths.isLiteral(path) && !path.contains("//") && !path.contains("{")
        return (isPrefix ? path : "/", url.map { isPrefix || path.isEmpty ? $0.origin + path : $0.origin })
    }

    // MARK: - Operations

    private mutating func endpoint(_ operation: OpenAPIDocument.Operation, of service: String) -> ContentTree? {
        let location = operation.part.location
        guard operation.method != "TRACE" else {
            draft.leaveOut(location, "Drydock refuses TRACE")
            return nil
        }
        guard let path = Self.path(operation.path) else {
            draft.leaveOut(
                location,
                "the path of an endpoint has parameters that are whole segments, and no characters to be encoded"
            )
            return nil
        }
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        let shape = operation.method + segments.map { $0.hasPrefix(":") ? ":" : $0 }.joined(separator: "/")
        if let other = shapes[shape] {
            draft.leaveOut(location, "the operation at \(other) answers the same requests")
            return nil
        }
        guard let responses = operation.part.part("responses"), let own = Self.chosen(responses.tree) else {
            draft.leaveOut(location.within("responses"), "there is no response to answer with")
            return nil
        }
        shapes[shape] = location
        if operation.part.tree["callbacks"] != nil {
            draft.change(location.within("callbacks"), "Drydock sends no requests by itself")
        }
        let wanted = operation.part.tree["operationId"]?.text.map { WordName.word($0, or: "operation") }
        let name = WordName.unique(wanted ?? WordName.of(operation.method, operation.path), among: &names)
        var rules: [ImportedRule] = []
        var ruleNames: Set<String> = []
        var main: [ImportedAnswer] = []
        for member in responses.tree.members ?? [] {
            guard let status = Self.status(member.name, isOwn: member.name == own) else { continue }
            guard let part = responses.part(member.name), let response = document.resolved(part) else {
                let missing =
                    responses.part(member.name).map { document.reason(unresolved: $0) } ?? "there is no response"
                draft.change(responses.location.within(member.name), missing)
                continue
            }
            let (answers, examples) = answers(response, status, name)
            guard let first = answers.first else { continue }
            if member.name == own {
                main = [first]
                rules += zip(answers, examples).dropFirst().map { answer, example in
                    rule("example-\(example.name ?? example.type)", Self.preference(example), answer, &ruleNames)
                }
            } else {
                let code = [ValueTest.matches(#"\bcode=\#(status)\b"#)]
                rules.append(rule("code-\(status)", [.init("Prefer", code.tree)], first, &ruleNames))
            }
        }
        guard let answer = main.first else {
            draft.leaveOut(location, "its response cannot be read")
            return nil
        }
        rules.append(ImportedRule(name: WordName.unique("answer", among: &ruleNames), answers: [answer]))
        let target = "/" + segments.dropFirst().map { $0.hasPrefix(":") ? "1" : $0 }.joined(separator: "/")
        for rule in rules {
            var example = ImportExample(rule, at: location, of: service, endpoint: name, path: target)
            example?.method = operation.method
            draft.prove(example)
        }
        return .object(of: [
            "name": .string(name),
            "method": operation.method == "GET" ? nil : .string(operation.method),
            "path": .string(path),
            "demo": .object(of: [
                "enabled": .bool(true),
                "files": .string("./" + ImportedConfiguration.bodies),
                "rules": .array(rules.map(\.tree)),
            ]),
        ])
    }

    private func rule(
        _ name: String,
        _ fields: [ContentTree.Member],
        _ answer: ImportedAnswer,
        _ names: inout Set<String>
    ) -> ImportedRule {
        let name = WordName.unique(WordName.word(name, or: "example"), among: &names)
        return ImportedRule(name: name, condition: [.init("fields", .object(fields))], answers: [answer])
    }

    /// The condition by which a client asks for an example: its name, or its type.
    private static func preference(_ example: Example) -> [ContentTree.Member] {
        // Many clients list types that they do not need; the one that they prefer comes first.
        guard let name = example.name else {
            let pattern = #"\A\s*"# + ValueTest.quoted(example.type) + #"\s*(?:$|[,;])"#
            return [.init("Accept", [ValueTest.matches(pattern)].tree)]
        }
        let pattern = #"(?:^|[,;\s])example="?"# + ValueTest.quoted(name) + #""?(?:$|[,;\s])"#
        return [.init("Prefer", [ValueTest.matches(pattern)].tree)]
    }

    /// The path of an endpoint, such as `/users/:id` for `/users/{id}`; nil if an endpoint cannot have it.
    private static func path(_ template: String) -> String? {
        var names: Set<String> = []
        var segments: [String] = []
        for segment in template.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            if segment.hasPrefix("{"), segment.hasSuffix("}"),
                segment.dropFirst().dropLast().allSatisfy({ !"{}".contains($0) })
            {
                let word = WordName.word(String(segment), or: "id").replacing("-", with: "_").replacing(".", with: "_")
                segments.append(":" + WordName.unique(word, among: &names).replacing("-", with: "_"))
            } else {
                let text = SourceURL.encoded(String(segment))
                guard !text.contains("{"), !text.contains("}"), EndpointPaths.isLiteral("/" + text) else { return nil }
                segments.append(text)
            }
        }
        return "/" + segments.joined(separator: "/")
    }

    /// The response that answers by default: the first success.
    private static func chosen(_ responses: ContentTree) -> String? {
        let names = (responses.members ?? []).map(\.name).filter { !$0.hasPrefix("x-") }
        let successes = names.filter { $0.hasPrefix("2") }.sorted()
        return successes.first ?? names.first { $0 == "default" } ?? names.sorted().first
    }

    /// The status for the name `200`, `4XX` or `default`.
    private static func status(_ name: String, isOwn: Bool) -> Int? {
        if name == "default" { return isOwn ? 200 : 500 }
        let digits = name.uppercased().hasSuffix("XX") ? name.prefix(1) + "00" : Substring(name)
        guard let status = Int(digits), 200...599 ~= status else { return nil }
        return status
    }

    // MARK: - Responses

    /// An answer for each example of a response.
    private mutating func answers(
        _ response: Part,
        _ status: Int,
        _ name: String
    ) -> (answers: [ImportedAnswer], examples: [Example]) {
        var lines: [(name: String, value: String)] = []
        let fields = response.part("headers")
        for member in fields?.tree.members ?? [] where member.name.lowercased() != "content-type" {
            guard let part = fields?.part(member.name), let field = document.resolved(part) else { continue }
            let value = field.tree["example"] ?? namedExample(field) ?? sample(field)
            if let text = value?.scalar { lines.append((member.name, text)) }
        }
        var examples = ImportedAnswer.mayHaveContent(status) ? examples(response.part("content")) : []
        if examples.isEmpty { examples = [Example(type: "", name: nil, bytes: [])] }
        var answers: [ImportedAnswer] = []
        for example in examples {
            let own = example.type.isEmpty ? [] : [(name: "Content-Type", value: example.type)]
            let headers = ImportedFields.members(own + lines, at: response.location.within("headers"), &draft)
            let stem = status < 300 ? name : "\(name)-\(status)"
            let file = draft.file(
                example.bytes,
                type: example.type,
                near: WordName.word(example.name.map { "\(stem)-\($0)" } ?? stem, or: "body")
            )
            answers.append(ImportedAnswer(status: status, headers: headers, file: file))
        }
        return (answers, examples)
    }

    /// The examples of a content, the default one first: JSON before other types.
    private mutating func examples(_ content: Part?) -> [Example] {
        guard let content else { return [] }
        let types = (content.tree.members ?? []).map(\.name)
        let isJSON = { (type: String) in FileEnding.of(type: type, []) == "json" }
        let ordered =
            types.filter { $0 == "application/json" } + types.filter { isJSON($0) && $0 != "application/json" }
        var found: [Example] = []
        for type in ordered + types.filter({ !ordered.contains($0) }) {
            guard let media = content.part(type) else { continue }
            // Only an exact type can be sent.
            let sent = type.contains("*") ? "application/json" : type
            if let value = media.tree["example"] {
                found.append(Example(type: sent, name: nil, bytes: Self.bytes(value, isJSON: isJSON(sent))))
            } else if let named = media.part("examples"), let members = named.tree.members, !members.isEmpty {
                for member in members {
                    guard let part = named.part(member.name), let example = document.resolved(part),
                        let value = example.tree["value"]
                    else {
                        draft.change(named.location.within(member.name), "its value is not in this file")
                        continue
                    }
                    found.append(Example(type: sent, name: member.name, bytes: Self.bytes(value, isJSON: isJSON(sent))))
                }
            } else if found.isEmpty, isJSON(sent) || sent.hasPrefix("text/"), let value = sample(media) {
                found.append(Example(type: sent, name: nil, bytes: Self.bytes(value, isJSON: isJSON(sent))))
            } else if found.isEmpty, types.count == 1 {
                draft.change(
                    media.location,
                    "there is no example, and values are made for JSON and texts alone: the answer has no content"
                )
            }
        }
        return found
    }

    private static func bytes(_ value: ContentTree, isJSON: Bool) -> [UInt8] {
        if !isJSON, let text = value.text { return Array(text.utf8) }
        return JSONWriter.bytes(value)
    }

    /// The first of the named examples of a header whose value is in the file; nil if there is none.
    private func namedExample(_ field: Part) -> ContentTree? {
        guard let named = field.part("examples") else { return nil }
        for member in named.tree.members ?? [] {
            if let part = named.part(member.name), let value = document.resolved(part)?.tree["value"] { return value }
        }
        return nil
    }

    /// A value for the schema of a content or a header.
    private mutating func sample(_ owner: Part) -> ContentTree? {
        guard let schema = owner.part("schema") else { return nil }
        var sample = SchemaSample(document, seed: options.seed)
        let value = sample.value(schema)
        for problem in sample.problems { draft.change(problem.location, problem.reason) }
        return value
    }
}
