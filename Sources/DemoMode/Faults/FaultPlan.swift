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

    /// Nil without rules.
    package init?(_ rules: [Rule]) {
        if rules.isEmpty { return nil }
        self.rules = rules
    }

    /// What the rules do to an answer.
    ///
    /// Each rule that is for such answers draws with a key and an ordinal of its own, whatever the others do. Of
    /// several that act, the first one with a latency says the latency, and so with the status, the wire and the pace.
    /// - Parameters:
    ///   - point: where the answer comes from.
    ///   - request: the bytes that tell requests apart: method, a space, the target behind the prefix.
    /// - Returns: nil where none of them acts.
    package func draw(at point: FaultPoint, request: [UInt8], _ ordinals: DrawOrdinals) -> FaultEffect? {
        var effect = FaultEffect()
        for rule in rules where rule.policy.points.contains(point) {
            let key = request.withUnsafeBytes { DrawKey(rule.digest, request: $0) }
            effect.add(rule, key, ordinal: ordinals.next(key))
        }
        return effect.members.isEmpty ? nil : effect
    }
}

extension FaultPlan.Rule {
    /// What the rule does by this draw, whatever other rules do.
    /// - Returns: nil where it does not act.
    package func effect(of draw: DrawName) -> FaultEffect? {
        var effect = FaultEffect()
        effect.add(self, draw.key, ordinal: draw.ordinal)
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

    fileprivate mutating func add(_ rule: FaultPlan.Rule, _ key: DrawKey, ordinal: UInt64) {
        let policy = rule.policy
        if let first = policy.first, ordinal >= UInt64(first) { return }
        if let every = policy.every, (ordinal &+ 1) % UInt64(every) != 0 { return }
        let numbers = DrawNumbers(seed: policy.seed, key: key, ordinal: ordinal)
        guard numbers.unit(.outcome) < policy.chance else { return }
        var parts = ["fault=\(policy.name)"]
        if let latency = policy.latency, !isDelayed {
            self.latency = latency.drawn(numbers)
            isDelayed = true
            // Rounded down, so that no answer takes less than it states.
            parts.append("latency=\(self.latency / 1_000_000)ms")
        }
        if let status = policy.status, substitute == nil {
            let wait = policy.retryAfter.map { numbers.uniform(in: $0, .retryAfter) }
            substitute = Substitute(
                status: status,
                retryAfter: wait.map { ($0 + 999_999_999) / 1_000_000_000 },
                file: rule.file
            )
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
        parts.append("draw=\(DrawName(key, ordinal: ordinal))")
        members.append(parts.joined(separator: "; "))
    }
}

extension Pace {
    /// As Drydock-Demo has it.
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

    /// Of a body whose end is not known: pieces of a KiB, and behind the last of them all the rest.
    private static func blind(_ chunks: Int, _ over: UInt64, _ sent: Int64) -> (count: Int, due: (Int) -> UInt64) {
        let place = Swift.min(Int64(chunks) - 1, sent / 1024)
        let due = UInt64(Double(over) * Double(place + 1) / Double(chunks))
        return (place == Int64(chunks) - 1 ? 64 << 10 : 1024, { _ in due })
    }
}
