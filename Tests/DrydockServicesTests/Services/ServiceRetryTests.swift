// Calls that are made again: after failures, by their rules and on their clock, and those that are parked without a
// response.

import Drydock
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Logging
import MetricsTestKit
import TestSupport
import Testing

import struct ServiceCore.RetryBudget

@testable import DrydockServices

@Suite struct ServiceRetryTests {
    @Test func eachRetryIsAStart() async throws {
        let (told, clock) = (Told(), ManualClock())
        let (manager, transport) = makeServices(told, clock: clock) { $0.retry = .steady(count: 2) }
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
        let (manager, transport) = makeServices(clock: clock) { $0.retry = .immediate(count: 2) }
        transport.answer(.get, "/hello", with: .text("no", status: .badRequest))
        let error = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        #expect(error?.result?.head.status == .badRequest)
        #expect(transport.requests.count == 3, "at once, after every failure")
    }

    @Test func aStatusIsNoReasonForDocker() async throws {
        let (manager, transport) = makeServices { $0.retry = .steady(count: 2) }
        transport.answer(.get, "/hello", with: .text("no", status: .serviceUnavailable))
        let error = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        #expect(error?.name == "status" && transport.requests.count == 1)
    }

    @Test func aServiceHasRulesOfItsOwn() async throws {
        let (manager, transport) = makeServices { $0.retry = .immediate(count: 5) }
        transport.answer(nil, "/hello", with: .text("no", status: .serviceUnavailable))
        _ = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(options: .init(retry: .immediate(count: 1))))
        }
        #expect(transport.requests.count == 2)
        _ = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(options: .init(retry: .never)))
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
        var retry = RetryPolicy.immediate(count: 100)
        retry.budget = 0
        let (manager, transport) = makeServices { $0.retry = retry }
        transport.answer(.get, "/hello", with: .text("no", status: .serviceUnavailable))
        let began = ContinuousClock.now
        _ = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        // Ten, and one for each second that this takes.
        let seconds = Int((ContinuousClock.now - began).components.seconds)
        #expect((11...12 + seconds).contains(transport.requests.count))
    }

    @Test(arguments: [HTTPRequest.Method.get, .post, .patch, .put, .delete])
    func aPresetHasNoBudgetAndThatOfMMRepeatsEveryMethod(method: HTTPRequest.Method) async throws {
        let (manager, transport) = makeServices { $0.retry = .immediate(count: 60) }
        transport.answer(method, "/hello", with: .text("no", status: .serviceUnavailable))
        let error = await serviceError { () throws(ServiceError) in try await manager.call(Greeting(method: method)) }
        #expect(error?.description == "https://api.test/hello answered 503")
        #expect(transport.requests.count == 61 && manager.refusedRetries == 0)
    }

    @Test(arguments: [ScriptedAnswer.text("no", status: .serviceUnavailable), await .noResponse, .text("no JSON")])
    func aBudgetThatIsUsedUpIsNamed(answer: ScriptedAnswer) async throws {
        let (metrics, log) = (TestMetrics(), RecordedLog())
        let transport = ScriptedTransport()
        transport.answerAll { _ in answer }
        var configuration = ServiceManager.Configuration()
        configuration.retry = .immediate(count: 100)
        configuration.retry.budget = 0
        let manager = ServiceManager(
            transport: transport,
            configuration: configuration,
            logger: log.logger,
            RefusedRetries(of: .calls, metrics)
        )
        for count in 1...2 {
            // A second brings one retry more, and with it another end of the budget.
            let error = await serviceError { () throws(ServiceError) in
                try await manager.call(HTTPResource("https://api.test/a", .jsonValue))
            }
            #expect(
                error?.description.hasSuffix("it was not repeated: " + RetryBudget.refusal) == true,
                "\(error as Any)"
            )
            #expect(manager.refusedRetries == count)
            #expect(
                metrics.counterTotal(label: "drydock_retries_refused_total", dimensions: [("of", "calls")])
                    == Int64(count)
            )
        }
        #expect(log.count(.warning, "call not repeated after a failure: \(RetryBudget.refusal)") >= 1)
    }

    @Test func whatIsCancelledWhileItWaitsIsNotMadeAgain() async throws {
        let clock = ManualClock()
        let (manager, transport) = makeServices(clock: clock) { $0.retry = .steady(count: 2) }
        transport.answer(.get, "/hello", with: await .noResponse)
        let call = manager.start(Greeting())
        try await clock.waitForSleepers(1)
        #expect(manager.callCount == 1)
        call.cancel()
        #expect(await kinds(call) == ["started 1", "retrying", "failed cancelled", "ended"])
        #expect(transport.requests.count == 1 && clock.sleeperCount == 0)
    }

    // MARK: - Parking

    @Test func aCallWithoutAResponseIsKeptAndMadeAgain() async throws {
        let told = Told()
        let (manager, transport) = makeServices(told)
        transport.answer(.get, "/hello", with: await .noResponse)
        let call = manager.start(Greeting(parksWithoutResponse: true), for: CallOwner("page"))
        let other = manager.start(Greeting(parksWithoutResponse: true))
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
        let call = manager.start(Greeting(parksWithoutResponse: true))
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
        let call = manager.start(Greeting(parksWithoutResponse: true), for: CallOwner("page"))
        #expect(await eventually { manager.parkedCount == 1 })
        #expect(manager.cancelCalls(of: CallOwner("page")) == 1)
        #expect(await kinds(call) == ["started 1", "parked", "failed cancelled", "ended"])
        #expect(manager.parkedCount == 0 && manager.callCount == 0)
    }

    @Test func onlyWhereNoResponseCameAndThereIsRoom() async throws {
        let (manager, transport) = makeServices { $0.maximumParked = 1 }
        transport.answer(.get, "/no", with: .text("no", status: .badGateway))
        transport.answer(.get, "/hello", with: await .noResponse)
        let answered = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(path: "/no", parksWithoutResponse: true))
        }
        #expect(answered?.name == "status")
        let other = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        #expect(other?.name == "transport", "its service does not want to be kept")
        let call = manager.start(Greeting(parksWithoutResponse: true))
        #expect(await eventually { manager.parkedCount == 1 })
        let full = await serviceError { () throws(ServiceError) in
            try await manager.call(Greeting(parksWithoutResponse: true))
        }
        #expect(full?.name == "transport")
        call.cancel()
        _ = await kinds(call)
        let next = manager.start(Greeting(parksWithoutResponse: true))
        #expect(await eventually { manager.parkedCount == 1 }, "there is room again")
        next.cancel()
    }

    /// What fails, with what, by which rules; and whether it is kept.
    struct ParkingCase: Sendable, CustomTestStringConvertible {
        let method: HTTPRequest.Method
        let error: DownloadError
        var methods = RetryMethods.idempotent
        let isKept: Bool

        init(_ method: HTTPRequest.Method, _ kind: OriginFailure.Kind, isKept: Bool) {
            self.method = method
            error = .origin(OriginFailure(kind: kind, detail: "it failed"))
            self.isKept = isKept
        }

        var any: Self {
            var any = self
            any.methods = .any
            return any
        }

        var testDescription: String { "\(method) \(error) \(methods)" }
    }

    @Test(arguments: [
        // The origin may have acted on it.
        ParkingCase(.post, .timeout, isKept: false), ParkingCase(.post, .cutShort, isKept: false),
        ParkingCase(.patch, .timeout, isKept: false), ParkingCase(.post, .timeout, isKept: true).any,
        ParkingCase(.post, .cutShort, isKept: true).any,
        // It has not, or may do so twice.
        ParkingCase(.post, .unreachable, isKept: true), ParkingCase(.post, .unknownHost, isKept: true),
        ParkingCase(.post, .leftAlone, isKept: true), ParkingCase(.put, .timeout, isKept: true),
        ParkingCase(.delete, .cutShort, isKept: true), ParkingCase(.get, .cutShort, isKept: true),
    ]) func whatMayHaveReachedTheOriginIsNotSentAgain(_ kept: ParkingCase) async throws {
        let (manager, transport) = makeServices()
        transport.answer(nil, "/hello", with: .failure(kept.error))
        let options = DownloadOptions(retry: RetryPolicy(methods: kept.methods))
        let body: RequestBody? = kept.method == .get ? nil : .data(Data("1".utf8))
        let call = manager.start(
            Greeting(method: kept.method, body: body, parksWithoutResponse: true, options: options)
        )
        if kept.isKept {
            #expect(await eventually { manager.parkedCount == 1 })
            #expect(manager.repeatFailed() == 1)
            #expect(await eventually { transport.requests.count == 2 && manager.parkedCount == 1 })
            call.cancel()
            #expect(await kinds(call).suffix(2) == ["failed cancelled", "ended"])
        } else {
            #expect(await kinds(call).suffix(2) == ["failed transport", "ended"])
            #expect(manager.repeatFailed() == 0 && transport.requests.count == 1)
        }
    }

    @Test("A hook has returned before the next one is called, whoever repeats the call meanwhile")
    func hooksComeInTheirOrder() async throws {
        let told = Told()
        let reach = Monitor<ServiceManager?>(nil)
        let transport = ScriptedTransport()
        transport.answerAll { _ in .failure(.notStored("offline")) }
        var configuration = ServiceManager.Configuration()
        configuration.base = URL(string: "https://api.test")
        configuration.hooks = told.hooks
        configuration.hooks.onPark = { _, _ in
            guard let manager = reach.read({ $0 }) else { return told.add("unreachable") }
            told.add("park")
            // From another thread, and for as long as the hook runs.
            let done = Gate()
            Thread.detachNewThread {
                told.add("repeated \(manager.repeatFailed())")
                done.open()
            }
            done.wait()
            told.add("parked")
        }
        let manager = ServiceManager(transport: transport, configuration: configuration)
        reach.update { $0 = manager }
        let call = manager.start(Greeting(parksWithoutResponse: true))
        #expect(await eventually { told.all.count >= 40 })
        call.cancel()
        _ = await kinds(call)
        reach.update { $0 = nil }
        let round = ["start 1 of Greeting", "park", "repeated 1", "parked"]
        let all = told.all
        #expect(Array(all.prefix(40)) == (0..<10).flatMap { _ in round })
        #expect(all.suffix(3) == ["failure cancelled", "end", "idle"])
    }

    @Test("A budget that makes no sense is brought to the nearer end", arguments: [Double.nan, -5, 7])
    func budget(_ budget: Double) async throws {
        let (manager, transport) = makeServices {
            $0.retry = RetryPolicy(
                count: 1,
                delay: .zero,
                jitter: budget,
                causes: [.status(503)],
                budget: budget
            )
        }
        transport.answer(nil, "/hello", with: .text("no", status: .serviceUnavailable))
        let began = ContinuousClock.now
        for _ in 0..<60 {
            _ = await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) }
        }
        let retries = transport.requests.count - 60
        // Time brings more than the burst of ten, but no more than one in a second.
        let seconds = Int((ContinuousClock.now - began).components.seconds)
        #expect(budget > 1 ? retries == 60 : (10...11 + seconds).contains(retries))
    }

    @Test func parkedCallsEndWithTheirManager() async throws {
        let transport = ScriptedTransport()
        transport.answerAll { _ in .failure(.notStored("offline")) }
        let start = { () async -> ServiceCall<String> in
            let manager = ServiceManager(transport: transport)
            let call = manager.start(
                Greeting(path: "https://api.test/a", parksWithoutResponse: true)
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
            let call = manager.start(Greeting(parksWithoutResponse: true))
            #expect(await eventually { manager.parkedCount == 1 })
            #expect(origin.server.requests() == 0)
            transport.isOffline = false
            #expect(manager.repeatFailed() == 1)
            let loaded = try await call.value
            #expect(loaded.model == "hello")
        }
    }

    @Test func whoIsCancelledWaitsNoLonger() async throws {
        let (manager, transport) = makeServices()
        transport.answer(.get, "/hello", with: await .noResponse)
        let call = manager.start(Greeting(parksWithoutResponse: true))
        #expect(await eventually { call.isParked })
        let waiter = Task { await serviceError { () throws(ServiceError) in try await call.value } }
        waiter.cancel()
        guard case .cancelled? = await waiter.value else { return #expect(Bool(false), "it has an end") }
        #expect(call.isParked, "the call is left alone")
        call.cancel()
    }
}
