// What a mapped fetch asks its origin for, and what it makes of the answer.

import DownloadCore
import HTTPCaching
import HTTPWire
import Mapping
import TestSupport
import Testing

@testable import ServiceCore

@Suite(.timeLimit(.minutes(5)))
struct MappingSourceTests {
    private static func rule(_ path: String) throws -> MappingRule { MappingRule(from: try MappingPath(path)) }

    private static func mapping(buffer: Int = 1 << 20) throws -> ResponseMapping {
        let root = MappingRule(.object([.init(name: "n", rule: try rule("user.name"))]))
        return ResponseMapping(MappingPlan(root), buffer: buffer, owner: "service 'people'")
    }

    private static let document = Array(#"{"user": {"name": "Ada"}, "more": [1, 2]}"#.utf8)
    private static let said = [("ETag", "\"o\""), ("Last-Modified", "yesterday"), ("Cache-Control", "max-age=5")]

    private func run(
        _ script: SourceScript,
        _ method: HTTPWire.Method = .get,
        _ fields: [(String, String)] = [],
        isCheck: Bool = false,
        buffer: Int = 1 << 20,
        isSuccess: @escaping @Sendable (Int) -> Bool = { $0 < 400 }
    ) async throws -> SourceRun {
        let mapping = try Self.mapping(buffer: buffer)
        return try await play(script, method, fields, isCheck: isCheck) {
            MappingSource($0, mapping, isStored: true, isSuccess: isSuccess)
        }
    }

    @Test(
        "the document is mapped, whatever the pieces are, and keeps beside it what the origin said",
        arguments: [1, 7, 999]
    )
    func mapped(_ piece: Int) async throws {
        let run = try await run(SourceScript(fields: Self.said, body: Self.document, piece: piece))
        #expect(run.text == #"{"n":"Ada"}"# && run.isOver && run.error == nil && run.framing == .length(11))
        #expect(run.field("Content-Type") == "application/json" && run.field("Content-Length") == "11")
        #expect(run.field("Last-Modified") == nil && run.field("Cache-Control") == "max-age=5")
        let tag = try #require(run.field("ETag"))
        #expect(tag != "\"o\"" && run.field("Drydock-Mapped-ETag") == "\"o\"")
        #expect(run.field("Drydock-Mapped-Length") == "\(Self.document.count)")
    }

    @Test("the origin is asked for the whole in the identity coding, and hears nothing of the client's conditions")
    func asked() async throws {
        let fields = [("Accept-Encoding", "br"), ("Range", "bytes=0-1"), ("If-None-Match", "\"c\""), ("X-A", "1")]
        let plain = try await run(SourceScript(body: Self.document), .get, fields)
        #expect(plain.asked.first("Accept-Encoding") == "identity" && plain.asked.first("X-A") == "1")
        #expect(plain.asked.first("Range") == nil && plain.asked.first("If-None-Match") == nil)
        // Those of a check are the origin's own.
        let check = try await run(SourceScript(status: 304, framing: BodyFraming.none), .get, fields, isCheck: true)
        #expect(check.asked.first("If-None-Match") == "\"c\"" && check.status == 304)
        let options = try await run(SourceScript(body: Self.document), .options, fields)
        #expect(options.asked.first("Accept-Encoding") == "br" && options.body == Self.document)
    }

    @Test("what is no success, or has no content, stays as it is")
    func unmapped() async throws {
        for script in [
            SourceScript(status: 404, fields: Self.said, body: Array("gone".utf8)),
            SourceScript(status: 204, fields: Self.said, framing: BodyFraming.none),
            SourceScript(status: 302, fields: Self.said, body: Self.document),
        ] {
            let run = try await run(script)
            #expect(run.body == script.body && run.status == script.status && run.field("ETag") == "\"o\"")
        }
        let other = try await run(SourceScript(status: 202, body: Self.document), isSuccess: { $0 == 200 })
        #expect(other.body == Self.document && other.status == 202)
    }

    @Test("a document that cannot be mapped is a failure that names its owner, and ends the fetch")
    func failure() async throws {
        let run = try await run(SourceScript(fields: Self.said, body: Array("{ broken".utf8)))
        guard case .mapping(let message)? = run.error else { return #expect(Bool(false), "\(run)") }
        #expect(message.hasPrefix("the answer for service 'people' cannot be mapped: "))
        #expect(run.head == nil && run.body.isEmpty && run.isCancelled)
        let part = try await self.run(SourceScript(status: 206, body: Self.document))
        #expect(part.error != nil && part.head == nil)
        let coded = try await self.run(SourceScript(fields: [("Content-Encoding", "zstd")], body: Self.document))
        #expect(coded.error != nil && coded.head == nil)
    }

    @Test("a long document streams, and a failure in it comes behind the head")
    func long() async throws {
        let filler = String(repeating: "x", count: 5000)
        let text = #"{"filler": ["\#(filler)", "\#(filler)"], "user": {"name": "Ada"}"#
        let whole = try await run(SourceScript(body: Array((text + "}").utf8), piece: 100), buffer: 6000)
        #expect(whole.text == #"{"n":"Ada"}"# && whole.framing == .chunked && whole.error == nil)
        let cut = try await run(SourceScript(body: Array((text + ", ]").utf8), piece: 100), buffer: 6000)
        #expect(cut.status == 200 && cut.error != nil)
    }

    @Test("of a compressed document a sink that holds back gets one piece at a time, and the source hears that it does")
    func heldBack() async throws {
        let body = Coded.longDocument(strings: 600)
        let script = SourceScript(fields: [("Content-Encoding", "gzip")], body: body)
        let mapping = try Self.mapping(buffer: 1 << 16)
        let run = try await play(script, isSlow: true) { MappingSource($0, mapping, isStored: false) }
        #expect(run.error == nil && run.isOver)
        let filler = "\"" + String(repeating: "x", count: 4000) + "\","
        #expect(run.text == #"{"n":["# + String(repeating: filler, count: 600) + "0]}")
        // The first part is what was held for the mapping: the buffer and the piece which did not fit into it.
        #expect(run.mostAtOnce <= 2 << 16, "\(run.mostAtOnce)")
        #expect(run.atOnce == 1000 && run.pauses == 1)
    }

    @Test("a compressed document that is cut, or broken, fails behind what a slow sink has taken")
    func heldBackAndBroken() async throws {
        let body = Coded.longDocument(strings: 600)
        let mapping = try Self.mapping(buffer: 1 << 16)
        for broken in [Array(body.dropLast(30)), body + [1, 2, 3]] {
            let script = SourceScript(fields: [("Content-Encoding", "gzip")], body: broken)
            let run = try await play(script, isSlow: true) { MappingSource($0, mapping, isStored: false) }
            guard case .mapping? = run.error else { return #expect(Bool(false), "\(String(describing: run.error))") }
        }
    }

    @Test("a failure of the origin stays one")
    func originFails() async throws {
        let script = SourceScript(body: Array(Self.document.dropLast()), framing: .chunked, failure: .inner("cut"))
        let run = try await run(script)
        #expect(run.error == .inner("cut") && run.head == nil)
    }
}
