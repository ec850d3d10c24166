// A download as a sequence of events, and the ways in which it is left or ended.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct EventTests {
    /// What came, in few words; the lengths of pieces depend on the network and are left out.
    private func words(_ events: some AsyncSequence<DownloadEvent, DownloadError>) async throws -> [String] {
        var words: [String] = []
        for try await event in events {
            switch event {
            case .stale(let result): words.append("stale \(result.text)")
            case .uploaded: words.append("uploaded")
            case .began(let response, let expected):
                words.append("began \(response.status.code) \(expected.map(String.init) ?? "unknown")")
            case .progress: if words.last != "progress" { words.append("progress") }
            case .finished(let result): words.append("finished \(result.outcome.rawValue) \(result.data.count)")
            }
        }
        return words
    }

    private func expect(
        _ events: some AsyncSequence<DownloadEvent, DownloadError>,
        _ expected: [String],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let seen = try await words(events)
        #expect(seen == expected, sourceLocation: sourceLocation)
    }

    @Test func ofADownload() async throws {
        let gate = Gate()
        try await withManager { request in
            guard request.target == "/chunked" else { return .pattern(100_000) }
            return OriginReply([
                OriginReply.head(200, fields: [("Transfer-Encoding", "chunked")]), OriginReply.text("7\r\nhello, \r\n"),
                .wait(gate), OriginReply.text("5\r\nworld\r\n0\r\n\r\n"),
            ])
        } _: { manager, origin async throws in
            try await expect(
                manager.events(for: origin.url()),
                ["began 200 100000", "progress", "finished downloaded 100000"]
            )
            try await expect(
                manager.events(for: origin.url()),
                ["began 200 100000", "progress", "finished stillValid 100000"]
            )
            var lengths: [Int64?] = []
            for try await event in manager.events(for: origin.url("/chunked")) {
                if case .began(_, let expected) = event { lengths.append(expected) }
                if case .progress(let progress) = event { lengths.append(progress.total) }
                if case .finished(let result) = event { #expect(result.text == "hello, world") }
                gate.open()
            }
            #expect(Set(lengths) == [nil], "nobody knows the length of a body in chunks")
        }
    }

    @Test func progressCountsEveryByteOnce() async throws {
        let gates = (0..<3).map { _ in Gate() }
        try await withManager { _ in
            var steps = [OriginReply.head(200, fields: [("Content-Length", "300")])]
            for (number, gate) in gates.enumerated() {
                steps += [.wait(gate), .pattern(100, from: number * 100)]
            }
            return OriginReply(steps)
        } _: { manager, origin async throws in
            var seen: [DownloadProgress] = []
            for try await event in manager.events(for: origin.url()) {
                switch event {
                case .began: gates[0].open()
                case .progress(let progress):
                    seen.append(progress)
                    if progress.completed % 100 == 0, progress.completed < 300 {
                        gates[Int(progress.completed / 100)].open()
                    }
                case .finished(let result): #expect(Array(result.data) == Pattern.bytes(0..<300))
                case .stale, .uploaded: Issue.record("nothing is stored, and nothing is sent")
                }
            }
            #expect(seen.map(\.completed).filter { $0 % 100 == 0 } == [100, 200, 300])
            #expect(seen.allSatisfy { $0.total == 300 })
            #expect(seen.map(\.completed) == seen.map(\.completed).sorted())
            #expect(seen.last?.fraction == 1)
            #expect(DownloadProgress(completed: 3).fraction == nil)
            #expect(DownloadProgress(completed: 0, total: 0).fraction == 1)
        }
    }

    @Test func whatIsStaleComesFirst() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
        } _: {
            resource.reply($0)
        } _: { manager, origin async throws in
            let options = DownloadOptions(yieldsStaleFirst: true)
            let events = manager.events(for: origin.url(), options: options)
            try await expect(events, ["began 200 9", "progress", "finished downloaded 9"])
            try await expect(events, ["stale version 1", "began 200 9", "progress", "finished confirmed 9"])
            resource.change()
            try await expect(events, ["stale version 1", "began 200 9", "progress", "finished downloaded 9"])
            resource.isFailing = true
            try await expect(events, ["stale version 2", "began 200 9", "progress", "finished checkFailed 9"])
            // A result is the final one.
            #expect(try await manager.download(origin.url(), options: options).outcome == .checkFailed)
        }
    }

    @Test func whatIsValidComesOnce() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin async throws in
            let options = DownloadOptions(yieldsStaleFirst: true)
            let events = manager.events(for: origin.url(), options: options)
            _ = try await words(events)
            try await expect(events, ["began 200 9", "progress", "finished stillValid 9"])
            #expect(origin.server.requests() == 1)
        }
    }

    // MARK: - Leaving

    @Test func whoLeavesDoesNoHarm() async throws {
        let gate = Gate()
        try await withManager { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "200")]), .pattern(100, from: 0), .wait(gate),
            ])
            .then(OriginReply([.pattern(100, from: 100)]))
        } _: { manager, origin async throws in
            let other = Task { try await manager.download(origin.url()) }
            for try await event in manager.events(for: origin.url()) {
                if case .progress = event { break }
            }
            #expect(await eventually { manager.downloadCount == 1 })
            gate.open()
            #expect(Array(try await other.value.data) == Pattern.bytes(0..<200))
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func whatNobodyWaitsForIsStored() async throws {
        let gate = Gate()
        try await withManager { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "200")]), .pattern(100, from: 0), .wait(gate),
            ])
            .then(OriginReply([.pattern(100, from: 100)]))
        } _: { manager, origin async throws in
            for try await event in manager.events(for: origin.url()) {
                if case .progress = event { break }
            }
            gate.open()
            let options = DownloadOptions(cachePolicy: .storedOnly)
            #expect(
                await eventually { (try? await manager.download(origin.url(), options: options))?.data.count == 200 }
            )
            #expect(origin.server.requests() == 1)
        }
    }

    @Test(arguments: [true, false]) func aCancelledTask(hasBegun: Bool) async throws {
        let gate = Gate()
        try await withManager { _ in
            let head = OriginReply([OriginReply.head(200, fields: [("Content-Length", "100")]), .pattern(50, from: 0)])
            return hasBegun
                ? head.then(OriginReply([.wait(gate), .pattern(50, from: 50)]))
                : OriginReply([.wait(gate)]).then(head).then(OriginReply([.pattern(50, from: 50)]))
        } _: { manager, origin async throws in
            let task = Task { () -> DownloadError? in
                await failure { try await manager.download(origin.url()) }
            }
            #expect(await origin.isAsked(1))
            task.cancel()
            #expect(await task.value == .cancelled)
            #expect(await eventually { manager.downloadCount == 0 })
            gate.open()
        }
    }

    @Test func aTaskThatIsCancelledBefore() async throws {
        try await withManager {
            .answer(to: $0, "hello")
        } _: { manager, origin async throws in
            let gate = Gate()
            let task = Task { () -> DownloadError? in
                while !Task.isCancelled { await Task.yield() }
                gate.open()
                return await failure { try await manager.download(origin.url()) }
            }
            task.cancel()
            #expect(await task.value == .cancelled)
            #expect(origin.server.requests() == 0)
        }
    }

    @Test func cancellingAResource() async throws {
        let (gate, resource) = (Gate(), ChangingResource())
        try await withManager {
            $0.lifetime = .zero
        } _: { request in
            let reply = resource.reply(request)
            return request.method == "HEAD" ? OriginReply([.wait(gate)]).then(reply) : reply
        } _: { manager, origin async throws in
            _ = try await manager.download(origin.url("/a"))
            _ = try await manager.download(origin.url("/b"))
            let tasks = ["/a", "/a", "/b"].map { path in Task { try await manager.download(origin.url(path)).outcome } }
            #expect(await origin.isAsked(2, method: "HEAD"))
            #expect(await eventually { manager.downloadCount == 3 })
            #expect(manager.cancel(origin.url("/a")) == 2)
            for task in tasks.prefix(2) {
                await #expect(throws: DownloadError.cancelled) { try await task.value }
            }
            // Their transfer has ended with them.
            #expect(try await manager.state(of: origin.url("/a")) != .absent)
            gate.open()
            #expect(try await tasks[2].value == .confirmed)
            // What is stored is as it was.
            let kept = try await manager.download(origin.url("/a"))
            #expect(kept.text == "version 1")
            #expect(kept.outcome == .confirmed)
        }
    }

    @Test(arguments: [false, true]) func cancellingEverything(silently: Bool) async throws {
        let gate = Gate()
        try await withManager { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "100")]), .pattern(50, from: 0), .wait(gate),
            ])
        } _: { manager, origin async throws in
            let ended = Task { () -> String in
                do throws(DownloadError) {
                    for try await event in manager.events(for: origin.url("/events")) {
                        if case .finished = event { return "finished" }
                    }
                    return "end"
                } catch {
                    return "\(error)"
                }
            }
            let result = Task { () -> DownloadError? in
                await failure { try await manager.download(origin.url("/result")) }
            }
            #expect(await origin.isAsked(2))
            #expect(manager.cancelAll(silently: silently) == 2)
            #expect(await ended.value == (silently ? "end" : "the download was cancelled"))
            #expect(await result.value == .cancelled)
            gate.open()
        }
    }

    // MARK: - The manager's own end

    @Test func aClosedManager() async throws {
        let gate = Gate()
        try await withManager(onDisk: true) { _ in
            OriginReply([.wait(gate)])
        } _: { manager, origin async throws in
            let task = Task { () -> DownloadError? in
                await failure { try await manager.download(origin.url()) }
            }
            #expect(await origin.isAsked(1))
            await manager.close()
            #expect(await task.value == .cancelled)
            let error = await failure { try await manager.download(origin.url()) }
            #expect(error == .closed)
            #expect(error?.outcome == .invalid)
            await manager.close()
            gate.open()
        }
    }

    @Test func oneFolderHasOneManager() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let (first, second) = (makeManager(folder), makeManager(folder))
        try await first.open()
        do throws(DownloadError) {
            try await second.open()
            Issue.record("two managers use one folder")
        } catch {
            #expect(error.description.contains(folder.path), "\(error)")
            #expect(error.outcome == .invalid)
        }
        await first.close()
        // The next download tries again.
        try await second.open()
        await second.close()
    }

    @Test func theLastReferenceEndsIt() async throws {
        let folder = try TemporaryFolder("drydock-library")
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, "hello") })
        _ = try await makeManager(folder).download(origin.url())
        let next = makeManager(folder)
        #expect(await eventually { (try? await next.open()) != nil })
        #expect(try await next.download(origin.url()).outcome == .stillValid)
        await next.close()
    }

    @Test func aFolderThatCannotBe() async throws {
        let folder = try TemporaryFolder("drydock-library")
        try folder.write("store", "a file")
        let manager = makeManager(folder)
        do throws(DownloadError) {
            try await manager.open()
            Issue.record("a file is a folder")
        } catch {
            guard case .unavailable(let detail) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(detail.contains(folder.file("store")))
        }
    }
}
