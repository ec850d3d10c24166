// Credentials that the program is asked for: once for all who wait, and never in a loop.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

@Suite struct AskedCredentialTests {
    /// Lets in who has one of these tokens.
    private static func gatekeeper(_ tokens: String...) -> ScriptedOrigin.Handler {
        { request in
            let shown = request.field("Authorization") ?? ""
            guard tokens.contains(where: { shown == "Bearer \($0)" }) else {
                return .answer(
                    401,
                    to: request,
                    fields: [("WWW-Authenticate", "Bearer realm=\"a, b\", error=x, Basic realm=c")],
                    "who are you?"
                )
            }
            return .answer(to: request, fields: [("Cache-Control", "private, max-age=600")], "for \(shown)")
        }
    }

    private static let name = "http://127.0.0.1"

    @Test func theProgramIsAskedOnceForAllWhoWait() async throws {
        let asked = Monitor<[AuthenticationChallenge]>([])
        let gate = Gate()
        try await withManager {
            $0.maximumFetches = 100
            $0.credentials = [
                Self.name: .asking { challenge in
                    asked.update { $0.append(challenge) }
                    _ = await eventually { gate.isOpened }
                    return .bearer("good")
                }
            ]
        } _: { request in
            Self.gatekeeper("good")(request)
        } _: { manager, origin async throws in
            try await withThrowingTaskGroup(of: String.self) { group in
                for number in 0..<100 {
                    group.addTask { try await manager.download(origin.url("/\(number % 50)")).text }
                }
                #expect(await origin.isAsked(50))
                #expect(await eventually { manager.downloadCount == 100 })
                #expect(await eventually { manager.statistics.running == 0 }, "who thinks takes nobody's place")
                gate.open()
                for try await text in group { #expect(text == "for Bearer good") }
            }
            let challenges = asked.read { $0 }
            #expect(challenges.count == 1)
            #expect(
                challenges.first
                    == AuthenticationChallenge(
                        origin: origin.server.url,
                        schemes: [
                            .init(name: "bearer", parameters: ["realm": "a, b", "error": "x"]),
                            .init(name: "basic", parameters: ["realm": "c"]),
                        ]
                    )
            )
            // From now on the origin hears them at once.
            let before = origin.server.requests()
            #expect(try await manager.download(origin.url("/new")).text == "for Bearer good")
            #expect(origin.server.requests() == before + 1)
            #expect(try await manager.download(origin.url("/new")).outcome == .stillValid)
        }
    }

