// Chains of works, each made of the value of the one before.

import Drydock
import DrydockServices
import DrydockTesting
import Foundation
import TestSupport
import Testing

@Suite struct WorkChainTests {
    @Test func eachStepIsMadeOfTheOneBefore() async throws {
        let queue = WorkQueue(maximumRunning: 1)
        let ends = queue.ends()
        let chain = WorkChain(Work("login") { "token" })
            .then { token in Work("profile") { token.count } }
            .then { count in Work("photos") { (0..<count).map { "photo \($0)" } } }
        #expect(try await chain.run(on: queue).count == 5)
        await queue.close()
        var names: [String] = []
        for await end in ends { names.append(end.name) }
        #expect(names == ["login", "profile", "photos"])
    }

    @Test func aStepMayBeSkipped() async throws {
        for (isNeeded, expected) in [(true, [1, 2, 4]), (false, [1, 4])] {
            let journal = Journal()
            let step: @Sendable (Int) -> Work<Int> = { number in
                Work {
                    journal.note("\(number)")
                    return number
                }
            }
            let chain = WorkChain(step(1))
                .thenIfNeeded { number in isNeeded ? step(number + 1) : nil }
                .then { number in
                    #expect(number == (isNeeded ? 2 : 1))
                    return step(4)
                }
            #expect(try await chain.run(on: WorkQueue()) == 4)
            #expect(journal.all == expected.map(String.init))
        }
    }

    @Test func theFirstErrorEndsIt() async throws {
        let journal = Journal()
        let chain = WorkChain(Work<Int> { throw Broken() }).then { _ in Work { journal.note("second") } }
        let error = await #expect(throws: WorkError.self) { try await chain.run(on: WorkQueue()) }
        guard case .failed(let reason) = error, reason is Broken else { return #expect(Bool(false), "\(error as Any)") }
        #expect(journal.all.isEmpty)
    }

    @Test func aStepThatCannotBeMadeEndsIt() async throws {
        let chains = [
            WorkChain(Work { 1 }).then { _ throws -> Work<Int> in throw Broken() },
            WorkChain(Work { 1 }).thenIfNeeded { _ throws -> Work<Int>? in throw Broken() },
        ]
        for chain in chains {
            let error = await #expect(throws: WorkError.self) { try await chain.run(on: WorkQueue()) }
            guard case .failed(let reason) = error else { return #expect(Bool(false), "\(error as Any)") }
            #expect(reason is Broken)
        }
    }

    @Test func itIsCancelledWithTheTaskThatRunsIt() async throws {
        let (queue, work) = (WorkQueue(), ManualClock())
        let running = Task {
            try await WorkChain(Work { 1 })
                .then { _ in Work { try await work.sleep(for: .seconds(1)) } }
                .run(on: queue)
        }
        try await work.waitForSleepers(1)
        running.cancel()
        let error = await #expect(throws: WorkError.self) { try await running.value }
        guard case .cancelled = error else { return #expect(Bool(false), "\(error as Any)") }
        #expect(await eventually { queue.count == 0 && work.sleeperCount == 0 })
    }

    @Test func itMayBeRunAgain() async throws {
        let journal = Journal()
        let chain = WorkChain(Work { journal.note("run") })
        for _ in 0..<2 { try await chain.run() }
        #expect(journal.all == ["run", "run"])
    }
}
