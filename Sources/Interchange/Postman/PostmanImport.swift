// Collections of Postman (v2.0 and v2.1) read as demo rules: the saved responses of their requests, and the targets of
// the requests.

import Content
import Contracts
import Trees

/// Reads one collection.
struct PostmanImport {
    private let options: ImportOptions
    private var draft: ImportDraft
    /// The origins in the order of their first requests.
    private var origins: [Origin] = []

    /// The rules for one origin.
    private struct Origin {
        let origin: String?
        let host: String?
        let port: String?
        var answers: [Answer] = []
    }

    /// A saved response, and the requests that it answers.
    private struct Answer {
        let method: String
        let target: PostmanTarget
        let query: [ContentTree.Member]
        let body: SentBody
        let location: DocumentLocation
        let name: String
        let answer: ImportedAnswer

        func isForSameTarget(as other: Answer) -> Bool {
            method == other.method && target.path == other.target.path && query == other.query
        }
    }

    private init(_ options: ImportOptions) {
        self.options = options
        draft = ImportDraft(options)
    }

    /// Reads a collection.
    /// - Throws: an error if the tree is not a collection, or has no saved response.
    static func read(
        _ tree: ContentTree,
        at location: DocumentLocation,
        _ options: ImportOptions
    ) throws(DocumentError) -> ImportedConfiguration {
        guard tree["item"]?.elements != nil else {
            throw DocumentError(location.within("item"), "is no list; a collection has its requests there")
        }
        var reader = PostmanImport(options)
        reader.add(itemsOf: tree, location, PostmanVariables(keepsSecrets: options.keepsSecrets))
        return try reader.configuration(tree, location)
    }

    // MARK: - Items

    private mutating func add(
        itemsOf tree: ContentTree,
        _ location: DocumentLocation,
        _ outer: PostmanVariables
    ) {
        let variables = outer.adding(tree["variable"])
        for (position, item) in (tree["item"]?.elements ?? []).enumerated() {
            let here = location.within("item").within(position)
            if item["item"] != nil {
                add(itemsOf: item, here, variables)
            } else {
                add(item, here, variables.adding(item["variable"]))
            }
        }
    }

    private mutating func add(_ item: ContentTree, _ location: DocumentLocation, _ variables: PostmanVariables) {
        guard let request = item["request"] else { return draft.leaveOut(location, "it has no request") }
        let responses = item["response"]?.elements ?? []
        if responses.isEmpty { return draft.leaveOut(location.within("response"), "it has no saved response") }
        for (position, response) in responses.enumerated() {
            let here = location.within("response").within(position)
            // The original request was sent, and may differ from the one of the item.
            let original = response["originalRequest"]
            let isOriginal = original?["url"] != nil
            let sent = isOriginal ? original ?? request : request
            add(
                response,
                sent,
                isOriginal ? here.within("originalRequest") : location.within("request"),
                here,
                item["name"]?.text ?? "",
                variables
            )
        }
    }

