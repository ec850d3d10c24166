// Recordings and the origins that they are of: what has drifted, and what a command says of it.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Drift {
        /// An origin that answers as it is told, with what it was told last.
        private final class Origin: Sendable {
            let answers = Monitor<[String: OriginReply]>([:])
            let server: ScriptedOrigin

            init() throws {
                let answers = answers
                server = try ScriptedOrigin { request in
                    answers.read { $0[request.target] } ?? .answer(404, "nothing")
                }
            }

            func set(_ target: String, _ reply: OriginReply) { answers.update { $0[target] = reply } }
        }

        private static let json = ("Content-Type", "application/json")

        private static func daemon(_ origin: ScriptedOrigin, _ folder: TemporaryFolder, _ keys: String) throws -> Daemon
        {
            let recordings = "recordings: { dir: \(folder.path), redact: { json: [token] } }"
            return try Daemon(services(service("api", origin.url, recordings, keys)))
        }

        private static func report(_ daemon: Daemon, _ arguments: String...) throws -> [String: Any] {
            let result = try daemon.command(["drift", "--json"] + arguments)
            return try #require(
                try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any],
                "\(result.report)"
            )
        }

        @Test func whatHasChangedIsNamedAndItsValuesAreNot() throws {
            let origin = try Origin()
            let folder = try TemporaryFolder()
            origin.set("/same", .answer("plain"))
            origin.set("/users/7", .answer(#"{"name":"Ada","token":"hush","roles":[1,2]}"#, fields: [Self.json]))
            origin.set("/tagged", .answer("old", fields: [("ETag", "\"1\"")]))
            origin.set("/gone", .answer("here"))
            origin.set("/failing", .answer("well"))
            origin.set("/orders", .answer(201, "made"))
            let daemon = try Self.daemon(origin.server, folder, "source: record")
            for target in ["/same", "/users/7", "/tagged", "/gone", "/failing", "/missing", "/same?token=hush"] {
                origin.set("/same?token=hush", .answer("plain"))
                _ = try daemon.exchange("/api\(target)")
            }
            _ = try daemon.exchange("POST", "/api/orders", body: Array("{}".utf8))
            let before = try daemon.command("drift")
            #expect(before.end == .exited(0), "\(before.report)")
            #expect(before.output.hasSuffix("6 the same, 0 changed, 0 gone, 0 unreachable, 2 left out\n"))

            origin.set("/users/7", .answer(#"{"name":"Bob","token":"hush2","roles":[1]}"#, fields: [Self.json]))
            origin.set("/gone", .answer(410, ""))
            origin.set("/failing", .answer(503, ""))
            origin.server.forgetRequests()
            let result = try daemon.command("drift", "api")
            #expect(result.end == .exited(4), "\(result.report)")
            #expect(result.errors.contains("2 recordings have drifted"))
            for line in [
                "changed      api  GET /users/7", "             content: name has changed",
                "             content: roles[1] is missing", "gone         api  GET /gone",
                "             status: 200 -> 410", "unreachable  api  GET /failing", "             the status is 503",
                "left out     api  POST /orders", "left out     api  GET /same?token=***",
                "3 the same, 1 changed, 1 gone, 1 unreachable, 2 left out",
            ] {
                #expect(result.output.split(separator: "\n").contains(Substring(line)), "\(line): \(result.output)")
            }
            #expect(!result.output.contains("hush") && !result.output.contains("Bob"))
            #expect(origin.server.requests(method: "POST") == 0)
            #expect(origin.server.requests() == 6)
            #expect(origin.server.log.allSatisfy { $0.field("Cache-Control") == "no-cache" })

            let report = try Self.report(daemon)
            #expect(report["changed"] as? Int == 1 && report["left_out"] as? Int == 2)
            let first = try #require(
                (report["recordings"] as? [[String: Any]])?.first { $0["state"] as? String == "changed" }
            )
            #expect(first["request"] as? String == "GET /users/7")
            #expect(first["content"] as? [String] == ["name has changed", "roles[1] is missing"])
        }

        @Test func aValidatorSparesTheContent() throws {
            let origin = try ScriptedOrigin { request in
                request.field("If-None-Match") == "\"1\""
                    ? .answer(304, fields: [("ETag", "\"1\"")], "") : .answer("old", fields: [("ETag", "\"1\"")])
            }
            let folder = try TemporaryFolder()
            let daemon = try Self.daemon(origin, folder, "source: replay-or-record")
            _ = try daemon.exchange("/api/a")
            let result = try daemon.command("drift")
            #expect(result.end == .exited(0) && result.output.contains("1 the same"), "\(result.report)")
            #expect(origin.log.last?.field("If-None-Match") == "\"1\"")
            #expect(origin.requests() == 2)
        }

        @Test func fieldsAreComparedAndSentWhereTheyAreNamed() throws {
            let origin = try Origin()
            let folder = try TemporaryFolder()
            origin.set("/a", .answer("a", fields: [("X-Version", "1"), ("Content-Type", "text/plain")]))
            let daemon = try Self.daemon(origin.server, folder, "source: record")
            _ = try daemon.exchange("/api/a")
            origin.set("/a", .answer("a", fields: [("X-Version", "2"), ("Content-Type", "text/plain")]))
            #expect(try daemon.command("drift").end == .exited(0))
            let result = try daemon.command("drift", "--compare", "X-Version", "-H", "X-Key: 7")
            #expect(result.end == .exited(4) && result.output.contains("X-Version: 1 -> 2"), "\(result.report)")
            #expect(origin.server.log.last?.field("X-Key") == "7")
        }

        @Test func whoCannotBeReachedIsNoDrift() throws {
            let origin = try Origin()
            let folder = try TemporaryFolder()
            origin.set("/a", .answer("a"))
            let daemon = try Self.daemon(origin.server, folder, "source: record")
            _ = try daemon.exchange("/api/a")
            _ = try daemon.command("offline", "on")
            let offline = try daemon.command("drift")
            #expect(offline.end == .exited(1) && offline.output.contains("the daemon is offline"), "\(offline.report)")
            #expect(origin.server.requests() == 1)
            _ = try daemon.command("offline", "off")
            origin.server.stop()
            let result = try daemon.command("drift")
            #expect(result.end == .exited(1) && result.output.contains("1 unreachable"), "\(result.report)")
            #expect(result.errors.contains("1 recordings could not be checked"))
            let head = try #require(
                try FileManager.default.contentsOfDirectory(atPath: folder.path + "/api").first {
                    $0.hasSuffix(".head.json")
                }
            )
            try "{".write(toFile: "\(folder.path)/api/\(head)", atomically: true, encoding: .utf8)
            let unreadable = try daemon.command("drift")
            #expect(unreadable.end == .exited(1) && unreadable.output.contains("1 unreadable"), "\(unreadable.report)")
            let unknown = try daemon.command("drift", "apo")
            #expect(unknown.end == .exited(1) && unknown.errors.contains("did you mean 'api'?"), "\(unknown.report)")
        }

        @Test func aFewAreAskedAtOnce() throws {
            let (now, most) = (Monitor(0), Monitor(0))
            let origin = try ScriptedOrigin { _ in
                let count = now.update { count -> Int in
                    count += 1
                    return count
                }
                most.update { $0 = max($0, count) }
                // So that those that are asked at once meet here, as a rule.
                usleep(2000)
                now.update { $0 -= 1 }
                return .answer("a")
            }
            let folder = try TemporaryFolder()
            let daemon = try Self.daemon(origin, folder, "source: record")
            for number in 0..<40 { _ = try daemon.exchange("/api/\(number)") }
            let result = try daemon.command("drift")
            #expect(result.end == .exited(0) && result.output == "40 the same, 0 changed, 0 gone, 0 unreachable\n")
            #expect(origin.requests() == 80)
            #expect(most.read { $0 } <= 4)
        }

        @Test func aServiceWithoutAnOriginIsLeftOut() throws {
            let origin = try Origin()
            let folder = try TemporaryFolder()
            origin.set("/a", .answer("a"))
            do {
                let daemon = try Self.daemon(origin.server, folder, "source: record")
                _ = try daemon.exchange("/api/a")
            }
            let daemon = try Daemon(
                DaemonSettings(
                    "services:\n  - { name: api, match: { prefix: /api }, source: replay, "
                        + "recordings: { dir: \(folder.path) } }\n"
                )
            )
            let result = try daemon.command("drift")
            #expect(result.end == .exited(0) && result.output.contains("left out     api  GET /a"), "\(result.report)")
            #expect(origin.server.requests() == 1)
        }
    }
}
