// Which answers are given another shape, and what of them is kept.

import CacheStore
import DownloadCore
import EventLoop
import HTTPCaching
import HTTPWire
import LoopSupport
import Mapping
import TestSupport
import Testing
import Upstream

@testable import ServiceCore

@Suite(.timeLimit(.minutes(5)))
struct ErrorMappingTests {
    /// What a client would get.
    private struct Sent: Sendable {
        var head: ResponseHead
        var body: [UInt8]?
        var length: Int64?
        var document: [UInt8]?
        var age: Int64?

        var text: String? { body.map { String(decoding: $0, as: UTF8.self) } }
        var documentText: String? { document.map { String(decoding: $0, as: UTF8.self) } }
    }

    private static func mapping(buffer: Int = 1 << 20) throws -> ErrorMapping {
        let names = ["status", "code", "message", "service", "endpoint", "source", "body"]
        let members = try names.map {
            MappingRule.Member(name: String($0.prefix(2)), rule: MappingRule(from: try MappingPath($0)))
        }
        let root = MappingRule(.object(members))
        return ErrorMapping(MappingPlan(root), buffer: buffer, service: "people", endpoint: "list")
    }

    private func send(
        _ status: Int,
        _ fields: [(String, String)] = [],
        _ body: [UInt8]?,
        failure: FetchError? = nil,
        isStandIn: Bool = false,
        isUnsatisfiable: Bool = false,
        isHead: Bool = false,
        buffer: Int = 1 << 20,
        isSuccess: @escaping @Sendable (Int) -> Bool = { $0 < 400 }
    ) async throws -> Sent {
        let loop = try EventLoop.start()
        defer { loop.stop() }
        let mapping = try Self.mapping(buffer: buffer)
        return await onLoop(loop) { loop in
            var answer = Answer(
                head: ResponseHead(status: status, reason: "Why", fields: Fields(fields)),
                reader: body.flatMap { Body.complete($0).makeReader(on: loop) },
                length: body.map { Int64($0.count) },
                age: 7,
                cacheStatus: nil,
                failure: failure
            )
            answer.isStandIn = isStandIn
            answer.isUnsatisfiable = isUnsatisfiable
            let (made, document) = await mapping.apply(to: answer, isSuccess: isSuccess, isHead: isHead, on: loop)
            var sent = Sent(head: made.head, length: made.length, document: document, age: made.age)
            if let reader = made.reader {
                var bytes: [UInt8] = []
                while let piece = try? await reader.next(maxBytes: 1 << 20, on: loop) {
                    if let part = try? await piece.load(on: loop) {
                        bytes += part.chunk.withBytes { Array($0[part.range]) }
                    }
                }
                sent.body = bytes
            }
            return sent
        }
    }

    @Test("a 416 of this daemon's stays as it is, and one of the origin's keeps its length")
    func unsatisfiable() async throws {
        let fields = [("Content-Range", "bytes */17")]
        let own = try await send(416, fields, nil, isUnsatisfiable: true)
        #expect(own.body == nil && own.document == nil && own.head.fields.first(.contentRange) == "bytes */17")
        let origins = try await send(416, fields + [("ETag", "\"1\"")], Array("no".utf8))
        #expect(origins.head.fields.first(.contentRange) == "bytes */17" && !origins.head.fields.contains(.etag))
        #expect(origins.text?.contains("http_416") == true)
    }

    @Test("content that is longer as JSON than what may be held is left out")
    func long() async throws {
        let controls = [UInt8](repeating: 1, count: 900)
        let plain = [("Content-Type", "text/plain")]
        #expect(try await send(500, plain, controls, buffer: 1000).text?.contains("\"bo\":null") == true)
        #expect(try await send(500, plain, controls, buffer: 6000).text?.contains("\\u0001") == true)
    }

