// A request that a rule was made of, so that an import can be proved: its own rule has to answer it.

import Content

/// A request of a source, and the rule that is to answer it.
package struct ImportExample: Sendable {
    package let place: ImportPlace
    package let service: String
    /// Empty for a rule of the service.
    package let endpoint: String
    package let rule: String
    package internal(set) var method = "GET"
    /// Path and query below the prefix of the service.
    package internal(set) var target: String
    package internal(set) var fields: [(name: String, value: String)] = []
    package internal(set) var body: [UInt8] = []
    /// The scenario of the rule, and the state that it asks for; nil: it is of none.
    package internal(set) var state: (scenario: String, state: String?)?
}

extension ImportExample {
    /// The request that the condition of a rule describes.
    /// - Parameter path: one that the condition accepts; nil: it names one itself.
    /// - Returns: nil where it asks for something that no request can be made of, such as a regular expression.
    init?(_ rule: ImportedRule, at place: ImportPlace, of service: String, endpoint: String = "", path: String? = nil) {
        (self.place, self.service, self.endpoint, self.rule) = (place, service, endpoint, rule.name)
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

    /// A text that passes a test; nil where none can be made, and nil within where it has to be missing.
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
            // Documents of one level; a path that goes deeper is rare.
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
