// Answers that are recorded and replayed, with and without their origin.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Recording {
        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                switch (request.method, request.target) {
                case ("GET", "/slow"): .answer(503, "")
                case ("POST", _): .answer(201, "made of \(request.body.count)")
                default:
                    .answer(
                        #"{"user":{"name":"Ada","token":"hush"}}"#,
                        fields: [
                            ("Content-Type", "application/json"), ("Set-Cookie", "id=7f3a; Path=/"),
                            ("Cache-Control", "max-age=60"),
                        ]
                    )
                }
            }
        }

        /// A service with recordings in a folder.
        private static func daemon(_ origin: String, _ folder: TemporaryFolder, _ keys: String) throws -> Daemon {
            try Daemon(
                services(
                    service("api", origin, "recordings: { dir: \(folder.path), redact: { json: [user.token] } }", keys)
                )
            )
        }

        private static func files(_ folder: TemporaryFolder) throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: folder.path + "/api").sorted()
        }

        @Test func whatWasRecordedIsReplayedWithoutTheOrigin() throws {
            let origin = try Self.origin()
            let folder = try TemporaryFolder()
            do {
                let daemon = try Self.daemon(origin.url, folder, "source: record")
                for _ in 0..<2 { #expect(try daemon.exchange("/api/users/7?token=a").text.contains("hush")) }
                #expect(try daemon.exchange("POST", "/api/orders", body: Array("{}".utf8)).text == "made of 2")
                #expect(try daemon.exchange("/api/slow").status == 503)
                #expect(origin.requests() == 4)
                #expect(origin.log[0].field("Accept-Encoding") == "identity")
            }
            let written = try Self.files(folder)
            #expect(written.count == 4, "\(written)")
            for name in written {
                let text = try String(contentsOfFile: "\(folder.path)/api/\(name)", encoding: .utf8)
                #expect(!text.contains("hush") && !text.contains("7f3a"), "\(name): \(text)")
            }
            origin.stop()
            let daemon = try Self.daemon(origin.url, folder, "source: replay")
            let replayed = try daemon.exchange("/api/users/7?token=b")
            #expect(replayed.status == 200)
            #expect(replayed.text == #"{"user":{"name":"Ada","token":"***"}}"#)
            #expect(replayed.field("Cache-Status")?.hasSuffix("; hit; detail=recording") == true)
            #expect(replayed.field("Drydock-Recording")?.hasPrefix("replayed; recorded=\"") == true)
            #expect(replayed.field("Set-Cookie") == "id=***; Path=/api")
            let head = try daemon.exchange("HEAD", "/api/users/7?token=b")
            #expect(head.status == 200 && head.field("Content-Length") == "\(replayed.text.utf8.count)")
            #expect(try daemon.exchange("POST", "/api/orders", body: Array("{}".utf8)).text == "made of 2")
            for (target, method, body) in [
                ("/api/users/8", "GET", ""), ("/api/orders", "POST", "[]"), ("/api/slow", "GET", ""),
            ] {
                let refused = try daemon.exchange(method, target, body: body.isEmpty ? nil : Array(body.utf8))
                #expect(refused.status == 504)
                #expect(
                    refused.text.contains("Not recorded") && refused.text.contains("source: record"),
                    "\(refused.text)"
                )
            }
        }

        @Test func replayNeverOpensASocket() throws {
            let origin = try Self.origin()
            let folder = try TemporaryFolder()
            let daemon = try Self.daemon(origin.url, folder, "source: replay")
            for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
                for target in ["/api/users/7", "/api/"] {
                    let refused = try daemon.exchange(method, target, body: method == "PUT" ? [1] : nil)
                    #expect(refused.status == 504, "\(method)")
                }
            }
            let upgrade = try daemon.exchange("/api/ws", fields: [("Connection", "Upgrade"), ("Upgrade", "websocket")])
            #expect(upgrade.status == 504)
            #expect(origin.connections == 0)
        }

        @Test func whatIsUnknownIsAskedForOnceAndRecorded() throws {
            let origin = try Self.origin()
            let folder = try TemporaryFolder()
            let daemon = try Self.daemon(origin.url, folder, "source: replay-or-record")
            let first = try daemon.exchange("/api/users/7")
            #expect(first.text.contains("hush") && first.field("Drydock-Recording") == nil)
            for _ in 0..<3 { #expect(try daemon.exchange("/api/users/7").text.contains("***")) }
            #expect(origin.requests() == 1)
            _ = try daemon.command("offline", "on")
            #expect(try daemon.exchange("/api/users/7").status == 200)
            let refused = try daemon.exchange("/api/users/8")
            #expect(refused.status == 504 && refused.text.contains("offline off"), "\(refused.text)")
            #expect(origin.requests() == 1)
        }

        /// What its route does not expect, a 429, and what a request has asked for by an override are no answers to keep.
        @Test func onlyWhatIsExpectedIsRecorded() throws {
            let origin = try ScriptedOrigin { request in
                switch request.target {
                case "/html": .answer("<html>", fields: [("Content-Type", "text/html")])
                case "/text": .answer("<html>", fields: [("Content-Type", "application/json")])
                case "/busy": .answer(429, fields: [("Content-Type", "application/json")], "")
                default: .answer("{}", fields: [("Content-Type", "application/json")])
                }
            }
            let folder = try TemporaryFolder()
            let keys = [
                "recordings: { dir: \(folder.path) }", "source: replay-or-record",
                "response: { type: application/json, expect: json }",
            ]
            let daemon = try Daemon(services(service("api", origin.url, keys[0], keys[1], keys[2])))
            let override = [("Drydock-Override", "status=418")]
            for (target, fields, status, asked) in [
                ("/api/html", [], 502, 2), ("/api/text", [], 200, 2), ("/api/busy", [], 429, 2),
                ("/api/other", override, 200, 2), ("/api/json", [], 200, 1),
            ] {
                let before = origin.requests()
                for _ in 0..<2 { #expect(try daemon.exchange(target, fields: fields).status == status, "\(target)") }
                #expect(origin.requests() - before == asked, "\(target)")
            }
            #expect(try Self.files(folder).count == 2)
            let known = try daemon.command("explain", "/api/json").output
            #expect(known.contains("recording") && known.contains("recorded "), "\(known)")
            let unknown = try daemon.command("explain", "/api/none").output
            #expect(unknown.contains("there is no recording of 'GET /none'"), "\(unknown)")
        }

        @Test func aReplayedAnswerObeysARangeAndNoCondition() throws {
            let origin = try ScriptedOrigin { _ in .answer("0123456789", fields: [("ETag", "\"1\"")]) }
            let folder = try TemporaryFolder()
            let daemon = try Self.daemon(origin.url, folder, "source: replay-or-record")
            #expect(try daemon.exchange("/api/a", fields: [("Range", "bytes=2-3")]).text == "0123456789")
            #expect(origin.log[0].field("Range") == nil)
            func answer(_ fields: (String, String)..., method: String = "GET") throws -> (Int, String, String?) {
                let answer = try daemon.exchange(method, "/api/a", fields: fields)
                #expect(answer.field("Drydock-Recording")?.hasPrefix("replayed") == true)
                return (answer.status, answer.text, answer.field("Content-Range"))
            }
            #expect(try answer(("Range", "bytes=2-3")) == (206, "23", "bytes 2-3/10"))
            #expect(try answer(("Range", "bytes=-3")) == (206, "789", "bytes 7-9/10"))
            #expect(try answer(("Range", "bytes=10-")) == (416, "", "bytes */10"))
            #expect(try answer(("Range", "bytes=0-1,4-5")) == (200, "0123456789", nil))
            #expect(try answer(("Range", "bytes=2-3"), ("If-Range", "\"1\"")) == (200, "0123456789", nil))
            #expect(try answer(("Range", "bytes=2-3"), method: "HEAD") == (200, "", nil))
            #expect(try answer(("If-None-Match", "\"1\"")) == (200, "0123456789", nil))
            #expect(origin.requests() == 1)
        }

        @Test func whatComesCodedIsRecordedPlain() throws {
            let origin = try ScriptedOrigin { _ in
                .answer(
                    fields: [("Content-Encoding", "gzip"), ("Content-Type", "application/json")],
                    body: bytes(
                        hex:
                            "1f8b0800000000000203ab562a2d4e2d52b2aa562ac9cf4ecd53b252ca282dce50aaad0500888a553819000000"
                    )
                )
            }
            let folder = try TemporaryFolder()
            let daemon = try Self.daemon(origin.url, folder, "source: replay-or-record")
            #expect(try daemon.exchange("/api/a").field("Content-Encoding") == "gzip")
            let replayed = try daemon.exchange("/api/a")
            #expect(replayed.text == #"{"user":{"token":"***"}}"# && replayed.field("Content-Encoding") == nil)
            #expect(origin.requests() == 1)
        }

        @Test func aRecordingStandsInWhereTheOriginFails() throws {
            let origin = try ScriptedOrigin { request in
                request.field("X-Fail") == nil ? .answer("good") : .answer(500, "bad")
            }
            let folder = try TemporaryFolder()
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.url,
                        "source: record",
                        "recordings: { dir: \(folder.path), on_failure: replay }"
                    )
                )
            )
            #expect(try daemon.exchange("/api/a").text == "good")
            let failed = try daemon.exchange("/api/a", fields: [("X-Fail", "1")])
            #expect(failed.status == 200 && failed.text == "good")
            #expect(failed.field("Cache-Status")?.contains("detail=recording") == true)
            #expect(try daemon.exchange("/api/b", fields: [("X-Fail", "1")]).status == 500)
            origin.stop()
            #expect(try daemon.exchange("/api/a").text == "good")
            #expect(try daemon.exchange("/api/b").status == 502)
        }
    }
}
