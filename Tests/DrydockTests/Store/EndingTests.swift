// Downloads that are ended from outside: of a URL, of one request, silently, or without an end to the transfer.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct EndingTests {
    /// Answers a part, and the rest when the gate is open.
    private static func halting(_ gate: Gate) -> OriginReply {
        OriginReply([
            OriginReply.head(200, fields: [("Content-Length", "100")]), .pattern(50, from: 0), .wait(gate),
            .pattern(50, from: 50),
        ])
    }

    private func isCancelled(_ task: Task<DownloadResult, any Error>) async -> Bool {
        do {
            let result = try await task.value
            Issue.record("there was a result: \(result)")
            return false
        } catch {
            return error as? DownloadError == .cancelled
        }
    }

    @Test("A URL is cancelled whatever it was asked with, and others go on") func ofAURL() async throws {
        let gate = Gate()
        try await withManager { _ in
            Self.halting(gate)
        } _: { manager, origin in
            let post = origin.asking("/a", .post)
            let tasks: [Task<DownloadResult, any Error>] = [
                Task { try await manager.download(origin.url("/a")) },
                Task { try await manager.download(post, body: Data("one".utf8)) },
                Task { try await manager.download(origin.url("/b")) },
            ]
            #expect(await origin.isAsked(3))
            #expect(manager.cancel(origin.url("/a")) == 2)
            #expect(await isCancelled(tasks[0]))
            #expect(await isCancelled(tasks[1]))
            gate.open()
            let other = try await tasks[2].value
            #expect(other.data.count == 100)
            #expect(try await manager.state(of: origin.url("/a")) == .absent)
            #expect(manager.cancel(origin.url("/a")) == 0)
        }
    }

    @Test("A request is cancelled by its method, fields and content") func ofARequest() async throws {
        let gate = Gate()
        try await withManager { _ in
            Self.halting(gate)
        } _: { manager, origin in
            let post = origin.asking("/a", .post)
            var get = origin.asking()
            get.headerFields[.accept] = "image/png"
            let asked = get
            let tasks: [Task<DownloadResult, any Error>] = [
                Task { try await manager.download(post, body: Data("one".utf8)) },
                Task { try await manager.download(post, body: Data("two".utf8)) },
                Task { try await manager.download(origin.url()) },
                Task { try await manager.download(asked, options: .init(cachePolicy: .reload)) },
            ]
            #expect(await origin.isAsked(3))
            #expect(await eventually { manager.downloadCount == 4 })
            #expect(manager.cancel(post, body: Data("one".utf8)) == 1)
            #expect(await isCancelled(tasks[0]))
            #expect(manager.cancel(asked) == 1)
            #expect(await isCancelled(tasks[3]))
            #expect(manager.cancel(post, body: Data("three".utf8)) == 0)
            gate.open()
            for task in tasks[1...2] {
                let result = try await task.value
                #expect(result.data.count == 100)
            }
        }
    }

    @Test("What is passed on is told from the like by its content, where that is in memory") func ofContents()
        async throws
    {
        let gate = Gate()
        try await withManager { _ in
            Self.halting(gate)
        } _: { manager, origin in
            let put = origin.asking("/a", .put)
            let stream = RequestBody.stream(contentType: "text/plain") {
                AsyncStream<[UInt8]> {
                    $0.yield([1]); $0.finish()
                }
            }
            let tasks: [Task<DownloadResult, any Error>] = [
                Task { try await manager.download(put, body: Data("one".utf8)) },
                Task { try await manager.download(put, body: Data("two".utf8)) },
                Task { try await manager.download(put, body: stream) },
            ]
            #expect(await origin.isAsked(3))
            #expect(manager.cancel(put, body: Data("three".utf8)) == 0)
            #expect(manager.cancel(put, body: Data("one".utf8)) == 1)
            #expect(await isCancelled(tasks[0]))
            #expect(manager.cancel(put) == 1)
            #expect(await isCancelled(tasks[2]))
            gate.open()
            let other = try await tasks[1].value
            #expect(other.data.count == 100)
        }
    }

    @Test("Silently, events end without an error, and a task that waits hears of it", arguments: [false, true])
    func silently(ofURL: Bool) async throws {
        let gate = Gate()
        try await withManager { _ in
            Self.halting(gate)
        } _: { manager, origin in
            let events: Task<Int, any Error> = Task {
                var count = 0
                for try await event in manager.events(for: origin.url()) {
                    count += 1
                    if case .finished = event { Issue.record("it was cancelled") }
                }
                return count
            }
            let waiting: Task<DownloadResult, any Error> = Task { try await manager.download(origin.url()) }
            #expect(await eventually { manager.downloadCount == 2 })
            #expect(await origin.isAsked(1))
            let count =
                ofURL
                ? manager.cancel(origin.url(), silently: true)
                : manager.cancel(origin.asking(), silently: true)
            #expect(count == 2)
            _ = try await events.value
            #expect(await isCancelled(waiting))
            gate.open()
        }
    }

    // MARK: - Dropped, while the transfer goes on

    @Test(
        "Who waits is dropped, and the transfer goes on and is stored, whatever leaving says",
        arguments: ["head", "body"],
        [AbandonmentPolicy.finish, .abort]
    )
    func dropped(_ moment: String, leaving: AbandonmentPolicy) async throws {
        let (head, body) = (Gate(), Gate())
        try await withManager {
            $0.abandonment = leaving
        } _: { _ in
            OriginReply([.wait(head)]).then(Self.halting(body))
        } _: { manager, origin in
            if moment == "body" { head.open() }
            let reached = Monitor(0)
            let tasks = (0..<3).map { _ -> Task<Void, any Error> in
                Task {
                    for try await event in manager.events(for: origin.url()) {
                        if case .progress = event { reached.update { $0 += 1 } }
                    }
                }
            }
            #expect(await eventually { manager.downloadCount == 3 })
            #expect(await origin.isAsked(1))
            if moment == "body" { #expect(await eventually { reached.read { $0 } == 3 }) }
            #expect(manager.dropWaiters(of: origin.url()) == 3)
            for task in tasks { await #expect(throws: DownloadError.cancelled) { try await task.value } }
            #expect(await eventually { manager.downloadCount == 0 })
            head.open()
            body.open()
            #expect(
                await eventually {
                    if case .valid? = try? await manager.state(of: origin.url()) { true } else { false }
                }
            )
            let result = try await manager.download(origin.url())
            #expect(result.data == Data(Pattern.bytes(0..<100)))
            #expect(origin.server.requests() == 1)
        }
    }

    @Test("Dropped silently, events end; a download of the same request that comes later joins the transfer")
    func droppedSilently() async throws {
        let gate = Gate()
        try await withManager {
            $0.abandonment = .abort
        } _: { _ in
            Self.halting(gate)
        } _: { manager, origin in
            let request = origin.asking()
            let events: Task<Void, any Error> = Task {
                for try await event in manager.events(for: request) {
                    if case .finished = event { Issue.record("it was dropped") }
                }
            }
            #expect(await origin.isAsked(1))
            #expect(manager.dropWaiters(of: request, silently: true) == 1)
            try await events.value
            let late = Task { try await manager.download(request) }
            #expect(await eventually { manager.downloadCount == 1 })
            gate.open()
            #expect(try await late.value.data.count == 100)
            #expect(origin.server.requests() == 1)
        }
    }

    // MARK: - Batches

    @Test("An item whose transfer is cancelled from outside fails, and its batch goes on") func itemsOfABatch()
        async throws
    {
        let gate = Gate()
        try await withManager { request in
            request.target == "/a" ? Self.halting(gate) : .pattern(10)
        } _: { manager, origin in
            let batch = manager.batch([DownloadBatch.Item(origin.url("/a")), .init(origin.url("/b"))])
            let run: Task<DownloadBatch.Report, any Error> = Task { try await batch.run() }
            #expect(await eventually { batch.progress.received == 60 })
            // Nobody is dropped who is of a batch.
            #expect(manager.dropWaiters(of: origin.url("/a")) == 0)
            #expect(batch.report.entries.map(\.state) == [.running, .done])
            manager.cancel(origin.url("/a"))
            let report = try await run.value
            #expect(report.entries.map(\.state) == [.failed, .done])
            gate.open()
            #expect(try await batch.retry().isComplete)
        }
    }
}
