// One answer of a demo rule: its status, content and fields, and the choice among several answers.

package import HTTPWire
package import Policies
import Trees

/// An answer of a rule. Immutable, shared by every loop.
package struct DemoAnswer: Sendable {
    /// The status; default 200.
    package let status: Int
    /// The content; default none.
    package let content: DemoContent
    /// The fields; a Content-Type here takes precedence over the content's.
    package let fields: Fields

    package init(status: Int = 200, content: DemoContent = .none, fields: Fields = Fields()) {
        self.status = status
        self.content = content
        self.fields = fields
    }
}

/// The source of an answer's bytes.
package enum DemoContent: Sendable {
    /// The answer has no bytes.
    case none
    case file(DemoFile)
    /// A text that is rendered for each request.
    case template(DemoTemplate, contentType: String)
    /// Items that requests read and change.
    case collection(DemoCollection)
    /// Server-sent events, each sent at its time.
    case events(DemoEvents)

    /// The file with the bytes, if they are known before a request comes; nil otherwise.
    package var file: DemoFile? {
        if case .file(let file) = self { file } else { nil }
    }

    /// True if every request gets the same bytes.
    package var isFixed: Bool {
        switch self {
        case .none, .file: true
        case .template, .collection, .events: false
        }
    }

    /// True if the answer is made from the content of the request, too.
    package var readsBody: Bool {
        switch self {
        case .none, .file, .events: false
        case .template(let template, contentType: _): template.readsBody
        case .collection: true
        }
    }

    /// True if the content decides the status when the answer is made, so that it is not drawn.
    package var hasOwnStatus: Bool {
        if case .collection = self { true } else { false }
    }

    /// The Content-Type; nil if there is no body, or if each answer has its own.
    package var contentType: String? {
        switch self {
        case .none, .collection: nil
        case .file(let file): file.contentType
        case .template(_, let contentType): contentType
        case .events: DemoEvents.contentType
        }
    }
}

// MARK: - The choice among several

/// The choice among the answers of a rule. Immutable, shared by every loop.
package enum DemoChoice: Sendable {
    /// The rule has one answer.
    case one
    /// The answers with their shares, which add up to 1.
    case weighted([(share: Double, answer: DemoAnswer)])
    /// The answers in their order; never empty.
    case sequence([DemoAnswer], after: SequenceEnd)

    /// The answer to a request.
    /// - Parameters:
    ///   - position: the number of answers that the rule has given before.
    ///   - unit: a uniform number, 0 ..< 1.
    /// - Returns: nil if the rule has only one answer.
    func answer(position: UInt64, unit: Double) -> DemoAnswer? {
        switch self {
        case .one: return nil
        case .weighted(let answers):
            var end = 0.0
            for (share, answer) in answers {
                end += share
                if unit < end { return answer }
            }
            // The shares may add up to a little less than 1, as floating-point numbers.
            return answers.last?.answer
        case .sequence(let answers, let after):
            if position < UInt64(answers.count) { return answers[Int(position)] }
            switch after {
            case .repeat: return answers[Int(position % UInt64(max(1, answers.count)))]
            case .last: return answers.last
            case .notFound: return DemoAnswer(status: 404)
            }
        }
    }

    /// The answers of a rule that has several; empty if it has only one.
    var answers: [DemoAnswer] {
        switch self {
        case .one: []
        case .weighted(let answers): answers.map(\.answer)
        case .sequence(let answers, after: _): answers
        }
    }

    /// Whether the rule has one answer.
    package var isOne: Bool {
        if case .one = self { true } else { false }
    }
}

// MARK: - Problem documents

/// A problem document (RFC 9457) and its fields.
package struct DemoProblem: Sendable {
    package let fields = Fields([("Content-Type", "application/problem+json")])
    package let body: [UInt8]

    package init(_ status: Int, _ title: String, _ detail: String) {
        let document = ContentTree.object([
            ContentTree.Member("title", .string(title)), ContentTree.Member("status", .number(String(status))),
            ContentTree.Member("detail", .string(detail)),
        ])
        body = JSONWriter.bytes(document)
    }
}
