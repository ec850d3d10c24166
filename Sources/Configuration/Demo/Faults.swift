// Faults: the effects of a rule, rules that exclude each other, fault profiles, and latencies.

import Matching
import Policies

extension KeyTable {
    static let latency = SectionDescriptor(
        name: "latency",
        keys: [
            KeyDescriptor(
                "range",
                .distribution,
                "A duration or a range, in which each latency is drawn as often as any other; also normal(MEAN, DEVIATION), lognormal(MEDIAN, p99=P99) and learned(SERVICE/ENDPOINT, x1.5).",
                inherited: .endpoints
            ),
            KeyDescriptor("normal", .section(normal), "The bell curve.", inherited: .endpoints),
            KeyDescriptor("lognormal", .section(lognormal), "The long tail of a network.", inherited: .endpoints),
            KeyDescriptor(
                "percentiles",
                .map(.percentile, .duration),
                "Percentiles that were measured, such as { 50: 80ms, 99: 1s }; what lies between them is on a straight line.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "learned",
                .shorthand(learned, key: "of"),
                "What an origin took before, as the daemon has measured it.",
                inherited: .endpoints
            ),
            KeyDescriptor("max", .duration, "Longer latencies are cut to this one.", inherited: .endpoints),
        ]
    )

    static let normal = SectionDescriptor(
        name: "normal",
        keys: [
            KeyDescriptor("mean", .duration, "The middle.", inherited: .endpoints, required: true),
            KeyDescriptor("deviation", .duration, "The standard deviation.", inherited: .endpoints, required: true),
        ]
    )

    static let lognormal = SectionDescriptor(
        name: "lognormal",
        keys: [
            KeyDescriptor(
                "median",
                .duration,
                "Half of the latencies are shorter.",
                inherited: .endpoints,
                required: true
            ),
            KeyDescriptor(
                "p99",
                .duration,
                "One latency of a hundred is longer.",
                inherited: .endpoints,
                required: true
            ),
        ]
    )

    private static let learned = SectionDescriptor(
        name: "learned",
        keys: [
            KeyDescriptor(
                "of",
                .text(.learnedLabel),
                "The service, or SERVICE/ENDPOINT, whose origin is meant; without it, that of the place where this stands.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "times",
                .text(.factor),
                default: "x1",
                "How many times as long each latency is, such as x1.5.",
                inherited: .endpoints
            ),
            KeyDescriptor(
                "otherwise",
                .duration,
                default: "0ms",
                "The latency while nothing is known.",
                inherited: .endpoints
            ),
        ],
        replaces: true
    )

    static let fault = SectionDescriptor(
        name: "faults[]",
        keys: [
            KeyDescriptor("profile", .text(.word), "In place of all other keys: the rules of a profile."),
            KeyDescriptor("name", .text(.word), "What answers and logs call the rule; without it, what the rule does."),
            KeyDescriptor("chance", .share, "The share of requests that the rule acts on; without it, all."),
            KeyDescriptor(
                "at",
                .oneOrMore(.choice(["all"] + FaultPoint.allCases.map(\.rawValue))),
                "The answers that the rule acts on, by where they come from; without it, all."
            ),
            KeyDescriptor(
                "origin",
                .choice(FaultOrigin.allCases.map(\.rawValue)),
                "Whether the origin is asked where nothing of its answer is left: without it, spare, it is not."
            ),
            KeyDescriptor(
                "first",
                .integer(1...1_000_000),
                "The rule acts on so many of the first requests of a path only."
            ),
            KeyDescriptor("every", .integer(1...1_000_000), "The rule acts on each so-many-th request of a path only."),
            KeyDescriptor("latency", .shorthand(latency, key: "range"), "How much later the answer begins."),
            KeyDescriptor("status", .integer(200...599), "The status that is sent in place of the answer."),
            KeyDescriptor(
                "retry_after",
                .latency,
                "With status: what Retry-After says, a duration or a range; it is sent in whole seconds."
            ),
            KeyDescriptor("file", .path, "With status: the body."),
            KeyDescriptor(
                "fault",
                .shorthand(wireFault, key: "kind"),
                "What happens to the bytes of the answer: a word, or a mapping such as { close: { after: 2KiB } }."
            ),
            KeyDescriptor("pace", .rate, "How fast the body is sent, such as 64KiB/s."),
            KeyDescriptor("dribble", .section(dribble), "In place of pace: the body is sent in pieces."),
            KeyDescriptor(
                "random_seed",
                .integer(0...Int.max),
                "The seed of the rule's draws: another one gives other draws."
            ),
        ]
    )

