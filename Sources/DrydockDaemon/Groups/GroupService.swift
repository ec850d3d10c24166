// The groups of calls that the configuration has: begun by an operator or by a schedule, and jobs from then on.

import Configuration
import DownloadCore
import HTTPWire
import Logging
import ProxyServer
import ServiceCore

/// Sendable: it has no state of its own.
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

    /// Makes a run of the group a job, which is not kept over a restart: the values it has taken are not, either.
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

    /// The groups that a configuration runs by schedule.
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

    /// One turn of a schedule: waits for the end of its run.
    private func turn(_ group: GroupConfiguration) async {
        do throws(Problem) {
            await jobs.wait(for: try begin(group).record.id)
        } catch {
            context.parts.logger.error("group \(group.name) is left out this time: \(error.detail)")
        }
    }
}

extension GroupPlan {
    /// As a configuration has it.
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
    /// The route that begins groups.
    var routes: [AdminRoute] {
        [
            AdminRoute(.post, .group) { request async throws(Problem) in
                try .json(await self.run(group: request.pathParameters[0]), status: 202)
            }
        ]
    }
}
