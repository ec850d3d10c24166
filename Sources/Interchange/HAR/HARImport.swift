// HAR 1.2, as browsers and proxies write it, read as demo rules with the recorded answers.

import Content
import Contracts
import HTTPWire
import Trees

/// Reads the entries of one HAR file.
struct HARImport {
    private let options: ImportOptions
    private var draft: ImportDraft
    /// The origins in the order of their first entries.
    private var origins: [Origin] = []

    /// One origin, which becomes a service.
    private struct Origin {
        let origin: String
        let host: String
        let port: String?
        var requests: [Request] = []
        var indexOfRequest: [String: Int] = [:]
    }

    /// A method and a path, with the queries that the file has for them.
    private struct Request {
        let method: String
        let path: String
        var variants: [Variant] = []
        /// The index of a variant by the items of its query in any order, since rules match them in any.
        var indexOfVariant: [Set<ContentTree.Member>: Int] = [:]
    }

    /// The answers to requests with one query.
    private struct Variant {
        let query: [ContentTree.Member]
        var exchanges: [Exchange] = []
    }

    private struct Exchange {
        let location: DocumentLocation
        let body: SentBody
        let answer: ImportedAnswer
    }

    private init(_ options: ImportOptions) {
        self.options = options
        draft = ImportDraft(options)
    }

    /// Reads the entries of a log.
    /// - Throws: an error if the tree is not a log.
    static func read(
        _ tree: ContentTree,
        at location: DocumentLocation,
        _ options: ImportOptions
    ) throws(DocumentError) -> ImportedConfiguration {
        guard let entries = tree["log"]?["entries"]?.elements else {
            throw DocumentError(location.within("log", "entries"), "is no list; a HAR file has its requests there")
        }
        var reader = HARImport(options)
        for (position, entry) in entries.enumerated() {
            reader.add(entry, location.within("log", "entries").within(position))
        }
        return try reader.configuration(location)
    }

    // MARK: - Entries

    private mutating func add(_ entry: ContentTree, _ location: DocumentLocation) {
        guard let request = entry["request"], let response = entry["response"], let target = request["url"]?.text else {
            return draft.leaveOut(location, "it has no request with a URL, or no response")
        }
        guard let url = SourceURL(target) else {
            return draft.leaveOut(location.within("request", "url"), "this is no http or https URL of a plain host")
        }
        if !options.hosts.isEmpty, !options.hosts.contains(url.host) { return }
        let method = request["method"]?.text?.uppercased() ?? "GET"
        guard ImportedFields.isToken(method), method != "CONNECT" else {
            return draft.leaveOut(location.within("request", "method"), "'\(method)' is a method that no rule answers")
        }
        guard let status = response["status"]?.whole, 200...599 ~= status else {
            return draft.leaveOut(
                location.within("response", "status"),
                "there is no answer with a status from 200 to 599"
            )
        }
        if status == 304 || status == 206 {
            let what = status == 304 ? "says that a copy is still right" : "is a part"
            return draft.leaveOut(
                location.within("response"),
                "an answer with status \(status) \(what); whole answers are needed"
            )
        }
        var query: [ContentTree.Member] = []
        for item in url.query where !item.name.isEmpty {
            let here = location.within("request", "url")
            guard !query.contains(where: { $0.name == item.name }) else {
                draft.change(here, ImportDraft.repeated(item.name))
                continue
            }
            let tests = Secrets.tests([.equals(item.value)], of: item.name, at: here, &draft)
            query.append(.init(item.name, tests.tree))
        }
        let sent = method == "GET" || method == "HEAD" ? .none : body(request["postData"], location)
        guard let answer = answer(response, status, isHead: method == "HEAD", WordName.of(method, url.path), location)
        else {
            return
        }
        insert(url, method, query, Exchange(location: location, body: sent, answer: answer))
    }

    private mutating func insert(
        _ url: SourceURL,
        _ method: String,
        _ query: [ContentTree.Member],
        _ exchange: Exchange
    ) {
        let index = origins.firstIndex { $0.origin == url.origin } ?? origins.endIndex
        if index == origins.endIndex { origins.append(Origin(origin: url.origin, host: url.host, port: url.port)) }
        let key = "\(method) \(url.path)"
        let count = origins[index].requests.count
        let known = origins[index].indexOfRequest[key] ?? count
        if known == count {
            origins[index].indexOfRequest[key] = count
            origins[index].requests.append(Request(method: method, path: url.path))
        }
        let items = Set(query)
        let next = origins[index].requests[known].variants.count
        let variant = origins[index].requests[known].indexOfVariant[items] ?? next
        if variant == next {
            origins[index].requests[known].indexOfVariant[items] = next
            origins[index].requests[known].variants.append(Variant(query: query))
        }
        origins[index].requests[known].variants[variant].exchanges.append(exchange)
    }

