// The metrics of tasks and of groups, for whichever backend the program has set up.

import CoreMetrics

/// Sendable: what it holds is.
final class WorkMetrics: Sendable {
    private let tasks: [WorkState.Phase: Counter]
    private let groups: [WorkState.Phase: Counter]
    private let retries: Counter

    /// The metrics from a program's factory; nil if it has set up none.
    init?(_ factory: any MetricsFactory) {
        if factory is NOOPMetricsHandler { return nil }
        let ends: [WorkState.Phase] = [.done, .failed, .cancelled]
        let tasks = ends.map { phase in
            let dimensions = [("end", "\(phase)")]
            return (phase, Counter(label: "drydock_tasks_total", dimensions: dimensions, factory: factory))
        }
        let groups = ends.map { phase in
            let dimensions = [("end", phase.nameOfGroup)]
            return (phase, Counter(label: "drydock_task_groups_total", dimensions: dimensions, factory: factory))
        }
        self.tasks = Dictionary(uniqueKeysWithValues: tasks)
        self.groups = Dictionary(uniqueKeysWithValues: groups)
        retries = Counter(label: "drydock_task_retries_total", factory: factory)
    }

    func countEnd(_ phase: WorkState.Phase) { tasks[phase]?.increment() }
    func countGroup(_ phase: WorkState.Phase) { groups[phase]?.increment() }
    func countRetry() { retries.increment() }
}

extension WorkState.Phase {
    /// The end of a group in metrics and logs.
    var nameOfGroup: String { self == .done ? "finished" : "\(self)" }
}