    private mutating func add(
        _ response: ContentTree,
        _ request: ContentTree,
        _ requestLocation: DocumentLocation,
        _ location: DocumentLocation,
        _ name: String,
        _ variables: PostmanVariables
    ) {
        let method = request["method"]?.text?.uppercased() ?? "GET"
        guard ImportedFields.isToken(method), method != "CONNECT" else {
            return draft.leaveOut(requestLocation.within("method"), "'\(method)' is a method that no rule answers")
        }
        // A request may consist of its URL only.
        guard let target = PostmanTarget(request["url"] ?? request, variables) else {
            return draft.leaveOut(requestLocation.within("url"), "this is no http or https URL of a plain host")
        }
        guard let status = response["code"]?.whole, 200...599 ~= status else {
            return draft.leaveOut(location.within("code"), "there is no status from 200 to 599")
        }
        var query: [ContentTree.Member] = []
        for item in target.query where !item.name.isEmpty && !query.contains(where: { $0.name == item.name }) {
            let wanted: [ValueTest] = [item.value.map { .equals($0) } ?? .present(true)]
            query.append(
                .init(item.name, Secrets.tests(wanted, of: item.name, at: requestLocation.within("url"), &draft).tree)
            )
        }
        let responseName = response["name"]?.text ?? ""
        let body = variables.resolved(response["body"]?.text ?? "")
        if body.contains("{{$") {
            draft.change(location.within("body"), "dynamic variables of Postman are sent as they stand")
        }
        var lines = (response["header"]?.elements ?? []).map { field in
            (name: field["key"]?.text ?? "", value: variables.resolved(field["value"]?.scalar ?? ""))
        }
        lines = lines.map { $0.name.lowercased() == "content-type" ? ($0.name, MediaType.inUTF8($0.value)) : $0 }
        let type = lines.first { $0.name.lowercased() == "content-type" }?.value
        let stem = WordName.word(name.isEmpty ? method + " " + target.path.text : name, or: "answer")
        var answer = ImportedAnswer(status: status)
        answer.headers = ImportedFields.members(lines, at: location.within("header"), &draft)
        if ImportedAnswer.mayHaveContent(status), method != "HEAD" {
            answer.file = draft.file(
                Array(body.utf8),
                type: type,
                near: WordName.word(stem + " " + responseName, or: stem)
            )
        }
        let index = origins.firstIndex { $0.origin == target.url?.origin } ?? origins.endIndex
        if index == origins.endIndex {
            origins.append(Origin(origin: target.url?.origin, host: target.url?.host, port: target.url?.port))
        }
        origins[index].answers.append(
            Answer(
                method: method,
                target: target,
                query: query,
                body: ["GET", "HEAD"].contains(method) ? .none : sentBody(request["body"], variables),
                location: requestLocation,
                name: responseName.isEmpty ? stem : responseName,
                answer: answer
            )
        )
    }

    /// The content of a request in the form in which a rule can ask for it.
    private func sentBody(_ body: ContentTree?, _ variables: PostmanVariables) -> SentBody {
        guard let body, body["disabled"]?.isTrue != true, let mode = body["mode"]?.text else { return .none }
        switch mode {
        case "raw":
            let text = variables.resolved(body["raw"]?.text ?? "")
            return SentBody(text: text, keepsSecrets: draft.keepsSecrets || text.isEmpty)
        case "urlencoded":
            let items = (body["urlencoded"]?.elements ?? []).filter { $0["disabled"]?.isTrue != true }
            return SentBody(
                form: items.map { (name: $0["key"]?.text ?? "", value: variables.resolved($0["value"]?.scalar ?? "")) },
                keepsSecrets: draft.keepsSecrets
            )
        case "graphql":
            let query = body["graphql"]?["query"]?.text ?? ""
            return .known([.init("json", .object([.init("query", .object([.init("is", .string(query))]))]))])
        default: return .other
        }
    }

    // MARK: - Services

    private mutating func configuration(
        _ tree: ContentTree,
        _ location: DocumentLocation
    ) throws(DocumentError) -> ImportedConfiguration {
        var services: [ContentTree] = []
        var names: Set<String> = []
        var count = 0
        let title = options.service ?? tree["info"]?["name"]?.text?.lowercased() ?? "collection"
        for origin in origins {
            let isOne = origins.count == 1
            let host = (origin.host ?? "other") + (origin.port.map { "-\($0)" } ?? "")
            let rules = rules(origin.answers)
            count += rules.count
            let service = ImportedService(
                name: WordName.unique(
                    WordName.word(isOne ? title : host, or: "collection", atMost: 200),
                    among: &names
                ),
                prefix: isOne ? "/" : "/\(host)",
                baseURL: origin.origin,
                rules: rules
            )
            draft.prove(service)
            services.append(service.tree)
        }
        return try ImportedConfiguration(services, rules: count, draft, location)
    }

