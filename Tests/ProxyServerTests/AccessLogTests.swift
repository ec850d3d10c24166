// Access log lines: their three formats, what is escaped, and that every answer leaves exactly one.

import Configuration
import EventLoop
import Foundation
import HTTPWire
import TestSupport
import Testing

@testable import ProxyServer

@Suite struct AccessLogTests {
    private static var entry: AccessEntry {
        var entry = AccessEntry(client: "192.0.2.1", method: "GET", target: .string("/a?q=1"), status: 200)
        entry.bytes = 512
        entry.duration = 12_345_678
        entry.route = "github"
        entry.cacheStatus = .string("drydock; hit; ttl=5")
        entry.upstreamStatus = 304
        entry.upstreamTime = 2_000_000
        entry.userAgent = .string("curl/8 \"x\"")
        return entry
    }

    private static func line(_ format: AccessLineWriter.Format, _ entry: AccessEntry) -> String {
        var writer = AccessLineWriter(format)
        var bytes: [UInt8] = []
        // 2026-11-21 01:44:05.123 UTC
        writer.write(entry, time: 1_795_225_445_123_000_000, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a json line has every part`() throws {
        let line = Self.line(.json, Self.entry)
        #expect(
            line == """
                {"time":"2026-11-21T01:44:05.123Z","client":"192.0.2.1","method":"GET","target":"/a?q=1","status":200,\
                "bytes":512,"duration_ms":12.345,"service":"github","cache_status":"drydock; hit; ttl=5",\
                "upstream_status":304,"upstream_ms":2.000,"aborted":false}\n
                """
        )
    }

    @Test func `a combined line is what the usual tools read`() {
        #expect(
            Self.line(.combined, Self.entry)
                == #"192.0.2.1 - - [21/Nov/2026:01:44:05 +0000] "GET /a?q=1 HTTP/1.1" 200 512 "-" "curl/8 \x22x\x22""#
                + "\n"
        )
    }

    @Test func `a text line says when it was aborted`() {
        var entry = Self.entry
        entry.isAborted = true
        #expect(
            Self.line(.text, entry)
                == "2026-11-21T01:44:05.123Z 192.0.2.1 GET /a?q=1 200 512B 12.345ms github [drydock; hit; ttl=5] "
                + "origin=304 aborted\n"
        )
    }

    @Test(
        arguments: [
            ([0x2F, 0x22, 0x5C], #""target":"/\"\\""#), ([0x2F, 0x0A, 0x01], #""target":"/\u000a\u0001""#),
            ([0x2F, 0xC3, 0xA9], #""target":"/é""#), ([0x2F, 0xFF, 0xC3], #""target":"/\u00ff\u00c3""#),
        ] as [([UInt8], String)]
    )
    func `a json line stays valid whatever a client sends`(target: [UInt8], wanted: String) throws {
        try target.withUnsafeBytes { bytes in
            var entry = Self.entry
            entry.target = .bytes(bytes)
            let line = Self.line(.json, entry)
            #expect(line.contains(wanted))
            let document = try JSONSerialization.jsonObject(with: Data(line.utf8))
            #expect(document is [String: Any])
        }
    }

    @Test func `what is owned outlives its buffer`() {
        var entry = Self.entry
        var bytes: [UInt8] = Array("/gone".utf8)
        bytes.withUnsafeBytes { raw in
            entry.target = .bytes(raw)
            entry.own()
        }
        bytes = []
        #expect(Self.line(.text, entry).contains(" /gone "))
    }

    // MARK: - Over a server

    private static func lines(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map { line in
            try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    @Test func `every answer leaves one line, hot, waiting, refused, cut or left`() async throws {
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        try await ServerHarness.run(loops: 2, log: log) { harness in
            let client = try harness.client()
            _ = try client.exchange("/hot/10", fields: [("Authorization", "Basic secret")])
            _ = try client.exchange("/a?token=x", fields: [("Authorization", "Basic secret")])
            _ = try client.exchange("POST", "/echo", body: Array("abc".utf8))
            _ = try client.exchange("/problem")
            _ = try harness.client().exchange("/cut")
            let refused = try harness.client()
            try refused.send("bad\r\n\r\n")
            _ = try refused.readResponse()
            let leaving = try harness.client()
            try leaving.request("GET", "/wait")
            #expect(harness.observations.seen.wait(10) { $0.waiting == 1 })
            leaving.close()
            #expect(harness.observations.seen.wait(10) { $0.cancelled == 1 })
        }
        let text = folder.text("access.log")
        #expect(!text.contains("secret"))
        let lines = try Self.lines(text)
        #expect(lines.count == 7)
        func line(_ target: String) throws -> [String: Any] {
            try #require(lines.first { $0["target"] as? String == target })
        }
        let hot = try line("/hot/10")
        #expect(hot["cache_status"] as? String == "drydock; hit")
        #expect(hot["service"] as? String == "hot")
        #expect(hot["bytes"] as? Int == 10)
        #expect(hot["aborted"] as? Bool == false)
        let waiting = try line("/a?token=x")
        #expect(waiting["cache_status"] as? String == "drydock; fwd=uri-miss")
        #expect(waiting["upstream_status"] as? Int == 200)
        #expect(waiting["upstream_ms"] as? Double == 1.5)
        #expect(try line("/echo")["bytes"] as? Int == 3)
        #expect(try line("/problem")["status"] as? Int == 502)
        #expect(try line("/cut")["aborted"] as? Bool == true)
        #expect(try line("/wait")["status"] as? Int == 499)
        #expect(try line("/wait")["aborted"] as? Bool == true)
        let bad = try line("-")
        #expect(bad["status"] as? Int == 400)
        #expect(bad["method"] as? String == "-")
    }

    @Test func `a combined log names the program, on the hot path too`() async throws {
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        log.format = .combined
        try await ServerHarness.run(log: log) { harness in
            let client = try harness.client()
            for target in ["/hot/10", "/a"] {
                _ = try client.exchange(target, fields: [("User-Agent", "tester"), ("Referer", "http://r/")])
            }
        }
        let lines = folder.text("access.log").split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.allSatisfy { $0.hasSuffix(#""http://r/" "tester""#) && $0.hasPrefix("127.0.0.1 - - [") })
    }

    @Test func `a file that was moved away is opened anew`() async throws {
        let folder = try TemporaryFolder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        var log = LogConfiguration()
        log.access = .file(path: folder.file("access.log"))
        let sink = try AccessLogSink(log, pool: pool)
        sink.submit(Array("one\n".utf8))
        await sink.drain()
        try FileManager.default.moveItem(atPath: folder.file("access.log"), toPath: folder.file("old.log"))
        sink.submit(Array("two\n".utf8))
        await sink.drain()
        try sink.update(log)
        sink.submit(Array("three\n".utf8))
        await sink.drain()
        #expect(folder.text("old.log") == "one\ntwo\n")
        #expect(folder.text("access.log") == "three\n")
        log.access = .file(path: "/nowhere/access.log")
        #expect(throws: SystemError.self) { try sink.update(log) }
        sink.submit(Array("four\n".utf8))
        await sink.drain()
        #expect(folder.text("access.log") == "three\nfour\n")
    }

    @Test func `what nobody takes is dropped and counted`() async throws {
        let folder = try TemporaryFolder()
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        #expect(mkfifo(folder.file("pipe"), 0o600) == 0)
        // Holds the pipe open without reading.
        let reader = open(folder.file("pipe"), O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        var log = LogConfiguration()
        log.access = .file(path: folder.file("pipe"))
        let sink = try AccessLogSink(log, pool: pool)
        for _ in 0..<20 { sink.submit([UInt8](repeating: 10, count: 1 << 20)) }
        #expect(sink.droppedBuffers >= 1)
        await sink.drain()
        #expect(sink.droppedBuffers == 20)
    }

    @Test func `a reload changes where lines go and how they look`() async throws {
        let folder = try TemporaryFolder()
        var log = LogConfiguration()
        log.access = .file(path: folder.file("first.log"))
        let harness = try await ServerHarness(log: log)
        func exchange() async throws {
            let result = await withTaskExecutorPreference(BlockingExecutor.shared) {
                Result { try harness.exchange("/a") }
            }
            #expect(try result.get().status == 200)
        }
        try await exchange()
        let sink = try #require(harness.sink)
        #expect(await eventually { Self.size(folder.file("first.log")) > 0 })
        log.access = .file(path: folder.file("second.log"))
        log.format = .text
        try sink.update(log)
        try await exchange()
        log.access = .off
        #expect(await eventually { Self.size(folder.file("second.log")) > 0 })
        try sink.update(log)
        try await exchange()
        await harness.stop()
        #expect(folder.text("first.log").split(separator: "\n").count == 1)
        #expect(folder.text("second.log").hasSuffix("[drydock; fwd=uri-miss] origin=200\n"))
        #expect(folder.text("second.log").split(separator: "\n").count == 1)
    }

    private static func size(_ path: String) -> Int {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.size] as? Int) ?? 0
    }

    /// Looks every 10 ms, for at most 10 s; gives the thread up in between.
    private func eventually(_ holds: () -> Bool) async -> Bool {
        for _ in 0..<1000 {
            if holds() { return true }
            try? await Task.sleep(nanoseconds: 10_000_000)
        }
        return holds()
    }

    @Test func `a log that cannot be opened says which`() throws {
        let pool = try IOPool(threads: 1)
        defer { pool.stop() }
        var log = LogConfiguration()
        log.access = .file(path: "/nowhere/access.log")
        let error = #expect(throws: SystemError.self) { _ = try AccessLogSink(log, pool: pool) }
        #expect(error?.description == "open the access log /nowhere/access.log: No such file or directory")
    }
}
