// Answer files: read whole, typed by extension, refused with their path.

import DemoMode
import Glibc
import Testing

@Suite final class DemoFileTests {
    let folder: String

    init() throws {
        var template = Array("/tmp/drydock-demo-XXXXXX".utf8CString)
        folder = try #require(mkdtemp(&template).map { String(cString: $0) })
    }

    deinit {
        for name in ["empty.json", "large.png", "pipe", "a.json"] { unlink("\(folder)/\(name)") }
        rmdir(folder)
    }

    func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = "\(folder)/\(name)"
        let file = try #require(fopen(path, "w"))
        #expect(fwrite(bytes, 1, bytes.count, file) == bytes.count)
        #expect(fclose(file) == 0)
        return path
    }

    @Test func readsEveryByte() throws {
        let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let file = try DemoFile.load(path: write("large.png", bytes))
        #expect(file.bytes == bytes)
        #expect(file.contentType == "image/png")
    }

    @Test("the entity tag is that of the bytes: another one for each change, and the same under another name")
    func entityTags() throws {
        func tag(_ bytes: [UInt8]) -> String { DemoFile(path: "a", bytes: bytes, contentType: "b").entityTag }
        let tags = [[], [0], [0, 0], [1], [1, 2], [2, 1]].map(tag)
        #expect(Set(tags).count == tags.count)
        #expect(tags.allSatisfy { $0.wholeMatch(of: /"[0-9a-f]+-[0-9a-f]+"/) != nil }, "\(tags)")
        #expect(DemoFile(path: "c", bytes: [1, 2], contentType: "d").entityTag == tags[4])
        #expect(try DemoFile.load(path: write("a.json", [1, 2])).entityTag == tags[4])
    }

    @Test func readsAnEmptyFile() throws {
        #expect(try DemoFile.load(path: write("empty.json", [])).bytes.isEmpty)
    }

    @Test func refusesAMissingFile() {
        let path = "\(folder)/none.json"
        #expect(throws: DemoFileError(path: path, reason: .missing)) { try DemoFile.load(path: path) }
    }

    @Test func refusesAFolder() {
        #expect(throws: DemoFileError(path: folder, reason: .notARegularFile)) { try DemoFile.load(path: self.folder) }
    }

    @Test func refusesANamedPipeWithoutWaiting() {
        let path = "\(folder)/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        #expect(throws: DemoFileError(path: path, reason: .notARegularFile)) { try DemoFile.load(path: path) }
    }

    @Test func refusesAFileOverTheLimitAndTakesOneAtIt() throws {
        let path = try write("a.json", [1, 2, 3, 4])
        #expect(try DemoFile.load(path: path, limit: 4).bytes == [1, 2, 3, 4])
        #expect(throws: DemoFileError(path: path, reason: .tooLarge(limit: 3))) {
            try DemoFile.load(path: path, limit: 3)
        }
    }

    @Test(
        arguments: [
            .missing, .notARegularFile, .tooLarge(limit: 3), .unreadable(errno: EACCES),
        ] as [DemoFileError.Reason]
    )
    func errorsNameThePath(reason: DemoFileError.Reason) {
        #expect("\(DemoFileError(path: "/x/user.json", reason: reason))".contains("/x/user.json"))
    }

    @Test(
        arguments: [
            ("/a/user.json", "application/json"), ("/a/user.JSON", "application/json"),
            ("page.html", "text/html; charset=utf-8"), ("/a.png/x", "application/octet-stream"),
            ("/a/.json", "application/octet-stream"), ("/a/b.", "application/octet-stream"),
            ("/a/b.tar.gz", "application/gzip"), ("b.unknown", "application/octet-stream"),
            ("", "application/octet-stream"),
        ]
    )
    func typesByExtension(path: String, type: String) {
        #expect(mediaType(forPath: path) == type)
    }
}
