// The store of one program: what is private is kept, and found by the same credentials alone.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import Logging
import TestSupport
import Testing

@Suite struct PrivateStoreTests {
    private static let anna: HTTPFields = [.authorization: "Bearer anna-secret"]
    private static let bert: HTTPFields = [.authorization: "Bearer bert-secret"]

    /// Says who asks, and that this is private.
    private static func reply(_ request: OriginRequest) -> OriginReply {
        .answer(
            to: request,
            fields: [("Cache-Control", "private, max-age=600"), ("Vary", "Authorization")],
            "for \(request.field("Authorization") ?? "nobody")"
        )
    }

    @Test("Each has a response of its own, in memory and on disk", arguments: [false, true])
    func kept(onDisk: Bool) async throws {
        for mode in DownloadConfiguration.Mode.allCases {
            try await withManager(onDisk: onDisk) {
                $0.mode = mode
                if onDisk { $0.memory = nil }
            } _: { request in
                Self.reply(request)
            } _: { manager, origin async throws in
                for round in 0..<2 {
                    for fields in [Self.anna, Self.bert, [:]] {
                        let result = try await manager.download(origin.request("/a", fields))
                        #expect(result.text == "for \(fields[.authorization] ?? "nobody")")
                        #expect(result.outcome == (round == 0 ? .downloaded : .stillValid))
                    }
                }
                #expect(origin.server.requests() == 3)
            }
        }
    }

    @Test("A key in a field of another name tells who asks, too", arguments: ["X-Api-Key", "Private-Token"])
    func keysOfOtherNames(field: String) async throws {
        let name = try #require(HTTPField.Name(field))
        try await withManager {
            $0.mode = .http
        } _: { request in
            .answer(
                to: request,
                fields: [("Cache-Control", "private, max-age=600")],
                "for \(request.field(field) ?? "nobody")"
            )
        } _: { manager, origin async throws in
            for round in 0..<2 {
                for fields in [[name: "anna"], [name: "bert"], [:]] as [HTTPFields] {
                    let result = try await manager.download(origin.request("/a", fields))
                    #expect(result.text == "for \(fields[name] ?? "nobody")")
                    #expect(result.outcome == (round == 0 ? .downloaded : .stillValid))
                }
            }
            #expect(origin.server.requests() == 3)
        }
    }

    @Test func aSharedCacheKeepsNeither() async throws {
        try await withManager {
            $0.isShared = true
            $0.mode = .http
        } _: { request in
            request.target == "/private"
                ? Self.reply(request) : .answer(to: request, fields: [("Cache-Control", "max-age=600")], "text")
        } _: { manager, origin async throws in
            for _ in 0..<2 {
                _ = try await manager.download(origin.url("/private"))
                _ = try await manager.download(origin.request("/a", Self.anna))
            }
            #expect(origin.count("GET", "/private") == 2)
            #expect(origin.count("GET", "/a") == 2)
        }
    }

