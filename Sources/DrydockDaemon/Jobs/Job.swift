// One batch of the daemon: its record, its runner, and the tasks that wait for its end.

import DownloadCore
import Policies
import ProxyServer
import Synchronization

struct Job: Sendable {
    /// The record of the job, with an empty batch: the runner has the batch.
    var record: JobRecord
    let runner: BatchRunner
    /// True if the job is written to the jobs folder, and goes on after a restart.
    let isKept: Bool
    /// Set if the job has changed since it was last written.
    let isChanged: Flag
    /// The time at which the job was last submitted for writing, in monotonic nanoseconds.
    var savedAt: UInt64 = 0
    /// The numbers of items that the metrics have counted already.
    var counted = (done: 0, failed: 0)
    /// True while a task runs the job.
    var isBegun = false
    /// The tasks that wait for the end of the job.
    var waiters: [UnsafeContinuation<Void, Never>] = []

    /// The record with the runner's batch, as it is written to the disk.
    var current: JobRecord {
        var record = record
        record.batch = runner.batch
        return record
    }

    /// The job as a document of the admin API.
    func document(withItems: Bool) -> AdminJob {
        let (now, totals) = runner.progress
        var job = AdminJob(
            id: record.id,
            kind: record.kind,
            name: record.name,
            state: now.rawValue,
            totals: totals
        )
        job.concurrency = record.batch.options.concurrency
        job.onError = record.batch.options.onError.rawValue
        job.created = record.created
        job.started = record.started
        job.ended = record.ended
        job.firstError = runner.firstError.map { AdminJob.Failure(url: $0.item.url, reason: $0.reason ?? "") }
        if withItems { job.items = runner.batch.entries.map { AdminJob.Item($0) } }
        return job
    }
}

extension JobCenter.State {
    /// Removes ended jobs to make room for one more, the oldest first: an unkept one of the same name in any case; if
    /// the list is full, an unkept one, and then a kept one.
    mutating func makeRoom(for name: String?) -> [Job] {
        var dropped: [Job] = []
        func drop(_ isLess: (Job) -> Bool) {
            guard let index = jobs.firstIndex(where: { $0.runner.progress.state.isEnd && !$0.isBegun && isLess($0) })
            else {
                return
            }
            dropped.append(jobs.remove(at: index))
        }
        if let name { drop { !$0.isKept && $0.record.name == name } }
        if jobs.count >= JobCenter.limit { drop { !$0.isKept } }
        if jobs.count >= JobCenter.limit { drop { _ in true } }
        return dropped
    }
}

/// A flag that something has happened. Any thread.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    func set() { value.store(true, ordering: .relaxed) }

    /// Takes the flag back, and returns whether it was set.
    func take() -> Bool { value.exchange(false, ordering: .relaxed) }
}

/// The counts of batches for the metrics. Any thread.
final class JobCounts: Sendable {
    private let bytes = Atomic<Int>(0)
    private let done = Atomic<Int>(0)
    private let failed = Atomic<Int>(0)

    var received: Int { bytes.load(ordering: .relaxed) }
    var itemsDone: Int { done.load(ordering: .relaxed) }
    var itemsFailed: Int { failed.load(ordering: .relaxed) }

    func note(_ change: BatchChange) {
        if case .received(_, let count) = change { bytes.wrappingAdd(count, ordering: .relaxed) }
    }

    /// Counts the items of a job that has ended.
    /// - Parameter before: the numbers that were done and failed when it began.
    func note(_ totals: BatchTotals, since before: (done: Int, failed: Int)) {
        done.wrappingAdd(max(0, totals.done - before.done), ordering: .relaxed)
        failed.wrappingAdd(max(0, totals.failed - before.failed), ordering: .relaxed)
    }
}

extension AdminJobItem {
    /// The item of a batch, with defaults for the members that are missing.
    var item: BatchItem {
        BatchItem(
            url: url,
            method: method ?? "GET",
            fields: (headers ?? [:]).sorted { $0.key < $1.key }.map { BatchItem.Field($0.key, $0.value) },
            body: body.map { Array($0.utf8) },
            force: force ?? false,
            seed: seed ?? true,
            store: store ?? true,
            file: file
        )
    }
}

extension BatchFailurePolicy {
    init(_ wanted: AdminJobRequest.OnError) {
        switch wanted {
        case .continue: self = .continue
        case .stop: self = .stop
        case .cancelRest: self = .cancelRest
        }
    }
}

extension AdminJob.Item {
    init(_ entry: BatchEntry) {
        self.init(
            url: entry.item.url,
            method: entry.item.method == "GET" ? nil : entry.item.method,
            state: entry.state.rawValue,
            received: entry.received
        )
        check = entry.check?.rawValue
        outcome = entry.outcome?.rawValue
        size = entry.size
        status = entry.status
        reason = entry.reason
        duplicateOf = entry.duplicateOf
        file = entry.item.file
    }
}
