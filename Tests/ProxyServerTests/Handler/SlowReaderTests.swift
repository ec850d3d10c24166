// Clients that do not read large answers which are there already: recordings and demo files.

import CacheStore
import DownloadCore
import EventLoop
import Foundation
import HTTPWire
import Policies
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5))) struct SlowReaderTests {
    private static let content = Pattern.bytes(0..<6_000_000)

    /// Lets clients ask for a target without reading the answers, and one of them read it then.
    /// - Parameter most: bytes that all of them may take.
    private func ask(_ harness: HandlerHarness, _ target: String, clients: Int, most: Int) throws {
        let clients = try (0..<clients).map { _ in
            let client = try RawClient(port: harness.port, receiveBuffer: 4096)
            try client.request("GET", target)
            return client
        }
        // Each has begun to answer.
        for client in clients {
            let head = try client.readHead()
            #expect(head.status == 200, "\(head)")
        }
        let isAtRest = try comesToRest { try harness.counters()[.bytesOut] }
        #expect(isAtRest && harness.core.budget.used <= most, "\(harness.core.budget.used)")
        var read: [UInt8] = []
        while read.count < Self.content.count {
            read += try clients[0].readRaw(min(50_000, Self.content.count - read.count))
        }
        #expect(read == Self.content)
        let part = try harness.get(target, fields: [("Range", "bytes=5000000-5000099")])
        #expect(part.status == 206 && part.body == Array(Self.content[5_000_000..<5_000_100]))
        for client in clients { client.close() }
        #expect(blockUntil { harness.core.budget.used == 0 })
    }

    @Test("a replay costs a slow client little more than what it is sent next")
    func replays() async throws {
        let folder = try TemporaryFolder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        let recordings = RecordingFolder(path: folder.file("api"), pool: pool) { _ in }
        let recording = Recording(
            key: RecordingKey(.get, path: "/long", Fields(), content: [], RecordingRules()),
            recordedAt: 1_700_000_000,
            status: 200,
            reason: "",
            fields: Fields([("Content-Type", "text/plain")]),
            content: Self.content
        )
        #expect(await recordings.save(recording))
        let text = """
            services:
              - name: api
                match: { prefix: /api }
                base_url: http://127.0.0.1:1
                source: replay
                recordings: { dir: "\(folder.path)" }
            """
        try await HandlerHarness.run(text) { harness throws in
            try ask(harness, "/api/long", clients: 20, most: 20 * 256 << 10)
        }
    }

    @Test("an answer from a large demo file costs a slow client nothing")
    func demoFiles() async throws {
        let folder = try TemporaryFolder()
        try folder.write("long.bin", Self.content)
        let text = """
            services:
              - name: demo
                match: { prefix: /demo }
                demo: { enabled: true, files: "\(folder.path)", file: long.bin }
            """
        try await HandlerHarness.run(text) { harness throws in
            try ask(harness, "/demo/long", clients: 20, most: 0)
        }
    }
}
