// Faults of a configuration as plans.

import Configuration
import DemoMode
import Policies
import ServiceCore

extension RoutePlan {
    /// Reads the bodies of the rules.
    static func faults(_ rules: [FaultPolicy], _ files: AnswerFiles) throws(PlanError) -> FaultPlan? {
        var compiled: [FaultPlan.Rule] = []
        for rule in rules { compiled.append(FaultPlan.Rule(rule, file: try rule.file.map(files.load))) }
        return FaultPlan(compiled)
    }
}
