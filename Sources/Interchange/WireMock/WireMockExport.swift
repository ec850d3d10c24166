// Rules and recordings written as mappings of WireMock, in one document that it imports.

import HTTPWire
import Matching
import Trees

/// Writes stubs; `priority` keeps the order of the rules.
struct WireMockExport {
    private var stubs: [ContentTree] = []
    private var notes: [ExportNote] = []
    private var requests: [ContentTree: String] = [:]

    static func write(_ rules: [ExportedRule]) -> Export {
        var export = WireMockExport()
        for rule in rules { export.add(rule) }
        let tree = ContentTree.object([.init("mappings", .array(export.stubs))])
        return Export(tree: tree, count: export.stubs.count, notes: export.notes)
    }

    private mutating func add(_ rule: ExportedRule) {
        do throws(Unwritable) {
            for request in try WireMockExportedRequest.requests(rule) {
                // Recordings that differ only in the content of their requests would be the same stub.
                if rule.step == nil, let other = requests.updateValue(rule.name, forKey: request) {
                    notes.append(ExportNote(rule.name, .leftOut, "'\(other)' answers the same requests before it"))
                    requests[request] = other
                    continue
                }
                try add(rule, request)
            }
        } catch {
            notes.append(ExportNote(rule.name, .leftOut, error.reason))
        }
    }

    /// Adds a stub for each answer; the states of a scenario give them in their order.
    private mutating func add(_ rule: ExportedRule, _ request: ContentTree) throws(Unwritable) {
        if rule.answers.count > 1 {
            guard rule.step == nil else { throw Unwritable("it has a scenario of its own, and several answers") }
            notes.append(
                ExportNote(
                    rule.name,
                    .changed,
                    "its answers follow one another for all requests together, and not for each target"
                )
            )
        }
        for (position, answer) in rule.answers.enumerated() {
            var step = rule.step
            if rule.answers.count > 1 {
                let state = position == 0 ? "started" : "answer \(position + 1)"
                let next = position + 1 < rule.answers.count ? "answer \(position + 2)" : nil
                step = ExportedRule.Step(scenario: rule.name, state: state, next: next)
            }
            stubs.append(
                .object(of: [
                    "name": .string(rule.name),
                    "priority": .whole(stubs.count + 1),
                    "scenarioName": step.map { .string($0.scenario) },
                    "requiredScenarioState": step.map { .string(Self.state($0.state)) },
                    "newScenarioState": step?.next.map { .string(Self.state($0)) },
                    "request": request,
                    "response": response(answer, rule),
                ])
            )
        }
    }

    private static func state(_ state: String) -> String { state == "started" ? "Started" : state }

    private func response(_ answer: ExportedAnswer, _ rule: ExportedRule) -> ContentTree {
        var fields: [ContentTree.Member] = []
        for field in answer.fields {
            if let index = fields.firstIndex(where: { $0.name.lowercased() == field.name.lowercased() }) {
                fields[index].value = .array(
                    (fields[index].value.elements ?? [fields[index].value]) + [.string(field.value)]
                )
            } else {
                fields.append(.init(field.name, .string(field.value)))
            }
        }
        var delay: ContentTree?
        if let lognormal = rule.lognormal {
            delay = .object(of: [
                "type": .string("lognormal"), "median": .number("\(lognormal.median)"),
                "sigma": .number("\(lognormal.sigma)"),
            ])
        } else if let latency = rule.latency, latency.upperBound > latency.lowerBound {
            delay = .object(of: [
                "type": .string("uniform"), "lower": .whole(latency.lowerBound), "upper": .whole(latency.upperBound),
            ])
        }
        let fixed = delay == nil ? rule.latency.flatMap { $0.upperBound > 0 ? $0.upperBound : nil } : nil
        return .object(of: [
            "status": .whole(answer.status),
            "headers": fields.isEmpty ? nil : .object(fields),
            "body": answer.content.isEmpty ? nil : answer.text.map { .string($0) },
            "base64Body": answer.text == nil ? .string(Base64.encode(answer.content)) : nil,
            "fixedDelayMilliseconds": fixed.map { .whole($0) },
            "delayDistribution": delay,
        ])
    }
}