    @Test("an error of the origin: its status and fields stay, its content goes into the document")
    func origin() async throws {
        let fields = [
            ("Content-Type", "application/problem+json"), ("ETag", "\"o\""), ("Last-Modified", "yesterday"),
            ("Content-Length", "10"), ("Retry-After", "5"), ("Cache-Control", "max-age=3"),
            ("WWW-Authenticate", "Basic"),
            ("Content-MD5", "x"), ("Repr-Digest", "sha-256=:AA==:"), ("Vary", "Accept-Encoding, Accept"),
        ]
        let sent = try await send(401, fields, Array(#"{"why": 1}"#.utf8))
        #expect(
            sent.text
                == #"{"st":401,"co":"http_401","me":"Why","se":"people","en":"list","so":"origin","bo":{"why": 1}}"#
        )
        #expect(sent.head.status == 401 && sent.length == sent.body.map { Int64($0.count) } && sent.age == 7)
        #expect(sent.document == nil)
        for (name, value) in [
            ("Content-Type", "application/json"), ("Retry-After", "5"), ("Cache-Control", "max-age=3"),
            ("WWW-Authenticate", "Basic"), ("Vary", "Accept"),
        ] { #expect(sent.head.fields.first(name) == value, "\(name)") }
        for name in ["ETag", "Last-Modified", "Content-Length", "Content-MD5", "Repr-Digest"] {
            #expect(sent.head.fields.first(name) == nil, "\(name)")
        }
    }

    @Test("codings are taken off; what is too long, broken or no text is no body")
    func content() async throws {
        for (coding, body) in Coded.htmlBy {
            let sent = try await send(500, [("Content-Encoding", coding), ("Content-Type", "text/html")], body)
            #expect(sent.text?.contains(#""bo":"<"#) == true && sent.head.fields.first("Content-Encoding") == nil)
        }
        let text = Array(#"{"a":1}"#.utf8)
        #expect(try await send(500, [], text, buffer: 7).text?.hasSuffix(#""bo":{"a":1}}"#) == true)
        for (fields, body, buffer) in [
            ([], text, 6), ([("Content-Encoding", "zstd")], text, 100), ([("Content-Encoding", "gzip")], text, 100),
            ([("Content-Type", "image/png")], [0xFF, 0xD8], 100), ([], [], 100),
        ] as [([(String, String)], [UInt8], Int)] {
            #expect(try await send(500, fields, body, buffer: buffer).text?.hasSuffix(#""bo":null}"#) == true)
        }
        let coding = try #require(Coded.htmlBy.first { $0.0 == "gzip" })
        let short = Array(coding.1.dropLast(9))
        #expect(
            try await send(500, [("Content-Encoding", "gzip")], short).text?.hasSuffix(#""bo":null}"#) == true
        )
    }

    @Test("a HEAD says what is known without the content")
    func head() async throws {
        let fields = [("Content-Length", "9"), ("ETag", "\"o\""), ("Retry-After", "5")]
        let sent = try await send(503, fields, nil, isHead: true)
        #expect(sent.body == nil && sent.length == nil && sent.head.fields.first("Content-Length") == nil)
        #expect(sent.head.fields.first("ETag") == nil && sent.head.fields.first("Retry-After") == "5")
        #expect(sent.head.fields.first("Content-Type") == "application/json")
    }

    @Test("successes, stand-ins and what has no content by its status stay as they are")
    func untouched() async throws {
        let body = Array("body".utf8)
        for status in [200, 206, 301, 304] { #expect(try await send(status, [], body).body == body) }
        #expect(try await send(503, [], body, isStandIn: true).body == body)
        #expect(try await send(404, [], body, isSuccess: { $0 == 404 }).body == body)
        #expect(try await send(202, [], body, isSuccess: { $0 == 200 }).text?.contains("http_202") == true)
        #expect(try await send(204, [], nil, isSuccess: { $0 == 200 }).body == nil)
    }

    @Test("a failure that Drydock found has a document beside it; what concerns the request has none")
    func failures() async throws {
        let refused = FetchError.upstream(UpstreamError(.connectionRefused, detail: "nobody listens"))
        let sent = try await send(502, [], nil, failure: refused)
        #expect(sent.documentText?.hasPrefix(#"{"st":502,"co":"connection_refused","me":"#) == true)
        #expect(sent.documentText?.hasSuffix(#""so":"drydock","bo":null}"#) == true && sent.body == nil)
        for (failure, code) in [
            (.notAdmitted("full"), "connection_limit_reached"),
            (.unavailable("open", seconds: 3), "destination_unavailable"),
            (.parkExpired("late"), "destination_unavailable"), (.offline("off"), "destination_unavailable"),
            (.mapping("bad"), "proxy_internal_error"), (.type("html"), "proxy_internal_error"),
            (.redirect("loop"), "http_protocol_error"), (.stopped("cancel"), "connection_terminated"),
        ] as [(FetchError, String)] {
            let text = try await send(502, [], nil, failure: failure).documentText ?? ""
            #expect(text.contains(#""st":\#(failure.status),"co":"\#(code)","me":"\#(failure.told)""#), "\(text)")
        }
        for failure in [
            .onlyIfCached("no"), .cancelled, .upstream(UpstreamError(.requestBody, detail: "cut")),
            .upstream(UpstreamError(.request, detail: "bad")),
        ] as [FetchError] {
            #expect(try await send(504, [], nil, failure: failure).document == nil)
        }
    }
}
