// A demo rule that is to be written into a configuration, and the request that proves it: its own rule has to answer
// it.

import Content
package import Contracts
import HTTPWire
import Trees

/// One answer of a rule.
struct ImportedAnswer: Equatable {
    var status = 200
    var headers: [ContentTree.Member] = []
    /// The file of the content in the folder of the bodies; nil for no content.
    var file: String?

    /// Whether an answer with this status may have content (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5).
    static func mayHaveContent(_ status: Int) -> Bool { ![204, 205, 304].contains(status) }

    /// Changes the target of a redirect.
    /// - Parameter moved: returns the new target; nil to keep the old one.
    mutating func move(_ moved: (String) -> String?) {
        guard let index = headers.firstIndex(where: { $0.name.lowercased() == "location" }),
            let location = headers[index].value.text, let other = moved(location)
        else { return }
        headers[index].value = .string(other)
    }

    var members: [ContentTree.Member] {
        var members: [ContentTree.Member] = []
        if status != 200 { members.append(.init("status", .whole(status))) }
        if let file, Self.mayHaveContent(status) { members.append(.init("file", .string(file))) }
        if !headers.isEmpty { members.append(.init("headers", .object(headers))) }
        return members
    }
}

/// One rule in the form of `demo.rules`.
struct ImportedRule {
    var name: String
    /// The members of `when`.
    var condition: [ContentTree.Member] = []
    /// The answers, which are given one after the other.
    var answers: [ImportedAnswer]
    var latency: String?
    var state: ContentTree?
    /// The location in the source that it was made from.
    var location: DocumentLocation?
    /// A path that the rule answers, if its condition does not name one.
    var path: String?

    /// Whether the rule answers every request that reaches it.
    var isUnconditional: Bool { condition.isEmpty && state == nil }

    var tree: ContentTree {
        var members: [ContentTree.Member] = [.init("name", .string(name))]
        if !condition.isEmpty { members.append(.init("when", .object(condition))) }
        if let state { members.append(.init("state", state)) }
        if answers.count == 1 {
            members += answers[0].members
        } else {
            members.append(.init("sequence", .array(answers.map { .object($0.members) })))
        }
        if let latency { members.append(.init("latency", .string(latency))) }
        return .object(members)
    }
}

/// The fields of answers and requests that a configuration may have.
enum ImportedFields {
    /// The fields that the daemon makes itself, or that were true of the recorded message only.
    private static let dropped: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        "proxy-authenticate", "proxy-authorization", "content-length", "content-encoding", "date", "age", "host",
        "alt-svc", "accept-ranges", "content-range",
    ]
    private static let unasked: Set<String> = [
        "host", "connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding",
        "upgrade",
    ]

    /// Whether a condition may ask for the field.
    static func canBeAsked(_ name: String) -> Bool { isToken(name) && !unasked.contains(name.lowercased()) }

    static func isToken(_ name: String) -> Bool {
        !name.isEmpty
            && name.utf8.allSatisfy {
                $0 >= 48 && $0 <= 57 || $0 | 0x20 >= 97 && $0 | 0x20 <= 122 || "!#$%&'*+-.^_`|~".utf8.contains($0)
            }
    }

    private static let ofMoment: Set<String> = ["age", "date"]

    /// The fields of an answer: one member for each name, without secrets; several Set-Cookie are a list.
    /// - Parameter isWritten: whether a person has written them, and gets notes on the fields that are left out; those
    ///   of a recording are left out without a note.
    static func members(
        _ lines: [(name: String, value: String)],
        at location: DocumentLocation,
        isWritten: Bool = false,
        _ draft: inout ImportDraft
    ) -> [ContentTree.Member] {
        if isWritten {
            for (name, _) in lines where ofMoment.contains(name.lowercased()) {
                draft.change(location, "'\(name)' is of the moment of an answer, and is made anew: it is not kept")
            }
        }
        var told: Set<String> = []
        var members: [ContentTree.Member] = []
        for (name, value) in lines where !name.hasPrefix(":") && !dropped.contains(name.lowercased()) {
            guard isToken(name) else {
                draft.change(location, "'\(name)' is no name of a field, and is not sent")
                continue
            }
            if let begin = value.firstRange(of: "{{"), value[begin.upperBound...].contains("}}") {
                draft.change(location, "'\(name)' has a template, and fields of answers are not filled: it is not sent")
                continue
            }
            let isCookie = name.lowercased() == "set-cookie"
            // Browsers write several cookies as lines of one value.
            let values = isCookie ? value.split(whereSeparator: \.isNewline).map(String.init) : [value]
            for value in values.isEmpty ? [""] : values {
                let shown = Secrets.answerField(name, clean(value), &draft)
                if isWritten, shown != clean(value), told.insert(name.lowercased()).inserted {
                    draft.change(
                        location,
                        "the value of '\(name)' may be a secret: \(Secrets.mark) is sent in its place"
                    )
                }
                guard let known = members.firstIndex(where: { $0.name.lowercased() == name.lowercased() }) else {
                    members.append(.init(name, .string(shown)))
                    continue
                }
                if isCookie {
                    // Each cookie stays on its own line, since they cannot be combined (RFC 6265 section 3).
                    let before = members[known].value
                    members[known].value = .array((before.elements ?? [before]) + [.string(shown)])
                } else if let before = members[known].value.text {
                    members[known].value = .string([before, shown].filter { !$0.isEmpty }.joined(separator: ", "))
                }
            }
        }
        return members
    }

    /// A value without the characters that no field may have.
    private static func clean(_ value: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in value.unicodeScalars {
            let isControl = scalar != "\t" && (scalar.value < 32 || scalar.value == 127)
            result.append(isControl ? " " : scalar)
        }
        var text = String(result)
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}

