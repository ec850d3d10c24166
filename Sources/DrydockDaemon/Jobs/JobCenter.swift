// The batches of a daemon: which exist, which run, how they end, and which are kept over a restart.

import DownloadCore
import EventLoop
import Glibc
import Logging
import ProxyServer
import ServiceCore
import Synchronization

/// Keeps the jobs, and runs a few of them at a time.
///
/// Sendable: the mutable state is under mutexes; a runner has its own.
final class JobCenter: Sendable {
    /// The number of jobs that are remembered; the oldest ended ones make room for new ones.
    static let limit = 100
    /// The number of jobs that run at a time; further ones wait.
    static let running = 8
    /// The largest number of items in a job.
    static let items = 100_000

    struct State {
        var jobs: [Job] = []
        var last = 0
        /// The number of new jobs that are not in ``jobs`` yet, since they are still being written.
        var coming = 0
        var isStopping = false
    }

    /// The functions that route the items of jobs. They are in an object, since a closure directly under a mutex would
    /// be wrapped once more at each look.
    private final class Routing: Sendable {
        let resolve: BatchResolver
        let follow: BatchFollower

        init(_ resolve: @escaping BatchResolver, _ follow: @escaping BatchFollower) {
            self.resolve = resolve
            self.follow = follow
        }
    }

    let loops: LoopGroup
    let core: DownloadCore
    let files: IOPool
    let logger: Logger
    let folder: JobFolder?
    private let itemFiles: BatchFiles?
    let counts = JobCounts()
    let state = Mutex(State())
    private let routing = Mutex<Routing?>(nil)
    private let saving = Mutex<Schedule?>(nil)

    /// - Parameter tier: the folder of the disk tier, in which the folders `jobs` and `files` lie; nil if there is no
    ///   disk tier.
    init(loops: LoopGroup, core: DownloadCore, files: IOPool, logger: Logger, tier: String?) {
        self.loops = loops
        self.core = core
        self.files = files
        self.logger = logger
        // The disk tier has to mark its folder before anything else is made in it.
        let prepare: @Sendable () throws -> Void = { try core.store.makeFoldersWhole() }
        folder = tier.map { JobFolder(path: "\($0)/jobs", prepare: prepare) }
        itemFiles = tier.map { BatchFiles(folder: "\($0)/files", drafts: "\($0)/tmp", pool: files, prepare: prepare) }
    }

    // MARK: - Beginning and ending

    /// Loads the jobs that were kept, and goes on with the unfinished ones.
    func start(_ resolve: @escaping BatchResolver, _ follow: @escaping BatchFollower) async {
        routing.exchange(Routing(resolve, follow))
        guard let folder else { return }
        let found = (try? await files.run { folder.load() }) ?? (records: [], errors: [])
        for error in found.errors { logger.warning("\(error)") }
        for var record in found.records.suffix(Self.limit) {
            if record.batch.resume() {
                logger.info("batch goes on", metadata: ["id": "\(record.id)"])
            }
            add(record, isKept: true)
        }
        saving.withLock {
            $0 = Schedule(every: 2_000_000_000, on: loops.loops[0]) { [weak self] _ in self?.saveChanged() }
        }
        pump()
    }

    /// Writes the progress of all kept jobs; unfinished ones go on after the next start. Blocks: not on a loop.
    func stop() {
        saving.withLock { $0 }?.cancel()
        let jobs = state.withLock { state in
            state.isStopping = true
            return state.jobs
        }
        for job in jobs where job.isKept { write(job.record.id) }
    }

    // MARK: - Asking

    func find(_ id: String) throws(Problem) -> Job {
        guard let job = state.withLock({ $0.jobs.first { $0.record.id == id } }) else { throw Self.unknown(id) }
        return job
    }

    /// Makes a job that ends with the daemon, and begins it when its turn comes.
    /// - Parameter resolve: finds the routes of its items; nil takes the routes of clients' requests.
    func submit(
        _ batch: Batch,
        kind: AdminJob.Kind,
        name: String?,
        resolve: BatchResolver? = nil
    ) throws(Problem) -> Job {
        begin(try order(batch, kind, name), isKept: false, resolve)
    }

    /// Makes a job that outlives the daemon, if there is a folder for jobs: it has reached the disk when this returns.
    /// - Throws: the reason why it cannot be made or kept; it is not begun then.
    func submitKept(_ batch: Batch, kind: AdminJob.Kind, name: String?) async throws(Problem) -> Job {
        let record = try order(batch, kind, name)
        do throws(Problem) { try await keep(record) } catch {
            state.withLock { $0.coming -= 1 }
            throw error
        }
        return begin(record, isKept: true)
    }

