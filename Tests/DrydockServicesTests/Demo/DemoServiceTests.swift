// Services in demo mode: their answers go through the same mapping, retries and errors as live ones.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

private struct Reason: Decodable, Error, Equatable {
    var reason: String
}

/// A service that reads a user, and why there is none.
private struct GetUser: Resource {
    var id = 7
    var endpoint: Endpoint { .get("/users/:id", path: ["id": .init("\(id)")]) }
    var format: ResponseFormat<User> { .json }
    func failure(from result: DownloadResult) -> (any Error)? {
        try? JSONDecoder().decode(Reason.self, from: result.data)
    }
}

@Suite struct DemoServiceTests {
    /// A manager whose services are played, in front of an origin that is scripted.
    private static func manager(
        _ endpoints: [DemoTransport.Endpoint],
        files: URL? = nil,
        told: Told? = nil,
        retry: RetryPolicy = .never
    ) throws -> (ServiceManager, DemoTransport, ScriptedTransport) {
        let live = ScriptedTransport()
        let base = URL(string: "https://api.test")
        let demo = try DemoTransport(endpoints, files: files, base: base, over: live)
        var configuration = ServiceManager.Configuration()
        configuration.base = base
        configuration.retry = retry
        if let told { configuration.hooks = told.hooks }
        return (ServiceManager(transport: demo, configuration: configuration), demo, live)
    }

    private static let user = DemoTransport.Endpoint("user", path: "/users/:id").playing(json: ["name": "Ada"])

    @Test func aServiceIsPlayedThroughItsOwnMapping() async throws {
        let told = Told()
        let (manager, _, live) = try Self.manager([Self.user], told: told)
        let loaded = try await manager.call(GetUser())
        #expect(loaded.model.name == "Ada")
        #expect(loaded.head.field("Drydock-Demo")?.hasPrefix("endpoint=user; outcome=success") == true)
        #expect(live.requests.isEmpty)
        #expect(told.all == ["start 1 of GetUser", "received 14", "success 200", "end", "idle"])
    }

    /// The whole manager, and one service of it, are switched while the program runs.
    @Test func demoModeIsSwitchedForAllAndForOneService() async throws {
        let (manager, demo, live) = try Self.manager([
            Self.user, DemoTransport.Endpoint("hello", path: "/hello").playing(text: "played"),
        ])
        live.answerAll { _ in .text("live") }
        #expect(try await manager.call(Greeting()).model == "played")
        demo.setEnabled(false, endpoint: "hello")
        #expect(try await manager.call(Greeting()).model == "live")
        #expect(try await manager.call(GetUser()).model.name == "Ada")
        demo.isEnabled = false
        demo.setEnabled(true, endpoint: "hello")
        #expect(try await manager.call(Greeting()).model == "played")
        // What is not played goes to the origin, and is mapped like it: a text is no user.
        await #expect(throws: ServiceError.self) { try await manager.call(GetUser()) }
        #expect(live.requests.count == 2)
    }

    /// A failure file becomes the error that the service makes of its origin's errors.
    @Test func aFailureIsMappedAsOneOfTheOrigin() async throws {
        let (folder, files) = try demoFiles(["none.json": #"{"reason": "gone"}"#])
        defer { withExtendedLifetime(folder) {} }
        var user = Self.user
        user = user.failing(1, status: 404, file: "none.json")
        let (manager, _, _) = try Self.manager([user], files: files)
        do {
            _ = try await manager.call(GetUser())
            Issue.record("a failure with the chance 1 has answered")
        } catch .status(let result, let failure?) {
            #expect(result.head.status == .notFound && failure as? Reason == Reason(reason: "gone"))
        } catch {
            Issue.record("\(error)")
        }
    }

    /// What the daemon draws, and no slot among the fetches: a retry of the manager draws again.
    @Test func failuresCountForTheRetriesOfTheManager() async throws {
        let told = Told()
        var user = Self.user
        user = user.failing(0.3)
        user.seed = 42
        let retry = RetryPolicy(count: 9, delay: .zero, budget: 1)
        let (manager, _, live) = try Self.manager([user], told: told, retry: retry)
        for _ in 0..<20 { #expect(try await manager.call(GetUser()).model.name == "Ada") }
        let starts = told.all.count { $0.hasPrefix("start") }
        let retries = told.all.count { $0.hasPrefix("retry") }
        #expect(retries > 0 && starts == 20 + retries)
        #expect(live.requests.isEmpty)
        // The same again: the same draws.
        let again = Told()
        let (other, _, _) = try Self.manager([user], told: again, retry: retry)
        for _ in 0..<20 { _ = try await other.call(GetUser()) }
        #expect(again.all == told.all)
    }

    /// The files of a bundle, as a package has them.
    @Test func theFilesOfABundleArePlayed() async throws {
        let bundle = Bundle.module
        let files = try #require(bundle.resourceURL).appending(path: "Played")
        let user = DemoTransport.Endpoint("user", path: "/users/:id")
        let picture = DemoTransport.Endpoint("picture", path: "/pixel", file: "pixel.png")
        let (manager, demo, _) = try Self.manager([user, picture], files: files)
        #expect(try await manager.call(GetUser()).model.name == "Grace")
        let head = HTTPRequest(method: .get, scheme: "https", authority: "api.test", path: "/pixel")
        let response = try await demo.send(TransportRequest(head))
        #expect(response.head.headerFields[.contentType] == "image/png")
        #expect(try await response.body.collect(upTo: 1000).starts(with: [0x89, 0x50, 0x4E, 0x47]))
    }
}
