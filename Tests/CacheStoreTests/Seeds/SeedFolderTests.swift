// Seed folders: what is found in them, what its head says, what is left out, and that nothing outside is ever read.

import EventLoop
import Foundation
import HTTPCaching
import HTTPWire
import LoopSupport
import Policies
import StoreSupport
import Synchronization
import Testing

@testable import CacheStore

/// A seed folder that a test writes.
final class SeedRig: Sendable {
    let folder = Folder()
    let pool: IOPool
    let troubles = Mutex<[String]>([])

    init() throws { pool = try IOPool(threads: 1) }

    deinit { pool.stop() }

    func write(_ name: String, _ text: String) throws { try write(name, Data(text.utf8)) }

    func write(_ name: String, _ data: Data) throws {
        let url = URL(fileURLWithPath: "\(folder.path)/\(name)")
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try data.write(to: url)
    }

    func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: "\(folder.path)/\(name)", withDestinationPath: target)
    }

    func open(_ layout: SeedLayout = .url, _ mode: SeedUse = .pinned, at path: String? = nil) throws -> SeedFolder {
        try SeedFolder(path: path ?? folder.path, layout: layout, mode: mode, pool: pool) { [self] trouble in
            troubles.withLock { $0.append(trouble) }
        }
    }

    func find(_ seed: SeedFolder, _ url: String, _ fields: [(String, String)] = []) async throws -> (
        head: StoredHead, text: String
    )? {
        let request = RequestHead(method: .get, target: "/", fields: Fields(fields))
        guard let found = await seed.lookup(CacheKey(service: "s", url: url), request: request) else { return nil }
        #expect(found.tier == .seed && found.hot == nil)
        let loop = try EventLoop.start(index: 0)
        defer { loop.stop() }
        let chunk = try await onLoop(loop) { loop -> Result<Chunk, BodyError> in
            do throws(BodyError) { return .success(try await found.body.load(on: loop)) } catch {
                return .failure(error)
            }
        }.get()
        return (found.head, String(decoding: chunk.array(0..<chunk.capacity), as: UTF8.self))
    }
}

@Suite struct SeedFolderTests {
    @Test func `a file alone is a whole response`() async throws {
        let rig = try SeedRig()
        try rig.write("a.example/b/c.json", "{}")
        try rig.write("a.example/index.html", "<p>")
        try rig.write("a.example/b c.txt", "space")
        try rig.write("a.example/q?x=1", "query")
        let seed = try rig.open()
        #expect(seed.count == 4)
        let found = try #require(try await rig.find(seed, "http://a.example/b/c.json"))
        #expect(found.text == "{}")
        #expect(found.head.status == 200 && found.head.bodyLength == 2)
        #expect(found.head.fields.first(.contentType) == "application/json")
        #expect(found.head.fields.contains(.lastModified) && found.head.fields.contains(.etag))
        #expect(found.head.fields.contains(.date))
        // Any scheme, and a trailing slash is the index.
        #expect(try await rig.find(seed, "https://a.example/b/c.json")?.text == "{}")
        #expect(try await rig.find(seed, "http://A.example:80/")?.text == "<p>")
        #expect(try await rig.find(seed, "http://a.example/b%20c.txt")?.text == "space")
        #expect(try await rig.find(seed, "http://a.example/q?x=1")?.text == "query")
        for other in [
            "http://a.example/q", "http://a.example/q?x=2", "http://b.example/", "http://a.example/b",
            "http://a.example:81/",
        ] {
            #expect(try await rig.find(seed, other) == nil, "\(other)")
            #expect(!seed.mayHave(CacheKey(service: "", url: other)), "\(other)")
        }
        #expect(rig.troubles.withLock { $0 }.isEmpty)
    }