    static let dribble = SectionDescriptor(
        name: "dribble",
        keys: [
            KeyDescriptor("chunks", .integer(1...1_000_000), "The number of pieces.", required: true),
            KeyDescriptor("over", .duration, "The time until the last piece is sent.", required: true),
        ]
    )

    static let wireFault = SectionDescriptor(
        name: "fault",
        keys: [
            KeyDescriptor(
                "kind",
                .choice(WireFault.Kind.allCases.filter { $0 != .wrongLength }.map(\.rawValue)),
                "In place of a mapping: the word alone."
            ),
            KeyDescriptor("reset", .section(cut("reset")), "The connection is reset."),
            KeyDescriptor("close", .section(cut("close")), "The connection ends before the body does."),
            KeyDescriptor("bad_chunk", .section(cut("bad_chunk")), "A chunk of the body has no size."),
            KeyDescriptor("stalled_head", .section(stalledHead), "The head stops in its middle."),
            KeyDescriptor("stalled_body", .section(stalledBody), "The body stops in its middle."),
            KeyDescriptor("slow_close", .section(slowClose), "The connection ends late, and answers nothing more."),
            KeyDescriptor("garbage", .section(garbage), "The client gets bytes that are no HTTP."),
            KeyDescriptor("wrong_length", .section(wrongLength), "Content-Length is wrong."),
        ],
        replaces: true
    )

    private static func cut(_ name: String) -> SectionDescriptor {
        SectionDescriptor(name: name, keys: [after], replaces: true)
    }

    private static let after = KeyDescriptor(
        "after",
        .size,
        "How much of the body is sent before it; without it, nothing, and of reset not even the head."
    )

    private static let hold = KeyDescriptor(
        "for",
        .duration,
        "How long nothing is sent before the connection ends; without it, until the client leaves."
    )

    private static let stalledHead = SectionDescriptor(name: "stalled_head", keys: [hold], replaces: true)
    private static let stalledBody = SectionDescriptor(name: "stalled_body", keys: [after, hold], replaces: true)
    private static let slowClose = SectionDescriptor(name: "slow_close", keys: [hold], replaces: true)

    private static let garbage = SectionDescriptor(
        name: "garbage",
        keys: [
            KeyDescriptor("after", .choice(["status_line"]), "What is sent properly before it; without it, nothing.")
        ],
        replaces: true
    )

    private static let wrongLength = SectionDescriptor(
        name: "wrong_length",
        keys: [
            KeyDescriptor(
                "by",
                .integer(-1_000_000_000...1_000_000_000),
                "How many bytes Content-Length says more than there are; less than 0: fewer.",
                required: true
            )
        ],
        replaces: true
    )

    /// The key `faults` of services, endpoints and forward mode.
    static let faultsKey = KeyDescriptor(
        "faults",
        .rules(fault, key: "profile"),
        "What goes wrong on purpose between answers and clients: a rule, a profile, or a list of them; [] for nothing.",
        inherited: .endpoints
    )

    static let faultProfilesKey = KeyDescriptor(
        "fault_profiles",
        .map(.profile, .rules(fault, key: "profile")),
        "Rules that 'faults' names; flaky-mobile, overloaded and 3g are there without it."
    )
}

extension LatencyPolicy {
    /// Reads a latency; nil if the section has none, or none that can be drawn from.
    /// - Parameter reader: a section `latency`.
    init?(_ reader: SectionReader) {
        let max = reader.nanoseconds("max")
        guard var policy = reader.latencies.first else { return nil }
        if let max { policy.max = max }
        self = policy
    }
}

extension SectionReader {
    /// The distributions of a section `latency`.
    fileprivate var latencies: [LatencyPolicy] {
        var all: [LatencyPolicy] = []
        if case .distribution(let policy)? = leaf("range")?.scalar { all.append(policy) }
        let (normal, lognormal) = (section("normal"), section("lognormal"))
        if let mean = normal.nanoseconds("mean"), let deviation = normal.nanoseconds("deviation") {
            all.append(LatencyPolicy(.normal(mean: mean, deviation: deviation)))
        }
        if let median = lognormal.nanoseconds("median"), let p99 = lognormal.nanoseconds("p99") {
            all.append(LatencyPolicy(.lognormal(median: median, p99: p99)))
        }
        if entry("learned") != nil {
            let learned = section("learned")
            let policy = LearnedLatencyPolicy(
                of: learned.text("of"),
                times: learned.always { $0.text("times").flatMap(Units.factor) },
                otherwise: learned.nanoseconds(always: "otherwise")
            )
            all.append(LatencyPolicy(.learned(policy)))
        }
        guard entry("percentiles") != nil else { return all }
        let points = map("percentiles").compactMap { entry -> LatencyPolicy.Point? in
            guard let percentile = Double(entry.key), case .leaf(let leaf) = entry.value.content,
                case .nanoseconds(let latency) = leaf.scalar
            else { return nil }
            return LatencyPolicy.Point(percentile: percentile, latency: latency)
        }
        return all + [LatencyPolicy(.percentiles(points.sorted { $0.percentile < $1.percentile }))]
    }
}

