// The threads, the tiers and the core of a cache, made together and ended together.

import CacheStore
import DiskStore
import DownloadCore
import EventLoop
import Files
import TestSupport
import Testing

@testable import ServiceCore

@Suite struct CacheRuntimeTests {
    private static func limits(disk path: String?) -> CacheLimits {
        let disk = path.map {
            CacheLimits.Disk(
                path: $0,
                limits: DiskLimits(size: 1 << 20, maxObject: 1 << 16, minFree: 0),
                kind: .private
            )
        }
        return CacheLimits(memorySize: 1 << 20, memoryObjects: 7, memoryMaxObject: 1 << 10, disk: disk)
    }

    private static func open(_ limits: CacheLimits, on threads: CacheThreads) async throws -> CacheRuntime {
        try await CacheRuntime.open(name: "test", limits, on: threads, onTrouble: { _ in }, report: { _ in })
    }

    @Test(
        "the tiers have the limits that are asked for, and there is no disk tier unless one is",
        arguments: [false, true]
    )
    func limits(hasDisk: Bool) async throws {
        let folder = try TemporaryFolder()
        let threads = try CacheThreads.start(loops: 2, nameThreads: 1)
        let runtime = try await Self.open(Self.limits(disk: hasDisk ? folder.file("store") : nil), on: threads)
        #expect(threads.loops.loops.count == 2)
        #expect(runtime.core.memory.statistics.limit == 1 << 20)
        #expect(runtime.core.store.statistics[.disk]?.limit == (hasDisk ? 1 << 20 : nil))
        await DetachedThread.wait { runtime.stop() }
    }

    @Test("a disk tier that cannot be opened leaves the threads as they were")
    func failure() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("occupied", "a file, not a folder")
        let threads = try CacheThreads.start(loops: 1, nameThreads: 1)
        await #expect(throws: (any Error).self) { try await Self.open(Self.limits(disk: file), on: threads) }
        #expect(try await threads.files.run { 1 } == 1)
        #expect(try await threads.names.run { 2 } == 2)
        // Another runtime can be opened on them.
        let runtime = try await Self.open(Self.limits(disk: nil), on: threads)
        await DetachedThread.wait { runtime.stop() }
    }
}
