// What an export writes: rules and recordings with their answers, and notes on what the other tool has nothing for.

package import Content
package import Matching

/// A format that other tools read.
package enum ExportFormat: String, CaseIterable, Sendable {
    case har, wiremock
}

/// A rule or a recording, with everything that it answers with.
package struct ExportedRule: Sendable {
    /// A part of an endpoint's path.
    package enum Segment: Sendable, Equatable {
        case literal(String)
        case parameter(String)
        /// Everything that follows.
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

    /// What notes call it, such as `shop/big-order`.
    package let name: String
    /// Where its service gets answers from, with the path before that of a request.
    package let baseURL: String
    /// The path before that of a request, for clients; empty for none.
    package let prefix: String
    /// Of an endpoint; nil: a clause says which path.
    package var template: [Segment]?
    package var clauses: [RequestClause]
    package var step: Step?
    /// One after the other.
    package var answers: [ExportedAnswer]
    /// Milliseconds.
    package var latency: ClosedRange<Int>?
    /// In place of it where the file knows such a curve: milliseconds, and the deviation of the logarithms.
    package var lognormal: (median: Double, sigma: Double)?
    /// In ISO 8601; nil for a rule.
    package var recordedAt: String?

    package init(name: String, baseURL: String, prefix: String, clauses: [RequestClause], answers: [ExportedAnswer]) {
        self.name = name
        self.baseURL = baseURL
        self.prefix = prefix == "/" ? "" : prefix
        self.clauses = clauses
        self.answers = answers
    }

    /// Items of the query that it asks for: a rule with more of them comes first.
    package var queryItems: Int {
        clauses.count { if case .query = $0 { true } else { false } }
    }
}

/// One answer.
package struct ExportedAnswer: Sendable {
    package let status: Int
    package let fields: [(name: String, value: String)]
    package let content: [UInt8]

    package init(status: Int, fields: [(name: String, value: String)], content: [UInt8]) {
        self.status = status
        self.fields = fields
        self.content = content
    }

    /// The content as a text; nil where it is none.
    var text: String? { String(validating: content, as: UTF8.self) }

    func field(_ name: String) -> String? { fields.first { $0.name.lowercased() == name }?.value }
}

/// Something that an export lacks, or has otherwise.
package struct ExportNote: Sendable, Equatable, CustomStringConvertible {
    /// The rule.
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
    /// How many entries or stubs there are.
    package let count: Int
    package let notes: [ExportNote]

    /// - Parameter rules: the first that is for a request answers it.
    package static func write(_ rules: [ExportedRule], _ format: ExportFormat, version: String) -> Export {
        switch format {
        case .har: HARExport.write(rules, version: version)
        case .wiremock: WireMockExport.write(rules)
        }
    }
}

/// What keeps a rule from being written.
struct Unwritable: Error {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}