    @Test func aSecondRefusalIsTheResult() async throws {
        let refused = Monitor<[Credentials?]>([])
        try await withManager {
            $0.credentials = [
                Self.name: .asking(first: .bearer("0")) { challenge in
                    refused.update { $0.append(challenge.refused) }
                    return .bearer("\(refused.read { $0.count })")
                }
            ]
        } _: { request in
            Self.gatekeeper()(request)
        } _: { manager, origin async throws in
            for round in 1...2 {
                let error = await failure { try await manager.download(origin.url()) }
                guard case .unacceptableStatus(let result) = error else {
                    Issue.record("\(error as Any)")
                    return
                }
                #expect(result.head.status == .unauthorized)
                #expect(result.text == "who are you?")
                #expect(origin.server.requests() == 2 * round)
            }
            #expect(refused.read { $0 } == [.bearer("0"), .bearer("1")])
            #expect(
                origin.server.log.map { $0.field("Authorization") }
                    == ["Bearer 0", "Bearer 1", "Bearer 1", "Bearer 2"]
            )
        }
    }

    @Test("Without other credentials the 401 is the result, however long it is", arguments: [12, 200_000])
    func noAnswer(length: Int) async throws {
        let asked = Counter()
        try await withManager {
            $0.credentials = [
                Self.name: .asking { _ in
                    asked.add()
                    return asked.value == 1 ? nil : .bearer("two words")
                }
            ]
        } _: { request in
            .answer(401, to: request, String(repeating: "a", count: length))
        } _: { manager, origin async throws in
            for round in 1...2 {
                let error = await failure { try await manager.download(origin.url()) }
                guard case .unacceptableStatus(let result) = error else {
                    Issue.record("\(error as Any)")
                    return
                }
                #expect(result.data.count == length)
                // One that is not kept is asked for again.
                #expect(origin.server.requests() == round * (length > 65_536 ? 2 : 1))
                #expect(asked.value == round)
            }
        }
    }

    @Test func whatWasFetchedWithOtherCredentialsIsKeptForNobody() async throws {
        let folder = try TemporaryFolder("drydock-asked")
        let origin = Origin(try ScriptedOrigin(Self.gatekeeper("good")))
        let first = makeManager(folder) { $0.credentials = [Self.name: .asking { _ in .bearer("good") }] }
        let result = try await first.download(origin.url())
        #expect(result.text == "for Bearer good")
        // It was asked for as by nobody.
        var stored = 0
        for try await _ in first.store.responses() { stored += 1 }
        #expect(stored == 0)
        #expect(try await first.download(origin.url()).outcome == .downloaded)
        #expect(try await first.download(origin.url()).outcome == .stillValid)
        await first.close()
        let nobody = makeManager(folder)
        let error = await failure { try await nobody.download(origin.url()) }
        guard case .unacceptableStatus(let answer) = error else {
            Issue.record("\(error as Any)")
            return
        }
        #expect(answer.head.status == .unauthorized)
        await nobody.close()
    }

    @Test func theNextTokenOfAUserFindsWhatIsStored() async throws {
        try await withManager {
            $0.lifetime = .zero
            $0.credentials = [
                Self.name: .asking(first: .bearer("old", user: "anna")) { _ in .bearer("new", user: "anna") }
            ]
        } _: { request in
            Self.gatekeeper("new")(request)
        } _: { manager, origin async throws in
            let options = DownloadOptions(lifetime: .seconds(600))
            #expect(try await manager.download(origin.url(), options: options).outcome == .downloaded)
            #expect(try await manager.download(origin.url(), options: options).outcome == .stillValid)
            #expect(origin.server.requests() == 2)
        }
    }

    @Test func aContentIsSentOnceMoreWhereItIsThereTwice() async throws {
        let asked = Counter()
        try await withManager {
            $0.mode = .http
            $0.credentials = [
                Self.name: .asking { _ in
                    asked.add()
                    return .bearer("good")
                }
            ]
        } _: { request in
            Self.gatekeeper("good")(request)
        } _: { manager, origin async throws in
            let post = origin.request("/a", method: .post)
            #expect(try await manager.download(post, body: Data("content".utf8)).text == "for Bearer good")
            #expect(origin.server.log.map { String(decoding: $0.body, as: UTF8.self) } == ["content", "content"])
            #expect(asked.value == 1)
        }
    }

    @Test func aBatchAsksOnce() async throws {
        let asked = Counter()
        try await withManager {
            $0.credentials = [
                Self.name: .asking { _ in
                    asked.add()
                    return .bearer("good")
                }
            ]
        } _: { request in
            Self.gatekeeper("good")(request)
        } _: { manager, origin async throws in
            let batch = manager.batch((0..<20).map { DownloadBatch.Item(origin.url("/\($0)")) })
            let report = try await batch.run()
            #expect(report.progress.failed == 0)
            #expect(asked.value == 1)
        }
    }

    // MARK: - Ends

    @Test func whoHasLeftDoesNotWaitForTheProgram() async throws {
        let (asked, gate) = (Counter(), Gate())
        try await withManager {
            $0.abandonment = .abort
            $0.credentials = [
                Self.name: .asking { _ in
                    asked.add()
                    _ = await eventually { gate.isOpened }
                    return .bearer("good")
                }
            ]
        } _: { request in
            Self.gatekeeper("good")(request)
        } _: { manager, origin async throws in
            let leaving = Task { try await manager.download(origin.url("/a")) }
            let staying = Task { try await manager.download(origin.url("/b")) }
            #expect(await origin.isAsked(2))
            #expect(await eventually { asked.value == 1 })
            leaving.cancel()
            let failed = await failure { try await leaving.value }
            #expect(failed == .cancelled)
            gate.open()
            #expect(try await staying.value.text == "for Bearer good")
            #expect(asked.value == 1)
        }
    }

    @Test func theEndOfAManagerDoesNotWaitForTheProgram() async throws {
        let (asked, gate) = (Counter(), Gate())
        defer { gate.open() }
        try await withManager {
            $0.credentials = [
                Self.name: .asking { _ in
                    asked.add()
                    _ = await eventually { gate.isOpened }
                    return .bearer("good")
                }
            ]
        } _: { request in
            Self.gatekeeper("good")(request)
        } _: { manager, origin async throws in
            let waiting = Task { try await manager.download(origin.url()) }
            #expect(await eventually { asked.value == 1 })
            await manager.close()
            let failed = await failure { try await waiting.value }
            #expect(failed == .cancelled)
        }
    }

    @Test(arguments: [nil, 300_000] as [Int64?])
    func contentThatCanBeHadOnceIsNotSentAgain(length: Int64?) async throws {
        try await withManager {
            $0.credentials = [Self.name: .asking { _ in .bearer("good") }]
        } _: { request in
            Self.gatekeeper("good")(request)
        } _: { manager, origin async throws in
            let pieces = ContentPieces(Array(repeating: String(repeating: "x", count: 1000), count: 300))
            let body = RequestBody.once(pieces, length: length)
            let error = await failure { try await manager.download(origin.request(.put), body: body) }
            guard case .unacceptableStatus(let result)? = error else { return #expect(Bool(false), "\(error as Any)") }
            #expect(result.head.status.code == 401)
            #expect(origin.server.log.map(\.body.count) == [300_000])
        }
    }
}
