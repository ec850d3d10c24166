// What the files of seeds are called: readable names, the names of the old download manager, and
// no way out of the folder.

import HTTPCaching
import Policies
import Testing

@testable import CacheStore

@Suite struct SeedNameTests {
    @Test(arguments: [
        ("http://a.example/b/c.png", "a.example/b/c.png"), ("https://a.example:8443/x", "a.example:8443/x"),
        ("http://a.example/", "a.example/index.html"), ("http://a.example/b/", "a.example/b/index.html"),
        ("http://a.example/b?x=1&y=2", "a.example/b?x=1&y=2"), ("http://a.example/?x=1", "a.example/index.html?x=1"),
        ("http://a.example/a%20b", "a.example/a%20b"), ("http://[::1]:80/x", "[::1]:80/x"),
        ("http://a.example/.well-known/x", "a.example/.well-known/x"),
    ]) func `a readable name is host, path and query`(_ url: String, _ name: String) {
        #expect(SeedNames.plain(url) == name)
        #expect(SeedNames.candidates(url, .url).first == name)
    }

    @Test(arguments: [
        "http://a/..", "http://a/../b", "http://a/b/../../c", "http://../b", "http://a/./b", "http://a//b",
        "http://a/b//", "http://a/%00", "http://a/b?c/../../d", "http://a/b?x=/y", "http://a/%2e%2e/b",
        "http://a/%2e%2e%2fb",
        "http://a/b\u{0}c", "http://a/b\nc", "http://a/~b", "http://a/x.head.json",
        "http://a/\(String(repeating: "x", count: 241))",
        "http://a/b?\(String(repeating: "x", count: 5000))", "/etc/passwd", "../etc/passwd", "file:///etc/passwd", "",
        "http://", "http:///x", "http://~a/x",
    ]) func `no name leads anywhere else`(_ url: String) {
        let names = SeedNames.candidates(url, .url) + SeedNames.candidates(url, .hashed) + [SeedNames.hashed(url, 3)]
        for name in names {
            let parts = name.split(separator: "/", omittingEmptySubsequences: false)
            #expect(parts.allSatisfy { !$0.isEmpty && $0 != "." && $0 != ".." && $0.utf8.count <= 255 }, "\(name)")
            #expect(name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }, "\(name)")
        }
        if !url.contains("%") { #expect(SeedNames.plain(url) == nil) }
    }

    @Test func `escapes are tried decoded, too, where that is a name`() {
        #expect(SeedNames.candidates("http://a/b%20c/%C3%A4.png", .url) == ["a/b%20c/%C3%A4.png", "a/b c/ä.png"])
        for url in ["http://a/b%2Fc", "http://a/%ff", "http://a/%2", "http://a/%zz", "http://a/%0a"] {
            #expect(SeedNames.decoded(url) == nil, "\(url)")
        }
    }

    @Test func `a hashed name is another one for each URL and each variant`() {
        let names = ["http://a/x", "http://a/y", "https://a/x"].flatMap {
            [SeedNames.hashed($0), SeedNames.hashed($0, 1)]
        }
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { $0.hasPrefix("a/~") })
        #expect(SeedNames.hashed("http://\(String(repeating: "h", count: 300))/x").hasPrefix("~"))
    }

    @Test(arguments: [
        (
            "http://images.freeimages.com/images/previews/aaa/spanish-village-street-1445758.jpg",
            "653ca195caf9f8c3870eea1a2144d72f_spanish-village-street-1445758.jpg"
        ),
        // Runs of slashes count as one, and so does one at the end.
        (
            "http://images.freeimages.com//images/previews/aaa/spanish-village-street-1445758.jpg/",
            "653ca195caf9f8c3870eea1a2144d72f_spanish-village-street-1445758.jpg"
        ),
    ]) func `the old library's names`(_ url: String, _ name: String) {
        #expect(SeedNames.candidates(url, .hashed).first == name)
    }

    @Test func `the old library's names of URLs with escapes`() throws {
        let names = SeedNames.candidates("http://a/b%20c/d%20e.png?x=1", .hashed)
        let encoded = try #require(ContentDigest.md5.hex("http:/a/b%20c".utf8))
        let raw = try #require(ContentDigest.md5.hex("http:/a/b c".utf8))
        #expect(
            names == [
                "\(encoded)_d%2520e.png?x=1", "\(encoded)_d%20e.png?x=1", "\(raw)_d%20e.png?x=1", "\(raw)_d e.png?x=1",
            ]
        )
        #expect(SeedNames.candidates("http:", .hashed).isEmpty)
        #expect(SeedNames.candidates("http://a/\(String(repeating: "x", count: 240))", .hashed).isEmpty)
    }

    @Test func `the URLs behind readable names`() {
        for url in [
            "https://a.example/b/c.png", "https://a.example:8443/x?y=1", "https://a.example/", "https://a.example/b/",
        ] {
            let name = SeedNames.plain(url)
            #expect(name.map { SeedNames.urls($0).first == url } == true, "\(url)")
        }
        #expect(SeedNames.urls("a/b c/ä.png") == ["https://a/b%20c/%C3%A4.png", "http://a/b%20c/%C3%A4.png"])
        #expect(SeedNames.urls("a/b%20c").last == "http://a/b%20c")
        #expect(SeedNames.urls("file").isEmpty && SeedNames.urls("a/~x").isEmpty)
    }

    @Test func `the URLs behind old names, where the folder is known`() {
        let parents = SeedNames.parents(["http://images.freeimages.com/images/previews/aaa/", "http://a/b"])
        let old = "653ca195caf9f8c3870eea1a2144d72f_"
        let base = "http://images.freeimages.com/images/previews/aaa/"
        #expect(SeedNames.dockerURL(old + "x.jpg", parents) == base + "x.jpg")
        #expect(SeedNames.dockerURL(old + "d%2520e.png", parents) == base + "d%20e.png")
        #expect(SeedNames.dockerURL(old + "a_b%20c", parents) == base + "a_b%20c")
        for name in ["x.jpg", "00000000000000000000000000000000_x", old, "_"] {
            #expect(SeedNames.dockerURL(name, parents) == nil, "\(name)")
        }
        #expect(SeedNames.isDocker(old + "x") && !SeedNames.isDocker("host") && !SeedNames.isDocker("abc_x"))
    }
}
