// Files of other tools, imported by the command line, checked, and served.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Imports {
        /// A file of the tests of Interchange.
        static func sample(_ name: String) -> String {
            let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                .deletingLastPathComponent()
            return tests.appending(path: "InterchangeTests/Samples/\(name)").path
        }

        /// Runs `drydock` in a folder.
        static func drydock(_ arguments: String..., in folder: TemporaryFolder) throws -> ShellResult {
            try Shell.run(try Daemon.binary(), arguments, folder: folder.path)
        }

        /// Imports, checks, and serves what was made.
        static func serve(_ name: String, _ arguments: String...) throws -> Daemon {
            let home = try DaemonHome()
            let made = try Shell.run(
                try Daemon.binary(),
                ["import", sample(name), "--to", "made"] + arguments,
                folder: home.folder.path
            )
            #expect(made.succeeded, "\(made)")
            let check = try drydock("check", "-c", "made/drydock.yaml", in: home.folder)
            #expect(check.succeeded, "\(check)")
            return try Daemon(DaemonSettings("include: [\"\(home.folder.file("made/drydock.yaml"))\"]"), at: home)
        }

        @Test func aLogOfABrowserIsServed() throws {
            let daemon = try Self.serve("browser.har")
            let items = try daemon.exchange("/api/items?access_token=other&page=1")
            #expect((items.status, items.text) == (200, #"{"items":[{"id":1,"name":"Käse"}]}"#))
            #expect(items.field("etag") == "\"v1\"")
            #expect(items.field("set-cookie") == "sid=***; Path=/; HttpOnly")
            #expect(try daemon.exchange("/api/items").text == "all")
            #expect(try daemon.exchange("/logo.png").body == [0x89, 0x50, 0x4E, 0x47])
            #expect(try daemon.exchange("HEAD", "/logo.png").field("Content-Length") == "4")
            let jobs = try (0..<3).map { _ in try daemon.exchange("/api/job/7") }
            #expect(jobs.map(\.status) == [202, 200, 200])
            #expect(jobs.map(\.text) == ["", #"{"done":true}"#, #"{"done":true}"#])
            let orders = try [#"{"item": 1}"#, #"{"item": 2}"#].map {
                try daemon.exchange("POST", "/api/orders", body: Array($0.utf8))
            }
            #expect(orders.map(\.status) == [201, 422])
            #expect(orders[1].text == #"{"error":"${sold}"}"#)
            #expect(try daemon.exchange("/blocked.js").status == 404)
        }

        @Test func mappingsOfWireMockAreServed() throws {
            let daemon = try Self.serve("wiremock")
            let hello = try daemon.exchange("/hello")
            #expect((hello.status, hello.text, hello.field("X-Many")) == (200, "<h1>Hello</h1>\n", "a, b"))
            #expect(try daemon.exchange("/contacts/7/phones/home").text == "12")
            #expect(try daemon.exchange("/contacts/7/phones/work").status == 404)
            func order(_ target: String, _ body: String) throws -> RawResponse {
                try daemon.exchange(
                    "POST",
                    target,
                    fields: [("Content-Type", "application/json"), ("Authorization", "Bearer x")],
                    body: Array(body.utf8)
                )
            }
            #expect(try order("/orders", #"{"kind":"b2b","items":[{"count":1000}]}"#).status == 422)
            #expect(try order("/orders", #"{"kind":"b2b","items":[{"count":1}]}"#).status == 400)
            #expect(try order("/orders?mode=exact", #"{"b":[1,2],"a":1}"#).body == [0, 1, 2])
            // A scenario goes through its states.
            #expect(try daemon.exchange("/todo").status == 404)
            #expect(try daemon.exchange("POST", "/todo", body: []).status == 201)
            #expect(try daemon.exchange("/todo").text == "milk")
            #expect(try daemon.exchange("DELETE", "/todo").status == 204)
            #expect(try daemon.exchange("/todo").status == 404)
            #expect(try daemon.exchange("/slow").text == "0123456789")
            #expect(throws: (any Error).self) { try daemon.exchange("/reset") }
        }

        @Test func anOpenAPIDocumentIsServed() throws {
            let daemon = try Self.serve("pets.yaml")
            let pets = try daemon.exchange("/v1/pets")
            #expect((pets.status, pets.field("X-Total"), pets.field("Content-Type")) == (200, "7", "application/json"))
            let list = try JSONSerialization.jsonObject(with: Data(pets.body)) as? [[String: Any]]
            #expect(list?.count == 2 && list?.allSatisfy { $0["id"] is Int && $0["born"] is String } == true)
            let problem = try daemon.exchange("/v1/pets", fields: [("Prefer", "code=500")])
            #expect((problem.status, problem.field("Content-Type")) == (500, "application/problem+json"))
            let added = try ["", "example=dog", "code=409"].map { preference in
                try daemon.exchange("POST", "/v1/pets", fields: [("Prefer", preference)], body: [])
            }
            #expect(added.map(\.status) == [201, 201, 409])
            #expect(added.map(\.text) == [#"{"id":1,"name":"Tom"}"#, #"{"id":2,"name":"Rex"}"#, #"{"error":"taken"}"#])
            #expect(try daemon.exchange("/v1/pets/7").text == #"{"id":7,"name":"Ada"}"#)
            #expect(try daemon.exchange("/v1/pets/7", fields: [("Accept", "text/plain")]).text == "7: Ada")
            #expect(try daemon.exchange("DELETE", "/v1/pets/7").status == 204)
            #expect(try daemon.exchange("/v1/none").status == 404)
        }

        @Test func aCollectionOfPostmanIsServed() throws {
            let daemon = try Self.serve("users.postman_collection.json")
            let found = try daemon.exchange("/v2/users/7")
            #expect((found.status, found.text) == (200, #"{"name":"Ada"}"#))
            let missing = try [("x-mock-response-code", "404"), ("X-Mock-Response-Name", "No such user")].map { field in
                try daemon.exchange("/v2/users/7", fields: [field])
            }
            #expect(missing.map(\.status) == [404, 404])
            #expect(missing.map(\.text) == [#"{"error":"none"}"#, #"{"error":"none"}"#])
            #expect(try daemon.exchange("/v2/users/me?page=3&apikey=x&fields=name").text == "me")
            #expect(try daemon.exchange("DELETE", "/v2/users/7").status == 204)
            #expect(try daemon.exchange("/v2/health").status == 404)
        }

        @Test func anImportWritesOverNothing() throws {
            let folder = try TemporaryFolder("import")
            let first = try Self.drydock("import", Self.sample("browser.har"), in: folder)
            #expect(first.succeeded)
            #expect(first.output.contains("6 rules in ./browser/drydock.yaml, 6 bodies; 4 left out, 1 changed"))
            try folder.write("browser/drydock.yaml", "services: []\n")
            let second = try Self.drydock("import", Self.sample("browser.har"), in: folder)
            #expect(second.end == .exited(1))
            #expect(second.errors.contains("./browser/drydock.yaml is there already; name another folder with --to"))
            #expect(folder.text("browser/drydock.yaml") == "services: []\n")
            let third = try Self.drydock("import", Self.sample("browser.har"), "--force", "--json", in: folder)
            let report = try JSONSerialization.jsonObject(with: Data(third.output.utf8)) as? [String: Any]
            #expect((report?["rules"] as? Int, report?["credentials_replaced"] as? Int) == (6, 3))
            let notes = try #require(report?["notes"] as? [[String: String]])
            #expect(notes.count == 5)
            #expect(notes[1]["kind"] == "left_out" && notes[1]["pointer"] == "/log/entries/7/response/status")
        }

        @Test func anExportIsImportedAsItWas() throws {
            let folder = try TemporaryFolder("export")
            #expect(try Self.drydock("import", Self.sample("browser.har"), "--to", "a", in: folder).succeeded)
            let har = try Self.drydock("export", "har", "-c", "a/drydock.yaml", "--to", "b.har", in: folder)
            #expect(har.output == "7 answers in b.har\n" && har.errors.isEmpty, "\(har)")
            #expect(try Self.drydock("import", "b.har", "--to", "c", in: folder).succeeded)
            let again = try Self.drydock("export", "har", "-c", "c/drydock.yaml", in: folder)
            #expect(again.output == folder.text("b.har"))
            // The stubs of WireMock answer as the rules did.
            #expect(try Self.drydock("import", Self.sample("wiremock"), "--to", "d", in: folder).succeeded)
            let stubs = try Self.drydock("export", "wiremock", "-c", "d/drydock.yaml", "--to", "e.json", in: folder)
            #expect(
                stubs.errors
                    == "wiremock/reset: changed: its faults are not written\nwiremock/slow: changed: its faults are not written\n"
            )
            #expect(try Self.drydock("import", "e.json", "--to", "f", in: folder).succeeded)
            let home = try DaemonHome()
            let daemon = try Daemon(DaemonSettings("include: [\"\(folder.file("f/drydock.yaml"))\"]"), at: home)
            #expect(try daemon.exchange("/hello").text == "<h1>Hello</h1>\n")
            #expect(try daemon.exchange("/contacts/7/phones/home").text == "12")
            #expect(try daemon.exchange("/contacts/7/phones/work").status == 404)
            #expect(
                try daemon.exchange("POST", "/orders?mode=exact", body: Array(#"{"b":[1,2],"a":1}"#.utf8)).status == 201
            )
            #expect(try daemon.exchange("POST", "/orders/7", body: []).status == 400)
            #expect(try daemon.exchange("POST", "/todo", body: []).status == 201)
            #expect(try daemon.exchange("/todo").text == "milk")
            let taken = try Self.drydock("export", "har", "-c", "a/drydock.yaml", "--to", "b.har", in: folder)
            #expect(taken.end == .exited(1) && taken.errors.hasPrefix("drydock: b.har is there already; "))
        }

        @Test func recordingsAreExported() throws {
            let folder = try TemporaryFolder("export")
            func record(_ name: String, _ request: String, _ more: String, _ content: String) throws {
                try folder.write("recordings/api/\(name).json", content)
                try folder.write(
                    "recordings/api/\(name).head.json",
                    #"{"request":"\#(request)","status":200,"recorded_at":"2026-11-21T07:00:00Z","fields":[["Content-Type","application/json"]],"content":"\#(name).json"\#(more)}"#
                )
            }
            try record("a", "GET /users/7", "", #"{"id":7}"#)
            try record(
                "b",
                "GET /users/7?full=1&token=***",
                #","match":[["accept-language","de"]]"#,
                #"{"id":7,"name":"Ada"}"#
            )
            try record("c", "POST /users", #","body":"00ff""#, "{}")
            try folder.write("recordings/api/d.head.json", "{")
            try folder.write(
                "drydock.yaml",
                """
                services:
                  - name: api
                    match: { prefix: /api }
                    base_url: https://api.example.com/v1
                    source: replay
                    recordings: { dir: ./recordings }
                """
            )
            let stubs = try Self.drydock("export", "wiremock", in: folder)
            let expected = [
                #"{"method":"GET_OR_HEAD","urlPath":"/api/users/7","queryParameters":{"full":{"equalTo":"1"},"token":{"matches":"[\\s\\S]*"}},"headers":{"accept-language":{"equalTo":"de"}}}"#,
                #"{"method":"GET_OR_HEAD","urlPath":"/api/users/7"}"#, #"{"method":"POST","urlPath":"/api/users"}"#,
            ]
            #expect(
                stubs.output.components(separatedBy: #""request":"#).dropFirst().map {
                    $0.components(separatedBy: #","response""#)[0]
                } == expected
            )
            #expect(
                stubs.errors == """
                    api/POST /users: changed: the content of its request is known by its digest alone: whatever the content is, this answers
                    api/d.head.json: left out: it is no recording that can be read

                    """
            )
            let har = try Self.drydock("export", "har", in: folder)
            #expect(har.output.contains(#""startedDateTime":"2026-11-21T07:00:00Z""#))
            #expect(har.output.contains(#""url":"https://api.example.com/v1/users/7?full=1&token=%2A%2A%2A""#))
            let none = try Self.drydock("export", "har", "--service", "other", in: folder)
            #expect(none.end == .exited(1) && none.errors == "drydock: no service is called other; there are api\n")
        }

        @Test func whatIsNoFileOfSuchAToolIsAnError() throws {
            let folder = try TemporaryFolder("import")
            try folder.write("a.json", "{")
            let results = try [
                Self.drydock("import", "a.json", in: folder), Self.drydock("import", "none.har", in: folder),
                Self.drydock("import", "a.json", "--format", "pcap", in: folder),
            ]
            #expect(results.map(\.end) == [.exited(1), .exited(1), .exited(2)])
            #expect(
                results[0].errors
                    == "drydock: nothing was written: a.json: this cannot be read: the name of a member is missing, at byte 1\n"
            )
            #expect(results[1].errors.hasPrefix("drydock: none.har does not exist; "))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a.json"])
        }
    }
}