    @Test func sMaxAgeIsForOthers() async throws {
        try await withManager {
            $0.mode = .http
        } _: { request in
            .answer(to: request, fields: [("Cache-Control", "s-maxage=0, max-age=600")], "text")
        } _: { manager, origin async throws in
            for _ in 0..<2 { _ = try await manager.download(origin.url()) }
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func whoAsksAtTheSameTimeSharesOneTransfer() async throws {
        let gate = Gate()
        try await withManager { request in
            OriginReply([.wait(gate)]).then(Self.reply(request))
        } _: { manager, origin async throws in
            let request = origin.request("/a", Self.anna)
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 { group.addTask { try await manager.download(request).text } }
                #expect(await eventually { manager.downloadCount == 20 })
                #expect(await origin.isAsked(1))
                gate.open()
                for try await text in group { #expect(text == "for Bearer anna-secret") }
            }
            #expect(origin.server.requests() == 1)
        }
    }

    @Test func credentialsAreStoredNowhere() async throws {
        let folder = try TemporaryFolder("drydock-private")
        let origin = Origin(try ScriptedOrigin { Self.reply($0) })
        let log = RecordedLog()
        var configuration = DownloadConfiguration()
        configuration.disk = DownloadConfiguration.DiskStore(folder: URL(fileURLWithPath: folder.path), minimumFree: 0)
        configuration.credentials = [
            "http://127.0.0.1": .bearer("carl-secret"), "a.test": .basic(user: "a", password: "b"),
        ]
        configuration.keyFields = [.authorization]
        configuration.cookies = .memory
        #expect(!"\(configuration)".contains("carl-secret"))
        var dumped = ""
        dump(configuration, to: &dumped)
        #expect(!dumped.contains("carl-secret"))
        for round in 0..<2 {
            let manager = DownloadManager(configuration: configuration, logger: log.logger)
            for fields in [Self.anna, [.cookie: "session=doris-secret"], [:]] {
                let result = try await manager.download(origin.request("/a", fields))
                // The next manager on the folder finds them again.
                #expect(result.outcome == (round == 0 ? .downloaded : .stillValid))
            }
            var listed: [String] = []
            for try await response in manager.store.responses() {
                #expect(response.secondaryKey.contains { $0.hasPrefix("credentials hmac-sha-256=") })
                listed.append("\(response)")
            }
            #expect(listed.count == 3)
            await manager.close()
            for secret in ["anna-secret", "carl-secret", "doris-secret"] {
                #expect(!listed.contains { $0.contains(secret) })
                #expect(!log.all.contains { $0.contains(secret) })
                // The body of the answer has it: this origin has put it there.
                #expect(try folder.has("Bearer \(secret)") == (secret == "anna-secret" || secret == "carl-secret"))
            }
            #expect(try !folder.has("doris-secret"))
        }
        #expect(origin.server.requests() == 3)
    }

    @Test func aTokenIsInNoFile() async throws {
        let folder = try TemporaryFolder("drydock-private")
        let manager = makeManager(folder) { $0.credentials = ["http://127.0.0.1": .bearer("carl-secret")] }
        let origin = Origin(
            try ScriptedOrigin { request in
                .answer(
                    to: request,
                    fields: [("Cache-Control", "private, max-age=600"), ("Vary", "Authorization")],
                    "text"
                )
            }
        )
        #expect(try await manager.download(origin.url()).text == "text")
        #expect(try await manager.download(origin.request("/a", Self.anna)).text == "text")
        await manager.close()
        #expect(origin.server.log.map { $0.field("Authorization") } == ["Bearer carl-secret", "Bearer anna-secret"])
        for secret in ["carl-secret", "anna-secret"] { #expect(try !folder.has(secret)) }
    }

    @Test func anotherUserOnTheSameFolderFindsNothing() async throws {
        let folder = try TemporaryFolder("drydock-private")
        let origin = Origin(try ScriptedOrigin { Self.reply($0) })
        for (token, outcome) in [("a", DownloadOutcome.downloaded), ("b", .downloaded), ("a", .stillValid)] {
            let manager = makeManager(folder) { $0.credentials = ["http://127.0.0.1": .bearer(token)] }
            let result = try await manager.download(origin.url())
            await manager.close()
            #expect(result.text == "for Bearer \(token)")
            #expect(result.outcome == outcome)
        }
        let nobody = makeManager(folder)
        #expect(try await nobody.download(origin.url()).text == "for nobody")
        await nobody.close()
    }

    @Test func theTokensOfOneUserAreOne() async throws {
        let folder = try TemporaryFolder("drydock-private")
        let origin = Origin(try ScriptedOrigin { Self.reply($0) })
        for (token, user, text) in [("1", "anna", "1"), ("2", "anna", "1"), ("3", "bert", "3")] {
            let manager = makeManager(folder) { $0.credentials = ["http://127.0.0.1": .bearer(token, user: user)] }
            #expect(try await manager.download(origin.url()).text == "for Bearer \(text)")
            await manager.close()
        }
    }

    // MARK: - What a program does to them

    @Test func statesAndRemovalsMeanTheRequest() async throws {
        try await withManager(onDisk: true) { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            let (anna, bert) = (origin.request("/a", Self.anna), origin.request("/a", Self.bert))
            _ = try await manager.download(anna)
            #expect(try await manager.state(of: anna) != .absent)
            #expect(try await manager.state(of: bert) == .absent)
            #expect(try await manager.state(of: origin.url()) == .absent)
            _ = try await manager.download(bert)
            #expect(try await manager.remove(origin.url()) == 2)
            #expect(try await manager.state(of: anna) == .absent)
            #expect(try await manager.state(of: bert) == .absent)
        }
    }

    @Test func theStateOfAPostIsThatOfItsFieldsAndBody() async throws {
        try await withManager { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            let post = origin.request("/a", Self.anna, method: .post)
            _ = try await manager.download(post, body: Data("one".utf8))
            #expect(try await manager.state(of: post, body: Data("one".utf8)) != .absent)
            #expect(try await manager.state(of: post, body: Data("two".utf8)) == .absent)
            let other = origin.request("/a", Self.bert, method: .post)
            #expect(try await manager.state(of: other, body: Data("one".utf8)) == .absent)
        }
    }

    @Test func whoIsCancelledIsTheOneThatAsks() async throws {
        let gate = Gate()
        try await withManager {
            $0.abandonment = .abort
        } _: { request in
            OriginReply([.wait(gate)]).then(Self.reply(request))
        } _: { manager, origin async throws in
            let (anna, bert) = (origin.request("/a", Self.anna), origin.request("/a", Self.bert))
            let (leaving, staying) = (
                Task { try await manager.download(anna) }, Task { try await manager.download(bert) }
            )
            #expect(await origin.isAsked(2))
            #expect(manager.cancel(anna) == 1)
            let failed = await failure { try await leaving.value }
            #expect(failed == .cancelled)
            gate.open()
            #expect(try await staying.value.text == "for Bearer bert-secret")
        }
    }

    @Test func aChangeInvalidatesWhatEverybodyHas() async throws {
        try await withManager { request in
            Self.reply(request)
        } _: { manager, origin async throws in
            for fields in [Self.anna, Self.bert] { _ = try await manager.download(origin.request("/a", fields)) }
            _ = try await manager.download(origin.request("/a", Self.anna, method: .put), body: Data("x".utf8))
            for fields in [Self.anna, Self.bert] {
                #expect(try await manager.download(origin.request("/a", fields)).outcome == .downloaded)
            }
        }
    }
}
