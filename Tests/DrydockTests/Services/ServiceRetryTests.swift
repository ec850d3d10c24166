// Calls that are made again: after failures, by their rules and on their clock, and those that are parked without a
// response.

import Drydock
import DrydockTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite struct ServiceRetryTests {
    @Test func eachRetryIsAStart() async throws {
        let (told, clock) = (Told(), ManualClock())
        let (manager, transport) = makeServices(told, clock: clock) { $0.retry = .docker(count: 2) }
        let noResponse = await ScriptedAnswer.noResponse
        transport.answer(.get, "/hello", with: noResponse, noResponse, .text("hi"))
        let call = manager.start(Greeting())
        for _ in 0..<2 {
            try await clock.waitForSleepers(1)
            clock.advance(by: .seconds(3))
        }
        #expect(try await call.value.model == "hi")
        #expect(
            await kinds(call) == [
                "started 1", "retrying", "started 2", "retrying", "started 3", "received", "succeeded", "ended",
            ]
        )
        #expect(told.all.filter { $0.hasPrefix("retry") } == ["retry after 3.0 seconds", "retry after 3.0 seconds"])
        #expect(told.all.filter { $0.hasPrefix("start") }.count == 3)
        #expect(transport.requests.allSatisfy { $0.options.retry == .never }, "the transport makes none of its own")
    }

    @Test func theLastFailureIsTheResult() async throws {
        let clock = ManualClock()
        let (manager, transport) = makeServices(clock: clock) { $0.retry = .mm(count: 2) }
        transport.answer(.get, "/hello", with: .text("no", status: .badRequest))
        let error = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        #expect(error?.result?.response.status == .badRequest)
        #expect(transport.requests.count == 3, "at once, after every failure")
    }

    @Test func aStatusIsNoReasonForDocker() async throws {
        let (manager, transport) = makeServices { $0.retry = .docker(count: 2) }
        transport.answer(.get, "/hello", with: .text("no", status: .serviceUnavailable))
        let error = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        #expect(error?.name == "status" && transport.requests.count == 1)
    }

    @Test func aServiceHasRulesOfItsOwn() async throws {
        let (manager, transport) = makeServices { $0.retry = .mm(count: 5) }
        transport.answer(nil, "/hello", with: .text("no", status: .serviceUnavailable))
        _ = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(policy: ServicePolicy(retry: .mm(count: 1))))
        }
        #expect(transport.requests.count == 2)
        _ = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(policy: ServicePolicy(retry: .mm(count: 1)), options: .init(retry: .never)))
        }
        #expect(transport.requests.count == 3)
        let once = RequestBody.once(AsyncStream<Data> { $0.finish() })
        _ = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(method: .put, body: once))
        }
        #expect(transport.requests.count == 4, "its content cannot be sent again")
    }

    @Test func withoutRulesTheTransportHasItsOwn() async throws {
        let (manager, transport) = makeServices()
        transport.answer(.get, "/hello", with: .text("hi"))
        try await manager.call(Greeting())
        #expect(transport.requests.first?.options.retry == nil)
    }

    @Test func retriesHaveABudget() async throws {
        var retry = DownloadConfiguration.Retry.mm(count: 100)
        retry.budget = 0
        let (manager, transport) = makeServices { $0.retry = retry }
        transport.answer(.get, "/hello", with: .text("no", status: .serviceUnavailable))
        _ = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        // Ten, and one for each second that this takes.
        #expect(transport.requests.count >= 11 && transport.requests.count < 90)
    }

    @Test func whatIsCancelledWhileItWaitsIsNotMadeAgain() async throws {
        let clock = ManualClock()
        let (manager, transport) = makeServices(clock: clock) { $0.retry = .docker(count: 2) }
        transport.answer(.get, "/hello", with: await .noResponse)
        let call = manager.start(Greeting())
        try await clock.waitForSleepers(1)
        #expect(manager.callCount == 1)
        call.cancel()
        #expect(await kinds(call) == ["started 1", "retrying", "failed cancelled", "ended"])
        #expect(transport.requests.count == 1 && clock.sleeperCount == 0)
    }

    // MARK: - Parking

    private var parking: ServicePolicy { ServicePolicy(parksWithoutResponse: true) }

    @Test func aCallWithoutAResponseIsKeptAndMadeAgain() async throws {
        let told = Told()
        let (manager, transport) = makeServices(told)
        transport.answer(.get, "/hello", with: await .noResponse)
        let call = manager.start(Greeting(policy: parking), for: CallOwner("page"))
        let other = manager.start(Greeting(policy: parking))
        #expect(await eventually { manager.parkedCount == 2 })
        #expect(call.isParked && manager.callCount == 2 && !told.all.contains("idle"))
        #expect(manager.repeatFailed() == 2, "still nobody answers")
        #expect(await eventually { manager.parkedCount == 2 && transport.requests.count == 4 })
        transport.answer(.get, "/hello", with: .text("hi"))
        #expect(manager.repeatFailed() == 2)
        #expect(try await call.value.model == "hi")
        #expect(try await other.value.model == "hi")
        #expect(
            await kinds(call) == [
                "started 1", "parked", "started 1", "parked", "started 1", "received", "succeeded", "ended",
            ]
        )
        #expect(await eventually { told.all.last == "idle" })
        #expect(manager.repeatFailed() == 0 && manager.parkedCount == 0)
    }

    @Test func eventsForWhichNobodyAsksAreBounded() async throws {
        let (manager, transport) = makeServices()
        transport.answerAll { _ in .failure(.notStored("offline")) }
        let call = manager.start(Greeting(policy: parking))
        for _ in 0..<300 {
            #expect(await eventually { manager.parkedCount == 1 })
            #expect(manager.repeatFailed() == 1)
        }
        #expect(await eventually { manager.parkedCount == 1 })
        call.cancel()
        let kinds = await kinds(call)
        #expect(kinds.count == 256 && kinds.suffix(4) == ["started 1", "parked", "failed cancelled", "ended"])
    }

    @Test func aParkedCallIsCancelledByItsOwner() async throws {
        let (manager, transport) = makeServices()
        transport.answer(.get, "/hello", with: await .noResponse)
        let call = manager.start(Greeting(policy: parking), for: CallOwner("page"))
        #expect(await eventually { manager.parkedCount == 1 })
        #expect(manager.cancel(of: CallOwner("page")) == 1)
        #expect(await kinds(call) == ["started 1", "parked", "failed cancelled", "ended"])
        #expect(manager.parkedCount == 0 && manager.callCount == 0)
    }

    @Test func onlyWhereNoResponseCameAndThereIsRoom() async throws {
        let (manager, transport) = makeServices { $0.maximumParked = 1 }
        transport.answer(.get, "/no", with: .text("no", status: .badGateway))
        transport.answer(.get, "/hello", with: await .noResponse)
        let answered = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(path: "/no", policy: parking))
        }
        #expect(answered?.name == "status")
        let other = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        #expect(other?.name == "transport", "its service does not want to be kept")
        let call = manager.start(Greeting(policy: parking))
        #expect(await eventually { manager.parkedCount == 1 })
        let full = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(policy: parking))
        }
        #expect(full?.name == "transport")
        call.cancel()
        _ = await kinds(call)
        let next = manager.start(Greeting(policy: parking))
        #expect(await eventually { manager.parkedCount == 1 }, "there is room again")
        next.cancel()
    }

    @Test func parkedCallsEndWithTheirManager() async throws {
        let transport = ScriptedTransport()
        transport.answerAll { _ in .failure(.notStored("offline")) }
        let start = { () async -> ServiceCall<String> in
            let manager = ServiceManager(transport: transport)
            let call = manager.start(
                Greeting(path: "https://api.test/a", policy: ServicePolicy(parksWithoutResponse: true))
            )
            _ = await eventually { manager.parkedCount == 1 }
            return call
        }
        let call = await start()
        #expect(await kinds(call).suffix(2) == ["failed cancelled", "ended"])
    }

    @Test func anOfflineManagerParksCalls() async throws {
        try await withManager {
            .answer(to: $0, "hello")
        } _: { transport, origin in
            var configuration = ServiceManager.Configuration()
            configuration.base = origin.url("")
            let manager = ServiceManager(transport: transport, configuration: configuration)
            transport.isOffline = true
            let call = manager.start(Greeting(policy: parking))
            #expect(await eventually { manager.parkedCount == 1 })
            #expect(origin.server.requests() == 0)
            transport.isOffline = false
            #expect(manager.repeatFailed() == 1)
            let loaded = try await call.value
            #expect(loaded.model == "hello")
        }
    }
}
