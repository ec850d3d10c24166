// One URL of an origin, stored by several services and in forward mode: what changes it by one way changes it for all.

import Glibc
import TestSupport
import Testing

@testable import ProxyServer
@testable import ServiceCore

@Suite(.timeLimit(.minutes(5)))
struct OriginKeysTests {
    /// A way to the path behind it.
    private struct Way: Sendable {
        let prefix: String
        var host = "localhost"
    }

    private static func text(_ origin: ScriptedOrigin) -> String {
        """
        forward: { enabled: true, allow: ["127.0.0.1"] }
        services:
          - { name: finish, match: { prefix: /finish }, base_url: "\(origin.url)/base" }
          - { name: root, match: { prefix: /root }, base_url: "\(origin.url)", cache: { on_client_abort: abort } }
          - name: ignoring
            match: { prefix: /ignoring }
            base_url: "\(origin.url)/base"
            cache: { key: { ignore_query: [utm] } }
          - { name: keyed, match: { prefix: /keyed }, base_url: "\(origin.url)/base", cache: { key: { fields: [x-user] } } }
          - { name: adding, match: { prefix: /adding }, base_url: "\(origin.url)/base", query: { v: 1 } }
          - { name: secret, match: { prefix: /secret }, base_url: "\(origin.url)/base", query: { api_key: s3cret } }
          - { name: hosted, match: { prefix: /hosted }, base_url: "\(origin.url)/base", host: preserve }
          - { name: named, match: { host: named.test }, base_url: "\(origin.url)/base", host: preserve }
          - { name: outer, match: { prefix: /outer }, base_url: service:finish }
          - { name: adder, match: { prefix: /adder }, base_url: service:adding }
          - { name: other, match: { prefix: /other }, base_url: "\(origin.url)/other" }
        """
    }

    private static func ways(_ origin: ScriptedOrigin) -> [Way] {
        let prefixes = ["finish", "root/base", "ignoring", "keyed", "secret", "hosted", "outer"].map { "/\($0)" }
        return (prefixes + ["\(origin.url)/base"]).map { Way(prefix: $0) } + [Way(prefix: "", host: "named.test")]
    }

    private static func origin() throws -> ScriptedOrigin {
        try ScriptedOrigin { request in
            request.method == "GET" || request.method == "HEAD"
                ? .answer(to: request, fields: [("Cache-Control", "max-age=600")], request.target)
                : .answer(200, fields: [], "changed")
        }
    }

    private static func isHit(_ harness: HandlerHarness, _ way: Way, _ path: String) throws -> Bool {
        let answer = try harness.get(way.prefix + path, host: way.host)
        #expect(answer.status == 200, "\(way.prefix + path)")
        return answer.field("Cache-Status")?.contains("hit") == true
    }

