// Calls of services by a program that does what it should not: hooks that never answer, owners that vanish, managers that
// go amid calls.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import HTTPTypes
import LibrarySupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct HostileCallTests {
    // MARK: - Hooks

    @Test func aVetoThatNeverComesDoesNotKeepACallFromItsEnd() async throws {
        let (gate, asked) = (Gate(), Counter())
        defer { gate.open() }
        let told = Told()
        let (manager, transport) = makeServices(told) { configuration in
            configuration.hooks.shouldStart = { _ in
                asked.add()
                await hang(until: gate)
                return "too late"
            }
        }
        transport.answerAll { _ in .text("hi") }
        let calls = (0..<10).map { _ in manager.start(Greeting(), for: CallOwner("page")) }
        let waiting = Task { await serviceError { () throws(ServiceError) in try await manager.call(Greeting()) } }
        #expect(await eventually { asked.value == 11 })
        #expect(manager.cancelCalls(of: CallOwner("page")) == 10)
        for call in calls { #expect(await kinds(call) == ["failed cancelled", "ended"]) }
        waiting.cancel()
        #expect(await waiting.value?.name == "cancelled")
        #expect(manager.callCount == 0 && transport.requests.isEmpty)
        #expect(await eventually { told.all.last == "idle" })
    }

    @Test func aVetoHearsOfTheEndOfItsCall() async throws {
        let cancelled = Counter()
        let (manager, _) = makeServices { configuration in
            configuration.hooks.shouldStart = { _ in
                try? await Task.sleep(for: .seconds(3600))
                if Task.isCancelled { cancelled.add() }
                return nil
            }
        }
        let call = manager.start(Greeting())
        call.cancel()
        #expect(await kinds(call) == ["failed cancelled", "ended"])
        #expect(await eventually { cancelled.value == 1 })
    }

    @Test func hooksMayUseTheirManager() async throws {
        let reach = Monitor<ServiceManager?>(nil)
        let inner = Monitor<[ServiceCall<String>]>([])
        let (told, transport) = (Told(), ScriptedTransport())
        transport.answer(.get, "/inner", with: .text("inner"))
        transport.answer(.get, "/hello", with: .text("hi"))
        var configuration = ServiceManager.Configuration()
        configuration.base = URL(string: "https://api.test")
        configuration.hooks.onStart = { call, _ in
            guard call.location == "/hello", let manager = reach.read({ $0 }) else { return }
            // It cancels itself, among all others.
            told.add("cancelled \(manager.cancelAll())")
        }
        configuration.hooks.onEnd = { call in
            guard call.location == "/hello", let manager = reach.read({ $0 }) else { return }
            let call = manager.start(Greeting(path: "/inner"))
            inner.update { $0.append(call) }
        }
        configuration.hooks.onIdle = { told.add("idle with \(reach.read { $0 }?.callCount ?? -1)") }
        let manager = ServiceManager(transport: transport, configuration: configuration)
        reach.update { $0 = manager }
        defer { reach.update { $0 = nil } }
        let call = manager.start(Greeting())
        #expect(await kinds(call).suffix(2) == ["failed cancelled", "ended"])
        #expect(await eventually { inner.read { $0 }.count == 1 })
        for call in inner.read({ $0 }) { #expect(try await call.value.model == "inner") }
        #expect(await eventually { told.all.filter { $0.hasPrefix("idle") }.count == 2 })
        #expect(told.all.first == "cancelled 1")
    }

    // MARK: - Crowds

    @Test func tenThousandCallsAreEachToldOnce() async throws {
        #if DRYDOCK_SANITIZED
            let count = 1000
        #else
            let count = 10_000
        #endif
        let ends = Mutex<[UInt64: Int]>([:])
        let idle = Counter()
        let (manager, transport) = makeServices { configuration in
            configuration.hooks.onEnd = { call in ends.withLock { $0[call.id, default: 0] += 1 } }
            configuration.hooks.onIdle = { idle.add() }
        }
        transport.answerAll { request in
            .text(request.target, status: request.target.hasSuffix("7") ? .serviceUnavailable : .ok)
        }
        let calls = (0..<count).map { manager.start(Greeting(path: "/\($0)"), for: CallOwner($0 % 10)) }
        #expect(Set(calls.map(\.id)).count == count)
        // In the middle of it, the calls of some owners go.
        let cancelled = manager.cancelCalls(of: CallOwner(3))
        var (models, failures) = (0, [String: Int]())
        for (number, call) in calls.enumerated() {
            do throws(ServiceError) {
                #expect(try await call.value.model == "/\(number)")
                models += 1
            } catch {
                failures[error.name, default: 0] += 1
            }
        }
        #expect(models + failures.values.reduce(0, +) == count)
        #expect(failures["status"] == count / 10 && failures["cancelled"] ?? 0 <= cancelled)
        #expect(await eventually { manager.callCount == 0 && ends.withLock { $0.count } == count })
        #expect(ends.withLock { $0.values.allSatisfy { $0 == 1 } })
        #expect(await eventually { idle.value >= 1 } && manager.activity.count == 0)
    }

    @Test("Calls are cancelled at every moment, and each ends once", arguments: 0..<8)
    func cancelledAtEveryMoment(seed: Int) async throws {
        let clock = ManualClock()
        let ends = Mutex<[UInt64: Int]>([:])
        let (manager, transport) = makeServices(clock: clock) { configuration in
            configuration.retry = .immediate(count: 2)
            configuration.hooks.shouldStart = { _ in
                await Task.yield()
                return nil
            }
            configuration.hooks.onEnd = { call in ends.withLock { $0[call.id, default: 0] += 1 } }
        }
        transport.answerAll { request in
            await Task.yield()
            if request.target.hasSuffix("1") { return .failure(.notStored("offline")) }
            return request.target.hasSuffix("2") ? .text("no", status: .badGateway) : .text("hi")
        }
        let calls = (0..<200).map { manager.start(Greeting(path: "/\($0)", parksWithoutResponse: true)) }
        for (number, call) in calls.enumerated() {
            for _ in 0..<(number * (seed + 1) % 17) { await Task.yield() }
            if number % 5 == seed % 5 { manager.repeatFailed() }
            call.cancel()
        }
        for call in calls {
            let last = await kinds(call).last
            #expect(last == "ended")
        }
        #expect(await eventually { manager.callCount == 0 && manager.parkedCount == 0 })
        #expect(ends.withLock { $0.count == 200 && $0.values.allSatisfy { $0 == 1 } })
        #expect(clock.sleeperCount == 0)
    }

    // MARK: - Who vanishes

    @Test func callsOutliveTheirOwnerAndTheirManager() async throws {
        final class Page: Sendable {}
        let clock = ManualClock()
        let transport = ScriptedTransport(clock: clock)
        transport.answerAll { _ in .text("hi").delayed(by: .seconds(1)) }
        weak var weakManager: ServiceManager?
        weak var weakPage: Page?
        var call: ServiceCall<String>?
        do {
            var configuration = ServiceManager.Configuration()
            configuration.base = URL(string: "https://api.test")
            let (manager, page) = (ServiceManager(transport: transport, configuration: configuration), Page())
            (weakManager, weakPage) = (manager, page)
            call = manager.start(Greeting(), for: CallOwner(page))
            try await clock.waitForSleepers(1)
        }
        #expect(weakManager == nil && weakPage == nil, "a call keeps neither")
        clock.advance(by: .seconds(1))
        #expect(try await call?.value.model == "hi")
    }

    @Test func aTransportThatIsClosedEndsWhatIsUnderWay() async throws {
        let gate = Gate()
        defer { gate.open() }
        try await withManager(configure: { $0.maximumFetches = 4 }) { request in
            _ = gate.wait()
            return .answer(to: request, "late")
        } _: { transport, origin in
            var configuration = ServiceManager.Configuration()
            configuration.base = origin.url("")
            configuration.retry = .immediate(count: 3)
            let manager = ServiceManager(transport: transport, configuration: configuration)
            let calls = (0..<200).map { number in
                manager.start(
                    Greeting(
                        path: "/\(number)",
                        method: number % 3 == 0 ? .post : .get,
                        body: number % 3 == 0 ? .data(Data("content".utf8)) : nil,
                        parksWithoutResponse: true
                    )
                )
            }
            #expect(await origin.isAsked(4))
            await transport.close()
            for call in calls {
                let error = await serviceError { () throws(ServiceError) in try await call.value }
                switch error {
                case .cancelled, .transport(.closed): break
                default: Issue.record("\(error as Any)")
                }
            }
            #expect(await eventually { manager.callCount == 0 })
            #expect(manager.parkedCount == 0 && transport.downloadCount == 0)
        }
    }
}
