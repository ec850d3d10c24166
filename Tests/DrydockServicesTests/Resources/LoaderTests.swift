// Resources asked for through a download manager and through a scripted transport: what becomes of their bytes.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

private struct APIError: Error, Decodable, Equatable {
    let code: Int
}

private struct UserList: DrydockServices.Resource, Hashable {
    typealias Model = [User]
    var city: String
    var endpoint: Endpoint { .get("/users", query: ["city": JSONValue(city)]) }

    func failure(from result: DownloadResult) -> (any Error)? {
        try? ResponseFormat<APIError>.json.read(result)
    }
}

@Suite struct LoaderTests {
    @Test func aPathIsAppendedToTheBase() async throws {
        try await withManager {
            .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "hello")
        } _: { manager, origin in
            let loader = ServiceManager(transport: manager, base: origin.url("/api"))
            let loaded = try await loader.load(.text, from: "/a?b=1")
            #expect(loaded.model == "hello")
            #expect(loaded.outcome == .downloaded)
            #expect(loaded.head.status == .ok)
            #expect(origin.count("GET", "/api/a?b=1") == 1)
            let again = try await loader.load(.text, from: "/a?b=1")
            #expect(again.model == "hello" && again.outcome == .stillValid)
            let past = try await loader.load(.text, from: "/a?b=1", options: .init(cachePolicy: .bypass))
            #expect(past.outcome == .downloaded)
            #expect(origin.server.requests() == 2)
        }
    }

    @Test func aStatusThatIsNoSuccessIsAnErrorWithItsBody() async throws {
        try await withManager {
            .answer(404, to: $0, "gone")
        } _: { manager, origin in
            let loader = ServiceManager(transport: manager)
            let error = await serviceError { () throws(ServiceError) in
                try await loader.load(.text, from: Endpoint(origin.url().absoluteString))
            }
            guard case .status(let result, failure: nil) = error else { return #expect(Bool(false), "\(error as Any)") }
            #expect(result.head.status.code == 404)
            #expect(result.text == "gone")
            #expect(error?.result == result)
            #expect(error?.description == "\(origin.url()) answered 404")
        }
    }

    @Test func anErrorBodyBecomesAnErrorOfItsOwn() async throws {
        let (loader, _) = makeLoader(.json(#"{"code": 7}"#, status: .badRequest))
        let error = await serviceError { () throws(ServiceError) in try await loader.call(UserList(city: "London")) }
        guard case .status(let result, let failure?) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(failure as? APIError == APIError(code: 7))
        #expect(result.head.status == .badRequest && result.text == #"{"code": 7}"#)
        let resource = HTTPResource<[User]>("/users", .json) { try? ResponseFormat<APIError>.json.read($0) }
        let other = await serviceError { () throws(ServiceError) in try await loader.call(resource) }
        guard case .status(_, let failure?) = other else { return #expect(Bool(false), "\(other as Any)") }
        #expect(failure as? APIError == APIError(code: 7))
    }

    @Test func anErrorBodyThatIsNoneIsAStatusAllTheSame() async throws {
        let (loader, _) = makeLoader(.text("<html>", status: .badGateway))
        let error = await serviceError { () throws(ServiceError) in try await loader.call(UserList(city: "London")) }
        guard case .status(let result, failure: nil) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(result.head.status == .badGateway)
    }

    @Test func whatAFormatThrowsIsAFailureOfItsOwn() async throws {
        struct Refusal: Error {}
        let (loader, _) = makeLoader(.text("hello"))
        let format = ResponseFormat<Int> { _ in throw Refusal() }
        let error = await serviceError { () throws(ServiceError) in try await loader.load(format, from: "/a") }
        guard case .mapping(let reason, let result) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(reason is Refusal)
        #expect(result.text == "hello" && result.head.status == .ok)
    }

    @Test func aTypedResourceIsJSONByItself() async throws {
        let (loader, transport) = makeLoader(.json(#"[{"name": "Ada", "city": "London"}]"#))
        let loaded = try await loader.call(UserList(city: "London"))
        #expect(loaded.model == [User(name: "Ada", city: "London")])
        let asked = try #require(transport.requests.first)
        #expect(asked.url == "https://api.test/v1/users?city=London")
        #expect(asked.head.headerFields[.accept] == "application/json, */*;q=0.5")
        #expect(asked.head.headerFields[.contentType] == nil, "a GET has no content")
        #expect(asked.options.expectation == .json)
    }

    @Test func aPostOfAnEncodableIsOneCall() async throws {
        let (loader, transport) = makeLoader(.json(#"{"name": "Ada"}"#, status: .created))
        let made = try await loader.load(User.self, from: .post("/users", body: .json(User(name: "Ada"))))
        #expect(made.model == User(name: "Ada") && made.head.status == .created)
        let asked = try #require(transport.requests.first)
        #expect(asked.method == .post && asked.text == #"{"name":"Ada"}"#)
        #expect(asked.contentType == "application/json")
    }

    @Test func whatCannotBeEncodedIsNotSent() async throws {
        struct Broken: Encodable {
            struct Why: Error {}
            func encode(to encoder: any Encoder) throws { throw Why() }
        }
        struct Make: DrydockServices.Resource {
            typealias Model = Void
            var endpoint: Endpoint { get throws { .post("/a", body: try .json(Broken())) } }
        }
        let (loader, transport) = makeLoader()
        let error = await serviceError { () throws(ServiceError) in try await loader.call(Make()) }
        guard case .encoding(let why) = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(why is Broken.Why)
        #expect(transport.requests.isEmpty)
    }

    // MARK: - What whoever asks adds

    @Test func fieldsOfAResourceWinWhateverTheirCase() async throws {
        let (loader, transport) = makeLoader { configuration in
            configuration.headerFields = [.userAgent: "all", .acceptLanguage: "en", .cookie: "all"]
            configuration.query = ["key": "all", "page": 1, "list": 5]
            configuration.defaultsForResource = { resource in
                guard resource is HTTPResource<JSONValue> else { return ([:], [:]) }
                return ([.acceptLanguage: "de"], ["page": 2])
            }
        }
        let fields: HTTPFields = [try #require(HTTPField.Name("USER-AGENT")): "own"]
        let endpoint = Endpoint("/a?list=1", query: ["own": true], headerFields: fields)
        _ = try await loader.call(HTTPResource(endpoint, .jsonValue))
        let asked = try #require(transport.requests.first)
        #expect(asked.head.headerFields[values: .userAgent] == ["own"])
        #expect(asked.head.headerFields[values: .acceptLanguage] == ["de"])
        #expect(asked.head.headerFields[.cookie] == "all")
        #expect(asked.query == "list=1&own=true&key=all&page=2")
    }

    @Test func aContentTypeOfTheRequestStays() async throws {
        try await withManager {
            .answer(to: $0, "{}")
        } _: { manager, origin in
            let loader = ServiceManager(transport: manager, base: origin.url(""))
            var endpoint = Endpoint("/a", method: .put, body: try .json(["a": 1] as JSONValue))
            _ = try await loader.load(.nothing, from: endpoint)
            endpoint.headerFields[.contentType] = "application/vnd.test+json"
            _ = try await loader.load(.nothing, from: endpoint)
            #expect(
                origin.server.log.map { $0.all("Content-Type") } == [
                    ["application/json"], ["application/vnd.test+json"],
                ]
            )
        }
    }

    @Test func aTimeoutBelongsToTheResource() async throws {
        let (loader, transport) = makeLoader()
        let timeouts = DownloadConfiguration.Timeouts(total: .seconds(7))
        _ = try await loader.load(.nothing, from: "/a", options: .init(timeouts: timeouts))
        #expect(transport.requests.first?.options.timeouts == timeouts)
    }

    // MARK: - Empty answers

    @Test(arguments: [204, 205, 304]) func nothingIsAModel(status: Int) async throws {
        let (loader, _) = makeLoader(.status(.init(code: status)))
        #expect(try await loader.load(.nothing, from: "/a").head.status.code == status)
        if status != 304 {
            #expect(try await loader.load(ResponseFormat<User>.json.optional, from: "/a").model == nil)
            let error = await serviceError { () throws(ServiceError) in try await loader.load(User.self, from: "/a") }
            #expect(error?.mappingError == .empty)
        }
    }

    @Test func aHeadHasFieldsAndNoModel() async throws {
        try await withManager {
            .answer(to: $0, fields: [("X-A", "b")], "hello")
        } _: { manager, origin in
            let loader = ServiceManager(transport: manager, base: origin.url(""))
            let loaded = try await loader.load(.nothing, from: .head("/a"))
            #expect(loaded.head.headerFields[try #require(HTTPField.Name("X-A"))] == "b")
            #expect(origin.count("HEAD", "/a") == 1)
        }
    }

    /// What has come is a whole text of JSON, and a model could be made of it.
    @Test(arguments: ["length", "chunks", "coded"]) func aTransferThatBreaksOffIsNoSuccess(how: String) async throws {
        let text = Array(#"{"name": "Ada"}"#.utf8)
        try await withManager(onDisk: true) { _ in
            let framing: (String, String) =
                how == "chunks" ? ("Transfer-Encoding", "chunked") : ("Content-Length", "100")
            let fields =
                [framing, ("Cache-Control", "max-age=600")] + (how == "coded" ? [("Content-Encoding", "br")] : [])
            let size = Array(String(text.count, radix: 16).utf8)
            let body = how == "chunks" ? size + [13, 10] + text + [13, 10] : text
            return OriginReply([OriginReply.head(200, fields: fields), .bytes(body), .cut])
        } _: { manager, origin async throws in
            let loader = ServiceManager(transport: manager, base: origin.url(""))
            for count in 1...2 {
                let error = await serviceError { () throws(ServiceError) in
                    try await loader.load(User.self, from: "/a")
                }
                guard case .transport(.origin(let failure))? = error else { return unexpected(error as Any) }
                #expect(failure.kind == .cutShort || how == "coded", "\(failure)")
                #expect(error?.result == nil, "there is no response as a whole")
                #expect(origin.count("GET") == count, "nothing of it is stored as a whole")
            }
        }
    }

    @Test func howATransferFailsIsTold() async throws {
        let port = try ClosedPort()
        let gate = Gate()
        try await withManager { request in
            switch request.target {
            case "/cut": .cut
            case "/late": OriginReply([.wait(gate)])
            default: OriginReply([.bytes(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8))])
            }
        } _: { manager, origin async throws in
            let loader = ServiceManager(transport: manager, base: origin.url(""))
            let expected: [(Endpoint, OriginFailure.Kind)] = [
                ("/cut", .cutShort), ("/late", .timeout), ("/other", .protocolViolation),
                (Endpoint("http://127.0.0.1:\(port.number)/"), .unreachable),
            ]
            for (endpoint, kind) in expected {
                // Only what is late has to be in time.
                let timeouts = DownloadConfiguration.Timeouts(firstByte: kind == .timeout ? .milliseconds(50) : nil)
                let error = await serviceError { () throws(ServiceError) in
                    try await loader.load(.text, from: endpoint, options: .init(timeouts: timeouts))
                }
                guard case .transport(.origin(let failure))? = error else { return unexpected(error as Any) }
                #expect(failure.kind == kind, "\(failure)")
                #expect(error?.description == failure.detail && error?.result == nil)
            }
            gate.open()
            let call = Task {
                await serviceError { () throws(ServiceError) in
                    try await loader.load(.text, from: "/late", options: .init(timeouts: .init(firstByte: nil)))
                }
            }
            call.cancel()
            #expect(await call.value?.name == "cancelled")
        }
    }

    /// A transport of the program's own, in front of another one.
    private struct Gatekeeper: Transport {
        let inner: any Transport
        let passed = Monitor<[String]>([])

        func send(_ request: TransportRequest) async throws(DownloadError) -> TransportResponse {
            if request.head.path == "/closed" { throw .invalidRequest("not this one") }
            passed.update { $0.append("\(request.head.method) \(request.head.path ?? "")") }
            return try await inner.send(request)
        }
    }

    @Test func everyTransportCarriesEveryResource() async throws {
        try await withManager {
            .answer(to: $0, $0.target == "/users?city=x" ? #"[{"name": "Ada"}]"# : "text")
        } _: { manager, origin async throws in
            let gatekeeper = Gatekeeper(inner: manager)
            let scripted = ScriptedTransport()
            scripted.answerAll { .json($0.path == "/users" ? #"[{"name": "Ada"}]"# : "text") }
            for transport in [manager, gatekeeper, scripted] as [any Transport] {
                let loader = ServiceManager(transport: transport, base: origin.url(""))
                #expect(try await loader.call(UserList(city: "x")).model == [User(name: "Ada")])
                #expect(try await loader.call(HTTPResource("/text", .text)).model == "text")
            }
            #expect(gatekeeper.passed.read { $0 } == ["GET /users?city=x", "GET /text"])
            #expect(origin.server.requests() == 4)
            let loader = ServiceManager(transport: gatekeeper, base: origin.url(""))
            let error = await serviceError { () throws(ServiceError) in try await loader.load(.text, from: "/closed") }
            guard case .transport(.invalidRequest("not this one"))? = error else { return unexpected(error as Any) }
            #expect(origin.server.requests() == 4)
        }
    }

    // MARK: - Stale first

    @Test func theStoredValueComesFirstWhereItIsStale() async throws {
        let (loader, transport) = makeLoader(.json(#"[{"name": "new"}]"#))
        transport.answerStale(.get, "/v1/users?city=x", with: .json(#"[{"name": "old"}]"#))
        var seen: [String] = []
        for try await users in loader.values(of: UserList(city: "x")) {
            seen.append("\(users.model[0].name) \(users.isStale)")
        }
        #expect(seen == ["old true", "new false"])
        transport.answerStale(.get, "/v1/users?city=x", with: .text("no JSON"))
        seen = []
        for try await users in loader.values(of: UserList(city: "x")) { seen.append(users.model[0].name) }
        #expect(seen == ["new"])
    }

    @Test func aFailureEndsTheValues() async throws {
        let (loader, transport) = makeLoader(.status(.badGateway))
        transport.answerStale(.get, "/v1/users?city=x", with: .json("[]"))
        var iterator = loader.values(of: UserList(city: "x")).makeAsyncIterator()
        #expect(try await iterator.next()?.isStale == true)
        do {
            let value = try await iterator.next()
            Issue.record("there was another value: \(value as Any)")
        } catch {
            #expect(error is ServiceError)
        }
        let last = try await iterator.next()
        #expect(last == nil)
    }

    @Test func aManagerGivesWhatIsStaleFirst() async throws {
        try await withManager(configure: { $0.lifetime = .zero }) {
            .resource($0, etag: "\"1\"", "[]")
        } _: { manager, origin in
            let loader = ServiceManager(transport: manager, base: origin.url(""))
            var outcomes: [DownloadOutcome] = []
            for _ in 0..<2 {
                for try await users in loader.values(of: UserList(city: "x")) { outcomes.append(users.outcome) }
            }
            #expect(outcomes.first == .downloaded && outcomes.last == .confirmed, "\(outcomes)")
            #expect(outcomes.count == 3)
        }
    }

    // MARK: - Decoded models

    @Test func whatHasNotChangedIsNotDecodedAgain() async throws {
        final class Counter: Sendable {
            let count = Monitor(0)
        }
        struct Counted: DrydockServices.Resource, Hashable {
            static let counter = Counter()
            var path: String
            var endpoint: Endpoint { Endpoint(path) }
            var format: ResponseFormat<Int> {
                ResponseFormat { result in
                    Self.counter.count.update { $0 += 1 }
                    return Int(result.text) ?? 0
                }
            }
        }
        let transport = ScriptedTransport()
        var tagged = ScriptedAnswer.text("1")
        tagged.head.headerFields[.eTag] = "\"a\""
        var changed = ScriptedAnswer.text("2")
        changed.head.headerFields[.eTag] = "\"b\""
        transport.answer(.get, "/v1/tagged", with: tagged, tagged, changed, changed)
        transport.answer(.get, "/v1/plain", with: .text("1"), .text("1"), .text("2"))
        let models = DecodedModels(costLimit: 1000)
        let loader = makeLoader(over: transport, base) { $0.models = models }
        for path in ["/tagged", "/plain"] {
            Counted.counter.count.update { $0 = 0 }
            var found: [Int] = []
            for _ in 0..<3 { found.append(try await loader.call(Counted(path: path)).model) }
            #expect(found == [1, 1, 2])
            #expect(Counted.counter.count.read { $0 } == 2)
        }
        #expect(models.count == 2)
        models.removeAll()
        #expect(try await loader.call(Counted(path: "/tagged")).model == 2)
        #expect(Counted.counter.count.read { $0 } == 3)
    }

    @Test("Two users share no model", arguments: [true, false]) func modelsOfUsersAreApart(hasOwnBody: Bool)
        async throws
    {
        final class Page: Decodable, Sendable {
            let user: String
        }
        let models = DecodedModels(costLimit: 1000)
        var pages: [String: [Page]] = [:]
        // The origin gives everybody the same entity tag, and bodies of the same length.
        let origin = Origin(
            try ScriptedOrigin { request in
                let user = hasOwnBody ? request.field("Authorization") ?? "" : "nobody"
                return .answer(
                    to: request,
                    fields: [("ETag", "\"1\""), ("Cache-Control", "max-age=600")],
                    #"{"user": "\#(user)"}"#
                )
            }
        )
        for round in 1...2 {
            for user in ["anna", "bert"] {
                let manager = makeManager { $0.credentials = ["http://127.0.0.1": .bearer(user)] }
                let loader = makeLoader(over: manager, origin.url("")) { $0.models = models }
                let page = try await loader.load(Page.self, from: "/page").model
                #expect(page.user == (hasOwnBody ? "Bearer \(user)" : "nobody"))
                // Memory answers now, of one user the same model.
                let again = try await loader.load(Page.self, from: "/page")
                #expect(again.model === page && again.outcome == .stillValid)
                pages[user, default: []].append(page)
                await manager.close()
            }
            #expect(pages["anna"]?.last !== pages["bert"]?.last)
            #expect(pages["anna"]?.count == round)
        }
    }

    @Test func theMediaTypeIsPartOfWhatAModelIsMadeOf() async throws {
        let transport = ScriptedTransport()
        let answers = ["utf-8", "iso-8859-1"].map { charset in
            var answer = ScriptedAnswer(pieces: [Data([0xC3, 0xA4])])
            answer.head.headerFields[.contentType] = "text/plain; charset=\(charset)"
            return answer
        }
        transport.answer(.get, "/v1/text", with: answers[0], answers[1])
        let loader = makeLoader(over: transport, base) { $0.models = DecodedModels(costLimit: 1000) }
        #expect(try await loader.load(.text, from: "/text").model == "ä")
        #expect(try await loader.load(.text, from: "/text").model == "Ã¤")
    }

    @Test func formatsOfOneEndpointAreModelsOfTheirOwn() async throws {
        let models = DecodedModels(costLimit: 1000)
        let (loader, _) = makeLoader(.json(#"{"a": {"name": "A"}, "b": {"name": "B"}}"#)) { $0.models = models }
        for _ in 0..<2 {
            #expect(try await loader.load(ResponseFormat<User>.json(at: "a"), from: "/x").model.name == "A")
            #expect(try await loader.load(ResponseFormat<User>.json(at: "b"), from: "/x").model.name == "B")
            let mapped = ResponseFormat<User>.json.mapped(by: ["name": "b.name"])
            #expect(try await loader.load(mapped, from: "/x").model.name == "B")
            #expect(try await loader.load(.jsonValue, from: "/x").model["a"]?["name"] == "A")
        }
        #expect(models.count == 4)
    }

    // MARK: - Files

    @Test func aFileIsASource() async throws {
        let folder = try TemporaryFolder("drydock-resources")
        try Data(#"{"name": "Ada"}"#.utf8).write(to: URL(fileURLWithPath: folder.file("a user.json")))
        let (_, transport) = makeLoader()
        let loader = ServiceManager(transport: transport, base: URL(fileURLWithPath: folder.path))
        let loaded = try await loader.load(User.self, from: "/a%20user.json")
        #expect(loaded.model.name == "Ada" && loaded.outcome == .seeded)
        #expect(loaded.head.headerFields[.contentLength] == "15")
        let missing = await serviceError { () throws(ServiceError) in try await loader.load(.data, from: "/none") }
        guard case .transport(.file(let text)) = missing else { return #expect(Bool(false), "\(missing as Any)") }
        #expect(text.contains("/none'"))
        let wrong = await serviceError { () throws(ServiceError) in try await loader.load(.data, from: .delete("/a")) }
        guard case .transport(.invalidRequest) = wrong else { return #expect(Bool(false), "\(wrong as Any)") }
        var configuration = loader.configuration
        configuration.maximumBody = 3
        let small = ServiceManager(transport: transport, configuration: configuration)
        let large = await serviceError { () throws(ServiceError) in
            try await small.load(.data, from: "/a%20user.json")
        }
        guard case .transport(.tooLarge(limit: 3)) = large else { return #expect(Bool(false), "\(large as Any)") }
        #expect(transport.requests.isEmpty)
    }

    @Test func whatIsStaleComesNotFirstWhereItIsOfNoUse() async throws {
        try await withManager(configure: { $0.lifetime = .zero }) {
            .resource($0, etag: "\"1\"", "[]")
        } _: { manager, origin in
            let request = TransportRequest(origin.asking())
            _ = try await manager.download(origin.url())
            #expect(try await manager.staleResponse(to: request) != nil)
            let wishes: [DownloadOptions] = [
                .init(cachePolicy: .reload), .init(cachePolicy: .bypass), .init(cachePolicy: .storedOnly),
            ]
            for options in wishes {
                var request = request
                request.options = options
                #expect(try await manager.staleResponse(to: request) == nil, "\(options)")
            }
        }
    }
}
