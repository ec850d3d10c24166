// The groups of calls of the configuration: an operator or a schedule begins one, and it is a job from then on.

import Configuration
import DownloadCore
import HTTPWire
import Logging
import Policies
import ProxyServer
import ServiceCore

/// Runs the groups of calls that the configuration has.
///
/// Sendable: it has no mutable state of its own.
final class GroupService: DaemonFeature {
    private let context: DaemonContext
    private let jobs: JobCenter

    init(_ context: DaemonContext, jobs: JobCenter) {
        self.context = context
        self.jobs = jobs
    }

    func run(group name: String) async throws(Problem) -> AdminJob {
        let groups = context.configuration.groups
        guard let group = groups.first(where: { $0.name == name }) else {
            let known = groups.isEmpty ? "the configuration has none" : groups.map(\.name).joined(separator: ", ")
            throw Problem(
                status: 404,
                title: "No such group",
                detail: "there is no group '\(name)'; groups: \(known)"
            )
        }
        return try begin(group).document(withItems: false)
    }

    /// Begins a run of the group as a job. The job is not kept over a restart, since the values that the run has taken
    /// from answers are not.
    private func begin(_ group: GroupConfiguration) throws(Problem) -> Job {
        guard let server = context.server else {
            throw Problem(status: 503, title: "Ending", detail: "the daemon is ending; ask again when it is back")
        }
        let run = GroupRun(GroupPlan(group), core: context.parts.core, router: server.groupRouter)
        let job = try jobs.submit(
            run.batch,
            kind: .group,
            name: group.name,
            resolve: { item, loop throws(BatchRefusal) in try run.route(item, on: loop) }
        )
        run.onStop { [weak runner = job.runner] in runner?.cancel() }
        return job
    }

    // MARK: - Schedules

    /// The schedules of the configuration that run groups.
    func schedules(_ configuration: Configuration) -> [Schedules.Plan] {
        configuration.groups.compactMap { group in
            guard let schedule = group.schedule else { return nil }
            return Schedules.Plan(
                identity: "group \(group)",
                every: schedule.every,
                atStart: schedule.atStart
            ) { [weak self] _ in await self?.turn(group) }
        }
    }

    /// Runs the group once, and returns when the run has ended.
    private func turn(_ group: GroupConfiguration) async {
        do throws(Problem) {
            await jobs.wait(for: try begin(group).record.id)
        } catch {
            context.parts.log(.batch).error("group \(group.name) is left out this time: \(error.detail)")
        }
    }
}

extension GroupPlan {
    /// Makes the plan of a group in the configuration.
    init(_ group: GroupConfiguration) {
        let calls = group.calls.map { call in
            var made = GroupCall(service: call.service, method: call.method, path: call.path)
            made.query = call.query.map { ($0.name, $0.value) }
            made.fields = call.headers.map { ($0.name, $0.value) }
            made.body = call.body
            made.take = call.take
            made.condition = call.condition
            return made
        }
        self.init(name: group.name, mode: group.mode, onError: group.onError, calls: calls)
    }
}

extension GroupService {
    var routes: [AdminRoute] {
        [
            AdminRoute(.post, .group) { request async throws(Problem) in
                try .json(await self.run(group: request.pathParameters[0]), status: 202)
            }
        ]
    }
}