/// The conditions of a rule as the request of a stub.
enum WireMockExportedRequest {
    /// The requests of a rule: one for each method, since a stub cannot have several.
    static func requests(_ rule: ExportedRule) throws(Unwritable) -> [ContentTree] {
        var methods = ["ANY"]
        var path: TextTest?
        var isWholeTarget = false
        var sections: [(name: String, members: [ContentTree.Member])] = [
            ("pathParameters", []), ("queryParameters", []), ("headers", []), ("cookies", []), ("formParameters", []),
        ]
        var body: [ContentTree] = []
        for clause in rule.clauses {
            switch clause {
            case .method(let names): methods = Set(names) == ["GET", "HEAD"] ? ["GET_OR_HEAD"] : names
            case .path(let test): path = test
            case .parameter(let name, let test): sections[0].members.append(.init(name, try matcher(test)))
            case .query(let name, let test): sections[1].members.append(.init(name, try matcher(test)))
            case .onlyQuery: isWholeTarget = true
            case .field(let name, let test): sections[2].members.append(.init(name, try matcher(test)))
            case .cookie(let name, let test): sections[3].members.append(.init(name, try matcher(test)))
            case .body(.form(let name, let test)): sections[4].members.append(.init(name, try matcher(test)))
            case .body(.text(let test)): body.append(try matcher(test))
            case .body(.json(let path, let test)): body.append(try pattern(path, test))
            }
        }
        guard rule.template == nil || path == nil else {
            throw Unwritable("it asks for the path of an endpoint, and for a part of it")
        }
        var own: ContentTree.Member
        if let template = rule.template {
            own = target(template, rule.prefix)
        } else {
            own = try self.path(path, rule.prefix)
        }
        if isWholeTarget {
            own = try wholeTarget(own, rule.clauses)
            sections[1].members = []
        }
        var rest = [own]
        for section in sections where !section.members.isEmpty {
            rest.append(.init(section.name, .object(merged(section.members))))
        }
        if !body.isEmpty { rest.append(.init("bodyPatterns", .array(body))) }
        return methods.map { .object([.init("method", .string($0))] + rest) }
    }

    /// The exact target with its query: only such a stub refuses further items.
    private static func wholeTarget(_ path: ContentTree.Member, _ clauses: [RequestClause]) throws(Unwritable)
        -> ContentTree.Member
    {
        var items: [String] = []
        for case .query(let name, let test) in clauses {
            guard case .equals(let value) = test else {
                throw Unwritable(
                    "its query has no further items, and WireMock can ask for that only of one whole query"
                )
            }
            items.append(FormItem(name, value).text)
        }
        guard path.name == "urlPath", let text = path.value.text else {
            throw Unwritable("its query has no further items, and WireMock can ask for that only of one whole path")
        }
        return .init("url", .string(text + (items.isEmpty ? "" : "?" + items.joined(separator: "&"))))
    }

    /// Merges several tests of one name, each of which must be passed by its own value.
    private static func merged(_ members: [ContentTree.Member]) -> [ContentTree.Member] {
        var names: [String] = []
        for member in members where !names.contains(member.name) { names.append(member.name) }
        return names.map { name in
            let tests = members.filter { $0.name.isSameName(as: name) }.map(\.value)
            return .init(name, tests.count == 1 ? tests[0] : .object([.init("includes", .array(tests))]))
        }
    }

    /// The path of an endpoint.
    private static func target(_ segments: [ExportedRule.Segment], _ prefix: String) -> ContentTree.Member {
        let hasParameters = segments.contains { if case .parameter = $0 { true } else { false } }
        if segments.last == .rest {
            let parts = segments.dropLast().map { segment -> String in
                if case .literal(let text) = segment { ValueTest.quoted(text) } else { "[^/]+" }
            }
            return .init("urlPathPattern", .string(([ValueTest.quoted(prefix)] + parts).joined(separator: "/") + "/.*"))
        }
        let parts = segments.map { segment -> String in
            switch segment {
            case .literal(let text): text
            case .parameter(let name): "{\(name)}"
            case .rest: ""
            }
        }
        return .init(
            hasParameters ? "urlPathTemplate" : "urlPath",
            .string(prefix + "/" + parts.joined(separator: "/"))
        )
    }

    private static func path(_ test: TextTest?, _ prefix: String) throws(Unwritable) -> ContentTree.Member {
        switch test {
        case nil, .present(true)?: return .init("urlPathPattern", .string(ValueTest.quoted(prefix) + ".*"))
        case .equals(let text)?: return .init("urlPath", .string(prefix + text))
        case .matches(let pattern)?:
            let pattern = whole(pattern.text)
            guard prefix.isEmpty || !pattern.contains("^") && !pattern.contains(#"\A"#) else {
                throw Unwritable("its pattern has anchors, and the path of a stub has the prefix, too")
            }
            let quoted = ValueTest.quoted(prefix)
            return .init("urlPathPattern", .string(quoted + "(?:\(pattern))"))
        case .contains(let text)?:
            return .init("urlPathPattern", .string(ValueTest.quoted(prefix) + ".*" + ValueTest.quoted(text) + ".*"))
        case .oneOf(let texts)?:
            let parts = texts.map(ValueTest.quoted).joined(separator: "|")
            return .init("urlPathPattern", .string(ValueTest.quoted(prefix) + "(?:\(parts))"))
        default: throw Unwritable("WireMock has no test like that of its path")
        }
    }

