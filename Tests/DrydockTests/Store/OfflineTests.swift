// A manager that asks nobody: what is stored answers however old it is, and everything else fails.

import Drydock
import Foundation
import LibrarySupport
import TestSupport
import Testing

@Suite struct OfflineTests {
    @Test("Offline, the stored response answers whatever its age, and nobody is asked", arguments: [false, true])
    func stored(onDisk: Bool) async throws {
        let resource = ChangingResource()
        try await withManager(onDisk: onDisk) {
            $0.lifetime = .zero
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            origin.server.forgetRequests()
            manager.isOffline = true
            #expect(manager.isOffline)
            let result = try await manager.download(origin.url())
            #expect(result.text == "version 1")
            #expect(result.outcome == .checkFailed)
            let error = await failure { try await manager.download(origin.url("/other")) }
            guard case .notStored(let text) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(text.contains("isOffline") && !text.contains("daemon") && !text.contains("drydock"), "\(text)")
            #expect(origin.server.requests() == 0)
            manager.isOffline = false
            resource.change()
            #expect(try await manager.download(origin.url()).text == "version 2")
        }
    }

    @Test("The switch may be set before the first download") func beforeOpening() async throws {
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "hello") })
        let manager = makeManager()
        #expect(!manager.isOffline)
        manager.isOffline = true
        #expect(await failure { try await manager.download(origin.url()) }?.outcome == .downloadFailed)
        #expect(origin.server.requests() == 0)
        manager.isOffline = false
        #expect(try await manager.download(origin.url()).outcome == .downloaded)
        await manager.close()
    }

    @Test("A batch asks nobody either, for sizes and for bodies") func batches() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin in
            for path in ["/valid", "/stale"] { _ = try await manager.download(origin.url(path)) }
            origin.server.forgetRequests()
            manager.isOffline = true
            let items = [
                DownloadBatch.Item(origin.url("/valid")),
                DownloadBatch.Item(origin.url("/stale"), options: .init(lifetime: .zero)),
                DownloadBatch.Item(origin.url("/absent")),
            ]
            let batch = manager.batch(items)
            #expect(try await batch.size().entries.map(\.state) == [.done, .failed, .failed])
            let report = try await batch.retry()
            #expect(report.entries.map(\.state) == [.done, .failed, .failed])
            for failure in report.failures {
                #expect(failure.reason?.contains("isOffline") == true, "\(String(describing: failure.reason))")
            }
            #expect(origin.server.requests() == 0)
        }
    }

    @Test("A transfer that is under way goes on") func underWay() async throws {
        let gate = Gate()
        try await withManager { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "100")]), .pattern(50, from: 0), .wait(gate),
                .pattern(50, from: 50),
            ])
        } _: { manager, origin in
            let task = Task { try await manager.download(origin.url()) }
            #expect(await origin.isAsked(1))
            manager.isOffline = true
            gate.open()
            let result = try await task.value
            #expect(result.data.count == 100)
        }
    }
}
