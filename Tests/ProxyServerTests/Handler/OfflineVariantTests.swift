// Offline, a variant that another client has brought answers, as far as the request does not forbid it.

import CacheStore
import DownloadCore
import Foundation
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5)))
struct OfflineVariantTests {
    private static let codings = [("Accept-Encoding", "gzip, br")]

    /// Answers in gzip who accepts it.
    private static func origin(_ coded: [UInt8], _ fields: [(String, String)] = []) throws -> ScriptedOrigin {
        let all =
            fields + [
                ("Cache-Control", "max-age=600"), ("Vary", "Accept-Encoding, Cookie"), ("ETag", "\"coded\""),
                ("Content-Type", "application/json"), ("Content-Encoding", "gzip"),
            ]
        return try ScriptedOrigin { _ in
            OriginReply([OriginReply.head(200, fields: all + [("Content-Length", "\(coded.count)")]), .bytes(coded)])
        }
    }

    private static func text(_ origin: ScriptedOrigin) -> String {
        "services: [{ name: api, match: { prefix: /api }, base_url: \"\(origin.url)\" }]"
    }

    private static var gzip: [UInt8] { Coded.jsonBy.first { $0.0 == "gzip" }?.1 ?? [] }

    @Test func `a variant that is not forbidden answers, with its coding or without`() async throws {
        let origin = try Self.origin(Self.gzip)
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            #expect(try harness.get("/api/x", fields: Self.codings).body == Self.gzip)
            try harness.settle()
            harness.core.isOffline = true
            for accept in ["deflate, gzip, br, zstd", "gzip, deflate", "*"] {
                let answer = try harness.get("/api/x", fields: [("Accept-Encoding", accept)])
                #expect(answer.status == 200 && answer.body == Self.gzip, "\(accept)")
                #expect(answer.field("Content-Encoding") == "gzip" && answer.field("ETag") == "\"coded\"")
                #expect(answer.field("Cache-Status")?.contains("hit; ttl=") == true)
                #expect(answer.field("Cache-Control") == "no-store")
                #expect(answer.field("Cache-Status")?.contains("detail=other-variant") == true)
            }
            for fields in [[], [("Accept-Encoding", "zstd")]] {
                let answer = try harness.get("/api/x", fields: fields)
                #expect(answer.status == 200 && answer.body == Coded.json)
                #expect(answer.field("Content-Encoding") == nil && answer.field("Content-Length") == nil)
                let tag = try #require(answer.field("ETag"))
                #expect(tag != "\"coded\"")
                #expect(try harness.get("/api/x", fields: fields + [("If-None-Match", tag)]).status == 304)
                #expect(try harness.get("/api/x", fields: fields + [("Range", "bytes=0-1")]).body == Coded.json)
                let head = try harness.exchange("HEAD", "/api/x", fields: fields)
                #expect(head.status == 200 && head.field("ETag") == tag && head.field("Content-Length") == nil)
            }
            // Who selects it gets it as ever.
            let same = try harness.get("/api/x", fields: Self.codings)
            #expect(same.field("Cache-Status")?.contains("detail=memory") == true)
            #expect(origin.requests() == 1)
            let explained = try harness.explanation("/api/x")
            #expect(explained.contains("other-variant") && explained.contains("configuration, offline"), "\(explained)")
        }
    }

    /// A service in front would give it to others, when its origin is asked again.
    @Test func `nobody stores what answers in the place of another`() async throws {
        let origin = try Self.origin(Self.gzip)
        let outer = ", { name: outer, match: { prefix: /outer }, base_url: service:api }]"
        try await HandlerHarness.run(Self.text(origin).dropLast() + outer) { harness throws in
            let wanted = [("Accept-Encoding", "zstd")]
            _ = try harness.get("/api/x", fields: Self.codings)
            try harness.settle()
            harness.core.isOffline = true
            #expect(try harness.get("/outer/x", fields: wanted).body == Coded.json)
            try harness.settle()
            harness.core.isOffline = false
            let answer = try harness.get("/outer/x", fields: wanted)
            #expect(answer.body == Self.gzip && origin.requests() == 2, "the origin says what it is for these fields")
        }
    }

    @Test func `what is forbidden is a 504 that names what there is`() async throws {
        let origin = try Self.origin(Self.gzip, [("Cache-Control", "no-transform")])
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            _ = try harness.get("/api/x", fields: Self.codings + [("Cookie", "id=s3cret")])
            try harness.settle()
            // Online it is a miss.
            #expect(try harness.get("/api/y", fields: [("Accept-Encoding", "zstd")]).status == 200)
            harness.core.isOffline = true
            let cookie = ("Cookie", "id=s3cret")
            for fields in [
                [cookie, ("Accept-Encoding", "zstd")], [cookie, ("Accept", "text/html")], Self.codings,
                Self.codings + [("Cookie", "id=other")],
            ] {
                let answer = try harness.get("/api/x", fields: fields)
                #expect(answer.status == 504, "\(fields)")
                #expect(answer.text.contains("application/json, coded in gzip"), "\(answer.text)")
                #expect(
                    answer.text.contains("accept-encoding 'gzip, br'") && answer.text.contains("drydock offline off")
                )
                #expect(!answer.text.contains("s3cret"))
            }
            #expect(try harness.get("/api/z").text.contains("nothing is stored for this request"))
        }
    }

    /// A few coded bytes unfold to many.
    @Test func `a decoded body is in memory piece by piece`() async throws {
        let folder = try TemporaryFolder("drydock-variants")
        try Shell.must("sh", ["-c", "head -c 67108864 /dev/zero | gzip -9 > '\(folder.file("zeros"))'"])
        let coded = try Array(Data(contentsOf: URL(fileURLWithPath: folder.file("zeros"))))
        let origin = try Self.origin(coded)
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            _ = try harness.get("/api/x", fields: Self.codings)
            try harness.settle()
            harness.core.isOffline = true
            let client = try harness.client()
            try client.request("GET", "/api/x")
            #expect(try client.readHead().status == 200)
            var (count, most) = (0, 0)
            _ = try client.readBody { bytes in
                count += bytes.count
                most = max(most, harness.core.budget.used)
            }
            #expect(count == 67_108_864)
            #expect(most < 8 << 20, "\(most) bytes")
            // Who leaves early holds nothing.
            let leaver = try harness.client()
            try leaver.request("GET", "/api/x")
            #expect(try leaver.readHead().status == 200)
            leaver.reset()
            #expect(blockUntil { harness.core.budget.used < 1 << 20 })
        }
    }
}
