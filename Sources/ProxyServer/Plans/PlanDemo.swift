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
        _ request: RequestPlan
    ) throws(PlanError) -> DemoPlan? {
        guard demo.enabled else { return nil }
        var rules: [DemoRule] = []
        for rule in demo.rules { rules.append(try self.rule(rule, of: name, request)) }
        if demo.hasOwnAnswer { rules.append(try rule(demo.answer, of: name, request)) }
        guard !rules.isEmpty else { return nil }
        return DemoPlan(
            name: name,
            seed: demo.answer.randomSeed,
            rules: rules,
            unmatched: demo.unmatched,
            bodyLimit: demo.bodyLimit
        )
    }

    private static func rule(
        _ rule: DemoRuleConfiguration,
        of endpoint: String,
        _ request: RequestPlan
    ) throws(PlanError) -> DemoRule {
        DemoRule(
            endpoint: endpoint,
            label: rule.name,
            condition: rule.condition,
            gate: rule.gate,
            counting: rule.counting,
            seed: rule.randomSeed,
            latency: rule.latency,
            answer: try answer(rule.answer, rule.headers, request),
            choice: try choice(rule, request),
            failure: try failure(rule)
        )
    }

    private static func choice(
        _ rule: DemoRuleConfiguration,
        _ request: RequestPlan
    ) throws(PlanError) -> DemoChoice {
        switch rule.choice {
        case .one: return .one
        case .weighted(let answers):
            var weighted: [(share: Double, answer: DemoAnswer)] = []
            for one in answers { weighted.append((one.share, try answer(one.answer, rule.headers, request))) }
            return .weighted(weighted)
        case .sequence(let answers, let after):
            var sequence: [DemoAnswer] = []
            for one in answers { sequence.append(try answer(one, rule.headers, request)) }
            return .sequence(sequence, after: after)
        }
    }

    private static func failure(_ rule: DemoRuleConfiguration) throws(PlanError) -> DemoFailure? {
        guard let failure = rule.failure else { return nil }
        return DemoFailure(chance: failure.chance, answer: try answer(failure.answer, rule.headers, nil))
    }

    /// - Parameter request: whose mapping shapes a success; nil for a failure.
    private static func answer(
        _ answer: DemoAnswerConfiguration,
        _ headers: [HeaderValue],
        _ request: RequestPlan?
    ) throws(PlanError) -> DemoAnswer {
        let own = Set(answer.headers.map { $0.name.lowercased() })
        let headers = headers.filter { !own.contains($0.name.lowercased()) } + answer.headers
        return DemoAnswer(
            status: answer.status,
            content: try answer.file.map { path throws(PlanError) in
                let file = try load(path)
                guard let request, 200..<300 ~= answer.status, request.policy.isSuccess(answer.status) else {
                    return .file(file)
                }
                return .file(try mapped(file, request.mapping))
            } ?? .none,
            fields: Fields(headers.map { ($0.name, $0.value) })
        )
    }

    static func load(_ path: String) throws(PlanError) -> DemoFile {
        do throws(DemoFileError) { return try DemoFile.load(path: path) } catch { throw .demo(error) }
    }
}
