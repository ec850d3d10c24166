// The jobs of a daemon without the daemon: what an item costs.

import AdminAPI
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

@Suite(.timeLimit(.minutes(10))) struct JobCenterTests {
    /// A cache with a center of jobs, whose items are answered by nobody.
    private struct Rig {
        let place: TemporaryFolder
        let runtime: CacheRuntime
        let center: JobCenter
        /// How often a route was asked for.
        let asked = Monitor(0)

        var store: String { place.file("store") }
        var jobs: String { place.file("store/jobs") }

        init(hasDisk: Bool) async throws {
            place = try TemporaryFolder()
            let disk =
                hasDisk
                ? CacheLimits.Disk(
                    path: place.file("store"),
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
        for round in 1...2 {
            let job = try rig.center.submit(rig.batch(100_000), kind: .size, name: nil, isKept: false)
            // A closure that is wrapped once more with each item needs hours for this.
            await rig.center.wait(for: job.record.id)
            let (state, totals) = job.runner.progress
            #expect(state == .checked && totals.checked == 100_000 && totals.unknownSize == 100_000)
            #expect(
                rig.asked.read { $0 } == round * 200_000,
                "each item is asked for twice: for its key, and for its size"
            )
        }
    }
}
