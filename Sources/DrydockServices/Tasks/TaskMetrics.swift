// The metrics of tasks and of groups, for whichever backend the program has set up.

import CoreMetrics

/// Sendable: what it holds is.
final class TaskMetrics: Sendable {
    private let tasks: [TaskState.Phase: Counter]
    private let groups: [WorkGroupState: Counter]
    private let retries: Counter

    /// The metrics from a program's factory; nil if it has set up none.
    init?(_ factory: any MetricsFactory) {
        if factory is NOOPMetricsHandler { return nil }
        let ends: [TaskState.Phase] = [.done, .failed, .cancelled]
        let tasks = ends.map { phase in
            let dimensions = [("end", phase.rawValue)]
            return (phase, Counter(label: "drydock_tasks_total", dimensions: dimensions, factory: factory))
        }
        let groups = [WorkGroupState.finished, .failed, .cancelled].map { state in
            let dimensions = [("end", state.rawValue)]
            return (state, Counter(label: "drydock_task_groups_total", dimensions: dimensions, factory: factory))
        }
        self.tasks = Dictionary(uniqueKeysWithValues: tasks)
        self.groups = Dictionary(uniqueKeysWithValues: groups)
        retries = Counter(label: "drydock_task_retries_total", factory: factory)
    }

    func countEnd(_ phase: TaskState.Phase) { tasks[phase]?.increment() }
    func countEnd(_ state: WorkGroupState) { groups[state]?.increment() }
    func countRetry() { retries.increment() }
}
