// An origin that fails is left alone for a while.

import Drydock
import Foundation
import LibrarySupport
import TestSupport
import Testing

@Suite struct BreakerTests {
    @Test func anOriginThatFailsIsNotAsked() async throws {
        try await withManager {
            $0.breaker = .init(failures: 2, window: .seconds(600), pause: .seconds(600))
        } _: {
            .answer(503, to: $0, "away")
        } _: { manager, origin async throws in
            let other = Origin(try ScriptedOrigin { .answer(to: $0, "there") })
            _ = await failure { try await manager.download(origin.url("/1")) }
            _ = await failure { try await manager.download(origin.url("/2")) }
            let error = await failure { try await manager.download(origin.url("/3")) }
            #expect(error?.originKind == .leftAlone)
            #expect(error?.description.contains(origin.server.url) == true)
            #expect(origin.server.requests() == 2)
            #expect(manager.statistics.openBreakers == 1)
            #expect(manager.statistics.refusedByBreakers == 1)
            #expect(try await manager.download(other.url()).text == "there", "each origin has its own")
        }
    }

    @Test func oneRequestFindsOutWhetherItIsBack() async throws {
        let isAway = Monitor(true)
        try await withManager {
            $0.breaker = .init(failures: 1, window: .seconds(600), pause: .milliseconds(20))
        } _: {
            isAway.read { $0 } ? .answer(503, to: $0, "away") : .answer(to: $0, "back")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url()) }
            isAway.update { $0 = false }
            #expect(await eventually { (try? await manager.download(origin.url()).text) == "back" })
            #expect(manager.statistics.openBreakers == 0)
        }
    }

    @Test func whatIsStoredStandsInWithoutAQuestion() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
            $0.checkPause = .zero
            $0.breaker = .init(failures: 1, window: .seconds(600), pause: .seconds(600))
        } _: {
            $0.target == "/away" ? .answer(503, to: $0, "away") : resource.reply($0)
        } _: { manager, origin async throws in
            _ = try await manager.download(origin.url())
            _ = await failure { try await manager.download(origin.url("/away")) }
            origin.server.forgetRequests()
            let result = try await manager.download(origin.url())
            #expect(result.text == "version 1")
            #expect(result.outcome == .checkFailed)
            #expect(origin.server.requests() == 0)
        }
    }

    @Test func nothingIsRepeatedWhileItIsLeftAlone() async throws {
        try await withManager {
            $0.breaker = .init(failures: 2, window: .seconds(600), pause: .seconds(600))
            $0.retry = .init(count: 5, delay: .zero)
        } _: {
            .answer(503, to: $0, "away")
        } _: { manager, origin async throws in
            _ = await failure { try await manager.download(origin.url()) }
            #expect(origin.server.requests() == 2)
        }
    }
}
