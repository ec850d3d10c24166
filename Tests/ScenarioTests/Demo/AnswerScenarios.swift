// What demo answers are made of: texts of the configuration, templates, collections, and files that change.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct DemoAnswers {
        static func daemon(_ endpoints: String, _ files: [String: String] = [:]) throws -> Daemon {
            let home = try DaemonHome()
            for (name, text) in files { try home.folder.write("demo/\(name)", text) }
            try home.folder.write("demo/none.json", "{}")
            return try Daemon(
                DaemonSettings(
                    """
                    services:
                      - name: shop
                        match: { prefix: /shop }
                        demo: { enabled: true, files: "\(home.folder.file("demo"))", file: none.json, random_seed: 42 }
                        endpoints:
                    \(endpoints)
                    """
                ),
                at: home
            )
        }

        @Test func inlineAnswersObeyConditionsAndRanges() throws {
            let daemon = try Self.daemon(
                """
                      - { name: text, path: /text, demo: { body: "0123456789" } }
                      - { name: json, path: /json, demo: { json: { id: 7, tags: [a, "1"], none: null, ok: true } } }
                      - { name: html, path: /html, demo: { body: "<p>", status: 201, headers: { Content-Type: text/html } } }
                """
            )
            let text = try daemon.exchange("/shop/text")
            #expect((text.text, text.field("Content-Type")) == ("0123456789", "text/plain; charset=utf-8"))
            let tag = try #require(text.field("ETag"))
            #expect(try daemon.exchange("/shop/text", fields: [("If-None-Match", tag)]).status == 304)
            #expect(try daemon.exchange("/shop/text", fields: [("If-Match", "\"x\"")]).status == 412)
            let part = try daemon.exchange("/shop/text", fields: [("Range", "bytes=2-4"), ("If-Range", tag)])
            #expect((part.status, part.text) == (206, "234"))
            let head = try daemon.exchange("HEAD", "/shop/text")
            #expect((head.field("Content-Length"), head.field("ETag")) == ("10", tag))
            let json = try daemon.exchange("/shop/json")
            #expect(json.text == #"{"id":7,"tags":["a","1"],"none":null,"ok":true}"#)
            #expect(json.field("Content-Type") == "application/json")
            let html = try daemon.exchange("/shop/html")
            #expect((html.status, html.text, html.field("Content-Type")) == (201, "<p>", "text/html"))
        }

        @Test func templatesAreFilledForEachRequest() throws {
            let daemon = try Self.daemon(
                """
                      - { name: user, path: "/users/:id", demo: { file: user.json.mustache } }
                      - { name: echo, path: /echo, method: POST, demo: { template: true, json: { got: "{{{request.json.a}}}", of: "{{request.json.b}}" } } }
                      - { name: made, path: /made, demo: { template: true, body: "{{fake.name}} {{fake.uuid}} {{counter.request}}/{{counter.rule}}" } }
                      - { name: long, path: /long, demo: { template: true, body: "{{#repeat(9000)}}0123456789{{/repeat}}" } }
                """,
                [
                    "user.json.mustache":
                        #"{"id":"{{request.parameters.id}}","q":"{{request.query.q}}","at":"{{request.path}}"}"#
                ]
            )
            let user = try daemon.exchange("/shop/users/7?q=a%22b")
            #expect(user.text == #"{"id":"7","q":"a\"b","at":"/shop/users/7"}"#)
            #expect(user.field("Content-Type") == "application/json")
            let tag = try #require(user.field("ETag"))
            #expect(try daemon.exchange("/shop/users/7?q=a%22b", fields: [("If-None-Match", tag)]).status == 304)
            #expect(try daemon.exchange("/shop/users/8", fields: [("If-None-Match", tag)]).status == 200)
            #expect(
                try daemon.exchange("HEAD", "/shop/users/7?q=a%22b").field("Content-Length")
                    == "\(user.text.utf8.count)"
            )
            let echo = try daemon.exchange("POST", "/shop/echo", body: Array(#"{"a":[1,{"x":null}],"b":"q\"\n"}"#.utf8))
            #expect(echo.text == #"{"got":[1,{"x":null}],"of":"q\"\n"}"#)
            let first = try daemon.exchange("/shop/made")
            let second = try daemon.exchange("/shop/made?other")
            let third = try daemon.exchange("/shop/made")
            #expect(first.text.hasSuffix(" 1/1") && second.text.hasSuffix(" 1/2") && third.text.hasSuffix(" 2/3"))
            #expect(first.text.dropLast(4) != third.text.dropLast(4))
            #expect(first.field("ETag") == nil)
            #expect(try daemon.exchange("/shop/long").text.utf8.count == 90_000)
            // The same request number has the same data after a restart.
            try daemon.restart()
            #expect(try daemon.exchange("/shop/made").text == first.text)
        }

        @Test func curlReadsAndChangesACollection() throws {
            let home = try DaemonHome()
            try home.folder.write("db.json", #"{"posts":[{"id":1,"t":"a"},{"id":2,"t":"b"}],"profile":{"n":1}}"#)
            let settings = DaemonSettings(
                """
                services:
                  - name: api
                    match: { prefix: /api }
                    demo: { enabled: true, crud: "\(home.folder.file("db.json"))", headers: { X-Mock: "yes" } }
                """
            )
            let daemon = try Daemon(settings, at: home)
            func curl(_ arguments: String...) throws -> String {
                try Shell.must("curl", ["-sS", "--noproxy", "*"] + arguments).replacingOccurrences(of: "\r", with: "")
            }
            let posts = "\(daemon.url)/api/posts"
            #expect(try curl("\(posts)?_sort=id&_order=desc") == #"[{"id":2,"t":"b"},{"id":1,"t":"a"}]"#)
            let created = try curl("-i", "-d", #"{"t":"c"}"#, posts)
            #expect(created.hasPrefix("HTTP/1.1 201 Created\n"))
            #expect(created.contains("\nLocation: /api/posts/3\n") && created.contains("\nX-Mock: yes\n"), "\(created)")
            #expect(created.contains("; status=201;") && created.hasSuffix(#"{"id":3,"t":"c"}"#), "\(created)")
            #expect(try curl("-X", "PATCH", "-d", #"{"t":"d"}"#, "\(posts)/3") == #"{"id":3,"t":"d"}"#)
            #expect(try curl("-X", "DELETE", "\(posts)/1") == "{}")
            let head = try curl("-I", "\(posts)?_page=1&_limit=1")
            #expect(head.contains("\nX-Total-Count: 2\n") && head.contains("\nContent-Length: 18\n"), "\(head)")
            #expect(head.contains("</api/posts?_page=2&_limit=1>; rel=\"next\""), "\(head)")
            #expect(try curl("-o", "/dev/null", "-w", "%{http_code}", "\(posts)/1") == "404")
            let item = try daemon.exchange("/api/posts/3")
            let tag = try #require(item.field("ETag"))
            #expect(try daemon.exchange("/api/posts/3", fields: [("If-None-Match", tag)]).status == 304)
            // What requests have made of it outlives a reload, and not a restart.
            #expect(try daemon.command("reload").succeeded)
            #expect(try curl("\(posts)/3") == #"{"id":3,"t":"d"}"#)
            try daemon.restart()
            #expect(try curl(posts) == #"[{"id":1,"t":"a"},{"id":2,"t":"b"}]"#)
        }

        @Test("a file that is edited is served at once, and one that vanishes stays what it was")
        func editedFiles() throws {
            let daemon = try Self.daemon(
                """
                      - { name: a, path: /a, demo: { file: a.json } }
                      - { name: t, path: /t, demo: { file: t.txt.mustache } }
                """,
                ["a.json": "1", "t.txt.mustache": "one"]
            )
            let folder = daemon.home.folder
            let first = try daemon.exchange("/shop/a")
            #expect(first.text == "1")
            try folder.write("demo/a.json", "22")
            #expect(try eventually { try daemon.exchange("/shop/a").text == "22" })
            let second = try daemon.exchange("/shop/a", fields: [("If-None-Match", first.field("ETag") ?? "")])
            #expect((second.status, second.field("Content-Length")) == (200, "2"))
            // Moved into place, as editors do.
            try folder.write("demo/new", "333")
            #expect(rename(folder.file("demo/new"), folder.file("demo/a.json")) == 0)
            #expect(try eventually { try daemon.exchange("/shop/a").text == "333" })
            #expect(unlink(folder.file("demo/a.json")) == 0)
            #expect(eventually { daemon.errors.contains("a.json does not exist") })
            #expect(try daemon.exchange("/shop/a").text == "333")
            // Another file that changes meanwhile is served all the same.
            try folder.write("demo/t.txt.mustache", "two")
            #expect(try eventually { try daemon.exchange("/shop/t").text == "two" })
            // A template with a mistake is refused, and says where.
            try folder.write("demo/t.txt.mustache", "\n {{reqest.path}}")
            #expect(
                eventually { daemon.errors.contains("wrong at 2:2: unknown name 'reqest.path'") },
                "\(daemon.errors)"
            )
            #expect(try daemon.exchange("/shop/t").text == "two")
            try folder.write("demo/a.json", "4444")
            try folder.write("demo/t.txt.mustache", "three")
            #expect(
                try eventually {
                    try daemon.exchange("/shop/a").text == "4444" && daemon.exchange("/shop/t").text == "three"
                }
            )
        }

        @Test("bodies of faults change like demo files, and one that vanishes stays what it was")
        func editedFilesOfFaults() throws {
            let home = try DaemonHome()
            let busy = try home.folder.write("busy.txt", "one")
            let demo = try home.folder.write("a.txt", "a")
            let faults = "faults: { status: 503, file: \"\(busy)\" }"
            let daemon = try Daemon(
                DaemonSettings(
                    """
                    forward: { allow: [127.0.0.1], \(faults) }
                    services:
                      - { name: bad, match: { prefix: /bad }, demo: { enabled: true, status: 204 }, \(faults) }
                      - { name: good, match: { prefix: /good }, demo: { enabled: true, file: "\(demo)" } }
                    """
                ),
                at: home
            )
            #expect(try daemon.exchange("/bad/x").text == "one")
            try home.folder.write("busy.txt", "two")
            #expect(try eventually { try daemon.exchange("/bad/x").text == "two" })
            #expect(unlink(busy) == 0)
            #expect(eventually { daemon.errors.contains("busy.txt does not exist") })
            try home.folder.write("a.txt", "b")
            #expect(try eventually { try daemon.exchange("/good/x").text == "b" }, "\(daemon.errors)")
            let last = try daemon.exchange("/bad/x")
            #expect((last.status, last.text) == (503, "two"))
        }

        @Test("with --watch, a change of the configuration is a reload; without it, it is not")
        func watchedConfiguration() throws {
            func text(_ home: DaemonHome, _ body: String) -> String {
                DaemonSettings(
                    "services: [{ name: s, match: { prefix: /s }, demo: { enabled: true, body: \"\(body)\" } }]"
                ).text(at: home)
            }
            let home = try DaemonHome()
            let watching = ["/bin/sh", "-c", "exec \"$@\" --watch", "sh"]
            let daemon = try Daemon(text: text(home, "one"), at: home, launcher: watching)
            #expect(try daemon.exchange("/s").text == "one")
            try home.folder.write("drydock.yaml", text(home, "two"))
            #expect(try eventually { try daemon.exchange("/s").text == "two" })
            try home.folder.write("drydock.yaml", "services: 3\n")
            #expect(eventually { daemon.errors.contains("reload refused") })
            #expect(try daemon.exchange("/s").text == "two")
            let url = try Shell.run(try Daemon.binary(), ["serve", "--watch", "http://127.0.0.1:9"])
            #expect(!url.succeeded && url.report.contains("--watch needs a configuration file"), "\(url.report)")
        }
    }
}
