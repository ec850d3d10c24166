// What memory answers at once is what the waiting path brings: bytes, fields, age, counts and lines of the log.

import CacheStore
import DownloadCore
import EventLoop
import Foundation
import HTTPTypes
import LibrarySupport
import Logging
import TestSupport
import Testing

@testable import Drydock

@Suite struct MemoryHitTests {
    /// A program's log, as its messages and what stands with them.
    private struct Lines: LogHandler {
        let lines: Monitor<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.debug
        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }
        func log(event: LogEvent) {
            let metadata = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
            lines.update { $0.append("\(event.level) \(event.message) \(metadata.joined(separator: " "))") }
        }
    }

    private static let tag = ("ETag", "\"one\"")

    /// What memory answers at once to this question; nil where a download begins.
    private func hit(_ manager: DownloadManager, _ request: HTTPRequest, _ options: DownloadOptions = .init()) throws
        -> (head: DownloadSession.Head, data: Data)?
    {
        manager.memoryHit(try DownloadRequest(request, manager.configuration, options))
    }

    /// The result of the waiting path.
    private func waited(_ manager: DownloadManager, _ url: URL) async throws -> DownloadResult? {
        for try await event in manager.events(for: url) {
            if case .finished(let result) = event { return result }
        }
        return nil
    }

    private func request(_ url: URL, _ fields: HTTPFields = [:]) -> HTTPRequest {
        HTTPRequest(
            method: .get,
            scheme: url.scheme,
            authority: url.host.map { "\($0):\(url.port ?? 80)" },
            path: url.path,
            headerFields: fields
        )
    }

    @Test(
        "What memory answers at once is what the waiting path brings",
        arguments: [
            OriginReply.answer(fields: [tag, ("Content-Type", "text/plain"), ("X-Name", "J\u{F6}rg")], "hello"),
            .answer(fields: [("Age", "7"), ("Vary", "User-Agent"), ("Cache-Status", "near; hit")], "hello"),
            .answer(203, fields: [tag], "another says so"), .answer(fields: [tag], ""), .pattern(300_000),
        ]
    ) func isTheSame(reply: OriginReply) async throws {
        let origin = Origin(try ScriptedOrigin { _ in reply })
        var configuration = DownloadConfiguration()
        configuration.disk = nil
        configuration.acceptedStatuses = 200..<500
        let lines = Monitor<[String]>([])
        let logger = Logger(label: "test") { _ in Lines(lines: lines) }
        let manager = DownloadManager(configuration: configuration, logger: logger)
        let url = origin.url()
        _ = try await manager.download(url)
        let core = try await manager.engine().core
        var isCompared = false
        // A second that passes in between changes ages: then they are compared again.
        for _ in 0..<1000 where !isCompared {
            lines.update { $0 = [] }
            let began = core.clock.now()
            let hits = core.store.statistics.memory.hits
            let atOnce = try #require(try hit(manager, request(url)))
            #expect(core.store.statistics.memory.hits == hits + 1)
            let result = try await manager.download(url)
            #expect(core.store.statistics.memory.hits == hits + 2)
            let expected = try #require(try await waited(manager, url))
            #expect(core.store.statistics.memory.hits == hits + 3)
            guard core.clock.now() == began else { continue }
            isCompared = true
            #expect(result == expected)
            #expect(atOnce.head.response == expected.head && atOnce.data == expected.data)
            #expect(atOnce.head.outcome == .stillValid && expected.outcome == .stillValid)
            #expect(result.cacheStatus.hasSuffix("hit; ttl=+; detail=memory"), "\(result.cacheStatus)")
            let (ours, theirs) = lines.read { ($0.first, $0.last) }
            #expect(ours == theirs && lines.read { $0.count } == 2, "\(lines.read { $0 })")
            #expect(ours?.contains("outcome=stillValid") == true)
        }
        #expect(isCompared)
        #expect(origin.server.requests() == 1 && manager.downloadCount == 0)
        await manager.close()
    }

    @Test("A transport's response comes at once, too") func transport() async throws {
        try await withManager {
            .answer(to: $0, fields: [Self.tag], "hello")
        } _: { manager, origin in
            let question = TransportRequest(request(origin.url()))
            for outcome in [DownloadOutcome.downloaded, .stillValid] {
                let response = try await manager.send(question)
                #expect(response.outcome == outcome && response.head.status == .ok)
                #expect(response.body.expected == 5)
                #expect(try await response.body.collect(upTo: 10) == Data("hello".utf8))
            }
            #expect(try hit(manager, request(origin.url())) != nil)
            #expect(origin.server.requests() == 1)
        }
    }

    @Test("Fields and wishes that decide about reuse are left to the waiting path") func unusual() async throws {
        try await withManager {
            .answer(to: $0, fields: [Self.tag], "hello")
        } _: { manager, origin in
            let url = origin.url()
            _ = try await manager.download(url)
            let plain = request(url)
            #expect(try hit(manager, plain) != nil)
            #expect(try hit(manager, plain, .init(yieldsStaleFirst: true)) != nil)
            for field in [
                HTTPField.Name.cacheControl, .range, .ifNoneMatch, .ifModifiedSince, .authorization, .cookie,
            ] {
                #expect(try hit(manager, request(url, [field: "x"])) == nil, "\(field)")
            }
            for options in [
                DownloadOptions(lifetime: .seconds(9)), .init(usesSeeds: false), .init(cachePolicy: .reload),
                .init(cachePolicy: .storedOnly), .init(cachePolicy: .bypass), .init(expectation: .json),
            ] {
                #expect(try hit(manager, plain, options) == nil, "\(options)")
            }
            var head = plain
            head.method = .head
            #expect(try hit(manager, head) == nil)
            let cancelled = Task {
                while !Task.isCancelled { await Task.yield() }
                return try self.hit(manager, plain) == nil
            }
            cancelled.cancel()
            #expect(try await cancelled.value)
        }
    }

    @Test("What varies is answered at once only to the fields that it came for") func varying() async throws {
        try await withManager {
            .answer(to: $0, fields: [("Vary", "Accept-Language")], $0.field("Accept-Language") ?? "none")
        } _: { manager, origin in
            let (german, english) = (HTTPFields.language("de"), HTTPFields.language("en"))
            let url = origin.url()
            let first = try await manager.download(request(url, german))
            #expect(first.text == "de")
            #expect(try hit(manager, request(url, english)) == nil)
            #expect(try await manager.download(request(url, english)).text == "en")
            for (fields, text) in [(german, "de"), (english, "en")] {
                #expect(try hit(manager, request(url, fields))?.data == Data(text.utf8))
                #expect(try await manager.download(request(url, fields)).text == text)
            }
            #expect(origin.server.requests() == 2)
        }
    }

    @Test("Nothing is answered at once after its lifetime, once it was removed, offline, or after the end")
    func noLonger() async throws {
        let resource = ChangingResource()
        try await withManager {
            resource.reply($0)
        } _: { manager, origin in
            let plain = request(origin.url())
            #expect(try hit(manager, plain) == nil)
            _ = try await manager.download(origin.url())
            let core = try await manager.engine().core
            #expect(try hit(manager, plain) != nil)
            core.isOffline = true
            #expect(try hit(manager, plain) == nil)
            core.isOffline = false
            core.clock.advance(seconds: 7201)
            #expect(try hit(manager, plain) == nil)
            #expect(try await manager.download(origin.url()).outcome == .confirmed)
            #expect(try hit(manager, plain) != nil)
            try await manager.expireAll()
            #expect(try hit(manager, plain) == nil)
            #expect(try await manager.download(origin.url()).outcome == .confirmed)
            try await manager.remove(origin.url())
            #expect(try hit(manager, plain) == nil)
            #expect(try await manager.download(origin.url()).outcome == .downloaded)
            #expect(try hit(manager, plain) != nil)
            await manager.close()
            #expect(try hit(manager, plain) == nil)
            #expect(await failure { try await manager.download(origin.url()) } == .closed)
        }
    }

    @Test("The lifetime of one download is not that of the next") func lifetimes() async throws {
        let resource = ChangingResource()
        try await withManager {
            $0.lifetime = .zero
        } _: {
            resource.reply($0)
        } _: { manager, origin in
            _ = try await manager.download(origin.url(), options: .init(lifetime: .seconds(1000)))
            #expect(try hit(manager, request(origin.url())) == nil)
            #expect(try await manager.download(origin.url()).outcome == .confirmed)
        }
    }

    @Test("A manager with seeds looks into them first") func seeds() async throws {
        let folder = try TemporaryFolder("drydock-seeds")
        try folder.write("seeds/other", "seed")
        try await withManager {
            $0.seeds = .init(folder: URL(fileURLWithPath: folder.file("seeds")))
        } _: {
            .answer(to: $0, fields: [Self.tag], "hello")
        } _: { manager, origin in
            _ = try await manager.download(origin.url())
            #expect(try hit(manager, request(origin.url())) == nil)
            #expect(try await manager.download(origin.url()).outcome == .stillValid)
        }
    }

    @Test("A coded body, and one that is longer than a result may be, are left to the waiting path")
    func bodies() async throws {
        try await withManager {
            $0.maximumBody = 10
        } _: {
            $0.target == "/coded"
                ? .answer(to: $0, fields: [("Content-Encoding", "x-any")], "hello") : .answer(to: $0, "0123456789+")
        } _: { manager, origin in
            _ = await failure { try await manager.download(origin.url("/long")) }
            let long = try hit(manager, request(origin.url("/long")))
            #expect(long == nil)
            _ = try? await manager.download(origin.url("/coded"))
            #expect(try hit(manager, request(origin.url("/coded"))) == nil)
        }
    }
}

extension HTTPFields {
    fileprivate static func language(_ value: String) -> HTTPFields { [.acceptLanguage: value] }
}
