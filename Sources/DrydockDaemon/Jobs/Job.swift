// One batch of the daemon: its record, who runs it, and who waits for its end.

import AdminAPI
import DownloadCore
import Policies
import Synchronization

struct Job: Sendable {
    /// The record without its batch, which the runner has.
    var record: JobRecord
    let runner: BatchRunner
    /// The job is written to the jobs folder, and goes on after a restart.
    let isKept: Bool
    /// Something has changed since it was written.
    let isChanged: Flag
    /// Monotonic nanoseconds; when it was last asked to be written.
    var savedAt: UInt64 = 0
    /// The part of the totals that the metrics have counted already.
    var counted = (done: 0, failed: 0)
    /// A task runs it.
    var isBegun = false
    /// The tasks that wait for its end.
    var waiters: [UnsafeContinuation<Void, Never>] = []

    /// As it is to be written down.
    var current: JobRecord {
        var record = record
        record.batch = runner.batch
        return record
    }

    /// As the admin API tells it.
    func document(withItems: Bool) -> AdminJob {
        let (now, totals) = runner.progress
        var job = AdminJob(
            id: record.id,
            kind: record.kind,
            name: record.name,
            state: now.rawValue,
            totals: AdminJob.Totals(totals)
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

/// A flag that something has happened; any thread.
final class Flag: Sendable {
    private let value = Atomic<Bool>(false)

    func set() { value.store(true, ordering: .relaxed) }

    /// Whether it was set; it is not any more.
    func take() -> Bool { value.exchange(false, ordering: .relaxed) }
}

/// The counts of batches for the metrics; any thread.
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

    /// Of a job that has ended.
    /// - Parameter before: what was done and had failed when it began.
    func note(_ totals: BatchTotals, since before: (done: Int, failed: Int)) {
        done.wrappingAdd(max(0, totals.done - before.done), ordering: .relaxed)
        failed.wrappingAdd(max(0, totals.failed - before.failed), ordering: .relaxed)
    }
}