/// Credentials, which a configuration gets only if the options say so.
enum Secrets {
    static let mark = SecretURL.mark

    /// The value of a field of an answer in the form of recordings: cookies keep their names, and a field with the name
    /// of a secret loses its value.
    static func answerField(_ name: String, _ value: String, _ draft: inout ImportDraft) -> String {
        guard !draft.keepsSecrets else { return value }
        if name.lowercased() == "set-cookie" {
            draft.countSecret()
            return SecretURL.hidden(cookie: value)
        }
        let shown = SecretNames.contains(name) ? mark : SecretURL.hidden(value, field: name)
        if shown != value { draft.countSecret() }
        return shown
    }

    /// Whether a value of a request is a secret, by its name or by a URL in it.
    static func isIn(_ value: String, of name: String) -> Bool {
        SecretNames.contains(name) || SecretURL.hidden(value) != value
    }

    /// The tests of a value of a request; of a secret only whether it is there.
    /// - Parameter isSecret: whether the value is a secret; nil if its name decides.
    static func tests(
        _ tests: [ValueTest],
        of name: String,
        isSecret: Bool? = nil,
        at location: DocumentLocation,
        _ draft: inout ImportDraft
    ) -> [ValueTest] {
        let hasSecret = tests.contains { if case .equals(let value) = $0 { isIn(value, of: name) } else { false } }
        guard !draft.keepsSecrets, isSecret ?? (SecretNames.contains(name) || hasSecret) else { return tests }
        guard tests.contains(where: { if case .present = $0 { false } else { true } }) else { return tests }
        draft.countSecret()
        draft.change(location, "the value of '\(name)' may be a secret: the rule asks only that it is there")
        return [.present(true)]
    }
}

// MARK: - The request that proves it

/// A request of a source, and the rule that has to answer it.
package struct ImportExample: Sendable {
    package let location: DocumentLocation
    package let service: String
    /// The name of the endpoint; empty for a rule of the service.
    package let endpoint: String
    package let rule: String
    package internal(set) var method = "GET"
    /// The path and query below the prefix of the service.
    package internal(set) var target: String
    package internal(set) var fields: [(name: String, value: String)] = []
    package internal(set) var body: [UInt8] = []
    /// The scenario of the rule, and the state that it asks for; nil for a rule outside of scenarios.
    package internal(set) var state: (scenario: String, state: String?)?
}

extension ImportExample {
    /// The request that the condition of a rule describes.
    /// - Parameter path: a path that the condition accepts; nil if it names one itself.
    /// - Returns: nil if the condition has a part for which no request can be made, such as a regular expression.
    init?(
        _ rule: ImportedRule,
        at location: DocumentLocation,
        of service: String,
        endpoint: String = "",
        path: String? = nil
    ) {
        (self.location, self.service, self.endpoint, self.rule) = (location, service, endpoint, rule.name)
        target = path ?? "/"
        var query: [String] = []
        for member in rule.condition {
            switch member.name {
            case "method": method = member.value.text ?? member.value.elements?.first?.text ?? "GET"
            case "path":
                if path != nil { continue }
                guard let own = Self.value(member.value), let own else { return nil }
                target = own
            case "query", "fields", "cookies":
                for item in member.value.members ?? [] {
                    guard let wanted = Self.value(item.value) else { return nil }
                    guard let wanted else { continue }
                    switch member.name {
                    case "query": query.append(FormItem(item.name, wanted).text)
                    case "fields": fields.append((item.name, wanted))
                    default: fields.append(("Cookie", "\(item.name)=\(wanted)"))
                    }
                }
            case "only_query": continue
            case "body":
                guard let content = Self.content(member.value) else { return nil }
                body = content
            default: return nil
            }
        }
        if !query.isEmpty { target += "?" + query.joined(separator: "&") }
        if let scenario = rule.state?["scenario"]?.text { state = (scenario, rule.state?["is"]?.text) }
    }

    /// A text that passes a test; nil if none can be made, and an inner nil if the value has to be missing.
    private static func value(_ test: ContentTree) -> String?? {
        if let text = test.scalar { return text }
        guard let members = test.members, members.count == 1, let only = members.first else { return nil }
        switch only.name {
        case "is", "contains": return only.value.scalar
        case "one_of": return only.value.elements?.first?.scalar
        case "present": return .some(only.value.isTrue ? "x" : nil)
        default: return nil
        }
    }

    private static func content(_ body: ContentTree) -> [UInt8]? {
        guard let members = body.members, members.count == 1, let only = members.first else { return nil }
        switch only.name {
        case "is", "contains": return JSONWriter.bytes(only.value)
        case "text": return value(only.value).flatMap { $0 }.map { Array($0.utf8) }
        case "form":
            var items: [String] = []
            for item in only.value.members ?? [] {
                guard let wanted = value(item.value) else { return nil }
                if let wanted { items.append(FormItem(item.name, wanted).text) }
            }
            return Array(items.joined(separator: "&").utf8)
        case "json":
            // Only documents of one level are made; deeper paths are rare.
            var tree: [ContentTree.Member] = []
            for item in only.value.members ?? [] {
                guard !item.name.contains("."), item.value.members?.count == 1 else { return nil }
                if let wanted = item.value["is"] {
                    tree.append(.init(item.name, wanted))
                } else if item.value["present"]?.isTrue == true {
                    tree.append(.init(item.name, .string("x")))
                } else {
                    return nil
                }
            }
            return JSONWriter.bytes(.object(tree))
        default: return nil
        }
    }
}
