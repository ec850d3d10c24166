// The values that an export reads and writes: rules and recordings with their answers, and notes on the parts that the
// other format lacks.

import Content
import Contracts
import HTTPWire
package import Matching
package import Trees

/// A format that an export can write.
package enum ExportFormat: String, CaseIterable, Sendable {
    case har, wiremock
}

/// A rule or a recording, with all its answers.
package struct ExportedRule: Sendable {
    /// A part of an endpoint's path.
    package enum Segment: Sendable, Equatable {
        case literal(String)
        case parameter(String)
        /// The rest of the path.
        case rest
    }

    /// A step of a scenario.
    package struct Step: Sendable, Equatable {
        package let scenario: String
        package let state: String
        package let next: String?

        package init(scenario: String, state: String, next: String?) {
            self.scenario = scenario
            self.state = state
            self.next = next
        }
    }

    /// The name in notes, such as `shop/big-order`.
    package let name: String
    /// The URL of the service's origin, which precedes the path of a request.
    package let baseURL: String
    /// The prefix of the service's paths for clients; empty for none.
    package let prefix: String
    /// The path pattern of an endpoint; nil if a clause gives the path.
    package var template: [Segment]?
    package var clauses: [RequestClause]
    package var step: Step?
    /// The answers, which are given one after the other.
    package var answers: [ExportedAnswer]
    /// The range of the latency in milliseconds.
    package var latency: ClosedRange<Int>?
    /// The log-normal curve of the latency, for formats that have one: the median in milliseconds, and the standard
    /// deviation of the logarithms.
    package var lognormal: (median: Double, sigma: Double)?
    /// The time of the recording in ISO 8601; nil for a rule.
    package var recordedAt: String?

    package init(name: String, baseURL: String, prefix: String, clauses: [RequestClause], answers: [ExportedAnswer]) {
        self.name = name
        self.baseURL = baseURL
        self.prefix = prefix == "/" ? "" : prefix
        self.clauses = clauses
        self.answers = answers
    }

    /// The number of query items that the rule asks for: a rule with more of them comes first.
    package var queryItems: Int {
        clauses.count { if case .query = $0 { true } else { false } }
    }
}

/// One answer of a rule or a recording.
package struct ExportedAnswer: Sendable {
    package let status: Int
    package let fields: [(name: String, value: String)]
    package let content: [UInt8]

    package init(status: Int, fields: [(name: String, value: String)], content: [UInt8]) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    /// The content as text; nil if it is not UTF-8.
    var text: String? { String(validating: content, as: UTF8.self) }

    func field(_ name: String) -> String? { fields.first { $0.name.lowercased() == name }?.value }
}

/// A part of a rule that an export lacks, or has in another form.
package struct ExportNote: Sendable, Equatable, CustomStringConvertible {
    /// The name of the rule.
    package let name: String
    package let kind: ImportNote.Kind
    package let reason: String

    package init(_ name: String, _ kind: ImportNote.Kind, _ reason: String) {
        self.name = name
        self.kind = kind
        self.reason = reason
    }

    package var description: String { "\(name): \(kind.rawValue): \(reason)" }
}

/// A document for another tool.
package struct Export: Sendable {
    package let tree: ContentTree
    /// The number of entries or stubs.
    package let count: Int
    package let notes: [ExportNote]

    /// Writes rules in a format.
    /// - Parameter rules: the rules in their order: the first that matches a request answers it.
    package static func write(_ rules: [ExportedRule], _ format: ExportFormat, version: String) -> Export {
        switch format {
        case .har: HARExport.write(rules, version: version)
        case .wiremock: WireMockExport.write(rules)
        }
    }
}

/// The reason why a rule cannot be written.
struct Unwritable: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

// MARK: - Recordings

/// A recording of the daemon, as an export reads it: the document beside its content.
package struct RecordedAnswer: Sendable {
    /// The method and target, such as `GET /users/7?page=2`.
    package let request: String
    /// The name of the file with the content; nil for none.
    package let content: String?
    private let fields: [(name: String, value: String)]
    private let asked: [(name: String, value: String)]
    private let digest: String?
    private let status: Int
    private let recordedAt: String?

    /// Reads the document of a recording; nil if the bytes are not one.
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

    /// The path of a URL, such as `/v1` of `https://api.example.com/v1/`.
    private static func path(of url: String) -> String {
        guard let authority = url.firstRange(of: "://")?.upperBound,
            let start = url[authority...].firstIndex(of: "/")
        else { return "" }
        return String(url[start...].reversed().drop { $0 == "/" }.reversed())
    }

    /// The recording as a rule, and the parts that it lacks.
    /// - Parameter baseURL: the URL of the origin that was recorded.
    package func rule(
        service: String,
        baseURL: String,
        prefix: String,
        content: [UInt8]
    ) -> (rule: ExportedRule, notes: [ExportNote]) {
        let space = request.firstIndex(of: " ") ?? request.endIndex
        let method = String(request[..<space])
        var (path, query) = SourceURL.target(request[space...].dropFirst())
        // The request has the path on the origin, which includes the path of the base.
        let base = Self.path(of: baseURL)
        if !base.isEmpty, path.hasPrefix(base + "/") { path = String(path.dropFirst(base.count)) }
        var clauses: [RequestClause] = [.method(method == "GET" ? ["GET", "HEAD"] : [method]), .path(.equals(path))]
        for item in query {
            clauses.append(.query(item.name, item.value == Secrets.mark ? .present(true) : .equals(item.value)))
        }
        // A recording has only the digest of a secret.
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
