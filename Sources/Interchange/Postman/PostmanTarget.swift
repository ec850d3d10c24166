// Where a request of Postman goes: variables with their values, and what has none as anything.

import Content

/// The variables of a collection and of the folders around a request.
struct PostmanVariables {
    /// Variables whose values have variables.
    private static let deepest = 5

    /// Whether variables whose names say that they are secret have their values.
    let keepsSecrets: Bool
    private var values: [String: String] = [:]

    init(keepsSecrets: Bool) { self.keepsSecrets = keepsSecrets }

    /// With those of an inner scope, which win.
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

    /// A text in which `{{name}}` stands for a value, if there is one.
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
    /// A path, of which some segments may be anything.
    struct Path: Equatable {
        /// As a person reads it.
        let text: String
        /// The segments; nil: any one.
        let segments: [String?]

        /// How many segments may be anything.
        var parameters: Int { segments.count { $0 == nil } }
        var isPattern: Bool { parameters > 0 }

        /// A path like it.
        var example: String { "/" + segments.map { $0 ?? "x" }.joined(separator: "/") }

        /// As `when.path` has it.
        var test: ContentTree {
            guard isPattern else { return ValueTest.path(text) }
            let parts = segments.map { $0.map(ValueTest.quoted) ?? "[^/]+" }
            return [ValueTest.matches(#"\A/"# + parts.joined(separator: "/") + #"\z"#)].tree
        }
    }

    /// Nil where its beginning is a variable without a value.
    let url: SourceURL?
    let path: Path
    /// A value is nil where it has a variable without one.
    let query: [(name: String, value: String?)]

    /// - Parameter tree: a text, or an object with the URL's parts.
    /// - Returns: nil for what is no URL of a plain host.
    init?(_ tree: ContentTree, _ variables: PostmanVariables) {
        guard let raw = tree.text ?? tree["raw"]?.text ?? Self.joined(tree) else { return nil }
        var text = variables.resolved(raw)
        if text.hasPrefix("{{"), let close = text.firstRange(of: "}}") {
            // What is not known is where the collection's origin is.
            url = nil
            text = String(text[close.upperBound...])
        } else {
            if !text.contains("://") { text = "http://" + text }
            // A variable of the path is no reason to refuse the URL.
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
        query = SourceURL.items(target[mark...].dropFirst()).compactMap { item in
            disabled.contains(item.name) ? nil : (item.name, item.value.contains("{{") ? nil : item.value)
        }
    }

    /// The text of a URL that is given in parts alone.
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
