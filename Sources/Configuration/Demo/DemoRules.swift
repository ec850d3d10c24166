// The rules of demo mode: their conditions, and several answers of a rule, one after the other or by weight.

import Matching
import Policies

extension Resolver {
    /// Reads and checks the rules of a demo section.
    /// - Parameters:
    ///   - reader: a section `demo`.
    ///   - parameters: the parameters of the endpoint's path; empty for a service.
    ///   - folder: the folder of the answer files.
    mutating func rules(
        _ reader: SectionReader,
        parameters: [String],
        folder: DemoFolder,
        in demo: DemoRuleConfiguration
    ) -> [DemoRuleConfiguration] {
        var rules: [DemoRuleConfiguration] = []
        for value in reader.items("rules") where !broken.contains(value.position) {
            guard case .section(let entries) = value.content else { continue }
            let reader = SectionReader(entries: entries, section: KeyTable.demoRule)
            guard let name = reader.text("name") else { continue }
            let position = position(reader, "name")
            if rules.contains(where: { $0.name == name }) {
                fail(position, "'\(name)' is the name of an earlier rule; choose another name")
            }
            if let earlier = rules.last, earlier.isUnconditional {
                fail(
                    position,
                    "the rule '\(earlier.name ?? "")' answers every request, so that '\(name)' never answers; move '\(name)' before it, or give '\(earlier.name ?? "")' a 'when'"
                )
            }
            var rule = DemoRuleConfiguration(reader, in: demo)
            rule.condition = condition(reader, parameters: parameters)
            checkFields(reader, of: "demo.rules[]")
            let folder = self.folder(reader) ?? folder
            _ = content(reader, folder, of: "demo.rules[]", into: &rule.answer)
            rule.choice = choice(reader, folder, rule.answer).with(contentOf: rule.answer)
            rule.failure = failure(reader, folder)
            rule.misbehaviours = misbehaviours(reader) ?? demo.misbehaviours
            _ = latency(reader, label: "demo.rules[].latency")
            check(gate: reader, rule.gate)
            rules.append(rule)
        }
        return rules
    }

    private mutating func condition(_ rule: SectionReader, parameters: [String]) -> RequestCondition? {
        guard let position = rule.position("when") else { return nil }
        let reader = rule.section("when")
        let condition = RequestCondition(reader)
        checkPath(reader)
        if condition.clauses.isEmpty, ["nth", "first", "every"].contains(where: { reader.entry($0) != nil }) {
            return nil
        }
        guard !condition.clauses.isEmpty else {
            fail(
                position,
                "'demo.rules[].when' is empty; say what the rule is for, or remove it for a rule that answers everything"
            )
            return nil
        }
        for case .method(let methods) in condition.clauses {
            if let method = methods.first(where: { $0 != $0.uppercased() }), let position = reader.position("method") {
                fail(position, "methods are in upper case; write \(method.uppercased())")
            }
        }
        for entry in reader.map("params") where !parameters.contains(entry.key) {
            let near = Suggestions.nearest(to: entry.key, among: parameters).map { "did you mean '\($0)'?" }
            let known = parameters.isEmpty ? "it has none" : "it has \(parameters.joined(separator: ", "))"
            fail(entry.position, "the endpoint's path has no parameter '\(entry.key)'; \(near ?? known)")
        }
        return condition
    }
}

extension Resolver {
    /// Reads the choice among several answers.
    /// - Parameters:
    ///   - reader: a section `demo`, or one of its rules.
    ///   - one: the answer if there is only one.
    mutating func choice(
        _ reader: SectionReader,
        _ folder: DemoFolder,
        _ one: DemoAnswerConfiguration
    ) -> DemoChoiceConfiguration {
        let statuses = reader.map("status")
        let kinds = ["sequence", "answers"].filter { reader.entry($0) != nil } + (statuses.isEmpty ? [] : ["status"])
        if kinds.count > 1 {
            fail(position(reader, kinds[1]), "'\(kinds[0])' and '\(kinds[1])' both say which answer comes; remove one")
            return .one
        }
        guard let kind = kinds.first, let position = reader.position(kind), !broken.contains(position) else {
            return .one
        }
        switch kind {
        case "sequence":
            let answers = sections(reader, kind, KeyTable.step).map { answer($0, folder, of: "demo.sequence[]") }
            guard !answers.isEmpty else {
                fail(position, "'\(kind)' is an empty list; write answers, or remove it")
                return .one
            }
            return .sequence(answers, after: reader.choice(always: "after"))
        case "answers":
            let answers = sections(reader, kind, KeyTable.weightedAnswer).map { reader in
                WeightedAnswerConfiguration(
                    share: reader.share("weight") ?? 0,
                    answer: answer(reader, folder, of: "demo.answers[]")
                )
            }
            return weighted(answers, kind, position)
        default:
            let answers = statuses.compactMap { entry -> WeightedAnswerConfiguration? in
                guard let status = Int(entry.key), case .leaf(let leaf) = entry.value.content,
                    case .share(let share) = leaf.scalar
                else { return nil }
                let answer = DemoAnswerConfiguration(status: status, isTemplate: false)
                return WeightedAnswerConfiguration(share: share, answer: answer)
            }
            return weighted(answers, kind, position)
        }
    }

