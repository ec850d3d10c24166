// Downloads as objects: suspended, resumed, cancelled, and looked at.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct SuspendTests {
    /// A body of so many bytes, the first of them at once, and the rest when the gate opens; ranges are obeyed.
    private static func slow(_ count: Int, first: Int, _ gate: Gate) -> ScriptedOrigin.Handler {
        { request in
            let fields = [("ETag", "\"1\""), ("Accept-Ranges", "bytes")]
            if let range = request.field("Range"), let start = Int(range.dropFirst(6).prefix { $0 != "-" }) {
                let part =
                    fields + [
                        ("Content-Length", "\(count - start)"),
                        ("Content-Range", "bytes \(start)-\(count - 1)/\(count)"),
                    ]
                return OriginReply([OriginReply.head(206, fields: part), .pattern(count - start, from: start)])
            }
            return OriginReply([
                OriginReply.head(200, fields: fields + [("Content-Length", "\(count)")]), .pattern(first, from: 0),
                .wait(gate), .pattern(count - first, from: first),
            ])
        }
    }

    private func isWhole(_ result: DownloadResult, _ count: Int) -> Bool {
        Array(result.data) == Pattern.bytes(0..<count)
    }

    @Test func aDownloadGoesOnByItself() async throws {
        try await withManager {
            .answer(to: $0, "there")
        } _: { manager, origin async throws in
            let download = manager.start(origin.url())
            #expect(await eventually { download.state == .finished })
            #expect(try await download.result.text == "there")
            #expect(download.progress == DownloadProgress(completed: 5, total: 5))
            var words: [String] = []
            // Whoever comes later hears what has happened.
            for await event in download.events {
                switch event {
                case .began(let response, let expected): words.append("began \(response.status.code) \(expected ?? -1)")
                case .progress(let progress): words.append("progress \(progress.completed)")
                case .finished(let result): words.append("finished \(result.text)")
                case .stale, .uploaded: words.append("another")
                }
            }
            #expect(words == ["began 200 5", "progress 5", "finished there"])
        }
    }

    @Test func aDownloadThatFailsSaysWhy() async throws {
        try await withManager {
            .answer(404, to: $0, "none")
        } _: { manager, origin async throws in
            let download = manager.start(origin.url())
            let error = await failure { try await download.result }
            guard case .unacceptableStatus(let result) = error else {
                Issue.record("\(error as Any)")
                return
            }
            #expect(result.text == "none")
            #expect(download.state == .failed)
            // It has ended: nothing of this changes it.
            download.suspend()
            #expect(download.state == .failed)
        }
    }

    @Test func whileItIsSuspendedNothingIsRead() async throws {
        let (gate, size) = (Gate(), 32 << 20)
        try await withManager(onDisk: true) { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "\(size)")]), .pattern(1000, from: 0), .wait(gate),
                .pattern(size - 1000, from: 1000),
            ])
        } _: { manager, origin async throws in
            let download = manager.start(origin.url())
            #expect(await eventually { (download.progress?.completed ?? 0) > 0 })
            download.suspend()
            #expect(download.state == .suspended)
            gate.open()
            // Another one, of the same kind and length, comes whole meanwhile.
            #expect(try await manager.start(origin.url("/other")).result.data.count == size)
            #expect(try await giveTurns(50, to: manager) == 2, "what nobody takes is not read")
            #expect((download.progress?.completed ?? 0) < Int64(size))
            download.resume()
            #expect(isWhole(try await download.result, size))
            #expect(origin.count("GET", "/a") == 1)
        }
    }

    @Test func whatTheOriginHasCutIsResumedByRange() async throws {
        let (gate, size) = (Gate(), 400_000)
        let reply = Self.slow(size, first: 200_000, gate)
        let isCut = Monitor(true)
        try await withManager(onDisk: true) { request in
            guard request.field("Range") == nil, isCut.read({ $0 }) else { return reply(request) }
            var steps = reply(request).steps
            // The head and what has come of the body; then the origin loses its patience.
            steps = Array(steps[..<2]) + [.wait(gate), .cut]
            return OriginReply(steps)
        } _: { manager, origin async throws in
            let download = manager.start(origin.url())
            #expect(await eventually { download.progress?.completed == 200_000 })
            download.suspend()
            gate.open()
            isCut.update { $0 = false }
            #expect(download.state == .suspended)
            download.resume()
            let result = try await download.result
            #expect(isWhole(result, size))
            #expect(origin.server.log.map { $0.field("Range")?.prefix(13) } == [nil, "bytes=200000-"])
        }
    }

    @Test func othersWhoWantItKeepTheTransferGoing() async throws {
        let (gate, size) = (Gate(), 300_000)
        let reply = Self.slow(size, first: 1000, gate)
        try await withManager(onDisk: true) {
            reply($0)
        } _: { manager, origin async throws in
            let suspended = manager.start(origin.url())
            #expect(await eventually { suspended.progress?.completed == 1000 })
            suspended.suspend()
            let other = manager.start(origin.url())
            #expect(await eventually { other.progress?.completed == 1000 })
            gate.open()
            #expect(isWhole(try await other.result, size))
            #expect(suspended.state == .suspended)
            suspended.resume()
            #expect(isWhole(try await suspended.result, size))
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func itCanBeSuspendedBeforeItsHeadHasCome() async throws {
        let gate = Gate()
        try await withManager {
            gate.wait()
            return .answer(to: $0, "there")
        } _: { manager, origin async throws in
            let download = manager.start(origin.url())
            #expect(await origin.isAsked(1))
            download.suspend()
            gate.open()
            #expect(download.state == .suspended)
            download.resume()
            #expect(try await download.result.text == "there")
        }
    }

    @Test(arguments: [false, true])
    func itCanBeCancelled(isSuspended: Bool) async throws {
        let gate = Gate()
        defer { gate.open() }
        let reply = Self.slow(5000, first: 1000, gate)
        try await withManager {
            reply($0)
        } _: { manager, origin async throws in
            let download = manager.start(origin.url())
            #expect(await eventually { download.progress?.completed == 1000 })
            if isSuspended { download.suspend() }
            download.cancel()
            let error = await failure { try await download.result }
            #expect(error == .cancelled)
            #expect(download.state == .cancelled)
        }
    }

    @Test(arguments: [false, true])
    func theManagerEndsItToo(isSuspended: Bool) async throws {
        let gate = Gate()
        defer { gate.open() }
        let reply = Self.slow(5000, first: 1000, gate)
        try await withManager {
            reply($0)
        } _: { manager, origin async throws in
            let download = manager.start(origin.url())
            #expect(await eventually { download.progress?.completed == 1000 })
            if isSuspended { download.suspend() }
            #expect(manager.cancel(origin.url()) == 1)
            let error = await failure { try await download.result }
            #expect(error == .cancelled)
        }
    }

    @Test("What is suspended before it asks for anything ends with its manager", arguments: [false, true])
    func theManagerEndsWhatHasNotBegun(isClosed: Bool) async throws {
        let gate = Gate()
        defer { gate.open() }
        try await withManager {
            gate.wait()
            return .answer(to: $0, "hello")
        } _: { manager, origin async throws in
            let downloads = (0..<20).map { number in
                let download = manager.start(origin.url("/\(number)"))
                download.suspend()
                return download
            }
            #expect(await eventually { manager.downloadCount == 20 })
            if isClosed { await manager.close() } else { #expect(manager.cancelAll() == 20) }
            for download in downloads {
                try #require(await eventually { download.state == .cancelled })
                await #expect(throws: DownloadError.cancelled) { try await download.result }
            }
            #expect(await eventually { manager.downloadCount == 0 })
            guard isClosed else { return }
            let late = manager.start(origin.url("/late"))
            late.suspend()
            #expect(await eventually { late.state == .failed })
        }
    }

    @Test func whatNobodyHoldsIsCancelledWhereItIsSuspended() async throws {
        let gate = Gate()
        defer { gate.open() }
        let reply = Self.slow(5000, first: 1000, gate)
        try await withManager {
            reply($0)
        } _: { manager, origin async throws in
            var download: Download? = manager.start(origin.url())
            #expect(await eventually { download?.progress?.completed == 1000 })
            download?.suspend()
            download = nil
            #expect(await eventually { manager.downloadCount == 0 })
        }
    }

    @Test func manyMaySuspendAndResumeItAtOnce() async throws {
        try await withManager(onDisk: true) { _ in
            .pattern(300_000)
        } _: { manager, origin async throws in
            for round in 0..<40 {
                let download = manager.start(origin.url("/\(round)"))
                await withTaskGroup { group in
                    for _ in 0..<4 {
                        group.addTask {
                            for _ in 0..<500 {
                                download.suspend()
                                download.resume()
                            }
                        }
                    }
                }
                download.resume()
                #expect(await eventually { download.state == .finished }, "round \(round)")
                // Else the test would wait for ever where that fails.
                download.cancel()
            }
        }
    }

    @Test func aFileIsWrittenOnceItIsWhole() async throws {
        let (gate, size) = (Gate(), 100_000)
        let reply = Self.slow(size, first: 1000, gate)
        let folder = try TemporaryFolder("drydock-suspend")
        let file = URL(fileURLWithPath: folder.file("a"))
        try await withManager {
            reply($0)
        } _: { manager, origin async throws in
            let download = manager.start(origin.url(), to: file)
            #expect(await eventually { download.progress?.completed == 1000 })
            download.suspend()
            gate.open()
            #expect(!FileManager.default.fileExists(atPath: file.path))
            download.resume()
            #expect(try await download.result.file == file)
            #expect(try Array(Data(contentsOf: file)) == Pattern.bytes(0..<size))
        }
    }
}
