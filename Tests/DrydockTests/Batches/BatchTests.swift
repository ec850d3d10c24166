// Lists of downloads: sized first, then downloaded, with an outcome for each and counts of their own.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct BatchTests {
    /// Answers `/item/N` with N bytes, and a few paths in ways of their own.
    private static func reply(_ request: OriginRequest) -> OriginReply {
        let isHead = request.method == "HEAD"
        switch request.target {
        case "/missing": return .answer(404, to: request, "none")
        case "/no-head" where isHead: return .answer(405, to: request, fields: [("Allow", "GET")], "")
        case "/no-head": return .pattern(70)
        case "/no-length" where isHead:
            return OriginReply([OriginReply.head(200, fields: [("Transfer-Encoding", "chunked")])])
        case "/no-length": return .chunked(["hello, ", "world"])
        default:
            let count = Int(request.target.split(separator: "/").last ?? "") ?? 0
            return .answer(to: request, body: Pattern.bytes(0..<count))
        }
    }

    private func items(_ origin: Origin, _ paths: [String]) -> [DownloadBatch.Item] {
        paths.map { DownloadBatch.Item(origin.url($0)) }
    }

    @Test func aMixedList() async throws {
        try await withManager(onDisk: true) {
            Self.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url("/item/10"))
            origin.server.forgetRequests()
            let paths = ["/item/100", "/item/10", "/missing", "/no-head", "/no-length", "/item/100"]
            var list = items(origin, paths)
            list.append(
                DownloadBatch.Item(HTTPRequest(method: .get, scheme: "ftp", authority: "origin.test", path: "/"))
            )
            let batch = manager.batch(list)

            let sized = try await batch.size()
            #expect(sized.entries.map(\.state) == [.queued, .done, .failed, .queued, .queued, .done, .failed])
            #expect(sized.entries.map(\.size) == [100, 10, nil, nil, nil, nil, nil])
            #expect(sized.entries[1].outcome == .stillValid)
            #expect(sized.entries[2].status == 404)
            #expect(sized.entries[3].reason?.contains("405") == true)
            #expect(sized.entries[5].duplicateOf == 0)
            #expect(sized.entries[6].reason?.contains("begin it with http://") == true)
            let progress = sized.progress
            #expect(progress.state == .checked)
            #expect((progress.bytes, progress.remaining, progress.received) == (100, 100, 0))
            #expect((progress.items, progress.queued, progress.done, progress.failed) == (7, 3, 2, 2))
            #expect((progress.valid, progress.duplicates, progress.unknownSize) == (1, 1, 2))
            #expect(Set(origin.server.log.map(\.method)) == ["HEAD"])

            origin.server.forgetRequests()
            let report = try await batch.run()
            // Exactly what was sized is downloaded.
            #expect(
                origin.server.log.map { "\($0.method) \($0.target)" }.sorted() == [
                    "GET /item/100", "GET /no-head", "GET /no-length",
                ]
            )
            #expect(report.progress.state == .failed)
            #expect(!report.isComplete)
            #expect(report.failures.map(\.duplicateOf) == [nil, nil])
            #expect(
                report.entries.map(\.outcome) == [
                    .downloaded, .stillValid, .downloadFailed, .downloaded, .downloaded, nil, .downloadFailed,
                ]
            )
            #expect(report.entries.map(\.isStored) == [true, true, false, true, true, false, false])
            #expect(report.entries.map(\.received) == [100, 0, 0, 70, 12, 0, 0])
            #expect((report.progress.received, report.progress.remaining) == (182, 0))
            #expect(try await manager.download(origin.url("/no-length")).text == "hello, world")
        }
    }

    @Test func anEmptyBatchIsDoneAtOnce() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin async throws in
            let batch = manager.batch([])
            #expect(try await batch.size().progress.state == .checked)
            #expect(try await batch.run().isComplete)
            #expect(batch.report.entries.isEmpty)
            #expect(origin.server.requests() == 0)
        }
    }

    @Test func anotherBatchChangesNoCount() async throws {
        let gate = Gate()
        try await withManager { request in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "100")]), .pattern(50, from: 0), .wait(gate),
            ])
            .then(OriginReply([.pattern(50, from: 50)]))
        } _: { manager, origin async throws in
            let first = manager.batch(items(origin, ["/a", "/b"]))
            let second = manager.batch(items(origin, ["/b", "/c", "/d"]))
            async let firstReport = first.run()
            async let secondReport = second.run()
            #expect(await eventually { first.progress.received == 100 && second.progress.received == 150 })
            #expect((first.progress.bytes, first.progress.remaining) == (200, 100))
            #expect((second.progress.bytes, second.progress.remaining) == (300, 150))
            gate.open()
            #expect(try await firstReport.progress.received == 200)
            #expect(try await secondReport.progress.received == 300)
            // What both have asked for came once.
            #expect(origin.server.requests() == 4)
        }
    }

    @Test func oneAfterTheOther() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin async throws in
            let paths = (1...20).map { "/item/\($0)" }
            let batch = manager.batch(items(origin, paths), concurrency: 1)
            #expect(try await batch.run().isComplete)
            #expect(origin.server.log.map(\.target) == paths)
        }
    }

    @Test func stopsAtTheFirstFailure() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin in
            let list = items(origin, ["/item/1", "/missing", "/item/2", "/item/3"])
            let batch = manager.batch(list, concurrency: 1, onFailure: .stop)
            let report = try await batch.run()
            #expect(report.progress.state == .stopped)
            #expect(report.entries.map(\.state) == [.done, .failed, .queued, .queued])
            #expect(origin.server.log.map(\.target) == ["/item/1", "/missing"])
        }
    }

    @Test func aFailureTakesTheRestWithIt() async throws {
        let gate = Gate()
        try await withManager { request in
            request.target == "/missing"
                ? OriginReply([.wait(gate)]).then(.answer(404, to: request, "none"))
                : OriginReply([
                    OriginReply.head(200, fields: [("Content-Length", "100")]), .pattern(50, from: 0), .hang,
                ])
        } _: { manager, origin async throws in
            let list = items(origin, ["/missing", "/slow", "/waiting"])
            let batch = manager.batch(list, concurrency: 2, onFailure: .cancelRest)
            async let report = batch.run()
            #expect(await origin.isAsked(2))
            gate.open()
            #expect(try await report.progress.state == .failed)
            #expect(batch.report.entries.map(\.state) == [.failed, .cancelled, .cancelled])
        }
    }

    @Test func onlyFailuresAreTriedAgain() async throws {
        let isThere = Monitor(false)
        try await withManager { request in
            request.target == "/missing" && isThere.read { $0 } ? .pattern(30) : Self.reply(request)
        } _: { manager, origin in
            let batch = manager.batch(items(origin, ["/item/1", "/missing", "/item/2"]))
            #expect(try await batch.run().failures.count == 1)
            isThere.update { $0 = true }
            origin.server.forgetRequests()
            let report = try await batch.retry()
            #expect(report.isComplete)
            #expect(report.entries.map(\.size) == [1, 30, 2])
            #expect(origin.server.log.map(\.target) == ["/missing"])
        }
    }

    @Test func updates() async throws {
        let gate = Gate()
        try await withManager { request in
            OriginReply([.wait(gate)]).then(Self.reply(request))
        } _: { manager, origin in
            let batch = manager.batch(items(origin, ["/item/1000", "/item/2000", "/missing"]))
            let report = Task { try await batch.run() }
            #expect(await origin.isAsked(3))
            var seen: [DownloadBatch.Progress] = []
            for await progress in batch.updates {
                seen.append(progress)
                gate.open()
            }
            #expect(seen.first?.running == 3)
            let last = try #require(seen.last)
            #expect(try await report.value.progress == last)
            #expect((last.state, last.received, last.failed) == (.failed, 3000, 1))
            for progress in seen {
                let sum = progress.queued + progress.running + progress.done + progress.failed + progress.cancelled
                #expect(sum == 3)
            }
            #expect(seen.map(\.received) == seen.map(\.received).sorted())
            // It has ended: it says how, and nothing follows.
            var after: [DownloadBatch.State] = []
            for await progress in batch.updates { after.append(progress.state) }
            #expect(after == [.failed])
        }
    }

    @Test func aCancelledTaskCancelsItsBatch() async throws {
        let gate = Gate()
        try await withManager { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "100")]), .pattern(50, from: 0), .wait(gate),
            ])
        } _: { manager, origin in
            let batch = manager.batch(items(origin, ["/a", "/b", "/c"]), concurrency: 2)
            let task = Task { try await batch.run() }
            #expect(await origin.isAsked(2))
            task.cancel()
            await #expect(throws: DownloadError.cancelled) { try await task.value }
            #expect(batch.progress.state == .cancelled)
            #expect(batch.progress.cancelled == 3)
            #expect(origin.server.requests() == 2)
            gate.open()
        }
    }

    @Test func itemsHaveOptionsOfTheirOwn() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin in
            for path in ["/a", "/b", "/c"] { _ = try await manager.download(origin.url(path)) }
            origin.server.forgetRequests()
            let batch = manager.batch([
                DownloadBatch.Item(origin.url("/a")),
                DownloadBatch.Item(origin.url("/b"), options: .init(cachePolicy: .reload)),
                DownloadBatch.Item(origin.url("/c"), options: .init(lifetime: .zero)),
            ])
            let report = try await batch.run()
            #expect(report.isComplete)
            #expect(report.entries[0].outcome == .stillValid)
            #expect(report.entries[2].outcome == .confirmed)
            #expect(origin.server.log.map { "\($0.method) \($0.target)" }.sorted() == ["GET /b", "HEAD /c"])
        }
    }

    @Test func onlyWhatIsStored() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin in
            for path in ["/valid", "/stale"] { _ = try await manager.download(origin.url(path)) }
            origin.server.forgetRequests()
            let batch = manager.batch(
                [("/valid", nil), ("/stale", Duration.zero), ("/absent", nil)].map { path, lifetime in
                    let options = DownloadOptions(lifetime: lifetime, cachePolicy: .storedOnly)
                    return DownloadBatch.Item(origin.url(path), options: options)
                }
            )
            let states: [DownloadBatch.State] = [.done, .failed, .failed]
            #expect(try await batch.size().entries.map(\.state) == states)
            #expect(try await batch.retry().entries.map(\.state) == states)
            let reasons = batch.report.failures.map(\.reason)
            #expect(reasons.allSatisfy { $0?.contains("stored") == true }, "\(reasons)")
            #expect(origin.server.requests() == 0)
        }
    }

    @Test func otherStatusesCanBeAccepted() async throws {
        try await withManager {
            $0.acceptedStatuses = 200..<500
        } _: {
            Self.reply($0)
        } _: { manager, origin in
            let batch = manager.batch(items(origin, ["/missing", "/item/5", "/no-head"]))
            let sized = try await batch.size()
            #expect(sized.entries.map(\.state) == [.queued, .queued, .queued])
            #expect(sized.entries.map(\.size) == [4, 5, nil])
            let report = try await batch.run()
            #expect(report.failures == [])
            #expect(report.entries.map(\.status) == [404, 200, 200])
            #expect(report.entries.map(\.received) == [4, 5, 70])
        }
    }

    @Test func statusesThatAreNotAcceptedFail() async throws {
        try await withManager {
            $0.acceptedStatuses = 201..<300
        } _: {
            Self.reply($0)
        } _: { manager, origin in
            // What is stored is no success either.
            let error = await failure { try await manager.download(origin.url("/item/7")) }
            #expect(error?.outcome == .downloadFailed)
            let list = items(origin, ["/item/5", "/item/7"])
            let sized = try await manager.batch(list).size()
            #expect(sized.entries.map(\.state) == [.failed, .failed])
            let report = try await manager.batch(list).run()
            #expect(report.entries.map(\.state) == [.failed, .failed])
            #expect(report.entries.map(\.status) == [200, 200])
        }
    }

    @Test(arguments: [
        (DownloadOptions(expectation: .image), "/item/5", false),
        (DownloadOptions(expectation: .json), "/item/5", false),
        (DownloadOptions(expectation: .jsonArray), "/long-json", false),
        (DownloadOptions(cachePolicy: .bypass), "/item/5", false),
        (DownloadOptions(), "/item/5", true),
    ]) func isCompleteWhereEveryItemIsThere(
        options: DownloadOptions,
        path: String,
        isKept: Bool
    ) async throws {
        try await withManager { request in
            // What is wrong with it comes last.
            guard request.target == "/long-json" else { return Self.reply(request) }
            return .answer(to: request, "[" + String(repeating: "1, ", count: 100_000) + "}")
        } _: { manager, origin in
            let batch = manager.batch([
                DownloadBatch.Item(origin.url("/item/9")), DownloadBatch.Item(origin.url(path), options: options),
                DownloadBatch.Item(origin.url("/item/9")),
            ])
            let report = try await batch.run()
            #expect(report.progress.state == .done)
            #expect(report.failures == [])
            #expect(report.entries[1].isStored == isKept)
            #expect((report.entries[1].reason == nil) == isKept)
            #expect(report.isComplete == isKept)
            let stored = try await manager.state(of: origin.url(path)) != .absent
            #expect(stored == isKept)
        }
    }

    @Test func isCompleteOnceNothingIsMissing() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url("/item/1"))
            let batch = manager.batch(items(origin, ["/item/1", "/item/2", "/item/1"]))
            #expect(!batch.report.isComplete)
            #expect(try await !batch.size().isComplete)
            #expect(try await batch.run().isComplete)
            let another = manager.batch(items(origin, ["/item/1", "/item/2"]))
            #expect(try await another.size().isComplete)
        }
    }

    @Test func aBatchThatHasNotBegunAsksNobody() async throws {
        try await withManager {
            Self.reply($0)
        } _: { manager, origin async throws in
            let batch = manager.batch(items(origin, ["/item/1", "/item/2"]))
            #expect(batch.progress.state == .queued && batch.progress.queued == 2)
            #expect(batch.report.entries.map(\.state) == [.queued, .queued])
            batch.cancel()
            #expect(batch.progress.state == .cancelled && batch.progress.cancelled == 2)
            var told: [DownloadBatch.State] = []
            for await progress in batch.updates { told.append(progress.state) }
            #expect(told == [.cancelled])
            #expect(try await batch.run().entries.map(\.state) == [.cancelled, .cancelled])
            #expect(origin.server.requests() == 0)
            #expect(try await batch.retry().entries.map(\.state) == [.done, .done])
            #expect(origin.server.requests() == 2)
            let late = manager.batch(items(origin, ["/item/3"]))
            await manager.close()
            let error = await #expect(throws: DownloadError.self) { try await late.run() }
            #expect(error == .closed)
            #expect(origin.server.requests() == 2)
        }
    }

    @Test func aBatchCountsWhileItRuns() async throws {
        let gate = Gate()
        try await withManager { request in
            _ = gate.wait()
            return .answer(to: request, "one")
        } _: { manager, origin async throws in
            let batch = manager.batch([DownloadBatch.Item(origin.url("/a"))])
            #expect(manager.downloadCount == 0)
            async let report = batch.run()
            #expect(await eventually { manager.downloadCount == 1 })
            gate.open()
            #expect(try await report.entries.map(\.state) == [.done])
            #expect(manager.downloadCount == 0)
            withExtendedLifetime(batch) {}
        }
    }
}