    /// Makes rules from the answers to one target. Of several answers to the same requests the first success is the
    /// default, and the others are selected by the fields that mock servers of Postman know.
    ///
    /// If requests with several bodies were sent to one target, each rule asks for its own.
    private mutating func rules(_ answers: [Answer]) -> [ImportedRule] {
        var found: [(rule: ImportedRule, order: [Int])] = []
        var names: Set<String> = []
        var done: [Answer] = []
        for answer in answers
        where !done.contains(where: { $0.isForSameTarget(as: answer) && $0.body.isSame(answer.body) }) {
            done.append(answer)
            let ofTarget = answers.filter { $0.isForSameTarget(as: answer) }
            let isOnlyBody = ofTarget.allSatisfy { $0.body.isSame(answer.body) }
            if !isOnlyBody, answer.body == .other {
                draft.change(
                    answer.location.within("body"),
                    "this content has secrets or variables, or is no text: the rule answers whatever content no other rule asks for"
                )
            }
            let wanted = isOnlyBody ? [] : answer.body.condition
            let all = ofTarget.filter { $0.body.isSame(answer.body) }
            let main = all.firstIndex { 200..<300 ~= $0.answer.status } ?? 0
            var codes: Set<Int> = [all[main].answer.status]
            let isPattern = answer.target.path.isPattern ? answer.target.path.parameters : 0
            for (position, one) in all.enumerated() {
                func add(_ fields: [ContentTree.Member], isMain: Bool) {
                    let name = WordName.word(
                        all.count == 1 ? WordName.of(one.method, one.target.path.text) : one.name,
                        or: "answer"
                    )
                    var rule = ImportedRule(name: WordName.unique(name, among: &names), answers: [one.answer])
                    rule.condition = [
                        .init("method", one.method == "GET" ? .texts(["GET", "HEAD"]) : .string(one.method)),
                        .init("path", one.target.path.test),
                    ]
                    rule.location = one.location
                    rule.path = one.target.path.example
                    if !one.query.isEmpty { rule.condition.append(.init("query", .object(one.query))) }
                    if !fields.isEmpty { rule.condition.append(.init("fields", .object(fields))) }
                    if !wanted.isEmpty { rule.condition.append(.init("body", .object(wanted))) }
                    let order = [isPattern, -one.query.count, wanted.isEmpty ? 1 : 0, isMain ? 1 : 0, found.count]
                    found.append((rule, order))
                }
                if position == main {
                    add([], isMain: true)
                    continue
                }
                add([.init("x-mock-response-name", .string(one.name))], isMain: false)
                if codes.insert(one.answer.status).inserted {
                    add([.init("x-mock-response-code", .string(String(one.answer.status)))], isMain: false)
                }
            }
        }
        return found.sorted { $0.order.lexicographicallyPrecedes($1.order) }.map(\.rule)
    }
}

// MARK: - Targets

/// The variables of a collection and of the folders around a request.
struct PostmanVariables {
    /// The most levels of variables within the values of variables.
    private static let deepest = 5

    /// Whether variables whose names are those of secrets keep their values.
    let keepsSecrets: Bool
    private var values: [String: String] = [:]

    init(keepsSecrets: Bool) { self.keepsSecrets = keepsSecrets }

    /// The variables with those of an inner scope, which take precedence.
    func adding(_ list: ContentTree?) -> PostmanVariables {
        var result = self
        for variable in list?.elements ?? [] where variable["disabled"]?.isTrue != true {
            guard let name = variable["key"]?.text ?? variable["id"]?.text, let value = variable["value"]?.scalar else {
                continue
            }
            if keepsSecrets || !SecretNames.contains(name) { result.values[name] = value }
        }
        return result
    }

    /// The text with the values of its `{{name}}` variables, as far as they are known.
    func resolved(_ text: String) -> String {
        var text = text
        for _ in 0..<Self.deepest {
            let next = once(text)
            if next == text || next.utf8.count > 1 << 24 { break }
            text = next
        }
        return text
    }