    @Test func `a head beside the body says the rest`() async throws {
        let rig = try SeedRig()
        let head = """
            { "url": "https://a.example/x.bin", "status": 404, "reason": "Gone Fishing", "stored_at": "2026-01-02T03:04:05Z",
              "fields": [["Content-Type", "text/x-odd"], ["X-A", "1"], ["X-A", "2"], ["Connection", "X-Hop"], ["X-Hop", "h"],
                ["Content-Length", "99"], ["Set-Cookie", "a=b"], ["Age", "7"], ["ETag", "\\"e\\""]] }
            """
        try rig.write("a.example/x.bin", "body")
        try rig.write("a.example/x.bin.head.json", head)
        let seed = try rig.open()
        #expect(seed.count == 1)
        let found = try #require(try await rig.find(seed, "https://a.example/x.bin")).head
        #expect(found.status == 404 && found.reason == "Gone Fishing" && found.bodyLength == 4)
        #expect(found.fields.all("X-A") == ["1", "2"])
        #expect(found.fields.first(.etag) == "\"e\"" && found.fields.first(.contentType) == "text/x-odd")
        for field in [KnownField.contentLength, .setCookie, .age, .connection] {
            #expect(!found.fields.contains(field))
        }
        #expect(!found.fields.contains("X-Hop"))
        #expect(found.validatedAt == 1_767_323_045)
        // The head names the URL: another one with the same name is not meant.
        #expect(try await rig.find(seed, "http://a.example/x.bin") == nil)
    }

    @Test func `variants answer what they were selected by`() async throws {
        let rig = try SeedRig()
        let url = "http://a.example/v"
        for (number, language) in ["de", "en"].enumerated() {
            let name = SeedNames.hashed(url, number)
            try rig.write(name, language)
            let head = """
                { "url": "\(url)", "fields": [["Vary", "Accept-Language"]], "request": [["Accept-Language", "\(language)"]] }
                """
            try rig.write(name + SeedNames.headSuffix, head)
        }
        let seed = try rig.open()
        for language in ["de", "en"] {
            #expect(try await rig.find(seed, url, [("Accept-Language", language)])?.text == language)
        }
        #expect(try await rig.find(seed, url, [("Accept-Language", "fr")]) == nil)
        // Without a word about the request it answers all.
        try rig.write("a.example/w", "all")
        try rig.write("a.example/w.head.json", "{ \"fields\": [[\"Vary\", \"Accept-Language\"]] }")
        #expect(try await rig.find(rig.open(), "http://a.example/w", [("Accept-Language", "fr")])?.text == "all")
    }

    @Test(arguments: [
        "", "[]", "{ \"status\": 99 }", "{ \"status\": 206 }", "{ \"fields\": [[\"A\"]] }",
        "{ \"fields\": [[\"A B\", \"c\"]] }",
        "{ \"fields\": [[\"A\", \"b\\r\\nC: d\"]] }", "{ \"fields\": { \"A\": \"b\" } }", "\u{ff}",
    ]) func `a head that is none leaves its seed out, and says so once`(_ text: String) async throws {
        let rig = try SeedRig()
        try rig.write("a.example/x", "body")
        try rig.write("a.example/x.head.json", text)
        let seed = try rig.open()
        for _ in 0..<3 { #expect(try await rig.find(seed, "http://a.example/x") == nil) }
        let troubles = rig.troubles.withLock { $0 }
        #expect(troubles.count == 1)
        #expect(
            troubles.first?.contains("a.example/x is left out") == true && troubles.first?.contains("reload") == true
        )
        // Mended while it is in use.
        try rig.write("a.example/x.head.json", "{}")
        #expect(try await rig.find(seed, "http://a.example/x")?.text == "body")
    }

    @Test func `a changed file is served as it is, a lost one not at all, a new one after a reload`() async throws {
        let rig = try SeedRig()
        try rig.write("a.example/x", "one")
        let seed = try rig.open()
        let first = try #require(try await rig.find(seed, "http://a.example/x"))
        try rig.write("a.example/x", "second")
        let second = try #require(try await rig.find(seed, "http://a.example/x"))
        #expect(second.text == "second" && second.head.bodyLength == 6)
        #expect(second.head.fields.first(.etag) != first.head.fields.first(.etag))
        try FileManager.default.removeItem(atPath: "\(rig.folder.path)/a.example/x")
        #expect(try await rig.find(seed, "http://a.example/x") == nil)
        #expect(rig.troubles.withLock { $0.count } == 1)
        try rig.write("a.example/y", "new")
        #expect(try await rig.find(seed, "http://a.example/y") == nil)
        let again = try rig.open()
        #expect(again.identity != seed.identity)
        #expect(try await rig.find(again, "http://a.example/y")?.text == "new")
    }

