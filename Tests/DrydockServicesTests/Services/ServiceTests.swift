// Services that are called: events in their order, hooks, veto, defaults, owners, cancelling, what is stored, logs.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct ServiceTests {
    /// Each frame of a call that waits has room for an error.
    @Test func theErrorOfACallIsSmall() {
        #expect(MemoryLayout<ServiceError>.size <= 5 * 8)
    }

    @Test func aCallHasItsModelAndItsResponse() async throws {
        let (manager, transport) = makeServices()
        transport.answer(.get, "/hello", with: .text("hi"))
        let loaded = try await manager.call(Greeting())
        #expect(loaded.model == "hi" && loaded.head.status == .ok)
        #expect(manager.callCount == 0)
        let plain = HTTPResource("/hello", .text)
        #expect(try await manager.call(plain).model == "hi")
    }

    @Test func aServiceIsCalledThroughADownloadManager() async throws {
        try await withManager {
            .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "hello")
        } _: { transport, origin in
            var configuration = ServiceManager.Configuration()
            configuration.base = origin.url("")
            let manager = ServiceManager(transport: transport, configuration: configuration)
            let first = try await manager.call(Greeting())
            let second = try await manager.call(Greeting())
            #expect(first.outcome == .downloaded && second.outcome == .stillValid)
            #expect(ServiceManager.shared !== manager && ServiceManager.shared.callCount == 0)
        }
    }

    // MARK: - Events

    @Test func eventsComeInTheirOrder() async throws {
        let told = Told()
        let (manager, transport) = makeServices(told)
        transport.answer(.post, "/hello", with: ScriptedAnswer(pieces: [Data("ab".utf8), Data("c".utf8)]))
        let body = RequestBody.data(Data("12345".utf8))
        let call = manager.start(Greeting(method: .post, body: body))
        let kinds = await kinds(call)
        #expect(kinds == ["started 1", "sent", "received", "succeeded", "ended"])
        #expect(try await call.value.model == "abc")
        #expect(await eventually { told.all.last == "idle" })
        #expect(
            told.all == [
                "start 1 of Greeting", "sent 5", "received 2", "received 3", "success 200", "end", "idle",
            ]
        )
    }

    @Test func aFailureIsToldAndEnds() async throws {
        let told = Told()
        let (manager, transport) = makeServices(told)
        transport.answer(.get, "/hello", with: .text("no", status: .notFound))
        let call = manager.start(Greeting())
        #expect(await kinds(call) == ["started 1", "received", "failed status", "ended"])
        await #expect(throws: ServiceError.self) { try await call.value }
        #expect(await eventually { told.all.last == "idle" })
        #expect(told.all == ["start 1 of Greeting", "received 2", "failure status", "end", "idle"])
    }

    @Test func whatIsStaleIsToldFirst() async throws {
        let (manager, transport) = makeServices()
        transport.answer(.get, "/hello", with: .text("new"))
        transport.answerStale(.get, "/hello", with: .text("old"))
        let call = manager.start(Greeting(options: .init(yieldsStaleFirst: true)))
        #expect(await kinds(call) == ["started 1", "stale", "received", "succeeded", "ended"])
        #expect(try await call.value.model == "new")
        #expect(try await manager.call(Greeting()).model == "new")
    }

    @Test func whoIsSlowHearsTheLatestProgress() async throws {
        let (manager, transport) = makeServices()
        let pieces = (0..<1000).map { _ in Data("x".utf8) }
        transport.answer(.get, "/hello", with: ScriptedAnswer(pieces: pieces))
        let call = manager.start(Greeting())
        #expect(try await call.value.model.count == 1000)
        #expect(await eventually { manager.callCount == 0 })
        var progress: [Int64] = []
        for await event in call.events { if case .received(let state) = event { progress.append(state.completed) } }
        #expect(progress == [1000])
    }

    @Test func aListenerThatIsCancelledLeavesTheRestToOthers() async throws {
        let (manager, _, clock) = waiting()
        let call = manager.start(Greeting())
        try await clock.waitForSleepers(1)
        let heard = Monitor(0)
        let listener = Task { for await _ in call.events { heard.update { $0 += 1 } } }
        #expect(await eventually { heard.read { $0 } == 1 })
        listener.cancel()
        await listener.value
        clock.advance(by: .seconds(1))
        #expect(await kinds(call) == ["received", "succeeded", "ended"])
    }

    // MARK: - Before a call

    @Test func aVetoKeepsACallFromBeingSent() async throws {
        let told = Told()
        let (manager, transport) = makeServices(told) { configuration in
            configuration.hooks.shouldStart = { $0.location == "/secret" ? "not today" : nil }
        }
        transport.answerAll { _ in .text("hi") }
        let call = manager.start(Greeting(path: "/secret"))
        #expect(await kinds(call) == ["failed vetoed", "ended"])
        let error = await serviceError { () throws(ServiceError) in try await call.value }
        #expect(error?.description == "the call was not to start: not today")
        #expect(try await manager.call(Greeting()).model == "hi")
        #expect(transport.requests.count == 1)
    }

    @Test func aRequestThatCannotBeMadeFailsAndEnds() async throws {
        let (manager, transport) = makeServices()
        let call = manager.start(Greeting(path: "/users/:id"))
        #expect(await kinds(call) == ["failed missingParameter", "ended"])
        #expect(transport.requests.isEmpty && manager.callCount == 0)
    }

    @Test func defaultsAreForAllAndForOne() async throws {
        let (manager, transport) = makeServices { configuration in
            configuration.headerFields = [.userAgent: "all"]
            configuration.query = ["key": 1, "page": 1]
            configuration.defaultsForResource = { resource in
                resource is Greeting ? ([.userAgent: "one"], ["page": 2]) : ([:], [:])
            }
        }
        transport.answerAll { _ in .text("hi") }
        try await manager.call(Greeting())
        try await manager.call(GreetingOfMany())
        #expect(transport.requests.map { $0.head.headerFields[.userAgent] } == ["one", "all"])
        #expect(transport.requests.map(\.query) == ["key=1&page=2", "key=1&page=1"])
    }

    @Test(
        arguments: [
            (DownloadOptions(), [:], .useStored, nil), (DownloadOptions(cachePolicy: .bypass), [:], .bypass, nil),
            (DownloadOptions(cachePolicy: .reload), [:], .reload, nil),
            (DownloadOptions(), [.cacheControl: "no-store"], .useStored, "no-store"),
        ] as [(DownloadOptions, HTTPFields, DownloadOptions.CachePolicy, String?)]
    ) func aServiceSaysWhatMayBeStored(
        options: DownloadOptions,
        fields: HTTPFields,
        cachePolicy: DownloadOptions.CachePolicy,
        control: String?
    ) async throws {
        let (manager, transport) = makeServices()
        transport.answerAll { _ in .text("hi") }
        try await manager.call(Greeting(headerFields: fields, options: options))
        let asked = try #require(transport.requests.first)
        #expect(asked.options.cachePolicy == cachePolicy)
        #expect(asked.head.headerFields[.cacheControl] == control)
    }

    @Test func whatIsNotToBeStoredIsNot() async throws {
        try await withManager {
            .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "hello")
        } _: { transport, origin in
            var configuration = ServiceManager.Configuration()
            configuration.base = origin.url("")
            let manager = ServiceManager(transport: transport, configuration: configuration)
            let unstored = Greeting(headerFields: [.cacheControl: "no-store"])
            for greeting in [unstored, Greeting(options: .init(cachePolicy: .bypass))] {
                for _ in 0..<2 { #expect(try await manager.call(greeting).outcome == .downloaded) }
            }
            #expect(origin.server.requests() == 4)
            for _ in 0..<2 { try await manager.call(Greeting(options: .init(cachePolicy: .reload))) }
            #expect(origin.server.requests() == 6)
            #expect(try await manager.call(Greeting()).outcome == .stillValid)
            #expect(try await manager.call(unstored).outcome == .stillValid)
        }
    }

    // MARK: - Owners and cancelling

    /// Calls that wait for an answer until they are cancelled.
    private func waiting() -> (ServiceManager, ScriptedTransport, ManualClock) {
        let clock = ManualClock()
        let transport = ScriptedTransport(clock: clock)
        transport.answerAll { _ in .text("hi").delayed(by: .seconds(1)) }
        var configuration = ServiceManager.Configuration()
        configuration.base = URL(string: "https://api.test")
        return (ServiceManager(transport: transport, configuration: configuration), transport, clock)
    }

    @Test func callsOfAnOwnerAreCountedAndCancelled() async throws {
        final class Page: Sendable {}
        let (manager, _, clock) = waiting()
        let (page, other) = (Page(), Page())
        let own = (0..<3).map { _ in manager.start(Greeting(), for: CallOwner(page)) }
        let others = [
            manager.start(Greeting(), for: CallOwner(other)), manager.start(Greeting(), for: CallOwner("list")),
            manager.start(Greeting()),
        ]
        #expect(manager.callCount == 6 && manager.callCount(of: CallOwner(page)) == 3)
        #expect(manager.callCount(of: CallOwner("li" + "st")) == 1 && manager.callCount(of: CallOwner("other")) == 0)
        #expect(manager.calls.map(\.id) == (own + others).map(\.id))
        try await clock.waitForSleepers(6)
        #expect(manager.cancelCalls(of: CallOwner(page)) == 3)
        for call in own { #expect(await kinds(call) == ["started 1", "failed cancelled", "ended"]) }
        #expect(manager.callCount == 3)
        clock.advance(by: .seconds(1))
        for call in others { #expect(try await call.value.model == "hi") }
    }

    @Test func callsOfAnOwnerOverADownloadManager() async throws {
        let gate = Gate()
        try await withManager(configure: { $0.abandonment = .abort }) { request in
            OriginReply([.wait(gate)]).then(.answer(to: request, "late"))
        } _: { transport, origin async throws in
            var configuration = ServiceManager.Configuration()
            configuration.base = origin.url("")
            let manager = ServiceManager(transport: transport, configuration: configuration)
            let own = (0..<3).map { manager.start(Greeting(path: "/own/\($0)"), for: CallOwner("page")) }
            let other = manager.start(Greeting(path: "/other"), for: CallOwner("list"))
            #expect(await origin.isAsked(4))
            #expect(manager.callCount(of: CallOwner("page")) == 3 && manager.callCount(of: CallOwner("list")) == 1)
            #expect(transport.statistics.running == 4)
            #expect(manager.cancelCalls(of: CallOwner("page")) == 3)
            for call in own { #expect(await kinds(call).suffix(2) == ["failed cancelled", "ended"]) }
            #expect(manager.callCount(of: CallOwner("page")) == 0 && manager.callCount(of: CallOwner("list")) == 1)
            #expect(await eventually { transport.statistics.running == 1 }, "their transfers have ended with them")
            gate.open()
            #expect(try await other.value.model == "late")
            #expect(manager.callCount == 0)
        }
    }

    @Test func anOwnerIsNoAddress() async throws {
        final class Page: Sendable {}
        let (manager, _, clock) = waiting()
        let call = manager.start(Greeting(), for: CallOwner(Page()))
        try await clock.waitForSleepers(1)
        let owner = try #require(manager.calls.first?.owner)
        // The page has gone, and pages that are made from here on may have its address.
        for _ in 0..<10_000 {
            let later = CallOwner(Page())
            guard later == owner || manager.callCount(of: later) > 0 else { continue }
            Issue.record("a page that was made later has the calls of one that has gone")
            break
        }
        #expect(manager.cancelCalls(of: owner) == 1)
        #expect(await kinds(call).suffix(2) == ["failed cancelled", "ended"])
    }

    @Test func anObjectMayEndItsCallsInItsDeinit() async throws {
        final class Page: Sendable {
            let manager: ServiceManager
            init(_ manager: ServiceManager) { self.manager = manager }
            func load() -> ServiceCall<String> { manager.start(Greeting(), for: CallOwner(self)) }
            deinit { manager.cancelCalls(of: CallOwner(self)) }
        }
        let (manager, _, clock) = waiting()
        let call = Page(manager).load()
        #expect(await kinds(call).suffix(2) == ["failed cancelled", "ended"])
        #expect(manager.callCount == 0 && clock.sleeperCount == 0)
    }

    @Test func cancellingDownloadsLeavesCallsAloneAndTheOtherWayRound() async throws {
        let gate = Gate()
        try await withManager { request in
            OriginReply([.wait(gate)]).then(.answer(to: request, "late"))
        } _: { transport, origin async throws in
            var configuration = ServiceManager.Configuration()
            configuration.base = origin.url("")
            let (manager, other) = (
                ServiceManager(transport: transport, configuration: configuration),
                ServiceManager(transport: transport, configuration: configuration)
            )
            let calls = [manager.start(Greeting(path: "/own")), other.start(Greeting(path: "/other"))]
            // The same fetch as that of a download, and a load without a manager of its own.
            let shared = other.start(Greeting(path: "/both"))
            let loader = ServiceManager(transport: transport, base: origin.url(""))
            let load = Task { try await loader.load(.text, from: "/loaded").model }
            #expect(await origin.isAsked(4))
            let downloads = ["/both", "/alone"].map { path in
                Task { await failure { try await transport.download(origin.url(path)) } }
            }
            #expect(await origin.isAsked(5))
            #expect(await eventually { transport.downloadCount == 6 })
            #expect(transport.cancelAll() == 2)
            for download in downloads { #expect(await download.value == .cancelled) }
            #expect(manager.callCount == 1 && other.callCount == 2)
            let last = Task { try await transport.download(origin.url("/last")).text }
            #expect(await origin.isAsked(6))
            #expect(manager.cancelAll() == 1)
            #expect(await kinds(calls[0]).suffix(2) == ["failed cancelled", "ended"])
            gate.open()
            #expect(try await calls[1].value.model == "late")
            #expect(try await shared.value.model == "late")
            #expect(try await load.value == "late")
            #expect(try await last.value == "late")
        }
    }

    @Test func aServiceIsCancelledByWhatItIs() async throws {
        let (manager, _, clock) = waiting()
        let calls = (manager.start(Greeting(path: "/a")), manager.start(Greeting(path: "/ab")))
        let many = manager.start(GreetingOfMany())
        try await clock.waitForSleepers(3)
        #expect(manager.cancelCalls(named: "Greet") == 0 && manager.cancelCalls(named: "greeting") == 0)
        #expect(manager.cancelCalls(to: Greeting.self) == 2)
        for call in [calls.0, calls.1] {
            let error = await serviceError { () throws(ServiceError) in try await call.value }
            #expect(error?.name == "cancelled")
        }
        #expect(manager.calls.map(\.name) == ["GreetingOfMany"])
        #expect(manager.cancelCalls(named: "GreetingOfMany") == 1)
        #expect(await kinds(many).suffix(2) == ["failed cancelled", "ended"])
    }

    @Test func oneManagerCancelsItsOwnCalls() async throws {
        let (manager, transport, clock) = waiting()
        let other = ServiceManager(transport: transport)
        let call = manager.start(Greeting())
        let theirs = other.start(Greeting(path: "https://api.test/b"))
        try await clock.waitForSleepers(2)
        #expect(manager.cancelAll() == 1)
        _ = await kinds(call)
        #expect(other.callCount == 1)
        theirs.cancel()
        theirs.cancel()
        #expect(await kinds(theirs) == ["started 1", "failed cancelled", "ended"])
    }

    @Test func aCancelledTaskCancelsItsCall() async throws {
        let (manager, _, clock) = waiting()
        let task = Task { await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) } }
        try await clock.waitForSleepers(1)
        task.cancel()
        #expect(await task.value?.name == "cancelled")
        #expect(manager.callCount == 0)
    }

    @Test func aCancelledTransferEndsAtTheOrigin() async throws {
        let gate = Gate()
        try await withManager(configure: { $0.abandonment = .abort }) { request in
            _ = gate.wait()
            return .answer(to: request, "late")
        } _: { transport, origin in
            var configuration = ServiceManager.Configuration()
            configuration.base = origin.url("")
            let manager = ServiceManager(transport: transport, configuration: configuration)
            let call = manager.start(Greeting(), for: CallOwner("page"))
            #expect(await origin.isAsked(1))
            #expect(manager.cancelCalls(of: CallOwner("page")) == 1)
            #expect(await kinds(call) == ["started 1", "failed cancelled", "ended"])
            #expect(await eventually { transport.downloadCount == 0 })
            gate.open()
        }
    }

    // MARK: - Logs

    @Test func logsAreRedactedAndBounded() async throws {
        struct Login: Resource {
            struct Body: Encodable {
                var user = "ada"
                var password = "hunter2"
            }
            typealias Model = String
            var logsBodies = true
            var endpoint: Endpoint {
                get throws {
                    Endpoint(
                        "/login?api_key=k1&page=2",
                        method: .post,
                        headerFields: [.authorization: "Bearer t1", .accept: "*/*"],
                        body: try .json(Body())
                    )
                }
            }
            var format: ResponseFormat<String> { .text }
        }
        let entries = Monitor<[ServiceLogEntry]>([])
        let (manager, transport) = makeServices { configuration in
            configuration.loggedBytes = 40
            configuration.hooks.onLog = { entry in entries.update { $0.append(entry) } }
        }
        var answer = ScriptedAnswer.text(String(repeating: "a", count: 100))
        answer.head.headerFields[.setCookie] = "s1"
        transport.answer(.post, "/login", with: answer, answer, .text("secret no", status: .forbidden))
        try await manager.call(Login())
        try await manager.call(Login(logsBodies: false))
        _ = await serviceError { () throws(ServiceError) in
            try await manager.call(Login(logsBodies: false))
        }
        let all = entries.read { $0 }
        #expect(all.map { $0.error != nil } == [false, false, false, false, false, true])
        #expect(all.map(\.status) == [nil, 200, nil, 200, nil, 403])
        #expect(all[0].url == "https://api.test/login?api_key=***&page=2")
        #expect(all[0].headerFields[.authorization] == "***" && all[0].headerFields[.accept] == "*/*")
        #expect(all[0].body == #"{"user":"ada","password":"***"}"#)
        #expect(all[1].status == 200 && all[1].headerFields[.setCookie] == "***")
        #expect(all[1].body == String(repeating: "a", count: 40) + "… (40 of 100 bytes)")
        #expect(all[3].body == "")
        #expect(all[5].body == "secret no" && all[5].status == 403 && all[5].error == "the status is no success")
        for entry in all {
            for secret in ["hunter2", "k1", "t1", "s1"] { #expect(!entry.description.contains(secret)) }
        }
        #expect(all[0].description.hasPrefix("Login #\(all[0].call.id) request: POST https://api.test/login?"))
    }

    @Test func aUserInALocationIsShownNowhere() async throws {
        struct Secret: Resource {
            typealias Model = String
            var endpoint: Endpoint { Endpoint("https://ada:pw@api.test/:id") }
            var format: ResponseFormat<String> { .text }
        }
        let entries = Monitor<[ServiceLogEntry]>([])
        let (manager, _) = makeServices { configuration in
            configuration.loggedBytes = 40
            configuration.hooks.onLog = { entry in entries.update { $0.append(entry) } }
        }
        let error = await serviceError { () throws(ServiceError) in try await manager.call(Secret()) }
        guard case .missingParameter("id", "https://api.test/:id")? = error else {
            return #expect(Bool(false), "\(error as Any)")
        }
        #expect(entries.read { $0 }.map(\.url) == ["https://api.test/:id"])
    }
}
