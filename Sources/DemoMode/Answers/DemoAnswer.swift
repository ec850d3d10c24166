// One answer of a demo rule: its status, its content and its fields, and how it is chosen among several or takes the
// place of one.

import Content
package import HTTPWire
package import Policies

/// What a rule answers with. Immutable, shared by every loop.
package struct DemoAnswer: Sendable {
    /// Default 200.
    package let status: Int
    /// Default: none.
    package let content: DemoContent
    /// A Content-Type here wins over the content's.
    package let fields: Fields

    package init(status: Int = 200, content: DemoContent = .none, fields: Fields = Fields()) {
        self.status = status
        self.content = content
        self.fields = fields
    }
}

/// Where the bytes of an answer come from.
package enum DemoContent: Sendable {
    /// There are none.
    case none
    case file(DemoFile)
    /// A text that is made for each request.
    case template(DemoTemplate, contentType: String)
    /// Items that requests read and change.
    case collection(DemoCollection)
    /// Server-sent events, each in its time.
    case events(DemoEvents)

    /// The bytes, where they are known before a request comes.
    package var file: DemoFile? {
        if case .file(let file) = self { file } else { nil }
    }

    /// Every request gets the same.
    package var isFixed: Bool {
        switch self {
        case .none, .file: true
        case .template, .collection, .events: false
        }
    }

    /// The content of the request is part of what is made.
    package var readsBody: Bool {
        switch self {
        case .none, .file, .events: false
        case .template(let template, contentType: _): template.readsBody
        case .collection: true
        }
    }

    /// The status is known when the answer is made, and not drawn.
    package var hasOwnStatus: Bool {
        if case .collection = self { true } else { false }
    }

    /// Nil where there is no body, or each has its own.
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

/// The answers of a rule, if it has more than one. Immutable, shared by every loop.
package enum DemoChoice: Sendable {
    /// The rule has one answer.
    case one
    /// The answers with their shares, which add up to 1.
    case weighted([(share: Double, answer: DemoAnswer)])
    /// The answers one after the other; never empty.
    case sequence([DemoAnswer], after: SequenceEnd)

    /// The answer to a request.
    /// - Parameters:
    ///   - place: how many answers the rule has given before.
    ///   - unit: a uniform number, 0 ..< 1.
    /// - Returns: nil where the rule has one answer only.
    func answer(place: UInt64, unit: Double) -> DemoAnswer? {
        switch self {
        case .one: return nil
        case .weighted(let answers):
            var end = 0.0
            for (share, answer) in answers {
                end += share
                if unit < end { return answer }
            }
            // Shares that add up to a little less than 1, as fractions do.
            return answers.last?.answer
        case .sequence(let answers, let after):
            if place < UInt64(answers.count) { return answers[Int(place)] }
            switch after {
            case .repeat: return answers[Int(place % UInt64(max(1, answers.count)))]
            case .last: return answers.last
            case .notFound: return DemoAnswer(status: 404)
            }
        }
    }

    /// The answers of a rule that has several; empty if the rule has one only.
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
