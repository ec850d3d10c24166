// The jobs of a daemon without the daemon: what an item costs, and what is on the disk when an order is acknowledged.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import Files
import Foundation
import Logging
import Policies
import ProxyServer
import ServiceCore
import TestSupport
import Testing

@testable import DrydockDaemon

@Suite(.timeLimit(.minutes(5))) struct JobCenterTests {
    /// A cache with a center of jobs, whose items are answered by nobody.
    private struct Rig {
        let folder: TemporaryFolder
        let runtime: CacheRuntime
        let center: JobCenter
        /// How often a route was asked for.
        let asked = Monitor(0)

        var store: String { folder.file("store") }
        var jobs: String { folder.file("store/jobs") }

        init(hasDisk: Bool) async throws {
            folder = try TemporaryFolder()
            let disk =
                hasDisk
                ? CacheLimits.Disk(
                    path: folder.file("store"),
                    limits: DiskLimits(size: 1 << 30, minFree: 0),
                    kind: .shared
                ) : nil
            let limits = CacheLimits(memorySize: 1 << 20, memoryObjects: 100, memoryMaxObject: 1 << 16, disk: disk)
            runtime = try await CacheRuntime.open(
                name: "drydock",
                limits,
                on: try .start(loops: 1, nameThreads: 1),
                onTrouble: { _ in },
                report: { _ in }
            )
            center = JobCenter(
                loops: runtime.threads.loops,
                core: runtime.core,
                files: runtime.threads.files,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
                tier: disk?.path
            )
        }

        func start() async {
            await center.start(
                { [asked] item, _ throws(BatchRefusal) in
                    asked.update { $0 += 1 }
                    return .other(CacheKey(service: "", url: item.url)) { () throws(BatchRefusal) in
                        throw BatchRefusal("nobody answers")
                    }
                },
                { _, _, _ throws(BatchRefusal) in nil }
            )
        }

        /// A batch of items that are all different.
        func batch(_ count: Int) -> Batch { Batch((0..<count).map { BatchItem(url: "http://a.test/\($0)") }) }

        func stop() { runtime.stop() }
    }

    @Test func `the 100,000th item costs what the first did, and so does another batch of them`() async throws {
        let rig = try await Rig(hasDisk: false)
        defer { rig.stop() }
        await rig.start()
        let count = Thoroughness.attempts(100_000)
        for round in 1...2 {
            let job = try rig.center.submit(rig.batch(count), kind: .size, name: nil)
            // A closure that is wrapped once more with each item needs longer than the tests have.
            await rig.center.wait(for: job.record.id)
            let (state, totals) = job.runner.progress
            #expect(state == .checked && totals.checked == count && totals.unknownSize == count)
            #expect(
                rig.asked.read { $0 } == round * 2 * count,
                "each item is asked for twice: for its key, and for its size"
            )
        }
    }

    @Test func `a job that is acknowledged is on the disk`() async throws {
        let rig = try await Rig(hasDisk: true)
        defer { rig.stop() }
        // It has not started: nothing runs, and nothing is written behind.
        for number in 1...25 {
            let job = try await rig.center.submitKept(rig.batch(number), kind: .size, name: nil)
            #expect(job.record.id == "\(number)")
            let kept = JobFolder(path: rig.jobs) {}.load()
            #expect(kept.errors.isEmpty && kept.records.map { $0.batch.entries.count } == Array(1...number))
        }
    }

    @Test func `what changes a job is on the disk, too, when it is acknowledged`() async throws {
        let rig = try await Rig(hasDisk: true)
        defer { rig.stop() }
        await rig.start()
        func kept() -> [JobRecord] { JobFolder(path: rig.jobs) {}.load().records }
        let job = try await rig.center.submitKept(rig.batch(3), kind: .prefetch, name: nil)
        await rig.center.wait(for: job.record.id)
        _ = try await rig.center.retry(job: job.record.id)
        #expect(kept().first?.ended == nil || kept().first?.batch.state.isEnd == true)
        await rig.center.wait(for: job.record.id)
        _ = try await rig.center.remove(job: job.record.id)
        #expect(kept() == [])
    }

    @Test func `a job that cannot be kept is refused, with the reason`() async throws {
        let rig = try await Rig(hasDisk: true)
        defer { rig.stop() }
        try rig.folder.write("store/jobs", "in the way")
        let problem = await #expect(throws: Problem.self) {
            _ = try await rig.center.submitKept(rig.batch(1), kind: .size, name: nil)
        }
        #expect(problem?.status == 503)
        #expect(problem?.detail.contains("mkdir \(rig.jobs): Not a directory; make room") == true, "\(problem as Any)")
        #expect(await rig.center.jobs().jobs.isEmpty)
        // Its slot is free again.
        for _ in 0..<(2 * JobCenter.limit) {
            await #expect(throws: Problem.self) {
                _ = try await rig.center.submitKept(rig.batch(1), kind: .size, name: nil)
            }
        }
        #expect(unlink(rig.jobs) == 0)
        _ = try await rig.center.submitKept(rig.batch(1), kind: .size, name: nil)
    }

    @Test(arguments: [false, true])
    func `a batch after the cache folder was removed leaves a store that works and can be opened again`(
        isContentAlone: Bool
    ) async throws {
        let rig = try await Rig(hasDisk: true)
        await rig.start()
        let manager = FileManager.default
        if isContentAlone {
            for name in try manager.contentsOfDirectory(atPath: rig.store) {
                try manager.removeItem(atPath: "\(rig.store)/\(name)")
            }
        } else {
            try manager.removeItem(atPath: rig.store)
        }
        let job = try await rig.center.submitKept(rig.batch(2), kind: .size, name: nil)
        await rig.center.wait(for: job.record.id)
        for name in ["version", "CACHEDIR.TAG", "lock", "secret", "objects", "tmp", "jobs/1.json"] {
            #expect(manager.fileExists(atPath: "\(rig.store)/\(name)"), "\(name)")
        }
        #expect(throws: Never.self) { try rig.runtime.core.store.makeFoldersWhole() }
        rig.stop()
        // As the next start does it.
        #expect(throws: Never.self) { _ = try DiskTier.claim(path: rig.store, kind: .shared) }
    }
}
