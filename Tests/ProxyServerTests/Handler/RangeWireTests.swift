// Ranges through the whole server: how one part and several stand on the wire, also behind another service.

import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct RangeWireTests {
    private static let text = "0123456789abcdefghij"

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            let fields = [("Cache-Control", "max-age=600"), ("ETag", "\"a\""), ("Content-Type", "text/plain")]
            return .answer(to: request, fields: fields, text)
        }
    }

    @Test func `several parts are one body of known length, and the connection goes on`() async throws {
        let origin = try Self.origin()
        let services = "services: [{ name: s, match: { prefix: /s }, base_url: \"\(origin.url)\" }]"
        try await HandlerHarness.run(services) { harness throws in
            let client = try harness.client()
            #expect(try client.exchange("/s/x").text == Self.text)
            let got = try client.exchange("/s/x", fields: [("Range", "bytes=15-,0-1")])
            #expect(got.status == 206 && got.field("Content-Range") == nil)
            let type = try #require(got.field("Content-Type"))
            let boundary = type.dropFirst("multipart/byteranges; boundary=".count)
            #expect(type.hasPrefix("multipart/byteranges; boundary=") && !boundary.isEmpty)
            let expected = [
                "--\(boundary)", "Content-Type: text/plain", "Content-Range: bytes 15-19/20", "", "fghij",
                "--\(boundary)", "Content-Type: text/plain", "Content-Range: bytes 0-1/20", "", "01",
                "--\(boundary)--", "",
            ].joined(separator: "\r\n")
            #expect(got.text == expected && got.field("Content-Length") == "\(expected.utf8.count)")
            #expect(got.field("Cache-Status")?.hasPrefix("drydock; hit; ttl=") == true)
            #expect(got.field("Age") != nil && got.field("Via") == "1.1 drydock")
            let one = try client.exchange("/s/x", fields: [("Range", "bytes=-3")])
            #expect(one.status == 206 && one.text == "hij" && one.field("Content-Range") == "bytes 17-19/20")
            #expect(one.field("Content-Length") == "3" && one.field("Content-Type") == "text/plain")
            let none = try client.exchange("/s/x", fields: [("Range", "bytes=20-")])
            #expect(none.status == 416 && none.field("Content-Range") == "bytes */20")
            #expect(origin.requests() == 1)
        }
    }

    @Test func `a service in front of another one stores the parts that it gets`() async throws {
        let origin = try Self.origin()
        let services = """
            services:
              - { name: inner, match: { prefix: /inner }, base_url: "\(origin.url)" }
              - { name: outer, match: { prefix: /outer }, base_url: service:inner }
            """
        try await HandlerHarness.run(services) { harness throws in
            #expect(try harness.get("/inner/x").text == Self.text)
            let first = try harness.get("/outer/x", fields: [("Range", "bytes=2-4")])
            #expect(first.status == 206 && first.text == "234" && first.field("Content-Range") == "bytes 2-4/20")
            #expect(first.head.all("Cache-Status").last?.contains("fwd=uri-miss; fwd-status=206; stored") == true)
            let second = try harness.get("/outer/x", fields: [("Range", "bytes=3-3")])
            #expect(second.text == "3" && second.head.all("Cache-Status").last?.contains("; hit; ") == true)
            let whole = try harness.get("/outer/x")
            #expect(whole.status == 200 && whole.text == Self.text)
            #expect(whole.head.all("Cache-Status").last?.contains("fwd=partial; fwd-status=206; stored") == true)
            #expect(origin.requests() == 1)
        }
    }
}
