// A recording of the daemon, as an export reads it: the document that stands beside its content.

import Content
import HTTPWire
import Matching

/// One recording.
package struct RecordedAnswer: Sendable {
    /// Such as `GET /users/7?page=2`.
    package let request: String
    /// The name of the file with the content; nil for none.
    package let content: String?
    private let fields: [(name: String, value: String)]
    private let asked: [(name: String, value: String)]
    private let digest: String?
    private let status: Int
    private let recordedAt: String?

    /// Nil for what is no such document.
    package init?(_ bytes: [UInt8]) {
        guard let tree = try? JSONReader.read(bytes), let request = tree["request"]?.text,
            let status = tree["status"]?.whole,
            200...599 ~= status, request.contains(" /")
        else { return nil }
        self.request = request
        self.status = status
        content = tree["content"]?.text
        digest = tree["body"]?.text
        recordedAt = tree["recorded_at"]?.text
        func pairs(_ name: String) -> [(name: String, value: String)] {
            (tree[name]?.elements ?? []).compactMap { pair in
                guard let name = pair.elements?.first?.text, let value = pair.elements?.last?.text else { return nil }
                return (name, value)
            }
        }
        fields = pairs("fields")
        asked = pairs("match")
    }

    /// `/v1` of `https://api.example.com/v1/`.
    private static func path(of url: String) -> String {
        guard let authority = url.firstRange(of: "://")?.upperBound,
            let start = url[authority...].firstIndex(of: "/")
        else { return "" }
        return String(url[start...].reversed().drop { $0 == "/" }.reversed())
    }

    /// The recording as a rule, and what is missing in it.
    /// - Parameter baseURL: of the origin that it was recorded of.
    package func rule(
        service: String,
        baseURL: String,
        prefix: String,
        content: [UInt8]
    ) -> (rule: ExportedRule, notes: [ExportNote]) {
        let space = request.firstIndex(of: " ") ?? request.endIndex
        let method = String(request[..<space])
        var (path, query) = SourceURL.target(request[space...].dropFirst())
        // The request is that of the origin, whose path is a part of the base.
        let base = Self.path(of: baseURL)
        if !base.isEmpty, path.hasPrefix(base + "/") { path = String(path.dropFirst(base.count)) }
        var clauses: [RequestClause] = [.method(method == "GET" ? ["GET", "HEAD"] : [method]), .path(.equals(path))]
        for item in query {
            clauses.append(.query(item.name, item.value == Secrets.mark ? .present(true) : .equals(item.value)))
        }
        // Of a secret, a recording has the digest alone.
        for field in asked {
            clauses.append(.field(field.name, SecretNames.contains(field.name) ? .present(true) : .equals(field.value)))
        }
        let name = "\(service)/\(request)"
        var rule = ExportedRule(
            name: name,
            baseURL: baseURL,
            prefix: prefix,
            clauses: clauses,
            answers: [ExportedAnswer(status: status, fields: fields, content: content)]
        )
        rule.recordedAt = recordedAt
        let reason = "the content of its request is known by its digest alone: whatever the content is, this answers"
        return (rule, digest == nil ? [] : [ExportNote(name, .changed, reason)])
    }
}
