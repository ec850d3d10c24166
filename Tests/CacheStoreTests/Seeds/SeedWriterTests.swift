// Seeds that are written: readable, each under a name of its own, and found again as they were.

import EventLoop
import Foundation
import HTTPCaching
import HTTPWire
import StoreSupport
import Testing

@testable import CacheStore

@Suite struct SeedWriterTests {
    private func response(_ url: String, _ body: Body, _ fields: [(String, String)] = [], language: String? = nil)
        -> StoredResponse
    {
        let vary = language.map { [("Accept-Language", $0)] } ?? []
        var head = storedHead(vary: vary)
        for (name, value) in fields { head.fields.append(name, value) }
        if language != nil { head.fields.set(.vary, "Accept-Language") }
        return StoredResponse(
            key: CacheKey(service: "s", url: url),
            head: head,
            body: body,
            preparedHead: [],
            hot: nil,
            tier: .memory
        )
    }

    @Test func `what is written is found again, and can be read without us`() async throws {
        let rig = try SeedRig()
        let path = rig.folder.path + "/new/seed"
        let writer = try SeedWriter(path, pool: rig.pool)
        let long = Array(pattern(600_000))
        try Data(long).write(to: URL(fileURLWithPath: rig.folder.path + "/long"))
        let file = try SharedFile.open(rig.folder.path + "/long", pool: rig.pool)
        let odd = "http://a/" + String(repeating: "x", count: 300)
        let responses: [(String, Body)] = [
            ("http://a/b/c.json", .complete(Array("{}".utf8))), ("http://a/b", .complete(Array("file".utf8))),
            ("https://a/b/c.json", .complete(Array("tls".utf8))), ("http://a/", .complete(Array("root".utf8))),
            ("http://a/index.html", .complete(Array("index".utf8))), ("http://a/empty", .complete([])),
            ("http://a/long", .file(file, offset: 0, length: Int64(long.count))), (odd, .complete(Array("odd".utf8))),
            ("http://a/q?x=/../..", .complete(Array("query".utf8))),
            ("http://a/../../b", .complete(Array("dots".utf8))),
        ]
        for (url, body) in responses {
            try await writer.write(response(url, body, [("X-A", "1"), ("Set-Cookie", "a=b")]))
        }
        #expect(writer.tally.written == responses.count)
        #expect(writer.tally.bytes == responses.reduce(0) { $0 + ($1.1.knownLength ?? 0) })
        #expect(Folder.names(in: rig.folder.path + "/new") == ["seed"])
        #expect(Folder.names(in: path) == ["a"], "nothing is left, and nothing leads out")
        #expect(try String(contentsOfFile: path + "/a/b/c.json", encoding: .utf8) == "{}")
        let document = try JSONSerialization.jsonObject(
            with: Data(contentsOf: URL(fileURLWithPath: path + "/a/b/c.json.head.json"))
        )
        let head = try #require(document as? [String: Any])
        #expect(head["url"] as? String == "http://a/b/c.json" && head["status"] as? Int == 200)
        #expect((head["fields"] as? [[String]])?.contains(["X-A", "1"]) == true)
        let seed = try rig.open(at: path)
        for (url, body) in responses {
            let found = try #require(try await rig.find(seed, url), "\(url)")
            #expect(found.head.bodyLength == body.knownLength, "\(url)")
            if let chunk = body.wholeChunk {
                #expect(Array(found.text.utf8) == chunk.array(0..<chunk.capacity), "\(url)")
            }
            #expect(found.head.fields.first("X-A") == "1" && !found.head.fields.contains(.setCookie))
        }
        // Again: each in its own place.
        let again = try SeedWriter(path, pool: rig.pool)
        let count = try rig.open(at: path).count
        for (url, body) in responses { try await again.write(response(url, body)) }
        #expect(try rig.open(at: path).count == count)
        #expect(try await rig.find(rig.open(at: path), "http://a/b/c.json")?.head.fields.contains("X-A") == false)
    }

    @Test func `variants lie side by side`() async throws {
        let rig = try SeedRig()
        let writer = try SeedWriter(rig.folder.path, pool: rig.pool)
        for language in ["de", "en", "fr"] {
            try await writer.write(response("http://a/v", .complete(Array(language.utf8)), language: language))
        }
        let seed = try rig.open()
        #expect(seed.count == 3)
        for language in ["de", "en", "fr"] {
            #expect(try await rig.find(seed, "http://a/v", [("Accept-Language", language)])?.text == language)
        }
        #expect(try await rig.find(seed, "http://a/v", [("Accept-Language", "it")]) == nil)
    }

    @Test func `a folder that cannot be had, and a way out of it`() async throws {
        let rig = try SeedRig()
        try rig.write("file", "x")
        #expect(throws: SeedError.self) { try SeedWriter(rig.folder.path + "/file/below", pool: rig.pool) }
        let outside = try SeedRig()
        try rig.link("a", to: outside.folder.path)
        let writer = try SeedWriter(rig.folder.path, pool: rig.pool)
        await #expect(throws: (any Error).self) {
            try await writer.write(response("http://a/x", .complete(Array("x".utf8))))
        }
        #expect(Folder.names(in: outside.folder.path).isEmpty)
        #expect(Folder.names(in: rig.folder.path) == ["a", "file"])
    }
}