    @Test func `nothing outside is read`() async throws {
        let rig = try SeedRig()
        let outside = try SeedRig()
        try outside.write("secret", "secret")
        try outside.write("a/secret", "secret")
        try rig.write("a.example/inside", "inside")
        try rig.link("a.example/file", to: "\(outside.folder.path)/secret")
        try rig.link("a.example/relative", to: "../../\(outside.folder.path.split(separator: "/").last ?? "")/secret")
        try rig.link("a.example/folder", to: outside.folder.path)
        try rig.link("b.example", to: outside.folder.path)
        try rig.link("a.example/loop", to: ".")
        try rig.link("a.example/same", to: "inside")
        try rig.link("a.example/dangling", to: "nothing")
        let seed = try rig.open()
        #expect(try await rig.find(seed, "http://a.example/same")?.text == "inside")
        for path in [
            "file", "relative", "folder/secret", "loop/inside", "dangling", "../secret", "%2e%2e/%2e%2e/etc/passwd",
        ] {
            #expect(try await rig.find(seed, "http://a.example/\(path)") == nil, "\(path)")
        }
        #expect(try await rig.find(seed, "http://b.example/secret") == nil)
        // What becomes a way out later is none either.
        try FileManager.default.removeItem(atPath: "\(rig.folder.path)/a.example/inside")
        try rig.link("a.example/inside", to: "\(outside.folder.path)/secret")
        #expect(try await rig.find(seed, "http://a.example/inside") == nil)
        try FileManager.default.removeItem(atPath: "\(rig.folder.path)/a.example/inside")
        #expect(mkfifo("\(rig.folder.path)/a.example/inside", 0o600) == 0)
        #expect(try await rig.find(seed, "http://a.example/inside") == nil)
    }

    @Test func `what is no folder is told`() throws {
        let rig = try SeedRig()
        try rig.write("file", "x")
        for (path, part) in [("/nowhere", "No such file"), ("/file", "not a folder")] {
            let error = #expect(throws: SeedError.self) { try rig.open(at: rig.folder.path + path) }
            #expect(error.map { "\($0)".contains(part) && "\($0)".contains("correct the path") } == true, "\(path)")
        }
    }

    // MARK: - Layout `docker`

    private static let url = "http://images.freeimages.com/images/previews/aaa/spanish-village-street-1445758.jpg"
    private static let name = "653ca195caf9f8c3870eea1a2144d72f_spanish-village-street-1445758.jpg"

    @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
    func `the old library's folder, with its dates`(_ format: PropertyListSerialization.PropertyListFormat) async throws
    {
        let rig = try SeedRig()
        try rig.write(Self.name, "jpeg")
        for (list, time) in [("ResourceInfos", 1_400_000_000.0), ("DownloadManagerExpirationDates", 1_500_000_000.0)] {
            let dates: [String: Any] = [Self.name: Date(timeIntervalSince1970: time), "odd": "text"]
            try rig.write(
                "\(list).plist",
                try PropertyListSerialization.data(fromPropertyList: dates, format: format, options: 0)
            )
        }
        let seed = try rig.open(.hashed)
        #expect(seed.count == 1)
        let found = try #require(try await rig.find(seed, Self.url))
        #expect(found.text == "jpeg")
        #expect(found.head.fields.first(.lastModified) == "Tue, 13 May 2014 16:53:20 GMT")
        #expect(found.head.fields.first(.contentType) == "image/jpeg")
        #expect(seed.dates.expiry(Self.name) == 1_500_000_000)
        #expect(try await rig.find(seed, Self.url + "x") == nil)
    }

    @Test func `without lists the dates are unknown, and a broken list is told`() async throws {
        let rig = try SeedRig()
        try rig.write(Self.name, "jpeg")
        let imported = try #require(try await rig.find(rig.open(.hashed, .imported), Self.url))
        #expect(!imported.head.fields.contains(.lastModified) && !imported.head.fields.contains(.etag))
        try rig.write("ResourceInfos.plist", "no list")
        let error = #expect(throws: SeedError.self) { try rig.open(.hashed) }
        #expect(error.map { "\($0)".contains("ResourceInfos.plist is not a property list") } == true)
    }
}