    private func once(_ text: String) -> String {
        var result = ""
        var rest = text[...]
        while let open = rest.firstRange(of: "{{"), let close = rest[open.upperBound...].firstRange(of: "}}") {
            let name = rest[open.upperBound..<close.lowerBound]
            result += rest[..<open.lowerBound]
            result += values[name.filter { $0 != " " }] ?? "{{\(name)}}"
            rest = rest[close.upperBound...]
        }
        return result + rest
    }
}

/// The target of a request.
struct PostmanTarget {
    /// A path, in which some segments may match any value.
    struct Path: Equatable {
        /// The path as a person reads it.
        let text: String
        /// The segments; nil for one that matches any value.
        let segments: [String?]

        /// The number of segments that match any value.
        var parameters: Int { segments.count { $0 == nil } }
        var isPattern: Bool { parameters > 0 }

        /// A path that matches.
        var example: String { "/" + segments.map { $0 ?? "x" }.joined(separator: "/") }

        /// The condition in the form of `when.path`.
        var test: ContentTree {
            guard isPattern else { return ValueTest.path(text) }
            let parts = segments.map { $0.map(ValueTest.quoted) ?? "[^/]+" }
            return [ValueTest.matches(#"\A/"# + parts.joined(separator: "/") + #"\z"#)].tree
        }
    }

    /// The URL; nil if it begins with a variable without a value.
    let url: SourceURL?
    let path: Path
    /// The items of the query; a value is nil if it has a variable without a value.
    let query: [(name: String, value: String?)]

    /// - Parameter tree: a text, or an object with the URL's parts.
    /// - Returns: nil if it is not a URL of a plain host.
    init?(_ tree: ContentTree, _ variables: PostmanVariables) {
        guard let raw = tree.text ?? tree["raw"]?.text ?? Self.joined(tree) else { return nil }
        var text = variables.resolved(raw)
        if text.hasPrefix("{{"), let close = text.firstRange(of: "}}") {
            // A variable without a value is taken for the origin of the collection.
            url = nil
            text = String(text[close.upperBound...])
        } else {
            if !text.contains("://") { text = "http://" + text }
            // A variable in the path does not make the URL invalid.
            guard let found = SourceURL(text.replacing("{{", with: "%7B%7B").replacing("}}", with: "%7D%7D")) else {
                return nil
            }
            url = found
            let rest = text[(text.firstRange(of: "://")?.upperBound ?? text.startIndex)...]
            text = rest.firstIndex { $0 == "/" || $0 == "?" }.map { String(rest[$0...]) } ?? "/"
        }
        let target = text.prefix { $0 != "#" }
        let mark = target.firstIndex(of: "?") ?? target.endIndex
        let own = target[..<mark].isEmpty ? "/" : String(target[..<mark])
        guard own.hasPrefix("/") else { return nil }
        let segments = own.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map {
            segment -> String? in
            let isAny = segment.hasPrefix(":") && segment.utf8.count > 1 || segment.contains("{{")
            return isAny ? nil : SourceURL.encoded(String(segment))
        }
        path = Path(
            text: segments.contains(nil) ? own : "/" + segments.compactMap(\.self).joined(separator: "/"),
            segments: segments
        )
        let disabled = Set(
            (tree["query"]?.elements ?? []).filter { $0["disabled"]?.isTrue == true }.compactMap { $0["key"]?.text }
        )
        query = FormItems.list(target[mark...].dropFirst()).compactMap { item in
            disabled.contains(item.name) ? nil : (item.name, item.value.contains("{{") ? nil : item.value)
        }
    }

    /// The text of a URL that is given only in parts.
    private static func joined(_ tree: ContentTree) -> String? {
        func words(_ name: String, _ separator: String) -> String? {
            tree[name].flatMap {
                $0.text ?? $0.elements?.compactMap { $0.text ?? $0["value"]?.text }.joined(separator: separator)
            }
        }
        guard let host = words("host", ".") else { return nil }
        let query = (tree["query"]?.elements ?? []).map { "\($0["key"]?.text ?? "")=\($0["value"]?.text ?? "")" }
        return (tree["protocol"]?.text.map { $0 + "://" } ?? "") + host + "/" + (words("path", "/") ?? "")
            + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }
}