    /// Reserves a slot for a job, which ``begin(_:isKept:_:)`` fills.
    /// - Throws: a refusal of too many items or too many jobs.
    private func order(_ batch: Batch, _ kind: AdminJob.Kind, _ name: String?) throws(Problem) -> JobRecord {
        guard batch.entries.count <= Self.items else {
            throw .badQuery("\(batch.entries.count) items are too many; give at most \(Self.items), in several jobs")
        }
        let made: (id: String, dropped: [Job])? = state.withLock { state in
            let dropped = state.makeRoom(for: name)
            guard state.jobs.count + state.coming < Self.limit, !state.isStopping else { return nil }
            state.coming += 1
            state.last += 1
            return ("\(state.last)", dropped)
        }
        guard let made else {
            throw Problem(
                status: 503,
                title: "Too many jobs",
                detail: "\(Self.limit) jobs have not ended; wait for one, or end one with 'drydock jobs cancel ID'"
            )
        }
        for job in made.dropped { forget(job) }
        return JobRecord(
            id: made.id,
            kind: kind,
            name: name,
            created: Int64(time(nil)),
            downloads: kind != .size,
            batch: batch
        )
    }

    private func begin(_ record: JobRecord, isKept: Bool, _ resolve: BatchResolver? = nil) -> Job {
        let job = add(record, isKept: isKept, resolve: resolve)
        state.withLock { $0.coming -= 1 }
        pump()
        return job
    }

    /// Lets a job that has ended go on.
    /// - Parameter retrying: items that failed or were cancelled are queued again.
    func goOn(_ id: String, retrying: Bool) throws(Problem) -> Job {
        let job = try find(id)
        let now = job.runner.progress.state
        guard now.isEnd else { throw Self.busy(id) }
        // A retry of a job without failures has nothing to do.
        if retrying, now == .done { return job }
        guard retrying || now == .checked || now == .stopped else {
            throw Problem(
                status: 409,
                title: "Nothing to do",
                detail:
                    "job \(id) is \(now.rawValue); 'drydock prefetch --job \(id) --retry-failed' asks again for what failed"
            )
        }
        change(id) { job in
            let totals = job.runner.progress.totals
            job.record.downloads = true
            job.record.ended = nil
            job.counted = (totals.done, retrying ? 0 : totals.failed)
        }
        if retrying { job.runner.requeue() } else { job.runner.goOn() }
        save(id)
        pump()
        return try find(id)
    }

    func cancel(_ id: String) throws(Problem) -> Job {
        let job = try find(id)
        let before = job.runner.progress.state
        job.runner.cancel()
        // A running job ends by itself; one that has ended stays as it is.
        if before == .queued || before == .checked { ended(id) }
        return try find(id)
    }

    /// Waits until a cancelled job has ended, five seconds at most.
    func settled(_ id: String) async {
        for _ in 0..<500 {
            guard let job = try? find(id), job.isBegun else { return }
            do { try await loops.loops[0].sleep(nanoseconds: 10_000_000) } catch { return }
        }
    }

    func remove(_ id: String) throws(Problem) -> Job {
        let removed: Result<Job, Problem> = state.withLock { state in
            guard let index = state.jobs.firstIndex(where: { $0.record.id == id }) else {
                return .failure(Self.unknown(id))
            }
            let now = state.jobs[index].runner.progress.state
            guard now.isEnd else { return .failure(Self.busy(id)) }
            return .success(state.jobs.remove(at: index))
        }
        let job = try removed.get()
        forget(job)
        return job
    }

