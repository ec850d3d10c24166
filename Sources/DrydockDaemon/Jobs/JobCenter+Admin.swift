// The batches of a daemon in the admin API, in schedules and in the metrics.

import Configuration
import DownloadCore
import EventLoop
import Glibc
import HTTPWire
import Logging
import Policies
import ProxyServer
import Synchronization

extension JobCenter: DaemonFeature {
    func submit(_ request: AdminRequest, _ kind: AdminJob.Kind) async throws(Problem) -> AdminJob {
        // A long list takes long to decode, so that is done on an I/O thread.
        let read = try? await files.run { Result { () throws(Problem) in try Self.read(request, kind) } }
        guard let order = try read?.get() else {
            throw Problem(status: 503, title: "Ending", detail: "the daemon is ending; ask again when it is back")
        }
        switch order {
        case .go(let id): return try await goOn(job: id, retrying: false)
        case .begin(let batch, let name, true):
            return try await submitKept(batch, kind: kind, name: name).document(withItems: false)
        case .begin(let batch, let name, false):
            return try submit(batch, kind: kind, name: name).document(withItems: false)
        }
    }

    private enum Order: Sendable {
        case go(String)
        case begin(Batch, name: String?, isKept: Bool)
    }

    private static func read(_ request: AdminRequest, _ kind: AdminJob.Kind) throws(Problem) -> Order {
        let wanted = try request.decode(AdminJobRequest.self)
        if let job = wanted.job {
            guard kind == .prefetch else { throw .badQuery("a job has its sizes; give items") }
            guard wanted.items == nil else { throw .badQuery("give either items or a job") }
            return .go(job)
        }
        guard let items = wanted.items else { throw .badQuery("'items' is missing; give a list, which may be empty") }
        let concurrency = wanted.concurrency ?? BatchOptions().concurrency
        guard 1...1000 ~= concurrency else {
            throw .badQuery("concurrency is \(concurrency); give a number from 1 to 1000")
        }
        let options = BatchOptions(concurrency: concurrency, onError: BatchFailurePolicy(wanted.onError ?? .continue))
        let isKept = kind == .prefetch || wanted.save == true
        return .begin(Batch(items.map(\.item), options: options), name: wanted.name, isKept: isKept)
    }

    func retry(job id: String) async throws(Problem) -> AdminJob {
        try await goOn(job: id, retrying: true)
    }

    private func goOn(job id: String, retrying: Bool) async throws(Problem) -> AdminJob {
        let job = try goOn(id, retrying: retrying)
        await settleOnDisk(id)
        return job.document(withItems: false)
    }

    func cancel(job id: String) async throws(Problem) -> AdminJob {
        let job = try cancel(id)
        // The job has to settle first: its document counts the bytes that come until the last transfer has ended.
        await settled(id)
        await settleOnDisk(id)
        return ((try? find(id)) ?? job).document(withItems: false)
    }

    func remove(job id: String) async throws(Problem) -> AdminJob {
        let job = try remove(id)
        await forgetOnDisk(job)
        return job.document(withItems: false)
    }

    func job(_ id: String, withItems: Bool) async throws(Problem) -> AdminJob {
        let job = try find(id)
        guard withItems else { return job.document(withItems: false) }
        // A document with many items takes long to make, so that is done on an I/O thread.
        let document = try? await files.run { job.document(withItems: true) }
        return document ?? job.document(withItems: true)
    }

    func jobs() async -> AdminJobs {
        AdminJobs(jobs: state.withLock { $0.jobs }.map { $0.document(withItems: false) })
    }

    // MARK: - Schedules

    /// The schedules of the configuration that prefetch.
    func schedules(_ configuration: Configuration) -> [Schedules.Plan] {
        configuration.prefetch.map { prefetch in
            Schedules.Plan(
                identity: "prefetch \(prefetch)",
                every: prefetch.schedule.every,
                atStart: prefetch.schedule.atStart
            ) { [weak self] loop in await self?.prefetch(prefetch) }
        }
    }

    /// Prefetches once, and returns when the batch has ended.
    private func prefetch(_ wanted: PrefetchConfiguration) async {
        do {
            var items: [AdminJobItem] = wanted.urls.map { AdminJobItem(url: $0) }
            if let file = wanted.file { items += try await files.run { try BatchList.read(file) } }
            if wanted.force { for index in items.indices { items[index].force = true } }
            let batch = Batch(
                items.map(\.item),
                options: BatchOptions(concurrency: wanted.concurrency, onError: wanted.onError)
            )
            let job = try submit(batch, kind: .prefetch, name: wanted.name)
            await wait(for: job.record.id)
        } catch {
            let reason = (error as? Problem)?.detail ?? "\(error)"
            logger.error("prefetch \(wanted.name) is left out this time: \(reason)")
        }
    }

    // MARK: - Metrics

    var gauges: [Gauge] {
        [
            Gauge("drydock_jobs", "Batches that are known, ended ones included.") {
                self.state.withLock { $0.jobs.count }
            },
            Gauge("drydock_jobs_running", "Batches under way.") {
                self.state.withLock { $0.jobs.count { $0.isBegun } }
            },
            Gauge("drydock_batch_items_total", "Items of ended batches that were done.", isCounter: true) {
                self.counts.itemsDone
            },
            Gauge("drydock_batch_failures_total", "Items of ended batches that have failed.", isCounter: true) {
                self.counts.itemsFailed
            },
            Gauge("drydock_batch_received_bytes_total", "Bytes of bodies that came for batches.", isCounter: true) {
                self.counts.received
            },
        ]
    }
}

/// The most bytes that the body of a request with a list of items may have.
private let longestList = 64 << 20

extension JobCenter {
    var routes: [AdminRoute] {
        [
            AdminRoute(.post, .size, bodyLimit: longestList) { request async throws(Problem) in
                try .json(await self.submit(request, .size), status: 202)
            },
            AdminRoute(.post, .prefetch, bodyLimit: longestList) { request async throws(Problem) in
                try .json(await self.submit(request, .prefetch), status: 202)
            },
            AdminRoute(.get, .jobs) { _ async throws(Problem) in try .json(await self.jobs()) },
            AdminRoute(.get, .job) { request async throws(Problem) in
                let query = request.query
                for (name, value) in query where name != "items" || value != "true" && value != "false" {
                    throw .badQuery("\(name)=\(value) is not known; there is items=true|false")
                }
                return try .json(await self.job(request.pathParameters[0], withItems: query["items"] != "false"))
            },
            AdminRoute(.post, .cancelJob) { request async throws(Problem) in
                try .json(await self.cancel(job: request.pathParameters[0]))
            },
            AdminRoute(.post, .retryJob) { request async throws(Problem) in
                try .json(await self.retry(job: request.pathParameters[0]), status: 202)
            },
            AdminRoute(.delete, .job) { request async throws(Problem) in
                try .json(await self.remove(job: request.pathParameters[0]))
            },
        ]
    }
}