    /// A pattern for the whole text, which every pattern of WireMock is.
    private static func whole(_ pattern: String) -> String {
        let (start, end) = (#"\A(?:"#, #")\z"#)
        if pattern.hasPrefix(start), pattern.hasSuffix(end) {
            let inner = String(pattern.dropFirst(start.utf8.count).dropLast(end.utf8.count))
            // Otherwise the parentheses at both ends belong to different groups.
            if (try? Pattern(inner)) != nil { return inner }
        }
        var inner = pattern[...]
        var (before, behind) = (#"[\s\S]*?"#, #"[\s\S]*"#)
        // An anchor beside alternatives belongs to one of them only.
        if !pattern.contains("|") {
            for anchor in [#"\A"#, "^"] where inner.hasPrefix(anchor) && !before.isEmpty {
                inner = inner.dropFirst(anchor.utf8.count)
                before = ""
            }
            if inner.hasSuffix(#"\z"#) {
                inner = inner.dropLast(2)
                behind = ""
            } else if inner.hasSuffix("$"), !inner.hasSuffix(#"\$"#) {
                inner = inner.dropLast()
                behind = ""
            }
        }
        return before + "(?:\(inner))" + behind
    }

    private static func matcher(_ test: TextTest) throws(Unwritable) -> ContentTree {
        func one(_ name: String, _ text: String) -> ContentTree { .object([.init(name, .string(text))]) }
        switch test {
        case .equals(let text): return one("equalTo", text)
        case .contains(let text): return one("contains", text)
        case .matches(let pattern): return one("matches", whole(pattern.text))
        case .oneOf(let texts): return .object([.init("or", .array(texts.map { one("equalTo", $0) }))])
        case .present(true): return one("matches", #"[\s\S]*"#)
        case .present(false): return .object([.init("absent", .bool(true))])
        case .not(.equals(let text)): return one("doesNotMatch", ValueTest.quoted(text))
        case .not(.contains(let text)): return one("doesNotContain", text)
        case .not(.matches(let pattern)): return one("doesNotMatch", whole(pattern.text))
        case .not: throw Unwritable("WireMock has no opposite of one of its tests")
        case .all(let tests):
            var parts: [ContentTree] = []
            for test in tests { parts.append(try matcher(test)) }
            return .object([.init("and", .array(parts))])
        }
    }

    private static func pattern(_ path: [String], _ test: TreeTest) throws(Unwritable) -> ContentTree {
        guard !path.isEmpty else {
            switch test {
            case .equals(let tree): return .object([.init("equalToJson", .string(text(tree)))])
            case .contains(let tree):
                return .object([
                    .init("equalToJson", .string(text(tree))), .init("ignoreArrayOrder", .bool(true)),
                    .init("ignoreExtraElements", .bool(true)),
                ])
            default: throw Unwritable("WireMock has no test like that of its content")
            }
        }
        let expression = path.reduce("$") {
            $0 + (Int($1) == nil ? "['\($1.replacing("'", with: #"\'"#))']" : "[\($1)]")
        }
        var members: [ContentTree.Member] = [.init("expression", .string(expression))]
        switch test {
        case .present(true): return .object([.init("matchesJsonPath", .string(expression))])
        case .equals(.string(let text)): members.append(.init("equalTo", .string(text)))
        case .equals(let tree): members.append(.init("equalToJson", .string(text(tree))))
        case .contains(.string(let text)): members.append(.init("contains", .string(text)))
        case .contains(let tree):
            members += [
                .init("equalToJson", .string(text(tree))), .init("ignoreArrayOrder", .bool(true)),
                .init("ignoreExtraElements", .bool(true)),
            ]
        case .matches(let pattern): members.append(.init("matches", .string(whole(pattern.text))))
        case .oneOf(let trees) where trees.allSatisfy({ $0.scalar != nil }):
            let texts = trees.compactMap(\.scalar).map(ValueTest.quoted)
            members.append(.init("matches", .string(texts.joined(separator: "|"))))
        default: throw Unwritable("WireMock has no test like that of \(expression)")
        }
        return .object([.init("matchesJsonPath", .object(members))])
    }

    private static func text(_ tree: ContentTree) -> String { String(decoding: JSONWriter.bytes(tree), as: UTF8.self) }
}
