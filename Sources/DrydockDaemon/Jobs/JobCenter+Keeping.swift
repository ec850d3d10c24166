// How the jobs of a daemon get to the disk: before an order is acknowledged, and every other second as far as they have come.

import AdminAPI
import DownloadCore
import EventLoop
import Logging
import ProxyServer
import Synchronization

extension JobCenter {
    /// Returns when a job that is to be made is on the disk.
    /// - Throws: why it is not, and what helps.
    func keep(_ record: JobRecord) async throws(Problem) {
        guard let folder else { return }
        do {
            try await files.run { try folder.write { record } }
        } catch is CancellationError {
            throw Problem(status: 503, title: "Ending", detail: "the daemon is ending; ask again when it is back")
        } catch {
            throw Problem(
                status: 503,
                title: "Not kept",
                detail:
                    "the batch is not begun, since it cannot be kept: \(error); make room, or see to the folder's permissions, and give it again"
            )
        }
    }

    /// Returns when a job is on the disk as it is now; the log says where it cannot be. An order that has changed it may be
    /// acknowledged then.
    func settleOnDisk(_ id: String) async {
        guard folder != nil, (try? find(id))?.isKept == true else { return }
        _ = try? await files.run { [self] in write(id) }
    }

    /// Returns when a job that was removed is gone from the disk, too.
    func forgetOnDisk(_ job: Job) async {
        guard job.isKept, let folder else { return }
        _ = try? await files.run { folder.remove(job.record.id) }
    }

    func forget(_ job: Job) {
        for waiter in job.waiters { waiter.resume() }
        guard job.isKept, let folder else { return }
        files.submit { folder.remove(job.record.id) }
    }

    /// The longer a list, the less often it is written: a thousand items more are a second more.
    func saveChanged() {
        let now = Monotonic.now()
        let due = state.withLock { state in
            state.jobs.indices.filter { index in
                let job = state.jobs[index]
                let pause = UInt64(job.runner.progress.totals.items) * 1_000_000
                guard job.isKept, now &- job.savedAt >= pause, job.isChanged.take() else { return false }
                state.jobs[index].savedAt = now
                return true
            }.map { state.jobs[$0].record.id }
        }
        for id in due { save(id) }
    }

    func save(_ id: String) {
        guard folder != nil, (try? find(id))?.isKept == true else { return }
        files.submit { [self] in write(id) }
    }

    func write(_ id: String) {
        guard let folder else { return }
        do {
            // Looked up at the moment of writing: a job that was removed meanwhile would come back otherwise.
            try folder.write { (try? find(id))?.current }
        } catch {
            logger.error("job \(id) is not kept: \(error); make room, or see to the folder's permissions")
        }
    }
}
