// The transport of programs' tests: it answers as its script says, and records what it was asked.

import Drydock
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Synchronization
import Testing

private func request(
    _ target: String,
    _ method: HTTPRequest.Method = .get,
    body: RequestBody? = nil
) -> TransportRequest {
    let head = HTTPRequest(method: method, scheme: "https", authority: "example.com", path: target)
    return TransportRequest(head, body: body)
}

extension ScriptedTransport {
    /// Status and body of what is answered.
    fileprivate func answer(to request: TransportRequest) async throws -> String {
        let response = try await send(request)
        return
            "\(response.head.status.code) \(String(decoding: try await response.body.collect(upTo: 1000), as: UTF8.self))"
    }
}

@Suite struct ScriptedTransportTests {
    @Test func answersComeInTheirOrderAndTheLastOneStays() async throws {
        let transport = ScriptedTransport()
        transport.answer(.get, "/a", with: .status(.serviceUnavailable), .failure(.closed), .text("at last"))
        #expect(try await transport.answer(to: request("/a")) == "503 ")
        await #expect(throws: DownloadError.closed) { try await transport.send(request("/a")) }
        #expect(try await transport.answer(to: request("/a")) == "200 at last")
        #expect(try await transport.answer(to: request("/a?again")) == "200 at last")
        #expect(transport.count("/a") == 4)
    }

    @Test func theLastScriptThatFitsCounts() async throws {
        let transport = ScriptedTransport()
        transport.answerAll { request in .text("any \(request.method)") }
        transport.answer(nil, "/a", with: .text("path"))
        transport.answer(.get, "/a?page=2", with: .text("query"))
        transport.answer(.get, "https://example.com/a?page=3", with: .text("url"))
        let expected: [(HTTPRequest.Method, String, String)] = [
            (.get, "/b", "any GET"), (.get, "/a", "path"), (.get, "/a?page=1", "path"), (.get, "/a?page=2", "query"),
            (.post, "/a?page=2", "path"), (.get, "/a?page=3", "url"), (.put, "/ab", "any PUT"),
        ]
        for (method, target, text) in expected {
            #expect(try await transport.answer(to: request(target, method)) == "200 \(text)", "\(method) \(target)")
        }
        #expect(transport.count("/a", method: .get) == 4)
        #expect(transport.count("/a") == 5)
        #expect(transport.count("/a?page=2") == 2)
        #expect(transport.count("https://example.com/b") == 1)
    }

    @Test func aClosureSeesWhatIsAskedForAndAnswers() async throws {
        let transport = ScriptedTransport()
        transport.answer(.post, "/users") { (request) throws(DownloadError) in
            guard request.contentType == "application/json" else { throw .invalidRequest("no JSON") }
            return .json(request.text, status: .created)
        }
        let body = RequestBody.data(Data(#"{"a":1}"#.utf8), contentType: "application/json")
        let response = try await transport.send(request("/users?x=1", .post, body: body))
        #expect(response.head.status == .created)
        #expect(response.head.headerFields[.contentType] == "application/json")
        #expect(try await response.body.collect(upTo: 100) == Data(#"{"a":1}"#.utf8))
        await #expect(throws: DownloadError.invalidRequest("no JSON")) {
            try await transport.send(request("/users", .post))
        }
        let recorded = try #require(transport.requests.first)
        #expect(recorded.method == .post)
        #expect(recorded.path == "/users")
        #expect(recorded.query == "x=1")
        #expect(recorded.url == "https://example.com/users?x=1")
        #expect(transport.requests.last?.body == nil)
        #expect(transport.requests.last?.query == nil)
    }

    @Test func whatHasNoAnswerFailsWithItsNameAndIsRecorded() async throws {
        let transport = ScriptedTransport()
        transport.answer(.get, "/a", with: .status(.ok))
        let error = await #expect(throws: DownloadError.self) { try await transport.send(request("/a", .delete)) }
        #expect(error?.description.contains("DELETE https://example.com/a") == true)
        #expect(error?.outcome == .invalid)
        #expect(transport.count("/a", method: .delete) == 1)
    }

    @Test func aDelayIsOverWhenTheTestSaysSo() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport(clock: clock)
        transport.answer(.get, "/a", with: .text("late").delayed(by: .seconds(30)))
        let task = Task { try await transport.answer(to: request("/a")) }
        try await clock.waitForSleepers()
        #expect(clock.nextDeadline?.offset == .seconds(30))
        clock.advance(by: .seconds(30))
        #expect(try await task.value == "200 late")
    }