    private func body(_ data: ContentTree?, _ location: DocumentLocation) -> SentBody {
        guard let data else { return .none }
        let type = MediaType.essence(data["mimeType"]?.text ?? "")
        let isForm = type == "application/x-www-form-urlencoded"
        let text = data["text"]?.text ?? (isForm ? Self.form(data["params"]) : nil) ?? ""
        if isForm {
            var members: [ContentTree.Member] = []
            for item in FormItems.list(text[...]) where !item.name.isEmpty {
                guard draft.keepsSecrets || !Secrets.isIn(item.value, of: item.name) else { return .other }
                if members.firstIndex(named: item.name) == nil {
                    members.append(.init(item.name, .string(item.value)))
                }
            }
            return members.isEmpty ? .none : .known([.init("form", .object(members))])
        }
        if text.isEmpty { return data["params"] == nil ? .none : .other }
        if let tree = try? JSONReader.read(Array(text.utf8)) {
            guard draft.keepsSecrets || !tree.hasSecretNames, text.utf8.count <= 16384 else { return .other }
            return .known([.init("is", tree)])
        }
        return type.hasPrefix("multipart/") || text.utf8.count > 16384 ? .other : .known([.init("text", .string(text))])
    }

    private mutating func answer(
        _ response: ContentTree,
        _ status: Int,
        isHead: Bool,
        _ name: String,
        _ location: DocumentLocation
    ) -> ImportedAnswer? {
        let content = response["content"]
        var lines: [(name: String, value: String)] = (response["headers"]?.elements ?? []).map {
            ($0["name"]?.text ?? "", $0["value"]?.text ?? "")
        }
        let mayHaveContent = ImportedAnswer.mayHaveContent(status) && !isHead
        let text = content?["text"]?.text
        var bytes: [UInt8] = []
        if mayHaveContent, let text {
            if content?["encoding"]?.text?.lowercased() == "base64" {
                guard let decoded = Base64.decode(text.filter { !$0.isWhitespace }) else {
                    draft.leaveOut(location.within("response", "content", "text"), "this is no base64")
                    return nil
                }
                bytes = decoded
            } else {
                bytes = Array(text.utf8)
                lines = lines.map { line in
                    line.name.lowercased() == "content-type" ? (line.name, MediaType.inUTF8(line.value)) : line
                }
            }
        } else if mayHaveContent, let size = content?["size"]?.whole, size > 0 {
            draft.leaveOut(
                location.within("response", "content"),
                "the file has no content for it, although there were \(size) bytes; save the log with content"
            )
            return nil
        }
        let type = lines.first { $0.name.lowercased() == "content-type" }?.value ?? content?["mimeType"]?.text
        let headers = ImportedFields.members(lines, at: location.within("response", "headers"), &draft)
        return ImportedAnswer(status: status, headers: headers, file: draft.file(bytes, type: type, near: name))
    }

    // MARK: - Services

    private mutating func configuration(_ location: DocumentLocation) throws(DocumentError) -> ImportedConfiguration {
        var names: Set<String> = []
        var prefixes: Set<String> = []
        let isOne = origins.count == 1
        var mounts: [String: String] = [:]
        var services = origins.map { origin in
            let host = origin.host + (origin.port.map { "-\($0)" } ?? "")
            let wanted = isOne ? options.service ?? origin.host : host
            let name = WordName.unique(WordName.word(wanted, or: "service", atMost: 200), among: &names)
            // Only one of two schemes of the same host gets the host's prefix.
            let prefix = isOne ? "/" : prefixes.insert(host).inserted ? "/\(host)" : "/\(name)"
            mounts[origin.origin] = prefix
            return ImportedService(name: name, prefix: prefix, baseURL: origin.origin)
        }
        var count = 0
        for (index, origin) in origins.enumerated() {
            services[index].rules = rules(of: origin, mounts)
            count += services[index].rules.count
            draft.prove(services[index])
        }
        return try ImportedConfiguration(services.map(\.tree), rules: count, draft, location)
    }

