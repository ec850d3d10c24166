// Faults of a configuration as plans.

import Configuration
import DemoMode
import Policies
import ServiceCore

extension RoutePlan {
    /// Reads the bodies of the rules.
    /// - Parameter place: the name of the service or endpoint that has them.
    static func faults(
        _ rules: [FaultPolicy],
        at place: String,
        _ latencies: LearnedLatencies,
        _ files: AnswerFiles
    ) throws(PlanError) -> FaultPlan? {
        var compiled: [FaultPlan.Rule] = []
        for rule in rules {
            var known = rule
            known.latency = rule.latency.map { latencies.known($0, at: place) }
            compiled.append(FaultPlan.Rule(known, file: try rule.file.map(files.load)))
        }
        return FaultPlan(compiled)
    }
}