    @Test(arguments: [false, true])
    func `an unsafe request by one way invalidates what every other has stored`(onDisk: Bool) async throws {
        let origin = try Self.origin()
        let folder = try TemporaryFolder("drydock-keys")
        let disk = onDisk ? folder.file("cache") : nil
        try await HandlerHarness.run(Self.text(origin), disk: disk) { harness throws in
            let ways = Self.ways(origin)
            // For a service of the client's hosts, another host is another resource.
            let stored = ways + [Way(prefix: "/hosted", host: "127.0.0.1")]
            for (number, posting) in ways.enumerated() {
                let (path, kept) = ("/x\(number)?a=1", "/kept\(number)?a=1")
                for way in stored { for path in [path, kept] { #expect(try !Self.isHit(harness, way, path)) } }
                for way in stored { for path in [path, kept] { #expect(try Self.isHit(harness, way, path)) } }
                let other = Way(prefix: "/other")
                _ = try Self.isHit(harness, other, path)
                try harness.settle()
                let method = number % 2 == 0 ? "POST" : "DELETE"
                let got = try harness.exchange(method, posting.prefix + path, host: posting.host, body: [])
                #expect(got.status == 200)
                for way in stored {
                    let isOtherHost = posting.prefix == "/hosted" && way.prefix == "/hosted" && way.host == "127.0.0.1"
                    #expect(try Self.isHit(harness, way, path) == isOtherHost, "\(posting) \(way)")
                    #expect(try Self.isHit(harness, way, kept), "\(posting) \(way)")
                }
                #expect(try Self.isHit(harness, other, path))
            }
        }
    }

    @Test func `what a service adds to the query or leaves out of the key makes no difference`() async throws {
        let origin = try Self.origin()
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            for (posted, stored) in [
                ("/finish/a?v=1", "/adding/a"), ("/finish/b?v=1", "/adder/b"), ("/adding/c", "/finish/c?v=1"),
                ("/adder/d", "/finish/d?v=1"), ("/adding/e", "/adder/e"), ("/adder/f", "/adding/f"),
                ("/finish/g?utm=1", "/ignoring/g"), ("/finish/h?utm=1&q", "/ignoring/h?q&utm=2"),
                ("/ignoring/i?utm=1", "/finish/i"), ("/ignoring/j?utm=1", "/finish/j?utm=1"),
                ("/secret/k", "/finish/k"), ("/finish/l?api_key=s3cret", "/secret/l"), ("/outer/m", "/finish/m"),
            ] {
                _ = try harness.get(stored)
                #expect(try Self.isHit(harness, Way(prefix: ""), stored))
                #expect(try harness.exchange("POST", posted, body: []).status == 200)
                #expect(try !Self.isHit(harness, Way(prefix: ""), stored), "\(posted) \(stored)")
            }
        }
    }

    @Test func `what an answer names is invalidated in other services, too`() async throws {
        let origin = try ScriptedOrigin { request in
            request.method == "PUT"
                ? .answer(201, fields: [("Location", "/base/made"), ("Content-Location", "/base/current?v=1")], "")
                : .answer(to: request, fields: [("Cache-Control", "max-age=600")], "text")
        }
        try await HandlerHarness.run(Self.text(origin)) { harness throws in
            let named = ["/finish/made", "/hosted/made", "/outer/made", "\(origin.url)/base/made", "/adding/current"]
            for put in ["/root/base/new", "/hosted/new", "\(origin.url)/base/new", "/outer/new"] {
                for path in named { _ = try harness.get(path) }
                #expect(try harness.exchange("PUT", put, body: []).status == 201)
                for path in named { #expect(try !Self.isHit(harness, Way(prefix: ""), path), "\(put) \(path)") }
            }
        }
    }

    /// With the index or without it, and before anybody has swept the files.
    @Test func `a restart brings nothing of it back`() async throws {
        let origin = try Self.origin()
        let folder = try TemporaryFolder("drydock-keys")
        let (text, ways) = (Self.text(origin), Self.ways(origin))
        try await HandlerHarness.run(text, disk: folder.file("cache")) { harness throws in
            for way in ways { for path in ["/x", "/kept"] { _ = try Self.isHit(harness, way, path) } }
            try harness.settle()
            try Shell.must("cp", ["-a", folder.file("cache"), folder.file("before")])
            #expect(try harness.exchange("PATCH", "/root/base/x", body: []).status == 200)
        }
        // What was stored is there again, and so is the rule.
        try Shell.must("cp", ["-a", folder.file("before"), folder.file("again")])
        try Shell.must("cp", [folder.file("cache/rules"), folder.file("again/rules")])
        try Shell.must("sh", ["-c", "rm -f '\(folder.file("again"))'/index.sqlite*"])
        try await HandlerHarness.run(text, disk: folder.file("again")) { harness throws in
            let areListed = try blockUntil {
                try harness.listed().count(where: { $0.contains("/kept") }) >= ways.count
            }
            #expect(areListed)
            for way in ways {
                #expect(try !Self.isHit(harness, way, "/x"), "\(way)")
                #expect(try Self.isHit(harness, way, "/kept"), "\(way)")
            }
        }
    }
}
