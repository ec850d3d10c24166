// Rules and recordings as a HAR file (version 1.2): an entry for each answer.

import HTTPWire
import Matching
import Trees

/// Writes the entries of a HAR file.
enum HARExport {
    /// The time of an entry made from a rule, which was never recorded; it is constant, so that the same export has the
    /// same bytes.
    private static let noTime = "1970-01-01T00:00:00Z"

    static func write(_ rules: [ExportedRule], version: String) -> Export {
        var entries: [ContentTree] = []
        var notes: [ExportNote] = []
        for rule in rules {
            do throws(Unwritable) {
                let request = try request(rule)
                entries += rule.answers.map { entry(request, $0, rule) }
                if let note = methods(rule) { notes.append(ExportNote(rule.name, .changed, note)) }
                if rule.step != nil {
                    notes.append(ExportNote(rule.name, .changed, "a log has no states of a scenario"))
                }
            } catch {
                notes.append(ExportNote(rule.name, .leftOut, error.reason))
            }
        }
        let log = ContentTree.object(of: [
            "version": .string("1.2"),
            "creator": .object(of: ["name": .string("drydock"), "version": .string(version)]),
            "entries": .array(entries),
        ])
        return Export(tree: .object([.init("log", log)]), count: entries.count, notes: notes)
    }

    /// The note on a rule for more than one method, of which an entry has one; nil for others.
    private static func methods(_ rule: ExportedRule) -> String? {
        for case .method(let names) in rule.clauses {
            return names.count == 1 || Set(names) == ["GET", "HEAD"]
                ? nil : "it is for several methods, and the log has it for \(names[0])"
        }
        return "it is for any method, and the log has it for GET"
    }

    /// The only request that the rule is for.
    private static func request(_ rule: ExportedRule) throws(Unwritable) -> ContentTree {
        var method = "GET"
        var path: String?
        var query: [(name: String, value: String)] = []
        var fields: [(name: String, value: String)] = []
        var content: (type: String, text: String)?
        if let template = rule.template {
            var parts: [String] = []
            for segment in template {
                guard case .literal(let text) = segment else {
                    throw Unwritable("its path has parameters, and a log has plain URLs")
                }
                parts.append(text)
            }
            path = "/" + parts.joined(separator: "/")
        }
        for clause in rule.clauses {
            switch clause {
            case .method(let names): method = names.first ?? "GET"
            case .path(.equals(let text)) where path == nil: path = text
            case .query(let name, .equals(let text)): query.append((name, text))
            // The value was a secret, so the entry has a mark in its place.
            case .query(let name, .present(true)): query.append((name, "***"))
            case .onlyQuery: break
            case .field(let name, .equals(let text)): fields.append((name, text))
            case .field(let name, .present(true)): fields.append((name, "***"))
            case .cookie(let name, .equals(let text)): fields.append(("Cookie", "\(name)=\(text)"))
            case .body(.json(let path, .equals(let tree))) where path.isEmpty:
                content = ("application/json", String(decoding: JSONWriter.bytes(tree), as: UTF8.self))
            case .body(.text(.equals(let text))): content = ("text/plain", text)
            case .body(.form(let name, .equals(let text))):
                let item = FormItem(name, text).text
                content = ("application/x-www-form-urlencoded", content.map { $0.text + "&" + item } ?? item)
            default: throw Unwritable("it is for more than one request, and a log has one for each answer")
            }
        }
        guard let path else { throw Unwritable("it is for more than one path, and a log has one for each answer") }
        let items = query.map { FormItem($0.name, $0.value).text }.joined(separator: "&")
        return .object(of: [
            "method": .string(method),
            "url": .string(rule.baseURL + path + (items.isEmpty ? "" : "?" + items)),
            "httpVersion": .string("HTTP/1.1"),
            "cookies": .array([]),
            "headers": lines(fields),
            "queryString": lines(query),
            "headersSize": .whole(-1),
            "bodySize": .whole(content?.text.utf8.count ?? 0),
            "postData": content.map { .object(of: ["mimeType": .string($0.type), "text": .string($0.text)]) },
        ])
    }

    private static func lines(_ pairs: [(name: String, value: String)]) -> ContentTree {
        .array(pairs.map { .object(of: ["name": .string($0.name), "value": .string($0.value)]) })
    }

    private static func entry(_ request: ContentTree, _ answer: ExportedAnswer, _ rule: ExportedRule) -> ContentTree {
        let content = ContentTree.object(of: [
            "size": .whole(answer.content.count),
            "mimeType": .string(answer.field("content-type") ?? ""),
            "text": .string(answer.text ?? Base64.encode(answer.content)),
            "encoding": answer.text == nil ? .string("base64") : nil,
        ])
        let wait = rule.latency?.lowerBound ?? 0
        return .object(of: [
            "startedDateTime": .string(rule.recordedAt ?? noTime),
            "time": .whole(wait),
            "request": request,
            "response": .object(of: [
                "status": .whole(answer.status),
                "statusText": .string(ReasonPhrase.reason(answer.status)),
                "httpVersion": .string("HTTP/1.1"),
                "cookies": .array([]),
                "headers": lines(answer.fields),
                "content": content,
                "redirectURL": .string(answer.field("location") ?? ""),
                "headersSize": .whole(-1),
                "bodySize": .whole(answer.content.count),
            ]),
            "cache": .empty,
            "timings": .object(of: ["send": .whole(0), "wait": .whole(wait), "receive": .whole(0)]),
        ])
    }
}