extension Resolver {
    /// Reads and checks the latency in a section; nil if it has none.
    mutating func latency(_ reader: SectionReader, label: String) -> LatencyPolicy? {
        guard let position = reader.position("latency"), !broken.contains(position) else { return nil }
        let inner = reader.section("latency")
        let all = inner.latencies
        guard all.count == 1, let policy = all.first else {
            fail(
                position,
                "'\(label)' takes one of range, normal, lognormal, percentiles and learned; write one of them"
            )
            return nil
        }
        if let problem = Units.problem(of: policy.shape) { fail(position, "'\(label)' \(problem)") }
        if case .learned(let learned) = policy.shape, let source = learned.source,
            let problem = Self.problem(ofLearned: source, among: learnableLabels)
        {
            fail(position, "'\(label)' \(problem)")
        }
        return LatencyPolicy(inner)
    }

    /// The reason why the latencies of a label cannot be learned, with the correct name; nil if they can.
    /// - Parameter labels: the names of services, and of endpoints as `SERVICE/ENDPOINT`.
    static func problem(ofLearned source: String, among labels: [String]) -> String? {
        if labels.contains(source) { return nil }
        let near = Suggestions.nearest(to: source, among: labels).map { "did you mean '\($0)'?" }
        let what = source.contains("/") ? "endpoint" : "service"
        return "learns of '\(source)', but there is no such \(what); \(near ?? "write SERVICE or SERVICE/ENDPOINT")"
    }

    /// The names of all services and endpoints, and of forward mode.
    private var learnableLabels: [String] {
        services.reduce(into: [Configuration.forwardName]) { labels, service in
            guard case .section(let entries) = service.content else { return }
            let reader = SectionReader(entries: entries, section: KeyTable.service)
            guard let name = reader.text("name") else { return }
            labels.append(name)
            for endpoint in reader.items("endpoints") {
                guard case .section(let entries) = endpoint.content else { continue }
                let inner = SectionReader(entries: entries, section: KeyTable.service).text("name")
                if let inner { labels.append("\(name)/\(inner)") }
            }
        }
    }

    mutating func profiles(_ root: SectionReader) -> [String: [FaultPolicy]] {
        var result = FaultPreset.all
        for entry in root.map("fault_profiles") {
            guard case .list(let values) = entry.value.content else { continue }
            result[entry.key] = rules(values, isProfile: true)
        }
        return result
    }

    /// Reads the rules of deliberate faults.
    /// - Parameter reader: a service, an endpoint or forward mode.
    mutating func faults(_ reader: SectionReader) -> [FaultPolicy] { rules(reader.items("faults"), isProfile: false) }

    private mutating func rules(_ values: [Value], isProfile: Bool) -> [FaultPolicy] {
        var result: [FaultPolicy] = []
        for value in values where !broken.contains(value.position) {
            guard case .section(let entries) = value.content else { continue }
            let reader = SectionReader(entries: entries, section: KeyTable.fault)
            guard let name = reader.text("profile") else {
                if let rule = rule(reader, value.position) { result.append(rule) }
                continue
            }
            let position = position(reader, "profile")
            if entries.count > 1 {
                fail(
                    position,
                    "'profile' stands for rules of its own; remove the keys beside it, or write a rule without it"
                )
            } else if isProfile {
                fail(position, "a profile has rules, and no other profile; write the rules of '\(name)' here")
            } else if let rules = faultProfiles[name] {
                result += rules
            } else {
                let near = Suggestions.nearest(to: name, among: faultProfiles.keys.sorted())
                let known = faultProfiles.keys.sorted().joined(separator: ", ")
                let help = near.map { "did you mean '\($0)'?" } ?? "there are \(known)"
                fail(position, "there is no fault profile '\(name)'; \(help)")
            }
        }
        return Self.named(result)
    }