    private mutating func weighted(
        _ answers: [WeightedAnswerConfiguration],
        _ key: String,
        _ position: SourcePosition
    ) -> DemoChoiceConfiguration {
        // The shares are added in millionths of a percent, so that fractions add up exactly.
        let sum = answers.reduce(0) { $0 + Int(($1.share * 1e8).rounded()) }
        guard sum == 100_000_000 else {
            fail(position, "the weights under '\(key)' add up to \(Self.percent(sum)), not to 100%; correct them")
            return .one
        }
        return .weighted(answers)
    }

    private static func percent(_ millionths: Int) -> String {
        var digits = String(millionths % 1_000_000 + 1_000_000).dropFirst()
        while digits.last == "0" { digits.removeLast() }
        return "\(millionths / 1_000_000)\(digits.isEmpty ? "" : ".\(digits)")%"
    }

    private func sections(_ reader: SectionReader, _ key: String, _ section: SectionDescriptor) -> [SectionReader] {
        reader.items(key).compactMap { value in
            guard case .section(let entries) = value.content else { return nil }
            return SectionReader(entries: entries, section: section)
        }
    }

    private mutating func answer(
        _ reader: SectionReader,
        _ folder: DemoFolder,
        of label: String
    ) -> DemoAnswerConfiguration {
        var answer = DemoAnswerConfiguration(reader)
        answer.headers = reader.headerValues("headers")
        checkFields(reader, of: label)
        if !content(reader, folder, of: label, into: &answer), let position = reader.position("template") {
            fail(position, "'\(label).template' needs a content beside it; write file, body or json, or remove it")
        }
        return answer
    }

    /// Checks the windows of an outage.
    /// - Parameter reader: one of `demo.rules`.
    mutating func check(gate reader: SectionReader, _ gate: RuleGate?) {
        let section = reader.section("outage")
        guard let position = reader.position("outage"), !broken.contains(position) else { return }
        guard let outage = gate?.outage else {
            fail(position, "'outage' is empty; say when the rule answers, such as { after: 30s, for: 10s }")
            return
        }
        guard let every = outage.every, let position = section.position("every") else { return }
        if outage.duration.map({ $0 >= every }) ?? true {
            fail(position, "'outage.every' needs a shorter 'outage.for'; otherwise one window never ends")
        }
    }
}

extension DemoChoiceConfiguration {
    /// Gives the content of the one answer to every success among several answers that has none of its own.
    func with(contentOf one: DemoAnswerConfiguration) -> DemoChoiceConfiguration {
        guard one.hasContent else { return self }
        func filled(_ answer: DemoAnswerConfiguration) -> DemoAnswerConfiguration {
            let hasBody = 200..<300 ~= answer.status && !Resolver.bodilessStatuses.contains(answer.status)
            guard hasBody, !answer.hasContent else { return answer }
            var answer = answer
            answer.file = one.file
            answer.inline = one.inline
            answer.collection = one.collection
            answer.events = one.events
            answer.isTemplate = one.isTemplate
            return answer
        }
        switch self {
        case .one: return self
        case .sequence(let answers, let after): return .sequence(answers.map(filled), after: after)
        case .weighted(let answers):
            return .weighted(answers.map { WeightedAnswerConfiguration(share: $0.share, answer: filled($0.answer)) })
        }
    }
}

extension DemoAnswerConfiguration {
    fileprivate var hasContent: Bool { file != nil || inline != nil || collection != nil || events != nil }
}
