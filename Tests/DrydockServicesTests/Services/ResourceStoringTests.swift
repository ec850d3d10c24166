// What services, resources and tasks take from the store, and what each of them sends anew.

import Drydock
import DrydockServices
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

extension Monitor<Int> {
    /// One more than the last time.
    var next: Int {
        update { count in
            count += 1
            return count
        }
    }
}

/// Who may ask for a resource.
enum Asker: String, CaseIterable, Sendable {
    case service, resource, task

    /// Asks for a text.
    func load(
        _ endpoint: Endpoint,
        from manager: DownloadManager,
        options: DownloadOptions = DownloadOptions()
    ) async throws -> Loaded<String> {
        let resource = HTTPResource(endpoint, .text, options: options)
        let loader = ServiceManager(transport: manager)
        switch self {
        case .service: return try await ServiceManager(transport: manager).call(resource)
        case .resource: return try await loader.call(resource)
        case .task: return try await WorkQueue().run(Work(resource, from: loader))
        }
    }
}

@Suite struct ResourceStoringTests {
    private static func post(_ url: URL, _ text: String = "question") -> Endpoint {
        .post(url.absoluteString, body: .data(Data(text.utf8)))
    }

    private static func get(_ url: URL) -> Endpoint { .get(url.absoluteString) }

