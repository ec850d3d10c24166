// The faults of an endpoint, compiled once when the plan is built, and their draws for a request.

package import Policies

/// The rules of an endpoint's `faults`, in their order. Immutable, shared by all loops.
package struct FaultPlan: Sendable, Equatable {
    /// One rule with the body of its answers.
    package struct Rule: Sendable, Equatable {
        package let policy: FaultPolicy
        /// The body of an answer with the rule's status; nil for an empty one.
        package let file: DemoFile?
        fileprivate let digest: RuleDigest

        package init(_ policy: FaultPolicy, file: DemoFile? = nil) {
            self.policy = policy
            self.file = file
            // No rule of demo mode has a space in its name, so its draws are independent of these.
            digest = RuleDigest("fault \(policy.name)")
        }

        package static func == (left: Rule, right: Rule) -> Bool {
            left.policy == right.policy && left.file?.entityTag == right.file?.entityTag
        }
    }

    package let rules: [Rule]
    /// Whether some of the rules keep the origin from being asked when they act.
    package let sparesOrigin: Bool

    /// Makes the plan; nil if there are no rules.
    package init?(_ rules: [Rule]) {
        if rules.isEmpty { return nil }
        self.rules = rules
        sparesOrigin = rules.contains(where: \.policy.sparesOrigin)
    }

    /// Counts a request with every rule that applies to its answer. Each rule has its own key and ordinals, whatever
    /// the others do.
    /// - Parameters:
    ///   - point: the source of the answer.
    ///   - request: the bytes that distinguish requests: method, a space, the target after the prefix.
    package func draws(at point: FaultPoint, request: [UInt8], _ count: RequestCount) -> FaultDraws {
        draws(request, count) { $0.contains(point) }
    }

    /// The draws of a request before its origin is asked, by the rules that apply to each answer that it may get.
    /// - Parameter answers: the possible sources of the answer.
    package func draws(
        before answers: Set<FaultPoint>,
        request: [UInt8],
        _ ordinals: DrawOrdinals
    ) -> FaultDraws {
        ordinals.withRequest(request) { draws(request, $0) { $0.isSuperset(of: answers) } }
    }

    /// The effect of the rules on an answer, whose request is counted now.
    /// - Parameter early: the draws from before the origin was asked; nil for none.
    /// - Returns: nil if no rule acts.
    package func draw(
        at point: FaultPoint,
        request: [UInt8],
        _ ordinals: DrawOrdinals,
        after early: FaultDraws? = nil
    ) -> FaultEffect? {
        ordinals.withRequest(request) { draws(request, $0, after: early) { $0.contains(point) } }.effect
    }

    private func draws(
        _ request: [UInt8],
        _ count: RequestCount,
        after early: FaultDraws? = nil,
        where isMeant: (Set<FaultPoint>) -> Bool
    ) -> FaultDraws {
        var draws = early?.draws ?? []
        let drawn = Set(draws.map(\.index))
        for index in rules.indices where !drawn.contains(index) && isMeant(rules[index].policy.points) {
            let key = request.withUnsafeBytes { DrawKey(rules[index].digest, request: $0) }
            draws.append(FaultDraws.Draw(index: index, name: DrawName(key, ordinal: count.next(key))))
        }
        if !drawn.isEmpty { draws.sort { $0.index < $1.index } }
        return FaultDraws(rules: rules, draws: draws)
    }
}

/// The draws of a request by the rules that apply to its answer.
package struct FaultDraws: Sendable {
    fileprivate struct Draw {
        /// The index of the rule in the list.
        let index: Int
        let name: DrawName
    }

    fileprivate let rules: [FaultPlan.Rule]
    fileprivate let draws: [Draw]

    /// True if a rule acts that keeps the origin from being asked.
    package var sparesOrigin: Bool {
        draws.contains { rules[$0.index].policy.sparesOrigin && rules[$0.index].effect(of: $0.name) != nil }
    }

    /// The effect of the rules by these draws; nil if none acts. Of several that act, the first one with a latency
    /// decides the latency, and likewise for the status, the wire and the pace.
    package var effect: FaultEffect? {
        var effect = FaultEffect()
        for draw in draws { effect.add(rules[draw.index], draw.name) }
        return effect.members.isEmpty ? nil : effect
    }
}

extension FaultPlan.Rule {
    /// The effect of one rule by its draw, whatever other rules do.
    /// - Returns: nil if the rule does not act.
    package func effect(of draw: DrawName) -> FaultEffect? {
        var effect = FaultEffect()
        effect.add(self, draw)
        return effect.members.isEmpty ? nil : effect
    }
}

