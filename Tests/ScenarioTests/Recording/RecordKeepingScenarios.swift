// Recordings that are made of stored responses, and exported as seeds.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct RecordKeeping {
        private static func daemon(_ origin: ScriptedOrigin, _ folder: TemporaryFolder, _ keys: String) throws -> Daemon
        {
            let recordings = "recordings: { dir: \(folder.path)/recordings, redact: { json: [token] } }"
            return try Daemon(services(service("api", origin.url, recordings, keys)))
        }

        /// An answer that may be stored, coded as the request allows.
        private static func origin() throws -> ScriptedOrigin {
            let text = Array(#"{"name":"Ada","token":"hush"}"#.utf8)
            let coded = bytes(
                hex: "1f8b0800000000000203ab56ca4bcc4d55b252724c4954d2512ac9cf4ecd03f2324a8b33946a01cec6a6e21d000000"
            )
            return try ScriptedOrigin { request in
                let isCoded = request.field("Accept-Encoding")?.contains("gzip") == true
                var fields = [
                    ("Content-Type", "application/json"), ("Cache-Control", "max-age=60"), ("ETag", "\"1\""),
                    ("Vary", "Accept-Encoding"), ("X-Session-Token", "hush"),
                ]
                if isCoded { fields.append(("Content-Encoding", "gzip")) }
                return .answer(fields: fields, body: isCoded ? coded : text)
            }
        }

        @Test func aStoredResponseIsARecording() throws {
            let origin = try Self.origin()
            let folder = try TemporaryFolder()
            do {
                let daemon = try Self.daemon(origin, folder, "source: live")
                let nothing = try daemon.command("record", "keep", "/api/users/7")
                #expect(nothing.end == .exited(1) && nothing.errors.contains("nothing is stored"), "\(nothing.report)")
                let coding = ("Accept-Encoding", "gzip")
                #expect(try daemon.exchange("/api/users/7", fields: [coding]).field("Content-Encoding") == "gzip")
                let kept = try daemon.command("record", "keep", "/api/users/7", "-H", "Accept-Encoding: gzip")
                #expect(kept.succeeded && kept.output == "api  GET /users/7  200, 28 B\n", "\(kept.report)")
                // As a listing shows it.
                let named = try daemon.command(
                    ["record", "keep", "\(origin.url)/users/7", "--json", "-H", "Accept-Encoding: gzip"]
                )
                #expect(named.output.contains(#""request":"GET /users/7""#), "\(named.report)")
                #expect(origin.requests() == 1)
                let same = try daemon.command("drift")
                #expect(same.succeeded && same.output.contains("1 the same"), "\(same.report)")
            }
            let path = folder.path + "/recordings/api"
            let files = try FileManager.default.contentsOfDirectory(atPath: path)
            #expect(files.count == 2)
            for file in files {
                let text = try String(contentsOfFile: "\(path)/\(file)", encoding: .utf8)
                #expect(!text.contains("hush") && !text.contains("gzip"), "\(text)")
                let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(file)")
                #expect(attributes[.posixPermissions] as? Int == 0o600)
            }
            let connections = origin.connections
            let daemon = try Self.daemon(origin, folder, "source: replay")
            let replayed = try daemon.exchange("/api/users/7")
            #expect(replayed.text == #"{"name":"Ada","token":"***"}"# && replayed.field("ETag") == "\"1\"")
            #expect(replayed.field("Cache-Status")?.hasSuffix("; hit; detail=recording") == true)
            // What an editor writes is what the next request gets.
            let content = try #require(files.first { !$0.hasSuffix(".head.json") })
            try "{}".write(toFile: "\(path)/\(content)", atomically: true, encoding: .utf8)
            #expect(try daemon.exchange("/api/users/7").text == "{}")
            #expect(origin.connections == connections)
            let refused = try daemon.command("record", "keep", "/api/users/7")
            #expect(refused.end == .exited(1) && refused.errors.contains("it records by itself"), "\(refused.report)")
        }

        @Test func whatCannotBeKeptSaysWhy() throws {
            let origin = try ScriptedOrigin { request in
                request.target == "/odd"
                    ? .answer(fields: [("Cache-Control", "max-age=60"), ("Content-Encoding", "zstd")], body: [1])
                    : .answer("{", fields: [("Cache-Control", "max-age=60"), ("Content-Type", "application/json")])
            }
            let folder = try TemporaryFolder()
            let daemon = try Self.daemon(origin, folder, "cache: { ttl: 1m }")
            for (target, why) in [("/api/odd", "cannot be taken off"), ("/api/broken", "cannot be read")] {
                _ = try daemon.exchange(target)
                let refused = try daemon.command("record", "keep", target)
                #expect(refused.end == .exited(1) && refused.errors.contains(why), "\(refused.report)")
            }
            #expect(!FileManager.default.fileExists(atPath: folder.path + "/recordings"))
            for (arguments, why) in [
                (["/nowhere"], "No such service"), (["/api/x", "--service", "apo"], "did you mean 'api'?"),
            ] {
                let refused = try daemon.command(["record", "keep"] + arguments)
                #expect(refused.end == .exited(1) && refused.errors.contains(why), "\(refused.report)")
            }
            let bare = try Daemon(services(service("api", origin.url)))
            let refused = try bare.command("record", "keep", "/api/x")
            #expect(refused.errors.contains("has no folder for recordings"), "\(refused.report)")
        }

        @Test func recordingsAreExportedAsSeeds() throws {
            let origin = try Self.origin()
            let folder = try TemporaryFolder()
            let seeds = folder.path + "/seeds"
            do {
                let daemon = try Self.daemon(origin, folder, "source: record")
                for target in ["/api/users/7", "/api/users/8?a=1", "/api/secret?token=x"] {
                    _ = try daemon.exchange(target)
                }
                _ = try daemon.exchange("POST", "/api/users", body: [1])
                let result = try daemon.command("record", "export", seeds)
                #expect(result.succeeded && result.output.hasPrefix("2 written ("), "\(result.report)")
                #expect(result.output.hasSuffix(", 2 left out, 0 failed\n"), "\(result.report)")
            }
            let requests = origin.requests()
            let file = "\(seeds)/\(origin.authority)/users/7"
            #expect(try String(contentsOfFile: file, encoding: .utf8) == #"{"name":"Ada","token":"***"}"#)
            try #"{"name":"Eve"}"#.write(toFile: file, atomically: true, encoding: .utf8)
            let daemon = try Daemon(services(service("api", origin.url, "cache: { seed_dir: \(seeds) }")))
            let edited = try daemon.exchange("/api/users/7")
            #expect(edited.text == #"{"name":"Eve"}"# && edited.field("Cache-Status")?.contains("detail=seed") == true)
            #expect(try daemon.exchange("/api/users/8?a=1").text.contains("***"))
            #expect(origin.requests() == requests)
        }
    }
}
