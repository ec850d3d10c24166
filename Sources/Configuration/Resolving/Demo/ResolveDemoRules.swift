// The rules of demo mode: their conditions, their files, and what only shows when they are seen together.

import Matching

extension Resolver {
    /// - Parameters:
    ///   - reader: of a section `demo`.
    ///   - parameters: of the endpoint's path; none for a service.
    ///   - folder: of the answer files, where `demo.files` names one that is there.
    mutating func rules(
        _ reader: SectionReader,
        parameters: [String],
        folder: DemoFolder,
        in demo: DemoRuleConfiguration
    ) -> [DemoRuleConfiguration] {
        var rules: [DemoRuleConfiguration] = []
        for value in reader.items("rules") where !broken.contains(value.place) {
            guard case .section(let entries) = value.content else { continue }
            let reader = SectionReader(entries: entries, section: KeyTable.demoRule)
            guard let name = reader.text("name") else { continue }
            let place = place(reader, "name")
            if rules.contains(where: { $0.name == name }) {
                fail(place, "'\(name)' is the name of an earlier rule; choose another name")
            }
            if let earlier = rules.last, earlier.isUnconditional {
                fail(
                    place,
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
            check(after: reader, reader)
            rules.append(rule)
        }
        return rules
    }

    private mutating func condition(_ rule: SectionReader, parameters: [String]) -> RequestCondition? {
        guard let place = rule.place("when") else { return nil }
        let reader = rule.section("when")
        let condition = RequestCondition(reader)
        checkPath(reader)
        if condition.clauses.isEmpty, ["nth", "first", "every"].contains(where: { reader.entry($0) != nil }) {
            return nil
        }
        guard !condition.clauses.isEmpty else {
            fail(
                place,
                "'demo.rules[].when' is empty; say what the rule is for, or remove it for a rule that answers everything"
            )
            return nil
        }
        for case .method(let methods) in condition.clauses {
            if let method = methods.first(where: { $0 != $0.uppercased() }), let place = reader.place("method") {
                fail(place, "methods are in upper case; write \(method.uppercased())")
            }
        }
        for entry in reader.map("params") where !parameters.contains(entry.key) {
            let near = Suggestions.nearest(to: entry.key, among: parameters).map { "did you mean '\($0)'?" }
            let known = parameters.isEmpty ? "it has none" : "it has \(parameters.joined(separator: ", "))"
            fail(entry.place, "the endpoint's path has no parameter '\(entry.key)'; \(near ?? known)")
        }
        return condition
    }
}