/// The effect of faults on one answer.
package struct FaultEffect: Sendable, Equatable {
    /// An answer that replaces the original one.
    package struct Substitute: Sendable, Equatable {
        package let status: Int
        /// The seconds in Retry-After; nil if the answer has no such field.
        package let retryAfter: UInt64?
        /// The body; nil for an empty one.
        package let file: DemoFile?

        package static func == (left: Substitute, right: Substitute) -> Bool {
            left.status == right.status && left.retryAfter == right.retryAfter
                && left.file?.entityTag == right.file?.entityTag
        }
    }

    /// The members of Drydock-Demo, one for each rule that acts.
    package private(set) var members: [String] = []
    /// The nanoseconds before the answer begins.
    package private(set) var latency: UInt64 = 0
    package private(set) var substitute: Substitute?
    package private(set) var wire: WireFault?
    package private(set) var pace: Pace?
    /// Whether a rule with a latency acts.
    package private(set) var isDelayed = false

    /// The value of Drydock-Demo.
    package var fieldValue: String { members.joined(separator: ", ") }

    fileprivate mutating func add(_ rule: FaultPlan.Rule, _ name: DrawName) {
        let (policy, ordinal) = (rule.policy, name.ordinal)
        if let first = policy.first, ordinal >= UInt64(first) { return }
        if let every = policy.every, (ordinal &+ 1) % UInt64(every) != 0 { return }
        let numbers = DrawNumbers(seed: policy.seed, key: name.key, ordinal: ordinal)
        guard numbers.unit(.outcome) < policy.chance else { return }
        var parts = ["fault=\(policy.name)"]
        if let latency = policy.latency, !isDelayed {
            self.latency = latency.drawn(numbers)
            isDelayed = true
            // The latency is rounded down, so that no answer takes less than it states.
            parts.append("latency=\(self.latency / 1_000_000)ms")
        }
        if let status = policy.status, substitute == nil {
            let wait = policy.retryAfter.map { numbers.uniform(in: Self.wholeSeconds($0), .retryAfter) }
            substitute = Substitute(status: status, retryAfter: wait, file: rule.file)
            parts.append("status=\(status)")
        }
        if let wire = policy.wire, self.wire == nil {
            self.wire = wire
            parts.append("wire=\(wire.kind.rawValue)")
        }
        if let pace = policy.pace, self.pace == nil {
            self.pace = pace
            parts.append("pace=\(pace.name)")
        }
        parts.append("draw=\(name)")
        members.append(parts.joined(separator: "; "))
    }

    /// The whole seconds for Retry-After in a range of nanoseconds; the next second if there is none in it.
    private static func wholeSeconds(_ range: ClosedRange<UInt64>) -> ClosedRange<UInt64> {
        let (second, rest) = range.lowerBound.quotientAndRemainder(dividingBy: 1_000_000_000)
        let least = second + (rest > 0 ? 1 : 0)
        return least...max(least, range.upperBound / 1_000_000_000)
    }
}

extension Pace {
    /// The name of the pace in Drydock-Demo.
    fileprivate var name: String {
        switch self {
        case .rate(let rate): "\(rate)"
        case .dribble: "dribble"
        }
    }

    /// The size of the next piece, and the time at which it has been sent at this pace.
    /// - Parameters:
    ///   - sent: the bytes of the body before it.
    ///   - length: the length of the body in bytes; nil if unknown.
    /// - Returns: the most bytes of the piece, at least 1, and for a piece of a size the nanoseconds from the beginning
    ///   of the body.
    package func step(after sent: Int64, length: Int64?) -> (count: Int, due: (Int) -> UInt64) {
        switch self {
        case .rate(let rate):
            // There are twenty pieces a second, of no more than a segment or two at a low rate, and never long ones.
            let count = Swift.max(1, min(rate / 20, 64 << 10))
            return (count, { UInt64((Double(sent) + Double($0)) / Double(rate) * 1e9) })
        case .dribble(let chunks, let over):
            guard let length, length > 0 else { return Self.blind(chunks, over, sent) }
            let chunk = min(Int64(chunks) - 1, sent * Int64(chunks) / length)
            // The bounds of the pieces are spread evenly; a piece without a byte of its own is left out.
            var next = chunk + 1
            while next < chunks, length * next / Int64(chunks) <= sent { next += 1 }
            let end = next == chunks ? length : length * next / Int64(chunks)
            let due = UInt64(Double(over) * Double(next) / Double(chunks))
            return (Swift.max(1, Int(clamping: end - sent)), { _ in due })
        }
    }

    /// The pieces of a body of unknown length: each has a KiB, and the last one all the rest.
    private static func blind(_ chunks: Int, _ over: UInt64, _ sent: Int64) -> (count: Int, due: (Int) -> UInt64) {
        let index = Swift.min(Int64(chunks) - 1, sent / 1024)
        let due = UInt64(Double(over) * Double(index + 1) / Double(chunks))
        return (index == Int64(chunks) - 1 ? 64 << 10 : 1024, { _ in due })
    }
}
