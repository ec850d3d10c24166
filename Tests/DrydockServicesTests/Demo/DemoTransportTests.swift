// Demo mode of the library: what is played, how it fails, and what is handed on.

import DemoMode
import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

/// A folder with the files of a test.
func demoFiles(_ files: [String: String]) throws -> (folder: TemporaryFolder, url: URL) {
    let folder = try TemporaryFolder("drydock-demo")
    for (name, text) in files {
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.file(name)))
    }
    return (folder, URL(fileURLWithPath: folder.path))
}

extension Transport {
    /// The response to a request of `http://demo.test`, with its body.
    func ask(
        _ path: String,
        _ method: HTTPRequest.Method = .get,
        _ fields: HTTPFields = HTTPFields()
    ) async throws -> (head: HTTPResponse, text: String) {
        let head = HTTPRequest(method: method, scheme: "http", authority: "demo.test", path: path, headerFields: fields)
        let response = try await send(TransportRequest(head))
        let data = try await response.body.collect(upTo: 1 << 20)
        return (response.head, String(decoding: data, as: UTF8.self))
    }
}

extension HTTPResponse {
    /// The value of a field; nil where it is absent.
    func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { headerFields[$0] } }
}

private struct Refusal: Decodable, Error, Equatable {
    var reason: String
}

/// A user, and why there is none.
private let aUser = HTTPResource<User>("/users/7", .json) { result in
    try? JSONDecoder().decode(Refusal.self, from: result.data)
}

@Suite struct DemoTransportTests {
    private static let user = DemoTransport.Endpoint("user", path: "/users/:id")

    @Test func anEndpointIsPlayedFromItsFile() async throws {
        let (folder, files) = try demoFiles(["user.json": #"{"name": "Ada"}"#])
        let demo = try DemoTransport([Self.user], files: files)
        let (head, text) = try await demo.ask("/users/7?full=1")
        #expect(text == #"{"name": "Ada"}"# && head.status == .ok)
        #expect(head.field("Content-Type") == "application/json" && head.field("Content-Length") == "15")
        #expect(
            head.field("Drydock-Demo")?.hasPrefix("endpoint=user; outcome=success; status=200; latency=0ms; ") == true
        )
        _ = folder
    }

    @Test func everyKindOfFileIsPlayedWithItsFields() async throws {
        let (folder, files) = try demoFiles(["a.txt": "text"])
        var fields = HTTPFields()
        fields[.cacheControl] = "max-age=60"
        let endpoint = DemoTransport.Endpoint("a", path: "/a", file: "a.txt", status: 201, headerFields: fields)
        let (head, text) = try await DemoTransport([endpoint], files: files).ask("/a")
        #expect(text == "text" && head.status == .created)
        #expect(
            head.field("Content-Type") == "text/plain; charset=utf-8"
                && head.headerFields[.cacheControl] == "max-age=60"
        )
        _ = folder
    }

    @Test func anAnswerMayHaveNoBody() async throws {
        var empty = DemoTransport.Endpoint("empty", path: "/empty")
        empty.file = nil
        let gone = DemoTransport.Endpoint("gone", path: "/gone", method: .delete, status: 204)
        let demo = try DemoTransport([empty, gone], files: URL(fileURLWithPath: "/nonexistent"))
        #expect(try await demo.ask("/empty").text == "")
        let (head, text) = try await demo.ask("/gone", .delete)
        #expect(head.status == .noContent && text == "" && head.field("Content-Length") == nil)
    }

