// How the answer of a rule is chosen among several: by weight, or one after the other.

import HTTPWire
package import Policies

/// The answers of a rule, if it has more than one. Immutable, shared by every loop.
package enum DemoChoice: Sendable {
    /// The rule's one answer.
    case one
    /// Each with its share, which add up to 1.
    case weighted([(share: Double, answer: DemoAnswer)])
    /// One after the other; never empty.
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

    /// Those of several; none where the rule has one answer only.
    var answers: [DemoAnswer] {
        switch self {
        case .one: []
        case .weighted(let answers): answers.map(\.answer)
        case .sequence(let answers, after: _): answers
        }
    }

    /// One rule has one answer.
    package var isOne: Bool {
        if case .one = self { true } else { false }
    }
}
