// The faults of an endpoint, compiled once when the plan is built, and what they draw for a request.

package import Policies

/// The rules of an endpoint's `faults`, in their order. Immutable, shared by all loops.
package struct FaultPlan: Sendable, Equatable {
    /// One rule with the body that it answers with.
    package struct Rule: Sendable, Equatable {
        package let policy: FaultPolicy
        /// The body of an answer with the rule's status; nil is an empty one.
        package let file: DemoFile?
        fileprivate let digest: RuleDigest

        package init(_ policy: FaultPolicy, file: DemoFile? = nil) {
            self.policy = policy
            self.file = file
            // No rule of demo mode has a space in its name, so that their draws have nothing to do with these.
            digest = RuleDigest("fault \(policy.name)")
        }

        package static func == (left: Rule, right: Rule) -> Bool {
            left.policy == right.policy && left.file?.entityTag == right.file?.entityTag
        }
    }

    package let rules: [Rule]
    /// Some of the rules keep the origin from being asked where they act.
    package let sparesOrigin: Bool

    /// Nil if there are no rules.
    package init?(_ rules: [Rule]) {
        if rules.isEmpty { return nil }
        self.rules = rules
        sparesOrigin = rules.contains(where: \.policy.sparesOrigin)
    }

    /// Counts a request with every rule that is for such answers. Each has a key and an ordinal of its own, whatever the
    /// others do.
    /// - Parameters:
    ///   - point: where the answer comes from.
    ///   - request: the bytes that tell requests apart: method, a space, the target behind the prefix.
    package func draws(at point: FaultPoint, request: [UInt8], _ count: RequestCount) -> FaultDraws {
        draws(request, count) { $0.contains(point) }
    }

    /// What a request draws before its origin is asked: of the rules that are for each answer that may come of it.
    /// - Parameter answers: where the answer may come from.
    package func draws(
        before answers: Set<FaultPoint>,
        request: [UInt8],
        _ ordinals: DrawOrdinals
    ) -> FaultDraws {
        ordinals.withRequest(request) { draws(request, $0) { $0.isSuperset(of: answers) } }
    }

    /// What the rules do to an answer, whose request is counted now.
    /// - Parameter early: what the request has drawn before its origin was asked; nil: nothing.
    /// - Returns: nil where none of them acts.
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
        let drawn = Set(draws.map(\.place))
        for place in rules.indices where !drawn.contains(place) && isMeant(rules[place].policy.points) {
            let key = request.withUnsafeBytes { DrawKey(rules[place].digest, request: $0) }
            draws.append(FaultDraws.Draw(place: place, name: DrawName(key, ordinal: count.next(key))))
        }
        if !drawn.isEmpty { draws.sort { $0.place < $1.place } }
        return FaultDraws(rules: rules, draws: draws)
    }
}

/// What a request has drawn of the rules that are for its answer.
package struct FaultDraws: Sendable {
    fileprivate struct Draw {
        /// The index of the rule in the list.
        let place: Int
        let name: DrawName
    }

    fileprivate let rules: [FaultPlan.Rule]
    fileprivate let draws: [Draw]

    /// A rule acts that keeps the origin from being asked.
    package var sparesOrigin: Bool {
        draws.contains { rules[$0.place].policy.sparesOrigin && rules[$0.place].effect(of: $0.name) != nil }
    }

    /// What the rules do by these draws. Of several that act, the first one with a latency says the latency, and so with
    /// the status, the wire and the pace.
    ///
    /// Nil where none of them acts.
    package var effect: FaultEffect? {
        var effect = FaultEffect()
        for draw in draws { effect.add(rules[draw.place], draw.name) }
        return effect.members.isEmpty ? nil : effect
    }
}

extension FaultPlan.Rule {
    /// What the rule does by this draw, whatever other rules do.
    /// - Returns: nil where it does not act.
    package func effect(of draw: DrawName) -> FaultEffect? {
        var effect = FaultEffect()
        effect.add(self, draw)
        return effect.members.isEmpty ? nil : effect
    }
}

/// What happens to one answer.
package struct FaultEffect: Sendable, Equatable {
    /// An answer in place of the one that there was.
    package struct Substitute: Sendable, Equatable {
        package let status: Int
        /// Seconds; nil: the answer has no such field.
        package let retryAfter: UInt64?
        /// Nil is an empty body.
        package let file: DemoFile?

        package static func == (left: Substitute, right: Substitute) -> Bool {
            left.status == right.status && left.retryAfter == right.retryAfter
                && left.file?.entityTag == right.file?.entityTag
        }
    }

    /// What Drydock-Demo says of it, one member for each rule that acts.
    package private(set) var members: [String] = []
    /// Nanoseconds before the answer begins.
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
            // Rounded down, so that no answer takes less than it states.
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

    /// The seconds that Retry-After can say for a range of nanoseconds; where there are none in it, the next one.
    private static func wholeSeconds(_ range: ClosedRange<UInt64>) -> ClosedRange<UInt64> {
        let (second, rest) = range.lowerBound.quotientAndRemainder(dividingBy: 1_000_000_000)
        let least = second + (rest > 0 ? 1 : 0)
        return least...max(least, range.upperBound / 1_000_000_000)
    }
}

extension Pace {
    /// The name of the pace as Drydock-Demo has it.
    fileprivate var name: String {
        switch self {
        case .rate(let rate): "\(rate)"
        case .dribble: "dribble"
        }
    }

    /// The size of the next piece, and when it has gone out at this pace.
    /// - Parameters:
    ///   - sent: bytes of the body before it.
    ///   - length: of the body in bytes; nil: not known.
    /// - Returns: at most so many bytes, at least 1, and nanoseconds from the beginning of the body for a piece of
    ///   that size.
    package func step(after sent: Int64, length: Int64?) -> (count: Int, due: (Int) -> UInt64) {
        switch self {
        case .rate(let rate):
            // Twenty pieces a second, of no more than a segment or two at a low rate, and never long ones.
            let count = Swift.max(1, min(rate / 20, 64 << 10))
            return (count, { UInt64((Double(sent) + Double($0)) / Double(rate) * 1e9) })
        case .dribble(let chunks, let over):
            guard let length, length > 0 else { return Self.blind(chunks, over, sent) }
            let place = min(Int64(chunks) - 1, sent * Int64(chunks) / length)
            // The bounds of the pieces are spread evenly; one that has no byte of its own is left out.
            var next = place + 1
            while next < chunks, length * next / Int64(chunks) <= sent { next += 1 }
            let end = next == chunks ? length : length * next / Int64(chunks)
            let due = UInt64(Double(over) * Double(next) / Double(chunks))
            return (Swift.max(1, Int(clamping: end - sent)), { _ in due })
        }
    }

    /// The pieces of a body whose end is not known: of a KiB each, and all the rest after the last of them.
    private static func blind(_ chunks: Int, _ over: UInt64, _ sent: Int64) -> (count: Int, due: (Int) -> UInt64) {
        let place = Swift.min(Int64(chunks) - 1, sent / 1024)
        let due = UInt64(Double(over) * Double(place + 1) / Double(chunks))
        return (place == Int64(chunks) - 1 ? 64 << 10 : 1024, { _ in due })
    }
}