    /// Makes the names of the rules unique, because rules of one name would draw the same numbers.
    private static func named(_ rules: [FaultPolicy]) -> [FaultPolicy] {
        var seen: Set<String> = []
        return rules.map { rule in
            var rule = rule
            var number = 1
            while !seen.insert(number == 1 ? rule.name : "\(rule.name)-\(number)").inserted { number += 1 }
            if number > 1 { rule.name += "-\(number)" }
            return rule
        }
    }

    private mutating func rule(_ reader: SectionReader, _ position: SourcePosition) -> FaultPolicy? {
        var rule = FaultPolicy(name: "")
        rule.latency = latency(reader, label: "faults.latency")
        rule.status = reader.int("status")
        if case .latency(let range)? = reader.leaf("retry_after")?.scalar { rule.retryAfter = range }
        rule.file = reader.text("file")
        if let file = rule.file {
            if let problem = FileChecks.readable(file, atMost: FileChecks.largestDemoFile) {
                fail(self.position(reader, "file"), file: "'faults.file' \(problem)")
            }
            demoFiles.append(file)
        }
        rule.wire = wireFault(reader)
        rule.pace = pace(reader)
        if let share = reader.share("chance") { rule.chance = share }
        let points = Set(reader.texts("at").compactMap { FaultPoint(rawValue: $0) })
        if !points.isEmpty, !reader.texts("at").contains("all") { rule.points = points }
        if let origin = reader.text("origin").flatMap({ FaultOrigin(rawValue: $0) }) { rule.origin = origin }
        rule.first = reader.int("first")
        rule.every = reader.int("every")
        rule.seed = UInt64(reader.int("random_seed") ?? 0)
        rule.name = reader.text("name") ?? rule.deed
        if let status = rule.status, [204, 205, 304].contains(status), let position = reader.position("file") {
            fail(
                position,
                "an answer with status \(status) has no body (RFC 9110); remove 'faults.file', or change the status"
            )
        }
        if let position = reader.position("origin"), !rule.leavesNothing || !rule.points.contains(.miss) {
            fail(
                position,
                "'faults.origin' is for rules with 'at: miss' or without 'at' that leave nothing of an answer: with status,"
                    + " or with fault reset (without after), empty or garbage; remove it, or change the rule"
            )
        }
        let deeds = ["latency", "status", "fault", "pace", "dribble"]
        guard deeds.contains(where: { reader.entry($0) != nil }) else {
            fail(position, "a rule of 'faults' does nothing; write latency, status, fault, pace or dribble")
            return nil
        }
        return rule
    }

    private mutating func pace(_ reader: SectionReader) -> Pace? {
        let dribble = reader.section("dribble")
        if let position = reader.position("dribble"), reader.entry("pace") != nil {
            fail(position, "'faults' takes pace or dribble, not both; remove one")
        }
        if let rate = reader.bytes("pace") { return .rate(rate) }
        guard let chunks = dribble.int("chunks"), let over = dribble.nanoseconds("over") else { return nil }
        return .dribble(chunks: chunks, over: over)
    }

    private mutating func wireFault(_ rule: SectionReader) -> WireFault? {
        guard let position = rule.position("fault"), !broken.contains(position) else { return nil }
        let reader = rule.section("fault")
        guard reader.entries.count == 1, let key = reader.entries.first?.key,
            let kind = WireFault.Kind(rawValue: reader.text("kind") ?? key)
        else {
            fail(position, "'faults.fault' takes one fault, such as reset or { close: { after: 2KiB } }; write one")
            return nil
        }
        let below = reader.section(kind.rawValue)
        let after = below.bytes("after")
        switch kind {
        case .reset: return .reset(after: after)
        case .empty: return .empty
        case .close: return .close(after: after ?? 0)
        case .badChunk: return .badChunk(after: after ?? 0)
        case .stalledHead: return .stalledHead(for: below.nanoseconds("for"))
        case .stalledBody: return .stalledBody(after: after ?? 0, for: below.nanoseconds("for"))
        case .slowClose: return .slowClose(for: below.nanoseconds("for"))
        case .garbage: return .garbage(afterStatusLine: below.text("after") != nil)
        case .wrongLength:
            guard let count = below.int("by"), count != 0 else {
                fail(position, "'faults.fault.wrong_length.by' is 0, which is the right length; write another number")
                return nil
            }
            return .wrongLength(by: count)
        }
    }
}

extension FaultPolicy {
    /// The name of a rule that is given none: its effect.
    fileprivate var deed: String {
        if let wire { return wire.kind.rawValue }
        if let status { return "\(status)" }
        return latency != nil ? "latency" : "pace"
    }
}