    @Test func aCancelledRequestSaysThatItIs() async throws {
        let clock = ManualClock()
        let transport = ScriptedTransport(clock: clock)
        transport.answer(.get, "/a", with: .status(.ok).delayed(by: .seconds(30)))
        let task = Task { try await transport.answer(to: request("/a")) }
        try await clock.waitForSleepers()
        task.cancel()
        await #expect(throws: DownloadError.cancelled) { try await task.value }
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await transport.answer(to: request("/a"))
        }
        await #expect(throws: DownloadError.cancelled) { try await late.value }
        #expect(transport.count("/a") == 1)
    }

    @Test func aBodyComesInItsPiecesAndMayBreakOff() async throws {
        let transport = ScriptedTransport()
        let whole = ScriptedAnswer(pieces: [Data("one".utf8), Data("two".utf8)])
        transport.answer(.get, "/a", with: whole, whole.interrupted(by: .closed))
        let response = try await transport.send(request("/a"))
        #expect(response.body.expected == 6)
        var pieces: [String] = []
        for try await piece in response.body { pieces.append(String(decoding: piece, as: UTF8.self)) }
        #expect(pieces == ["one", "two"])
        let broken = try await transport.send(request("/a"))
        #expect(broken.body.expected == nil)
        var iterator = broken.body.makeAsyncIterator()
        #expect(try await iterator.next() == Data("one".utf8))
        #expect(try await iterator.next() == Data("two".utf8))
        await #expect(throws: DownloadError.closed) { try await iterator.next() }
    }

    @Test func aHeadHasNoBody() async throws {
        let transport = ScriptedTransport()
        transport.answer(nil, "/a", with: .text("body"))
        #expect(try await transport.answer(to: request("/a", .head)) == "200 ")
    }

    @Test func aStaleResponseIsAnswersOfItsOwn() async throws {
        let transport = ScriptedTransport()
        transport.answer(.get, "/a", with: .text("new"))
        #expect(try await transport.staleResponse(to: request("/a")) == nil)
        transport.answerStale(.get, "/a", with: .text("old"))
        let stale = try #require(try await transport.staleResponse(to: request("/a")))
        #expect(stale.outcome == .beingChecked)
        #expect(try await stale.body.collect(upTo: 100) == Data("old".utf8))
        #expect(try await transport.answer(to: request("/a")) == "200 new")
        #expect(transport.requests.count == 1)
    }

    @Test func anUploadIsReadToItsEndAndTold() async throws {
        let transport = ScriptedTransport()
        transport.answer(.put, "/a", with: .status(.noContent))
        let told = Mutex<[DownloadProgress]>([])
        var upload = request(
            "/a",
            .put,
            body: .once(
                AsyncStream<[UInt8]> {
                    $0.yield([1, 2, 3]); $0.finish()
                }
            )
        )
        upload.onUpload = { progress in told.withLock { $0.append(progress) } }
        _ = try await transport.send(upload)
        #expect(told.withLock { $0 } == [DownloadProgress(completed: 3, total: 3)])
        #expect(transport.requests.first?.body == Data([1, 2, 3]))
        await #expect(throws: DownloadError.self) { try await transport.send(upload) }
        #expect(transport.requests.count == 1)
    }

    @Test func aTestWaitsForRequests() async throws {
        let transport = ScriptedTransport()
        transport.answerAll { _ in .status(.ok) }
        let waiting = Task { try await transport.waitForRequests(2) }
        _ = try await transport.send(request("/a"))
        _ = try await transport.send(request("/b"))
        try await waiting.value
        try await transport.waitForRequests(2)
        let inVain = Task { try await transport.waitForRequests(3) }
        inVain.cancel()
        await #expect(throws: CancellationError.self) { try await inVain.value }
    }

    @Test func aValueIsAnsweredAsJSON() async throws {
        let transport = ScriptedTransport()
        transport.answer(.get, "/a", with: try .json(encoding: ["name": "Ada"], status: .accepted).from(.stillValid))
        let response = try await transport.send(request("/a"))
        #expect(response.outcome == .stillValid)
        #expect(response.head.status == .accepted)
        #expect(try await response.body.collect(upTo: 100) == Data(#"{"name":"Ada"}"#.utf8))
    }

    @Test func aLookAtWhatIsStaleLeavesTheContentAlone() async throws {
        let transport = ScriptedTransport()
        transport.answer(.put, "/a", with: .text("put"))
        let url = try #require(URL(string: "https://api.test/a"))
        let head = HTTPRequest(method: .put, url: url)
        let request = TransportRequest(head, body: .once(ContentPieces(["a"])))
        #expect(try await transport.staleResponse(to: request) == nil)
        #expect(try await transport.send(request).body.collect(upTo: 10) == Data("put".utf8))
    }
}
