// Bodies that are read while they come: piece by piece, byte by byte, line by line.

import Drydock
import Foundation
import HTTPTypes
import LibrarySupport
import TestSupport
import Testing

/// Passes everything on, and says nothing about what is stored.
private struct PassingTransport: Transport {
    let base: (any Transport)?

    func send(_ request: TransportRequest) async throws(DownloadError) -> TransportResponse {
        guard let base else { throw .notStored("there is nobody to ask") }
        return try await base.send(request)
    }
}

@Suite struct StreamTests {
    @Test func aTransportHandsOverWhatTheOneBehindItHas() async throws {
        try await withManager {
            $0.lifetime = .zero
            $0.staleIfError = .seconds(3600)
        } _: {
            .answer(to: $0, "hello")
        } _: { manager, origin in
            let request = TransportRequest(origin.request(.get))
            let outer = PassingTransport(base: PassingTransport(base: manager))
            #expect(try await outer.staleResponse(to: request) == nil)
            _ = try await outer.send(request).body.collect(upTo: 100)
            let stale = try #require(try await outer.staleResponse(to: request))
            #expect(try await stale.body.collect(upTo: 100) == Data("hello".utf8))
            #expect(origin.server.requests() == 1)
            #expect(try await PassingTransport(base: nil).staleResponse(to: request) == nil)
        }
    }

    @Test(arguments: [false, true]) func aBodyComesInPieces(bypassesStore: Bool) async throws {
        let length = 24 << 20
        try await withManager(configure: { $0.maximumBody = 1000 }) { _ in
            .pattern(length)
        } _: { manager, origin in
            let response = try await manager.stream(
                origin.url(),
                options: .init(cachePolicy: bypassesStore ? .bypass : .useStored)
            )
            #expect(response.head.status == .ok)
            #expect(response.outcome == .downloaded)
            #expect(response.body.expected == Int64(length))
            var received = 0
            for try await piece in response.body {
                #expect(piece.withUnsafeBytes { Pattern.matches($0, at: received) })
                received += piece.count
            }
            #expect(received == length)
            for try await piece in response.body { Issue.record("\(piece.count) bytes more") }
        }
    }

    @Test func aSecondIterationGoesOn() async throws {
        let gate = Gate()
        try await withManager { _ in
            OriginReply([OriginReply.head(200, fields: [("Content-Length", "8")]), OriginReply.text("one ")])
                .then(OriginReply([.wait(gate), OriginReply.text("more")]))
        } _: { manager, origin in
            let body = try await manager.stream(origin.url()).body
            for try await piece in body {
                #expect(piece == Data("one ".utf8))
                break
            }
            gate.open()
            #expect(try await body.collect(upTo: 10) == Data("more".utf8))
        }
    }

    @Test func aBodyThatIsCutIsAnError() async throws {
        try await withManager { _ in
            OriginReply([OriginReply.head(200, fields: [("Content-Length", "12")]), OriginReply.text("half"), .cut])
        } _: { manager, origin in
            let body = try await manager.stream(origin.url()).body
            let error = await #expect(throws: DownloadError.self) { try await body.collect(upTo: 100) }
            #expect(error?.originKind == .cutShort)
        }
    }

    @Test func aBodyMayBeTooLargeToBeCollected() async throws {
        try await withManager { _ in
            .chunked(["hello", "there"])
        } _: { manager, origin in
            let body = try await manager.stream(origin.url()).body
            await #expect(throws: DownloadError.tooLarge(limit: 9)) { try await body.collect(upTo: 9) }
        }
    }

    @Test func whatIsNotAskedForIsNotRead() async throws {
        let size = 64 << 20
        try await withManager(configure: { $0.memory = nil }) { _ in
            .pattern(size)
        } _: { manager, origin in
            let response = try await manager.stream(origin.url())
            var iterator = response.body.makeAsyncIterator()
            var count = try await iterator.next()?.count ?? 0
            // Another one of that length comes whole meanwhile. Of this one far more than the buffers of a connection hold
            // is with the origin, however often the loop could read it.
            for try await _ in try await manager.stream(origin.url("/other")).body {}
            #expect(try await giveTurns(20, to: manager) == 2)
            while let piece = try await iterator.next() { count += piece.count }
            #expect(count == size)
            #expect(await eventually { manager.statistics.running == 0 })
        }
    }

    @Test func aStatusThatIsNotAcceptedIsAnError() async throws {
        try await withManager {
            .answer(404, to: $0, "none")
        } _: { manager, origin in
            let error = await #expect(throws: DownloadError.self) { try await manager.stream(origin.url()) }
            guard case .unacceptableStatus(let result)? = error else { return unexpected(error as Any) }
            #expect(result.text == "none")
        }
    }

    @Test(arguments: [(AbandonmentPolicy.finish, true), (.abort, false)])
    func whoLetsGoOfABodyLeaves(leaving: AbandonmentPolicy, isKept: Bool) async throws {
        let gate = Gate()
        try await withManager {
            $0.abandonment = leaving
        } _: { _ in
            OriginReply([
                OriginReply.head(200, fields: [("Content-Length", "200")]), .pattern(100, from: 0), .wait(gate),
            ])
            .then(OriginReply([.pattern(100, from: 100)]))
        } _: { manager, origin in
            do {
                let response = try await manager.stream(origin.url())
                for try await piece in response.body where !piece.isEmpty { break }
            }
            #expect(await eventually { manager.downloadCount == 0 })
            let next = Task { try await manager.download(origin.url()) }
            if !isKept { #expect(await origin.isAsked(2)) }
            gate.open()
            #expect(try await next.value.data.count == 200)
            #expect(origin.server.requests() == (isKept ? 1 : 2))
        }
    }

    // MARK: - Bytes and lines

    @Test func bytesOneByOne() async throws {
        try await withManager { _ in
            .chunked(["he", "l", "lo"])
        } _: { manager, origin in
            var bytes: [UInt8] = []
            for try await byte in try await manager.stream(origin.url()).body.bytes { bytes.append(byte) }
            #expect(bytes == Array("hello".utf8))
        }
    }

    @Test(arguments: [
        (["one\ntwo\r\n", "\nthr", "ee\r", "\n"], ["one", "two", "", "three"]),
        (["a\n\u{E4}", "\u{F6}"], ["a", "\u{E4}\u{F6}"]), (["only"], ["only"]), (["\n"], [""]), ([], []),
        (["a\rb\n"], ["a\rb"]),
    ]) func linesOneByOne(pieces: [String], lines: [String]) async throws {
        let rest = Monitor(pieces[...])
        let body = ResponseBody(expected: nil) { rest.update { $0.popFirst().map { Data($0.utf8) } } }
        var read: [String] = []
        for try await line in body.lines { read.append(line) }
        #expect(read == lines)
    }

    @Test func whatIsReadToItsEndIsOverHoweverLongItIsKept() async throws {
        try await withManager {
            .answer(to: $0, "whole")
        } _: { manager, origin in
            let response = try await manager.stream(origin.url())
            #expect(manager.downloadCount == 1)
            #expect(try await response.body.collect(upTo: 100) == Data("whole".utf8))
            #expect(manager.downloadCount == 0)
            withExtendedLifetime(response) {}
        }
    }
}