    @Test(arguments: Asker.allCases) func aPostIsSentEachTimeAndInvalidatesItsTarget(asker: Asker) async throws {
        try await withManager(onDisk: true) {
            .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "\($0.method)")
        } _: { manager, origin async throws in
            let url = origin.url()
            for count in 1...3 {
                let found = try await asker.load(Self.get(url), from: manager)
                #expect(found.model == "GET" && found.outcome == .downloaded)
                #expect(try await asker.load(Self.get(url), from: manager).outcome == .stillValid)
                let told = try await asker.load(Self.post(url), from: manager)
                #expect(told.model == "POST" && told.outcome == .downloaded)
                #expect(origin.count("POST") == count && origin.count("GET") == count)
            }
            #expect(origin.server.log.filter { $0.method == "POST" }.allSatisfy { $0.body == Array("question".utf8) })
        }
    }

    @Test(arguments: Asker.allCases) func postsThatAreUnderWayAreJoinedByNone(asker: Asker) async throws {
        let gate = Gate()
        try await withManager { request in
            OriginReply([.wait(gate)]).then(.answer(to: request, fields: [("Cache-Control", "max-age=600")], "done"))
        } _: { manager, origin async throws in
            let url = origin.url()
            let calls = (0..<3).map { _ in Task { try await asker.load(Self.post(url), from: manager).model } }
            #expect(await origin.isAsked(3, method: "POST"), "each of them is with the origin before one is answered")
            gate.open()
            for call in calls { #expect(try await call.value == "done") }
            #expect(origin.server.requests() == 3)
        }
    }

    @Test(arguments: Asker.allCases) func aQuestionIsStoredByItsContent(asker: Asker) async throws {
        let count = Monitor(0)
        try await withManager { request in
            .answer(to: request, "\(String(decoding: request.body, as: UTF8.self)) \(count.next)")
        } _: { manager, origin async throws in
            let options = DownloadOptions(lifetime: .seconds(600), methods: [.get, .post])
            let url = origin.url()
            for _ in 0..<2 {
                #expect(try await asker.load(Self.post(url, "a"), from: manager, options: options).model == "a 1")
                #expect(try await asker.load(Self.post(url, "b"), from: manager, options: options).model == "b 2")
            }
            #expect(origin.count("POST") == 2)
            // Without the lifetime of its own it is as fresh as the origin says, which says nothing.
            let plain = DownloadOptions(methods: [.get, .post])
            #expect(try await asker.load(Self.post(url, "c"), from: manager, options: plain).model == "c 3")
            #expect(try await asker.load(Self.post(url, "c"), from: manager, options: plain).model == "c 4")
            // A manager of downloads has its own mode, and its own questions.
            let request = origin.request(.post, "/download")
            #expect(try await manager.download(request, body: Data("d".utf8)).text == "d 5")
            #expect(try await manager.download(request, body: Data("d".utf8)).outcome == .stillValid)
            let once = DownloadOptions(methods: [.get])
            #expect(try await manager.download(request, body: Data("d".utf8), options: once).text == "d 6")
        }
    }

    @Test(
        arguments: Asker.allCases,
        [
            ([:], .downloaded), (["Cache-Control": "max-age=600"], .stillValid),
            (["Cache-Control": "no-cache", "ETag": "\"1\""], .confirmed),
            (["Cache-Control": "no-store, max-age=600"], .downloaded), (["ETag": "\"1\""], .confirmed),
            (["Expires": "Thu, 01 Jan 2099 00:00:00 GMT"], .stillValid),
        ] as [([String: String], DownloadOutcome)]
    ) func aGetIsAsFreshAsTheOriginSays(asker: Asker, said: (fields: [String: String], second: DownloadOutcome))
        async throws
    {
        try await withManager { request in
            if let tag = said.fields["ETag"], request.field("If-None-Match") == tag {
                return OriginReply([OriginReply.head(304, fields: [("ETag", tag)])])
            }
            return .answer(to: request, fields: said.fields.map { ($0.key, $0.value) }, "text")
        } _: { manager, origin async throws in
            let endpoint = Self.get(origin.url())
            #expect(try await asker.load(endpoint, from: manager).outcome == .downloaded)
            #expect(try await asker.load(endpoint, from: manager).outcome == said.second)
            let days = DownloadOptions(mode: .fixedLifetime)
            // What is never fresh, and cannot be checked, has not been stored.
            _ = try await asker.load(endpoint, from: manager, options: days)
            if said.fields["Cache-Control"] != "no-store, max-age=600" {
                #expect(try await asker.load(endpoint, from: manager, options: days).outcome == .stillValid)
            }
        }
    }

    @Test func aLifetimeOfItsOwnIsForWhatTheOriginSaysNothingAbout() async throws {
        try await withManager(configure: {
            $0.mode = .http
            $0.overridesOrigin = true
        }) {
            .answer(to: $0, fields: $0.target == "/told" ? [("Cache-Control", "max-age=0")] : [], "text")
        } _: { manager, origin async throws in
            let options = DownloadOptions(lifetime: .seconds(60))
            for (path, second) in [("/told", DownloadOutcome.downloaded), ("/untold", .stillValid)] {
                let endpoint = Self.get(origin.url(path))
                _ = try await Asker.resource.load(endpoint, from: manager, options: options)
                #expect(try await Asker.resource.load(endpoint, from: manager, options: options).outcome == second)
            }
            // The manager's downloads are as it was configured.
            _ = try await manager.download(origin.url("/told"))
            #expect(try await manager.download(origin.url("/told")).outcome == .stillValid)
        }
    }

    @Test func whoNamesNoGetLeavesTheStoreAlone() async throws {
        try await withManager {
            .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "text")
        } _: { manager, origin async throws in
            let endpoint = Self.get(origin.url())
            for _ in 0..<2 {
                let found = try await Asker.resource.load(endpoint, from: manager, options: .init(methods: [.post]))
                #expect(found.outcome == .downloaded)
            }
            #expect(origin.count("GET") == 2)
        }
    }

    @Test func aPostOfAServiceIsEndedByItsRequest() async throws {
        let gate = Gate()
        try await withManager(configure: { $0.abandonment = .abort }) { _ in
            OriginReply([.wait(gate)])
        } _: { manager, origin async throws in
            let url = origin.url()
            let calls = ["a", "b"].map { text in
                Task {
                    await serviceError { () throws(ServiceError) in
                        try await ServiceManager(transport: manager).call(
                            HTTPResource(Self.post(url, text), .nothing)
                        )
                    }
                }
            }
            #expect(await origin.isAsked(2, method: "POST"))
            #expect(manager.cancel(origin.request(.post), body: Data("a".utf8)) == 1)
            #expect(await calls[0].value?.name == "cancelled")
            // The session of a call ends behind its error.
            #expect(await eventually { manager.downloadCount == 1 })
            #expect(manager.cancel(origin.url()) == 1)
            #expect(await calls[1].value?.name == "cancelled")
            gate.open()
        }
    }
}
