// Requests of every method: which are looked up in the store, which go to the origin, and what these do to what is
// stored.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct MethodTests {
    @Test(arguments: ["PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"])
    func methodsArePassedOn(name: String) async throws {
        try await withManager {
            .answer(201, to: $0, fields: [("X-A", "b")], "made")
        } _: { manager, origin in
            let method = try #require(HTTPRequest.Method(rawValue: name))
            for _ in 0..<2 {
                let result = try await manager.download(
                    origin.request(method, "/a?b=1"),
                    body: .data(Data("hello".utf8), contentType: "text/plain")
                )
                #expect(result.text == "made")
                #expect(result.head.status.code == 201)
                #expect(result.head.headerFields[.init("X-A")!] == "b")
                #expect(result.outcome == .downloaded)
            }
            #expect(origin.server.requests() == 2, "nothing of it is stored")
            let asked = try #require(origin.server.log.first)
            #expect(asked.method == name)
            #expect(asked.target == "/a?b=1")
            #expect(asked.body == Array("hello".utf8))
            #expect(asked.all("Content-Length") == ["5"])
            #expect(asked.all("Content-Type") == ["text/plain"])
            #expect(asked.all("Host") == [origin.server.authority])
        }
    }

    @Test func aGetWithContentIsNotAnsweredFromMemory() async throws {
        try await withManager {
            .answer(
                to: $0,
                fields: [("Cache-Control", "max-age=600")],
                "found \(String(decoding: $0.body, as: UTF8.self))"
            )
        } _: { manager, origin in
            #expect(try await manager.download(origin.url("/a")).text == "found ")
            #expect(try await manager.download(origin.url("/a")).outcome == .stillValid)
            let body = Data("b".utf8)
            #expect(try await manager.download(origin.request(.get), body: body).text == "found b")
            let sent = try await manager.send(TransportRequest(origin.request(.get), body: .data(body)))
            #expect(try await sent.body.collect(upTo: 100) == Data("found b".utf8))
            #expect(origin.server.requests() == 3)
        }
    }

    @Test func aGetWithContentIsPassedOn() async throws {
        try await withManager {
            .answer(to: $0, "found \(String(decoding: $0.body, as: UTF8.self))")
        } _: { manager, origin in
            for text in ["a", "b"] {
                let result = try await manager.download(origin.request(.get), body: .data(Data(text.utf8)))
                #expect(result.text == "found \(text)")
            }
            #expect(origin.count("GET") == 2)
        }
    }

    @Test(arguments: [("POST", "0"), ("PUT", "0"), ("PATCH", "0"), ("DELETE", nil), ("OPTIONS", nil)])
    func whoUsuallyHasContentSaysThatThereIsNone(name: String, length: String?) async throws {
        try await withManager {
            .answer(to: $0, "done")
        } _: { manager, origin in
            let method = try #require(HTTPRequest.Method(rawValue: name))
            let result = try await manager.download(origin.request(method), options: .init(cachePolicy: .bypass))
            #expect(result.text == "done")
            #expect(origin.server.log.map { $0.field("Content-Length") } == [length])
        }
    }

    @Test(
        arguments: [
            (HTTPRequest.Method.connect, nil), (.head, RequestBody.data(Data("a".utf8))),
            (.trace, .data(Data("a".utf8))),
        ] as [(HTTPRequest.Method, RequestBody?)]
    )
    func whatNobodyCanBeAsked(method: HTTPRequest.Method, body: RequestBody?) async throws {
        let manager = makeManager()
        let request = HTTPRequest(method: method, scheme: "http", authority: "origin.test", path: "/a")
        let error = await failure { try await manager.download(request, body: body) }
        #expect(error?.outcome == .invalid)
        #expect(error?.description.contains(method.rawValue) == true)
    }

    @Test func aStatusThatIsNotAcceptedIsAnErrorWithItsBody() async throws {
        try await withManager {
            .answer(409, to: $0, "there is one")
        } _: { manager, origin in
            let error = await failure { try await manager.download(origin.request(.put), body: Data("a".utf8)) }
            guard case .unacceptableStatus(let result) = error else { return unexpected(error as Any) }
            #expect(result.text == "there is one")
        }
    }

    @Test func aTransportSendsEveryMethod() async throws {
        try await withManager {
            .answer(404, to: $0, "none")
        } _: { manager, origin in
            let request = TransportRequest(origin.request(.delete))
            let response = try await manager.send(request)
            #expect(response.head.status == .notFound)
            #expect(try await response.body.collect(upTo: 10) == Data("none".utf8))
            #expect(try await manager.staleResponse(to: request) == nil)
            #expect(origin.count("DELETE") == 1)
        }
    }

    // MARK: - What is stored

    @Test(arguments: [
        ("PUT", 204, true), ("DELETE", 200, true), ("PATCH", 303, true), ("REPORT", 200, true), ("PUT", 412, false),
        ("DELETE", 500, false), ("OPTIONS", 200, false),
    ])
    func aSuccessRemovesWhatIsStored(name: String, status: Int, isRemoved: Bool) async throws {
        try await withManager(onDisk: true) {
            $0.maximumRedirects = 0
            $0.acceptedStatuses = 200..<600
        } _: { request in
            request.method == "GET"
                ? .answer("a") : OriginReply([OriginReply.head(status, fields: [("Content-Length", "0")])])
        } _: { manager, origin in
            _ = try await manager.download(origin.url("/a"))
            _ = try await manager.download(origin.url("/other"))
            let method = try #require(HTTPRequest.Method(rawValue: name))
            // Whatever the options say: a wrong answer may not stay.
            _ = try await manager.download(
                origin.request(method),
                options: .init(cachePolicy: name == "DELETE" ? .bypass : .useStored)
            )
            #expect(try await manager.download(origin.url("/a")).outcome == (isRemoved ? .downloaded : .stillValid))
            #expect(try await manager.download(origin.url("/other")).outcome == .stillValid)
        }
    }

    @Test func whatAnAnswerNamesIsRemovedToo() async throws {
        try await withManager { request in
            request.method == "GET"
                ? .answer(request.target)
                : .answer(201, to: request, fields: [("Location", "/made"), ("Content-Location", "/list?a=1")], "")
        } _: { manager, origin in
            for path in ["/made", "/list?a=1", "/list"] { _ = try await manager.download(origin.url(path)) }
            _ = try await manager.download(origin.request(.put, "/x"))
            #expect(try await manager.download(origin.url("/made")).outcome == .downloaded)
            #expect(try await manager.download(origin.url("/list?a=1")).outcome == .downloaded)
            #expect(try await manager.download(origin.url("/list")).outcome == .stillValid)
        }
    }

    @Test func aChangeRemovesWhatIsStoredByContent() async throws {
        try await withManager {
            .answer(to: $0, "found")
        } _: { manager, origin in
            let question = Data("question".utf8)
            _ = try await manager.download(origin.request(.post), body: question)
            #expect(try await manager.download(origin.request(.post), body: question).outcome == .stillValid)
            _ = try await manager.download(origin.request(.put), body: Data("new".utf8))
            #expect(try await manager.download(origin.request(.post), body: question).outcome == .downloaded)
        }
    }

    @Test func postsThatAreNoQuestionsArePassedOn() async throws {
        try await withManager {
            .answer(to: $0, "done")
        } _: { manager, origin in
            var conditional = origin.request(.post)
            conditional.headerFields[.ifMatch] = "\"1\""
            for _ in 0..<2 {
                let body = RequestBody.data(Data("a".utf8))
                _ = try await manager.download(conditional, body: body)
                _ = try await manager.download(origin.request(.post), body: body, options: .init(cachePolicy: .bypass))
                _ = try await manager.download(origin.request(.post), body: .stream { ContentPieces(["a"]) })
            }
            #expect(origin.count("POST") == 6)
            #expect(origin.server.log.allSatisfy { $0.body == Array("a".utf8) })
            #expect(origin.server.log.first?.field("If-Match") == "\"1\"")
        }
    }

    @Test func inStandardModeAPostIsPassedOn() async throws {
        try await withManager {
            $0.mode = .http
        } _: {
            .answer(to: $0, String(decoding: $0.body, as: UTF8.self))
        } _: { manager, origin in
            for _ in 0..<2 {
                let result = try await manager.download(origin.request(.post), body: Data("a".utf8))
                #expect(result.text == "a")
            }
            #expect(origin.count("POST") == 2)
        }
    }

    @Test func whoWantsOnlyWhatIsStoredSendsNothing() async throws {
        try await withManager {
            .answer(to: $0, "done")
        } _: { manager, origin in
            let error = await failure {
                try await manager.download(origin.request(.delete), options: .init(cachePolicy: .storedOnly))
            }
            guard case .notStored = error else { return unexpected(error as Any) }
            #expect(origin.server.requests() == 0)
        }
    }

    // MARK: - Redirects

    @Test(arguments: [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"), (303, "DELETE", "GET"),
        (301, "PUT", "PUT"), (302, "PATCH", "PATCH"), (307, "POST", "POST"), (308, "POST", "POST"), (307, "PUT", "PUT"),
    ])
    func redirectsOfContent(status: Int, name: String, next: String) async throws {
        try await withManager { request in
            request.target == "/a"
                ? .answer(status, to: request, fields: [("Location", "/b")], "elsewhere")
                : .answer(to: request, "there")
        } _: { manager, origin in
            let method = try #require(HTTPRequest.Method(rawValue: name))
            let body = RequestBody.stream(contentType: "text/plain") { ContentPieces(["hello", " ", "there"]) }
            #expect(try await manager.download(origin.request(method), body: body).text == "there")
            let asked = origin.server.log
            #expect(asked.map(\.method) == [name, next])
            #expect(asked[0].body == Array("hello there".utf8))
            #expect(asked[1].body == (next == "GET" ? [] : Array("hello there".utf8)))
            #expect(asked[1].field("Content-Type") == (next == "GET" ? nil : "text/plain"))
        }
    }

    @Test func longContentIsSentAgainWhereItCanBeHadAgain() async throws {
        try await withManager { request in
            request.target == "/a"
                ? .answer(307, to: request, fields: [("Location", "/b")], "") : .answer(to: request, "there")
        } _: { manager, origin in
            let bytes = Data(Pattern.bytes(0..<300_000))
            let result = try await manager.download(origin.request(.put), body: bytes)
            #expect(result.text == "there")
            #expect(origin.server.log.map(\.bodyLength) == [300_000, 300_000])
            #expect(origin.server.log.allSatisfy { $0.bodyIsPattern })
        }
    }

    @Test func contentThatCanBeHadOnceIsNotRedirected() async throws {
        try await withManager { request in
            request.target == "/a"
                ? .answer(307, to: request, fields: [("Location", "/b")], "") : .answer(to: request, "there")
        } _: { manager, origin in
            let short = RequestBody.once(ContentPieces(["short"]))
            let result = try await manager.download(origin.request(.put), body: short)
            #expect(result.text == "there")
            let long = RequestBody.once(ContentPieces([String(repeating: "a", count: 300_000)]))
            let error = await failure { try await manager.download(origin.request(.put), body: long) }
            guard case .requestBody(let text) = error else { return unexpected(error as Any) }
            #expect(text.contains(origin.server.url + "/b"))
            #expect(origin.server.log.map(\.target) == ["/a", "/b", "/a"])
        }
    }
}

/// Pieces of text, each when it is asked for.
struct ContentPieces: AsyncSequence, Sendable {
    struct AsyncIterator: AsyncIteratorProtocol {
        var rest: ArraySlice<String>
        let error: (any Error)?

        mutating func next() async throws -> Data? {
            await Task.yield()
            if let piece = rest.popFirst() { return Data(piece.utf8) }
            if let error { throw error }
            return nil
        }
    }

    let pieces: [String]
    let error: (any Error)?

    init(_ pieces: [String], then error: (any Error)? = nil) {
        self.pieces = pieces
        self.error = error
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: pieces[...], error: error) }
}