    /// The new target of a redirect that leaves its origin for another one of the file, so that it does not leave the
    /// daemon.
    /// - Parameters:
    ///   - mounts: the prefixes of the services, by their origins.
    ///   - path: the path of the request, below the prefix of its own service.
    /// - Returns: a target relative to the request, since an absolute path would belong to the request's own service;
    ///   nil to keep the location.
    private static func moved(_ location: String, from origin: Origin, _ path: String, _ mounts: [String: String])
        -> String?
    {
        guard let url = SourceURL(location), url.origin != origin.origin, let mount = mounts[url.origin],
            let authority = location.firstRange(of: "://")?.upperBound
        else { return nil }
        let target = location[authority...].drop { !"/?#".contains($0) }
        let up = String(repeating: "../", count: path.count { $0 == "/" })
        return up + mount.dropFirst() + (target.hasPrefix("/") ? "" : "/") + target
    }

    private mutating func rules(of origin: Origin, _ mounts: [String: String]) -> [ImportedRule] {
        var rules: [ImportedRule] = []
        var names: Set<String> = []
        for request in origin.requests {
            // A rule for GET answers HEAD as well.
            if request.method == "HEAD", origin.indexOfRequest["GET \(request.path)"] != nil { continue }
            // A query with more items comes first: a rule with fewer would answer its requests.
            let variants = request.variants.enumerated().sorted {
                ($1.element.query.count, $0.offset) < ($0.element.query.count, $1.offset)
            }
            for variant in variants.map(\.element) {
                for (body, seen) in answers(of: variant) {
                    var answers = seen
                    for index in answers.indices {
                        answers[index].move { Self.moved($0, from: origin, request.path, mounts) }
                    }
                    var rule = ImportedRule(
                        name: WordName.unique(WordName.of(request.method, request.path), among: &names),
                        answers: answers
                    )
                    rule.condition = [
                        .init("method", request.method == "GET" ? .texts(["GET", "HEAD"]) : .string(request.method)),
                        .init("path", ValueTest.path(request.path)),
                    ]
                    rule.location = variant.exchanges.first?.location
                    if !variant.query.isEmpty { rule.condition.append(.init("query", .object(variant.query))) }
                    if !body.isEmpty { rule.condition.append(.init("body", .object(body))) }
                    rules.append(rule)
                }
            }
        }
        return rules
    }

    /// The answers to a request, by its body if requests with several bodies were sent.
    private mutating func answers(of variant: Variant) -> [(body: [ContentTree.Member], answers: [ImportedAnswer])] {
        var bodies: [SentBody] = []
        for exchange in variant.exchanges where !bodies.contains(exchange.body) { bodies.append(exchange.body) }
        guard bodies.count > 1 else {
            if bodies == [.other], variant.exchanges.count > 1 { tellOther(variant.exchanges[0]) }
            return [([], Self.sequence(variant.exchanges))]
        }
        var result: [(body: [ContentTree.Member], answers: [ImportedAnswer])] = []
        var others: [Exchange] = []
        for body in bodies {
            let exchanges = variant.exchanges.filter { $0.body == body }
            if case .known(let members) = body {
                result.append((members, Self.sequence(exchanges)))
            } else {
                others += exchanges
            }
        }
        // The last rule answers requests with any other body, or with none.
        if let first = others.first {
            result.append(([], Self.sequence(others)))
            if bodies.contains(.other) { tellOther(first) }
        }
        return result
    }

    private mutating func tellOther(_ exchange: Exchange) {
        draft.change(
            exchange.location.within("request", "postData"),
            "this content has secrets, or is no text of 16 KiB: the rule answers whatever content no other rule asks for"
        )
    }

    /// The text of a form from its items; nil if some are files, or there are none.
    private static func form(_ params: ContentTree?) -> String? {
        guard let items = params?.elements, !items.isEmpty, items.allSatisfy({ $0["fileName"] == nil }) else {
            return nil
        }
        return items.map { FormItem($0["name"]?.text ?? "", $0["value"]?.text ?? "").text }.joined(separator: "&")
    }

    /// The answers in their order, or a single one if all are equal.
    private static func sequence(_ exchanges: [Exchange]) -> [ImportedAnswer] {
        let answers = exchanges.map(\.answer)
        return answers.dropFirst().allSatisfy { $0 == answers[0] } ? Array(answers.prefix(1)) : answers
    }
}
