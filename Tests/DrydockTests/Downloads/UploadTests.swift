// Contents of requests that are not in memory: how they get to the origin, and what keeps them from it.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import Synchronization
import TestSupport
import Testing

@Suite struct UploadTests {
    private struct OutOfPaper: Error {}

    @Test func aFileIsSentAsAWhole() async throws {
        let folder = try TemporaryFolder()
        let file = URL(fileURLWithPath: try folder.writePattern("a", count: 3_000_001))
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            let body = RequestBody.file(file, contentType: "application/x-pattern")
            #expect(body.length == 3_000_001)
            #expect(try await manager.download(origin.request(.put), body: body).text == "thanks")
            let asked = try #require(origin.server.log.first)
            #expect(asked.bodyLength == 3_000_001)
            #expect(asked.bodyIsPattern)
            #expect(asked.field("Content-Length") == "3000001")
            #expect(asked.field("Transfer-Encoding") == nil)
            #expect(asked.field("Content-Type") == "application/x-pattern")
            #expect(try await body.collect(upTo: 3_000_001) == Data(Pattern.bytes(0..<3_000_001)))
            await #expect(throws: DownloadError.tooLarge(limit: 3_000_000)) { try await body.collect(upTo: 3_000_000) }
        }
    }

    @Test func anEmptyFileIsAnEmptyContent() async throws {
        let folder = try TemporaryFolder()
        let file = URL(fileURLWithPath: try folder.write("a", ""))
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            let result = try await manager.download(origin.request(.put), body: .file(file))
            #expect(result.text == "thanks")
            #expect(origin.server.log.map { $0.field("Content-Length") } == ["0"])
        }
    }

    @Test func aFileThatCannotBeReadIsNamed() async throws {
        let folder = try TemporaryFolder()
        try folder.folder("folder")
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            for name in ["none", "folder"] {
                let body = RequestBody.file(URL(fileURLWithPath: folder.file(name)))
                #expect(body.length == nil)
                let error = await failure { try await manager.download(origin.request(.put), body: body) }
                guard case .requestBody(let text) = error else {
                    Issue.record("\(error as Any)")
                    continue
                }
                #expect(text.contains(folder.file(name)))
            }
            #expect(origin.server.requests() == 0)
        }
    }

    @Test func aFileThatShrinksIsNoWholeRequest() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.writePattern("a", count: 64 << 20)
        let isCut = Monitor(false)
        let server = try ScriptedOrigin { request in
            // With the first bytes of the content, most of which are still in the file then.
            isCut.update { isCut in
                if !isCut { truncate(path, 1000) }
                isCut = true
            }
            _ = request
        } _: {
            .answer(to: $0, "thanks")
        }
        let origin = Origin(server)
        let manager = makeManager()
        let error = await failure {
            try await manager.download(origin.request(.put), body: .file(URL(fileURLWithPath: path)))
        }
        guard case .requestBody(let text) = error else { return unexpected(error as Any) }
        #expect(text.contains(path))
        #expect(await eventually { server.log.count == 1 })
        #expect(server.log.allSatisfy { !$0.isComplete })
        await manager.close()
    }

    @Test func aStreamOfUnknownLengthIsSentInChunks() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            let body = RequestBody.stream(contentType: "text/plain") { ContentPieces(["a", "", "bc", "def"]) }
            #expect(body.length == nil)
            // Made anew for each request.
            for _ in 0..<2 {
                let result = try await manager.download(origin.request(.post), body: body)
                #expect(result.text == "thanks")
            }
            for asked in origin.server.log {
                #expect(asked.body == Array("abcdef".utf8))
                #expect(asked.field("Transfer-Encoding") == "chunked")
                #expect(asked.field("Content-Length") == nil)
            }
            #expect(origin.server.requests() == 2)
        }
    }

    @Test func aStreamOfKnownLengthSaysIt() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            let body = RequestBody.stream(length: 6) { ContentPieces(["a", "bc", "def"]) }
            let result = try await manager.download(origin.request(.post), body: body)
            #expect(result.text == "thanks")
            #expect(origin.server.log.map { $0.field("Content-Length") } == ["6"])
            #expect(origin.server.log.map(\.body) == [Array("abcdef".utf8)])
        }
    }

    @Test(arguments: [5, 7])
    func aStreamOfAnotherLengthIsNoWholeRequest(length: Int64) async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            let body = RequestBody.stream(length: length) { ContentPieces(["a", "bcde", "f"]) }
            let error = await failure { try await manager.download(origin.request(.post), body: body) }
            guard case .requestBody(let text) = error else { return unexpected(error as Any) }
            #expect(text.contains("\(length)"))
            #expect(origin.server.log.allSatisfy { !$0.isComplete })
        }
    }

    @Test func whatAStreamThrowsIsInTheError() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            for body in [
                RequestBody.stream { ContentPieces(["a"], then: OutOfPaper()) },
                .stream { () -> ContentPieces in throw OutOfPaper() },
                .once(ContentPieces([], then: OutOfPaper())),
            ] {
                let error = await failure { try await manager.download(origin.request(.put), body: body) }
                guard case .requestBody(let text) = error else {
                    Issue.record("\(error as Any)")
                    continue
                }
                #expect(text.contains("OutOfPaper"))
            }
            #expect(origin.server.log.allSatisfy { !$0.isComplete })
        }
    }

    @Test func aStreamThatCanBeHadOnceIsSentOnce() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            let body = RequestBody.once(ContentPieces(["a"]))
            let result = try await manager.download(origin.request(.put), body: body)
            #expect(result.text == "thanks")
            let error = await failure { try await manager.download(origin.request(.put), body: body) }
            guard case .requestBody = error else { return unexpected(error as Any) }
            await #expect(throws: DownloadError.self) { try await body.collect(upTo: 10) }
        }
    }

    @Test func aResponseIsSentOn() async throws {
        try await withManager { request in
            request.method == "GET" ? .pattern(2_000_000) : .answer("\(request.bodyLength) \(request.bodyIsPattern)")
        } _: { manager, origin in
            let response = try await manager.stream(origin.url())
            let body = RequestBody.once(response.body, length: response.body.expected)
            let result = try await manager.download(origin.request(.put, "/b"), body: body)
            #expect(result.text == "2000000 true")
        }
    }

    @Test func aStreamWaitsForTheOrigin() async throws {
        let gate = Gate()
        let made = Counter()
        let server = try ScriptedOrigin { _ in
            gate.wait()
        } _: {
            .answer(to: $0, "\($0.bodyLength) \($0.bodyIsPattern)")
        }
        let origin = Origin(server)
        let manager = makeManager()
        let (piece, count) = (64 << 10, 2000)
        let body = RequestBody.stream {
            AsyncStream(unfolding: { () -> Data? in
                let number = made.value
                guard number < count else { return nil }
                made.add()
                return Data(Pattern.bytes(number * piece..<(number + 1) * piece))
            })
        }
        let result = Task { try await manager.download(origin.request(.put), body: body) }
        #expect(await eventually { made.value > 4 })
        // 125 MiB in all, of which no more is made than sockets and a queue of 256 KiB take.
        var before: Int
        repeat {
            before = made.value
            try await giveTurns(100, to: manager)
        } while made.value > before
        #expect(made.value < count)
        gate.open()
        #expect(try await result.value.text == "\(piece * count) true")
        await manager.close()
    }

    // MARK: - Fields

    @Test func theRequestsOwnMediaTypeStays() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            var request = origin.request(.put)
            request.headerFields[.contentType] = "text/x-own"
            _ = try await manager.download(request, body: .data(Data("a".utf8), contentType: "text/plain"))
            _ = try await manager.download(origin.request(.put), body: .data(Data("a".utf8)))
            #expect(origin.server.log.map { $0.all("Content-Type") } == [["text/x-own"], []])
        }
    }

    @Test func anOriginIsAskedWhetherItWantsTheContent() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            var request = origin.request(.put)
            request.headerFields[.expect] = "100-continue"
            let body = RequestBody.stream { ContentPieces(["hello"]) }
            #expect(try await manager.download(request, body: body).text == "thanks")
            let asked = try #require(origin.server.log.first)
            #expect(asked.field("Expect") == "100-continue")
            #expect(asked.body == Array("hello".utf8))
        }
    }

    // MARK: - Progress

    @Test func aTransportTellsWhatHasBeenSent() async throws {
        let folder = try TemporaryFolder()
        let file = URL(fileURLWithPath: try folder.writePattern("a", count: 1_000_000))
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            for (body, expected) in [
                (RequestBody.file(file), 1_000_000), (.data(Data(Pattern.bytes(0..<1_000_000))), 1_000_000),
                (.stream { ContentPieces([String(repeating: "a", count: 1_000_000)]) }, nil),
            ] as [(RequestBody, Int64?)] {
                let told = Monitor<[DownloadProgress]>([])
                let request = TransportRequest(origin.request(.post), body: body) { progress in
                    told.update { $0.append(progress) }
                }
                let response = try await manager.send(request)
                let steps = told.read { $0 }
                #expect(steps.last == DownloadProgress(completed: 1_000_000, total: expected))
                #expect(steps.map(\.completed) == steps.map(\.completed).sorted())
                #expect(try await response.body.collect(upTo: 10) == Data("thanks".utf8))
            }
        }
    }

    @Test func eventsBeginWithWhatIsSent() async throws {
        try await withManager {
            .answer(to: $0, "thanks")
        } _: { manager, origin in
            var steps: [String] = []
            var last: DownloadProgress?
            let body = RequestBody.data(Data(Pattern.bytes(0..<500_000)))
            for try await event in manager.events(for: origin.request(.put), body: body) {
                switch event {
                case .stale: steps.append("stale")
                case .uploaded(let progress):
                    last = progress
                    if steps.last != "uploaded" { steps.append("uploaded") }
                case .began: steps.append("began")
                case .progress: steps.append("progress")
                case .finished(let result): steps.append(result.text)
                }
            }
            #expect(steps == ["uploaded", "began", "progress", "thanks"])
            #expect(last == DownloadProgress(completed: 500_000, total: 500_000))
        }
    }

    @Test func whoLeavesEndsTheUpload() async throws {
        let gate = Gate()
        let server = try ScriptedOrigin { _ in
            gate.wait()
        } _: {
            .answer(to: $0, "thanks")
        }
        let origin = Origin(server)
        let manager = makeManager()
        let body = RequestBody.data(Data(count: 64 << 20))
        for try await event in manager.events(for: origin.request(.put), body: body) {
            if case .uploaded = event { break }
        }
        #expect(await eventually { manager.downloadCount == 0 })
        gate.open()
        #expect(await eventually { server.log.count == 1 })
        #expect(server.log.allSatisfy { !$0.isComplete })
        await manager.close()
    }

    @Test func aCancelledTaskEndsTheUpload() async throws {
        let gate = Gate()
        let server = try ScriptedOrigin { _ in
            gate.wait()
        } _: {
            .answer(to: $0, "thanks")
        }
        let origin = Origin(server)
        let manager = makeManager()
        let hasBegun = Gate()
        let task = Task {
            try await manager.send(
                TransportRequest(origin.request(.put), body: .data(Data(count: 64 << 20))) { _ in hasBegun.open() }
            )
        }
        #expect(await eventually { hasBegun.wait(seconds: 0) })
        task.cancel()
        await #expect(throws: DownloadError.cancelled) { try await task.value }
        gate.open()
        #expect(await eventually { server.log.count == 1 })
        #expect(server.log.allSatisfy { !$0.isComplete })
        await manager.close()
    }
}