    @Test func aBodyNeedsNoFile() async throws {
        var fields = HTTPFields()
        fields[.contentType] = "text/csv"
        let demo = try DemoTransport([
            .init("text", path: "/text").playing(text: "grüß dich"),
            .init("json", path: "/json").playing(json: ["name": "Ada", "list": [1, nil]]),
            .init("data", path: "/data").playing(Data([1, 2]), contentType: "application/x-two"),
            .init("own", path: "/own", headerFields: fields).playing(text: "a,b"),
            .init("gone", path: "/gone", status: 204).playing(text: "never"),
            .init("fails", path: "/fails").playing(text: "fine").failing(1, json: ["reason": "broken"]),
        ])
        for (path, type, text) in [
            ("/text", "text/plain; charset=utf-8", "grüß dich"),
            ("/json", "application/json", #"{"name":"Ada","list":[1,null]}"#),
            ("/data", "application/x-two", "\u{1}\u{2}"), ("/own", "text/csv", "a,b"),
        ] {
            let (head, body) = try await demo.ask(path)
            #expect(head.headerFields[.contentType] == type && body == text)
            #expect(head.field("ETag") != nil && head.headerFields[.contentLength] == "\(text.utf8.count)")
        }
        #expect(try await demo.ask("/gone").text == "")
        let (head, text) = try await demo.ask("/fails")
        #expect(head.status == .serviceUnavailable && text == #"{"reason":"broken"}"#)
    }

    @Test func aFileNeedsItsFolder() throws {
        let error = #expect(throws: DemoError.self) { try DemoTransport([Self.user]) }
        #expect(error?.description.contains("its file user.json is in no folder") == true)
    }

    // MARK: - Errors before the first call

    @Test func aMissingFileIsToldAtOnce() throws {
        let (folder, files) = try demoFiles([:])
        let error = #expect(throws: DemoError.self) { try DemoTransport([Self.user], files: files) }
        guard case .unreadableFile(endpoint: "user", let text) = error else {
            return #expect(Bool(false), "\(error as Any)")
        }
        #expect(text.contains(folder.file("user.json")) && text.contains("does not exist"))
        #expect("\(error as Any)".contains("user"))
    }

    @Test func aMissingFileOfAFailureIsToldAtOnce() throws {
        let (folder, files) = try demoFiles(["user.json": "{}"])
        var endpoint = Self.user
        endpoint = endpoint.failing(0.1, file: "error.json")
        #expect(throws: DemoError.self) { try DemoTransport([endpoint], files: files) }
        _ = folder
    }

    @Test(arguments: ["", "{", "[1,]", "<html>"]) func aFileThatIsNoJSONIsToldAtOnce(text: String) throws {
        let (folder, files) = try demoFiles(["user.json": text])
        let error = #expect(throws: DemoError.self) { try DemoTransport([Self.user], files: files) }
        guard case .invalidFile(endpoint: "user", let text) = error else {
            return #expect(Bool(false), "\(error as Any)")
        }
        #expect(text.contains("is no JSON text"))
        _ = folder
    }

    @Test func settingsThatMakeNoSenseAreToldAtOnce() throws {
        let (folder, files) = try demoFiles(["a.json": "{}"])
        let faults: [(DemoTransport.Endpoint, String)] = [
            (.init("", path: "/a", file: "a.json"), "no name"), (.init("a", path: "a"), "/users/:id"),
            (.init("a", path: "/*/a"), "/users/:id"), (.init("a", path: "/a/:"), "/users/:id"),
            (.init("a", path: "/a b"), "/users/:id"), (.init("a", path: "/a", status: 99), "200 to 599"),
            (.init("a", path: "/a").failing(1.5), "from 0 to 1"),
            (.init("a", path: "/a").failing(.nan), "from 0 to 1"),
            (.init("a", path: "/a").failing(0, status: 600), "200 to 599"),
            (.init("a", path: "/a", latency: .seconds(-1) ... .zero), "less than zero"),
            (.init("a", path: "/a", statuses: [200: 0.5, 503: 0.4]), "add up to 0.9, not to 1"),
            (.init("a", path: "/a", statuses: [200: 1.5, 503: -0.5]), "1.5 is no share of the status 200"),
            (.init("a", path: "/a", statuses: [200: .nan]), "is no share"),
            (.init("a", path: "/a", statuses: [200: 0.5, 200: 0.5]), "two shares"),
            (.init("a", path: "/a", statuses: [20: 1]), "200 to 599"),
        ]
        for (endpoint, part) in faults {
            let error = #expect(throws: DemoError.self) { try DemoTransport([endpoint], files: files) }
            #expect(error?.description.contains(part) == true, "\(error as Any)")
        }
        let twice = DemoTransport.Endpoint("a", path: "/a")
        #expect(throws: DemoError.self) { try DemoTransport([twice, twice], files: files) }
        _ = folder
    }

    // MARK: - Which requests are meant

    @Test func theMostSpecificEndpointAnswers() async throws {
        let (folder, files) = try demoFiles(["all.json": "1", "one.json": "2", "me.json": "3", "post.json": "4"])
        let endpoints: [DemoTransport.Endpoint] = [
            .init("all", path: "/users/*", method: nil), .init("one", path: "/users/:id"),
            .init("me", path: "/users/me"), .init("post", path: "/users/:id", method: .post),
        ]
        let demo = try DemoTransport(endpoints, files: files)
        for (path, method, text) in [
            ("/users/7", .get, "2"), ("/users/me", .get, "3"), ("/users/7/a", .get, "1"), ("/users/7", .post, "4"),
            ("/users/7", .put, "1"), ("/users/me?a=b", .get, "3"),
        ] as [(String, HTTPRequest.Method, String)] {
            #expect(try await demo.ask(path, method).text == text, "\(method) \(path)")
        }
        _ = folder
    }

    @Test func aBaseLimitsWhatIsPlayed() async throws {
        let (folder, files) = try demoFiles(["user.json": "{}"])
        let live = ScriptedTransport()
        live.answerAll { _ throws(DownloadError) in .text("live") }
        for (base, path, isPlayed) in [
            ("http://demo.test", "/users/7", true), ("http://demo.test/", "/users/7", true),
            ("http://DEMO.test:80", "/users/7", true), ("http://demo.test/api", "/api/users/7", true),
            ("http://demo.test/api/", "/api/users/7", true), ("http://demo.test/api", "/users/7", false),
            ("http://demo.test/api", "/apis/users/7", false), ("http://other.test", "/users/7", false),
            ("https://demo.test", "/users/7", false), ("http://demo.test:8080", "/users/7", false),
        ] {
            let demo = try DemoTransport([Self.user], files: files, base: URL(string: base), over: live)
            #expect(try await demo.ask(path).text == (isPlayed ? "{}" : "live"), "\(base) \(path)")
        }
        _ = folder
    }

    @Test func whatIsNotPlayedIsHandedOn() async throws {
        let (folder, files) = try demoFiles(["user.json": "{}"])
        let live = ScriptedTransport()
        live.answer(.get, "/other", with: .text("live"))
        live.answerStale(.get, "/other", with: .text("stale"))
        let demo = try DemoTransport([Self.user], files: files, over: live)
        #expect(try await demo.ask("/other").text == "live")
        let request = HTTPRequest(method: .get, scheme: "http", authority: "demo.test", path: "/other")
        #expect(try await demo.staleResponse(to: TransportRequest(request)) != nil)
        let played = HTTPRequest(method: .get, scheme: "http", authority: "demo.test", path: "/users/1")
        #expect(try await demo.staleResponse(to: TransportRequest(played)) == nil)
        let alone = try DemoTransport([Self.user], files: files)
        let error = await #expect(throws: DownloadError.self) { try await alone.ask("/other?secret=1") }
        guard case .invalidRequest(let text) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(text.contains("GET http://demo.test/other,") && !text.contains("secret"))
        _ = folder
    }

    @Test func itIsSwitchedWhileItRuns() async throws {
        let (folder, files) = try demoFiles(["user.json": "{}", "photo.json": "{}"])
        let live = ScriptedTransport()
        live.answerAll { _ throws(DownloadError) in .text("live") }
        let demo = try DemoTransport([Self.user, .init("photo", path: "/photo")], files: files, over: live)
        func played() async throws -> [Bool] {
            [try await demo.ask("/users/7").text == "{}", try await demo.ask("/photo").text == "{}"]
        }
        #expect(try await played() == [true, true] && demo.isEnabled)
        demo.isEnabled = false
        #expect(try await played() == [false, false])
        demo.setEnabled(true, endpoint: "photo")
        #expect(try await played() == [false, true] && demo.isEnabled(endpoint: "photo"))
        demo.isEnabled = true
        demo.setEnabled(false, endpoint: "photo")
        #expect(try await played() == [true, false] && !demo.isEnabled(endpoint: "photo"))
        demo.setEnabled(nil, endpoint: "photo")
        #expect(try await played() == [true, true])
        demo.setEnabled(false, endpoint: "another")
        #expect(!demo.isEnabled(endpoint: "another"))
        _ = folder
    }

    // MARK: - As live ones

    @Test func answersAreMappedAsLiveOnes() async throws {
        let (folder, files) = try demoFiles(["user.json": #"{"name": "Ada"}"#, "no.json": #"{"reason": "tired"}"#])
        var endpoint = Self.user
        let loader = ServiceManager(
            transport: try DemoTransport([endpoint], files: files),
            base: URL(string: "http://a.test")
        )
        let loaded = try await loader.call(aUser)
        #expect(loaded.model == User(name: "Ada") && loaded.head.status == .ok)
        endpoint = endpoint.failing(1, status: 400, file: "no.json")
        let failing = ServiceManager(
            transport: try DemoTransport([endpoint], files: files),
            base: URL(string: "http://a.test")
        )
        let error = await #expect(throws: ServiceError.self) { try await failing.call(aUser) }
        guard case .status(let result, let refusal) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(result.head.status.code == 400 && refusal as? Refusal == Refusal(reason: "tired"))
        _ = folder
    }

    @Test func itNeedsNoSlotAmongTheFetchesOfAManager() async throws {
        let gate = Gate()
        defer { gate.open() }
        let (folder, files) = try demoFiles(["user.json": "{}"])
        try await withManager(configure: { $0.maximumFetches = 1 }) { request in
            gate.wait()
            return .answer(to: request, "live")
        } _: { manager, origin async throws in
            let demo = try DemoTransport([Self.user], files: files, over: manager)
            let live = manager.start(origin.url("/slow"))
            #expect(await origin.isAsked(1))
            for _ in 0..<20 { #expect(try await demo.ask("/users/7").text == "{}") }
            #expect(manager.statistics.requests == 1 && manager.downloadCount == 1)
            gate.open()
            #expect(try await live.result.text == "live")
        }
        _ = folder
    }

    @Test func failuresAreRepeatedByTheRetriesOfATask() async throws {
        let (folder, files) = try demoFiles(["user.json": #"{"name": "Ada"}"#])
        var endpoint = Self.user
        endpoint = endpoint.failing(0.5)
        let demo = try DemoTransport([endpoint], files: files, seed: try #require(seed(of: [true, true, false])))
        let loader = ServiceManager(transport: demo, base: URL(string: "http://demo.test"))
        let task = WorkQueue().add(Work(aUser, from: loader, retry: .immediate(count: 5)))
        #expect(try await task.value.model.name == "Ada")
        #expect(task.state.attempts == 3)
        demo.restart()
        // Docker's rule repeats only what brought no answer.
        let other = WorkQueue().add(Work(aUser, from: loader, retry: .steady(count: 5)))
        await #expect(throws: WorkError.self) { try await other.value }
        #expect(other.state.attempts == 1)
        _ = folder
    }

    @Test func failuresAreDrawnAgainByItsOwnRetries() async throws {
        let (folder, files) = try demoFiles(["user.json": "{}"])
        let clock = ManualClock()
        var endpoint = Self.user
        endpoint = endpoint.failing(0.5)
        let demo = try DemoTransport(
            [endpoint],
            files: files,
            seed: try #require(seed(of: [true, true, false])),
            retry: .init(count: 2, delay: .seconds(1), backoff: 1, jitter: 0),
            clock: clock
        )
        let asking = Task { try await demo.ask("/users/7").head.status.code }
        for _ in 0..<2 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(1))
        }
        #expect(try await asking.value == 200)
        _ = folder
    }

    /// A seed whose first draws fail so.
    private func seed(of outcomes: [Bool]) -> UInt64? {
        (0..<10_000).first { seed in
            let rule = DemoRule(endpoint: "user", seed: seed, failure: DemoFailure(chance: 0.5))
            return outcomes.indices.allSatisfy { index in
                DemoDraw.draw(rule, requestKey: Array("GET /users/7".utf8), ordinal: UInt64(index)).isFailure
                    == outcomes[index]
            }
        }
    }

    @Test func theUserOfABaseIsNoPartOfWhereRequestsGo() async throws {
        let url = try #require(URL(string: "http://ada:pw@demo.test/v1"))
        let demo = try DemoTransport([.init("a", path: "/a").playing(text: "played")], base: url)
        #expect(try await demo.ask("/v1/a").text == "played")
        let file = URL(fileURLWithPath: "/tmp")
        let error = #expect(throws: DemoError.self) { try DemoTransport([], base: file) }
        guard case .invalidBase(let text)? = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(text.contains("http://"))
    }
}