    /// Waits until a job has ended; if the waiting task is cancelled, the job is cancelled too.
    func wait(for id: String) async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { waiter in
                let isOver = state.withLock { state in
                    guard let index = state.jobs.firstIndex(where: { $0.record.id == id }),
                        !state.jobs[index].runner.progress.state.isEnd
                    else { return true }
                    state.jobs[index].waiters.append(waiter)
                    return false
                }
                if isOver { waiter.resume() }
            }
        } onCancel: {
            _ = try? cancel(id)
        }
    }

    static func unknown(_ id: String) -> Problem {
        Problem(status: 404, title: "No such job", detail: "there is no job \(id); 'drydock jobs' lists them")
    }

    private static func busy(_ id: String) -> Problem {
        Problem(
            status: 409,
            title: "Job under way",
            detail: "job \(id) has not ended; wait for it, or end it with 'drydock jobs cancel \(id)'"
        )
    }

    // MARK: - Running

    @discardableResult
    func add(_ record: JobRecord, isKept: Bool, resolve: BatchResolver? = nil) -> Job {
        let isChanged = Flag()
        let asClients: BatchResolver = { [weak self] item, loop throws(BatchRefusal) in
            guard let routing = self?.routing.withLock({ $0 }) else {
                throw BatchRefusal("the daemon is ending; ask again when it is back")
            }
            return try await routing.resolve(item, loop)
        }
        let runner = BatchRunner(
            record.batch,
            core: core,
            accepted: record.kind == .group ? GroupRun.accepted : 200..<300,
            resolve: resolve ?? asClients,
            observe: { [counts] change in
                counts.note(change)
                if case .received = change { return }
                isChanged.set()
            },
            follow: { [weak self] item, answer, loop throws(BatchRefusal) in
                guard let routing = self?.routing.withLock({ $0 }) else { return nil }
                return try routing.follow(item, answer, loop)
            },
            files: itemFiles
        )
        var record = record
        let counted = record.batch.totals
        // The items are left out of the record, since the runner has them.
        record.batch = Batch([], options: record.batch.options)
        var job = Job(record: record, runner: runner, isKept: isKept && folder != nil, isChanged: isChanged)
        job.counted = (counted.done, counted.failed)
        isChanged.set()
        let added = job
        state.withLock { state in
            state.jobs.append(added)
            state.last = max(state.last, Int(record.id) ?? 0)
        }
        return job
    }

    func change(_ id: String, _ body: (inout Job) -> Void) {
        state.withLock { state in
            guard let index = state.jobs.firstIndex(where: { $0.record.id == id }) else { return }
            body(&state.jobs[index])
            state.jobs[index].isChanged.set()
        }
    }

    /// Begins queued jobs while fewer than ``running`` run.
    private func pump() {
        let begun: [Job] = state.withLock { state in
            guard !state.isStopping else { return [] }
            let free = Self.running - state.jobs.count { $0.isBegun }
            let waiting = state.jobs.indices.filter { index in
                !state.jobs[index].isBegun && state.jobs[index].runner.progress.state == .queued
            }
            return waiting.prefix(max(0, free)).map { index in
                state.jobs[index].isBegun = true
                state.jobs[index].record.started = Int64(time(nil))
                return state.jobs[index]
            }
        }
        for job in begun {
            loops.leastBusy.submit { [self] loop in
                Task.immediate(executorPreference: loop.taskExecutor) {
                    if job.record.downloads {
                        await job.runner.run(on: loop)
                    } else {
                        await job.runner.check(on: loop)
                    }
                    ended(job.record.id)
                }
            }
        }
    }

    /// Records the end of a job, resumes the tasks that wait for it, and begins the next job. Any thread.
    private func ended(_ id: String) {
        let ended: (job: Job, waiters: [UnsafeContinuation<Void, Never>])? = state.withLock { state in
            guard !state.isStopping, let index = state.jobs.firstIndex(where: { $0.record.id == id }) else {
                return nil
            }
            state.jobs[index].isBegun = false
            state.jobs[index].record.ended = Int64(time(nil))
            defer { state.jobs[index].waiters = [] }
            return (state.jobs[index], state.jobs[index].waiters)
        }
        guard let ended else { return }
        counts.note(ended.job.runner.progress.totals, since: ended.job.counted)
        tell(ended.job)
        for waiter in ended.waiters { waiter.resume() }
        save(id)
        pump()
    }

    private func tell(_ job: Job) {
        let (now, totals) = job.runner.progress
        var metadata: Logger.Metadata = [
            "id": "\(job.record.id)", "items": "\(totals.items)", "failed": "\(totals.failed)",
            "received": "\(totals.received)",
        ]
        if let name = job.record.name { metadata["name"] = "\(name)" }
        if let failure = totals.failed > 0 ? job.runner.batch.firstError : nil {
            metadata["first_error"] = "\(failure.item.url): \(failure.reason ?? "")"
        }
        let message: Logger.Message = "batch \(now.rawValue)"
        if totals.failed > 0 {
            logger.warning(message, metadata: metadata)
        } else {
            logger.info(message, metadata: metadata)
        }
    }
}

extension JobCenter {
    /// Writes a new job to the disk, and returns when it is there.
    /// - Throws: the reason why it cannot be written, with advice.
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

    /// Writes a job as it is now, and returns when it is on the disk: the command that changed it may be acknowledged
    /// then. A failure is logged.
    func settleOnDisk(_ id: String) async {
        guard folder != nil, (try? find(id))?.isKept == true else { return }
        _ = try? await files.run { [self] in write(id) }
    }

    /// Removes the file of a removed job, and returns when it is gone from the disk.
    func forgetOnDisk(_ job: Job) async {
        guard job.isKept, let folder else { return }
        _ = try? await files.run { folder.remove(job.record.id) }
    }

    func forget(_ job: Job) {
        for waiter in job.waiters { waiter.resume() }
        guard job.isKept, let folder else { return }
        files.submit { folder.remove(job.record.id) }
    }

    /// Writes the changed jobs that are due: a job is written at most once a second for each thousand items of its
    /// list.
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
            // The job is looked up at the moment of writing: a job that was removed meanwhile would come back
            // otherwise.
            try folder.write { (try? find(id))?.current }
        } catch {
            logger.error("job \(id) is not kept: \(error); make room, or see to the folder's permissions")
        }
    }
}
