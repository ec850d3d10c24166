// Translates the demo answers of a configuration: files are read, and rules become a plan.

import Configuration
import DemoMode
import HTTPCaching
import HTTPWire
import ServiceCore

extension RoutePlan {
    /// What an endpoint or a service plays; nil where its demo mode is off.
    /// - Throws: that a file cannot be read or mapped.
    static func demo(
        _ demo: DemoConfiguration,
        name: String,
        _ request: RequestPlan,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoPlan? {
        guard demo.enabled else { return nil }
        var rules: [DemoRule] = []
        for rule in demo.rules { rules.append(try self.rule(rule, of: name, request, sources)) }
        if demo.hasOwnAnswer { rules.append(try rule(demo.answer, of: name, request, sources)) }
        guard !rules.isEmpty else { return nil }
        return DemoPlan(
            name: name,
            seed: demo.answer.randomSeed,
            rules: rules,
            unmatched: demo.unmatched,
            bodyLimit: demo.bodyLimit,
            overrides: demo.overrides
        )
    }

    private static func rule(
        _ rule: DemoRuleConfiguration,
        of endpoint: String,
        _ request: RequestPlan,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoRule {
        let name = DemoRule.name(endpoint, rule.name)
        return DemoRule(
            endpoint: endpoint,
            label: rule.name,
            condition: rule.condition,
            gate: rule.gate,
            counting: rule.counting,
            seed: rule.randomSeed,
            latency: sources.latencies.known(rule.latency, at: sources.place),
            answer: try answer(rule.answer, rule.headers, of: name, request, sources),
            choice: try choice(rule, of: name, request, sources),
            failure: try failure(rule, of: name, sources),
            misbehaviours: rule.misbehaviours
        )
    }

    private static func choice(
        _ rule: DemoRuleConfiguration,
        of name: String,
        _ request: RequestPlan,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoChoice {
        switch rule.choice {
        case .one: return .one
        case .weighted(let answers):
            var weighted: [(share: Double, answer: DemoAnswer)] = []
            for one in answers {
                weighted.append((one.share, try answer(one.answer, rule.headers, of: name, request, sources)))
            }
            return .weighted(weighted)
        case .sequence(let answers, let after):
            var sequence: [DemoAnswer] = []
            for one in answers { sequence.append(try answer(one, rule.headers, of: name, request, sources)) }
            return .sequence(sequence, after: after)
        }
    }

    private static func failure(
        _ rule: DemoRuleConfiguration,
        of name: String,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoFailure? {
        guard let failure = rule.failure else { return nil }
        let answer = try answer(failure.answer, rule.headers, of: name, nil, sources)
        return DemoFailure(chance: failure.chance, answer: answer)
    }

    /// - Parameters:
    ///   - name: of the rule.
    ///   - request: whose mapping shapes a success; nil for a failure.
    private static func answer(
        _ answer: DemoAnswerConfiguration,
        _ headers: [HeaderValue],
        of name: String,
        _ request: RequestPlan?,
        _ sources: DemoSources
    ) throws(PlanError) -> DemoAnswer {
        let own = Set(answer.headers.map { $0.name.lowercased() })
        let headers = headers.filter { !own.contains($0.name.lowercased()) } + answer.headers
        let fields = Fields(headers.map { ($0.name, $0.value) })
        var content = try sources.content(answer, of: name, fields)
        if case .file(let file) = content, let request, 200..<300 ~= answer.status,
            request.policy.isSuccess(answer.status)
        {
            content = .file(try mapped(file, request.mapping))
        }
        return DemoAnswer(status: answer.status, content: content, fields: fields)
    }

    static func load(_ path: String) throws(PlanError) -> DemoFile {
        do throws(DemoFileError) { return try DemoFile.load(path: path) } catch { throw .demo(error) }
    }
}
