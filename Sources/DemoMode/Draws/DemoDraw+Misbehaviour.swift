// Which of a rule's misbehaviours an answer has.

package import Policies

extension Misbehaviour {
    /// Whether an answer has it. Each kind has numbers of its own, so that another kind beside it moves nothing.
    func acts(_ numbers: DrawNumbers, ordinal: UInt64) -> Bool {
        if let every, (ordinal &+ 1) % UInt64(Swift.max(1, every)) != 0 { return false }
        return numbers.unit(.misbehaviour, Self.place(of: kind)) < chance
    }

    private static func place(of kind: Kind) -> UInt64 { UInt64(Kind.allCases.firstIndex(of: kind) ?? 0) }
}

extension DemoDraw {
    /// The misbehaviour of a kind, if the answer has it.
    package func misbehaviour(_ kind: Misbehaviour.Kind) -> Misbehaviour? { misbehaviours.first { $0.kind == kind } }

    /// The entity tag of an answer whose tag is wrong: no other request has it.
    package func wrongTag(for tag: String) -> String {
        let end = tag.hasSuffix("\"") ? "\"" : ""
        return "\(tag.dropLast(end.count)).\(String(start, radix: 16))\(end)"
    }
}
