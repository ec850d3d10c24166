// Who comes first where downloads wait for one another.

import Drydock
import Foundation
import LibrarySupport
import TestSupport
import Testing

@Suite struct PriorityTests {
    /// Begins pieces of work one after the other while the only slot is taken, and then frees it.
    /// - Returns: what the origin was asked for, in order; without the first request.
    private func order(
        _ work: [@Sendable (DownloadManager, Origin) async throws -> Void]
    ) async throws -> [String] {
        let gate = Gate()
        var order: [String] = []
        try await withManager {
            $0.maximumFetches = 1
        } _: {
            if $0.target == "/first" { gate.wait() }
            return .answer(to: $0, $0.target)
        } _: { manager, origin async throws in
            let first = Task { try await manager.download(origin.url("/first")) }
            #expect(await origin.isAsked(1))
            var tasks: [Task<Void, any Error>] = []
            for (index, work) in work.enumerated() {
                tasks.append(Task { try await work(manager, origin) })
                #expect(await eventually { manager.statistics.waiting == index + 1 })
            }
            gate.open()
            _ = try await first.value
            for task in tasks { try await task.value }
            order = origin.server.log.dropFirst().map { "\($0.method) \($0.target)" }
        }
        return order
    }

    private static func download(
        _ path: String,
        _ priority: DownloadOptions.Priority? = nil
    ) -> @Sendable (DownloadManager, Origin) async throws -> Void {
        { manager, origin async throws in
            _ = try await manager.download(origin.url(path), options: .init(priority: priority))
        }
    }

    @Test func theUrgentComeFirst() async throws {
        let order = try await order([
            Self.download("/low", .low), Self.download("/plain"), Self.download("/high", .high),
            Self.download("/normal", .normal),
        ])
        #expect(order == ["GET /high", "GET /plain", "GET /normal", "GET /low"])
    }

    @Test func withinAPriorityTheyGoInOrder() async throws {
        let order = try await order((1...4).map { Self.download("/\($0)") })
        #expect(order == (1...4).map { "GET /\($0)" })
    }

    @Test func sizesOfABatchComeBeforeDownloadsAndItsDownloadsAfterThem() async throws {
        let order = try await order([
            { manager, origin async throws in
                let batch = manager.batch([.init(origin.url("/prefetched"))])
                _ = try await batch.run()
            },
            Self.download("/plain"),
            { manager, origin async throws in
                let batch = manager.batch([.init(origin.url("/sized"))])
                _ = try await batch.size()
            },
        ])
        #expect(order == ["HEAD /sized", "GET /plain", "GET /prefetched"])
    }

    @Test func anItemOfABatchMayHaveItsOwn() async throws {
        let order = try await order([
            Self.download("/plain"),
            { manager, origin async throws in
                let item = DownloadBatch.Item(origin.url("/item"), options: .init(priority: .high))
                _ = try await manager.batch([item]).run()
            },
        ])
        #expect(order == ["GET /item", "GET /plain"])
    }
}
