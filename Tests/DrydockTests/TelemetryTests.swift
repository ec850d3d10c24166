// What metrics and traces have of downloads, where a program has set them up.

import CoreMetrics
import Foundation
import InMemoryTracing
import LibrarySupport
import Logging
import MetricsTestKit
import TestSupport
import Testing
import Tracing

@testable import Drydock

@Suite struct TelemetryTests {
    private let metrics = TestMetrics()
    private let tracer = InMemoryTracer()

    private func manager(_ change: (inout DownloadConfiguration) -> Void = { _ in }) -> DownloadManager {
        var configuration = DownloadConfiguration()
        configuration.disk = nil
        change(&configuration)
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return DownloadManager(configuration: configuration, logger: logger, telemetry: Telemetry(metrics, tracer))
    }

    private func count(_ outcome: DownloadOutcome) -> Int64 {
        metrics.counterTotal(label: "drydock_downloads_total", dimensions: [("outcome", outcome.rawValue)])
    }

    @Test("Downloads are counted by outcome, with their bytes and their time") func counts() async throws {
        let resource = ChangingResource()
        let origin = Origin(try ScriptedOrigin { resource.reply($0) })
        let manager = manager()
        for _ in 0..<3 { _ = try await manager.download(origin.url()) }
        for try await _ in manager.events(for: origin.url()) {}
        try await manager.expireAll()
        for try await _ in manager.events(for: origin.url(), options: .init(yieldsStaleFirst: true)) {}
        resource.isFailing = true
        _ = await failure { try await manager.download(origin.url(), options: .init(cachePolicy: .bypass)) }
        await manager.close()
        #expect(count(.downloaded) == 2 && count(.stillValid) == 3 && count(.confirmed) == 1)
        #expect(metrics.counterTotal(label: "drydock_downloads_total") == 6)
        let bytes = 5 * resource.text.utf8.count + "out of order".utf8.count
        #expect(metrics.counterTotal(label: "drydock_download_bytes_total") == bytes)
        let timer = try metrics.expectTimer("drydock_download_seconds")
        #expect(timer.values.count == 6 && timer.values.allSatisfy { $0 >= 0 })
    }

    @Test("Looks at what is stored are no downloads") func looks() async throws {
        let (resource, folder) = (ChangingResource(), try TemporaryFolder("drydock-library"))
        let origin = Origin(try ScriptedOrigin { resource.reply($0) })
        let manager = manager { $0.lifetime = .zero }
        _ = try await manager.download(origin.url())
        let stale = try #require(try await manager.staleResponse(to: TransportRequest(origin.asking())))
        #expect(try await stale.body.collect(upTo: 100).count == resource.text.utf8.count)
        #expect(try await manager.staleResponse(to: TransportRequest(origin.asking("/b"))) == nil)
        try await manager.store.copy(origin.url(), to: URL(fileURLWithPath: folder.file("copy")))
        _ = await failure {
            try await manager.store.copy(origin.url("/b"), to: URL(fileURLWithPath: folder.file("none")))
        }
        _ = try await manager.state(of: origin.url())
        await manager.close()
        #expect(metrics.counterTotal(label: "drydock_downloads_total") == 1)
        #expect(tracer.finishedSpans.count == 1 && tracer.activeSpans.isEmpty)
    }

    @Test("A status that is kept and is no success is counted once") func keptFailures() async throws {
        let origin = Origin(try ScriptedOrigin { .answer(404, to: $0, "none") })
        let manager = manager { $0.lifetimes = [404: .seconds(600)] }
        for _ in 0..<3 { _ = await failure { try await manager.download(origin.url()) } }
        await manager.close()
        #expect(origin.server.requests() == 1)
        #expect(metrics.counterTotal(label: "drydock_downloads_total") == 3)
    }

    @Test("A download that brings nothing is counted once, too") func failures() async throws {
        let gate = Gate()
        let origin = Origin(try ScriptedOrigin { _ in OriginReply([.wait(gate)]) })
        let port = try ClosedPort()
        let manager = manager()
        let nowhere = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        #expect(await failure { try await manager.download(nowhere) }?.originKind == .unreachable)
        let waiting = Task { try await manager.download(origin.url()) }
        #expect(await origin.isAsked(1))
        waiting.cancel()
        #expect(await failure { try await waiting.value } == .cancelled)
        gate.open()
        await manager.close()
        #expect(await eventually { tracer.finishedSpans.count == 2 })
        #expect(count(.downloadFailed) == 2 && metrics.counterTotal(label: "drydock_downloads_total") == 2)
        let kinds = tracer.finishedSpans.map { $0.attributes.get("error.type") }
        #expect(kinds == [.string("unreachable"), .string("cancelled")])
        #expect(tracer.finishedSpans.allSatisfy { $0.status?.code == .error && $0.errors.count == 1 })
    }

    @Test("Each download has a span below the program's own, which goes on at the origin") func spans() async throws {
        let origin = Origin(
            try ScriptedOrigin { $0.target == "/none" ? .answer(404, to: $0, "none") : .answer(to: $0, "hello") }
        )
        let manager = manager()
        try await tracer.withAnySpan("program") { _ in
            for _ in 0..<2 { _ = try await manager.download(origin.url("/a?key=secret")) }
            _ = await failure { try await manager.download(origin.url("/none")) }
        }
        await manager.close()
        let spans = tracer.finishedSpans.filter { $0.operationName == "GET" }
        #expect(spans.count == 3 && tracer.activeSpans.isEmpty)
        let parent = try #require(tracer.finishedSpans.first { $0.operationName == "program" })
        for span in spans {
            #expect(span.kind == .client && span.spanContext.parentSpanID == parent.spanID)
            #expect(span.attributes.get("http.request.method") == .string("GET"))
            #expect(span.attributes.get("server.address") == .string("127.0.0.1"))
            #expect(span.attributes.get("server.port") == .int64(Int64(origin.url().port ?? 0)))
        }
        #expect(spans[0].attributes.get("url.full") == .string(origin.url().absoluteString))
        let outcomes = spans.map { $0.attributes.get("drydock.outcome") }
        #expect(outcomes == [.string("downloaded"), .string("stillValid"), .string("downloaded")])
        let statuses = spans.map { $0.attributes.get("http.response.status_code") }
        #expect(statuses == [.int64(200), .int64(200), .int64(404)])
        #expect(spans.map { $0.status?.code == .error } == [false, false, true])
        // Only those that went to the origin took their trace there.
        let asked = origin.server.log.map { $0.field(InMemoryTracer.spanIDKey) }
        #expect(asked == [spans[0].spanID, spans[2].spanID])
    }

    @Test("A program without metrics and without a tracer is observed by nothing") func none() throws {
        let telemetry = Telemetry(NOOPMetricsHandler.instance, NoOpTracer())
        let url = try #require(URL(string: "http://origin.test/"))
        #expect(telemetry.begin(try DownloadRequest(url, .init(), .init())) == nil)
        #expect(Telemetry.ofProgram.begin(try DownloadRequest(url, .init(), .init())) == nil)
    }

    @Test("A body that cannot be taken is a failure with its name") func failuresOfBodies() async throws {
        let origin = Origin(try ScriptedOrigin { .answer(to: $0, String(repeating: "x", count: 1000)) })
        let manager = manager { $0.maximumBody = 10 }
        await #expect(throws: DownloadError.self) { for try await _ in manager.events(for: origin.url()) {} }
        await manager.close()
        let types = tracer.finishedSpans.map { $0.attributes.get("error.type") }
        #expect(types == [.string("tooLarge")], "\(types)")
    }
}
