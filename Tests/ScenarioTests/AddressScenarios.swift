// One URL, three names: the origin's, the client's, and a path. list, purge and explain take any of them.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Addresses {
        private static func daemon(_ origin: ScriptedOrigin) throws -> Daemon {
            let keyed = "cache: { key: { fields: [X-Tenant] } }"
            let secure = "  - { name: far, match: { prefix: /far }, base_url: \"https://far.example/v1\" }\n"
            let outer = "  - { name: outer, match: { prefix: /outer }, base_url: service:api }\n"
            return try Daemon(
                services(service("api", origin.url), service("tenants", origin.url + "/t", keyed), outer, secure)
            )
        }

        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "max-age=600")], "text") }
        }

        private func stored(_ daemon: Daemon, _ arguments: String...) throws -> [String] {
            let result = try daemon.command(["list"] + arguments)
            #expect(result.succeeded, "\(result.report)")
            return result.output.split(separator: "\n").map(String.init)
        }

        @Test func aListingTakesEachOfThem() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            for path in ["/api/a/1", "/api/a/2", "/api/b", "/outer/a/1"] { _ = try daemon.exchange(path) }
            for (name, count) in [
                ("/api/a/1", 2), ("\(daemon.url)/api/a/1", 2), ("\(origin.url)/a/1", 2), ("/api/a", 3), ("/api/*", 4),
                ("/a/", 3), ("/outer/a/1", 2), ("/nowhere", 0),
            ] {
                #expect(try stored(daemon, name).count == count, "\(name)")
            }
            for (prefix, count) in [("/api/a/", 3), ("\(origin.url)/a/", 3), ("\(daemon.url)/api/b", 1), ("/a/", 0)] {
                #expect(try stored(daemon, "--prefix", prefix).count == count, "\(prefix)")
            }
        }

        @Test func whatIsKeyedIsShown() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            for tenant in ["a", "b"] { _ = try daemon.exchange("/tenants/x", fields: [("X-Tenant", tenant)]) }
            let lines = try stored(daemon)
            #expect(lines.count == 2)
            #expect(lines.contains { $0.contains("\(origin.url)/t/x") && $0.contains("{x-tenant: a}") }, "\(lines)")
            #expect(lines.contains { $0.contains("{x-tenant: b}") }, "\(lines)")
        }

        @Test func aPurgeTakesEachOfThem() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            for (arguments, count) in [
                (["/api/x"], 2), (["\(daemon.url)/api/x"], 2), (["\(origin.url)/x"], 2), (["/outer/x"], 2),
                (["--prefix", "/api/"], 2), (["--prefix", "\(origin.url)/"], 2), (["--glob", "/api/*"], 2),
                (["service://api/x"], 1),
            ] {
                for path in ["/api/x", "/outer/x"] { _ = try daemon.exchange(path) }
                let result = try daemon.command(["purge"] + arguments)
                #expect(result.output.hasPrefix("\(count) stored response"), "\(arguments) \(result.report)")
                _ = try daemon.command("purge", "--all")
            }
        }

        @Test func anExplanationTakesEachOfThem() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin)
            _ = try daemon.exchange("/outer/x")
            #expect(try daemon.command("explain", "\(origin.url)/y").output.contains("stored         nothing"))
            for (arguments, line) in [
                (["/api/x"], "route          service api at /api"), (["\(daemon.url)/api/x"], "service api at /api"),
                // Forward mode has nothing for the one, and does not take the others.
                (["\(origin.url)/x"], "service api at /api"), (["https://far.example/v1/x"], "service far at /far"),
                (["service://api/x"], "service outer at /outer"),
                (["\(origin.url)/x", "--service", "outer"], "service outer at /outer"),
                (["/api/x"], "also asked as  /outer/x (service outer)"),
            ] {
                let result = try daemon.command(["explain"] + arguments)
                #expect(result.output.contains(line), "\(arguments) \(result.report)")
            }
            let refused = try daemon.command("explain", "\(origin.url)/x", "--service", "far")
            #expect(!refused.succeeded && refused.report.contains("does not lead to"))
        }

        @Test func anExplanationSaysWhyNothingIsStored() throws {
            let origin = try ScriptedOrigin { .answer(to: $0, fields: [("Cache-Control", "no-store")], "text") }
            let daemon = try Self.daemon(origin)
            _ = try daemon.exchange("/api/x")
            let result = try daemon.command("explain", "/api/x")
            #expect(result.output.contains("stored         nothing\n"), "\(result.report)")
            #expect(result.output.contains("not stored     the last answer"), "\(result.report)")
            #expect(result.output.contains(": no-store (RFC 9111 section 5.2.2.5)"), "\(result.report)")
        }
    }
}
