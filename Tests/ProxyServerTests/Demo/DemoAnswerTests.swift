// Answers of demo mode over connections: validators of files, fields of several lines, statuses beside rules, and null.

import Glibc
import TestSupport
import Testing

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct DemoAnswerTests {
    static func text(_ demo: String) -> String {
        """
        services:
          - name: shop
            match: { prefix: /shop }
            base_url: http://127.0.0.1:1
            demo:
              enabled: true
        \(demo)
        """
    }

    /// A file is dated by its last change, and conditions and ranges obey that date as they obey its tag.
    @Test func filesHaveADate() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("user.json", #"{"name":"Ann"}"#)
        // Sun, 06 Nov 1994 08:49:37 GMT
        var times = [timeval(tv_sec: 784_111_777, tv_usec: 0), timeval(tv_sec: 784_111_777, tv_usec: 0)]
        try #require(utimes(path, &times) == 0)
        let text = Self.text(
            """
                  rules:
                    - { name: dated, when: { path: /dated }, file: \(path), headers: { Cache-Control: max-age=5, Last-Modified: "Mon, 07 Nov 1994 08:49:37 GMT" } }
                    - { name: waits, when: { path: /waits }, file: \(path), latency: 1ms }
                    - { name: inline, when: { path: /inline }, json: {} }
                    - { name: file, file: \(path) }
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            let date = "Sun, 06 Nov 1994 08:49:37 GMT"
            for target in ["/shop/user", "/shop/waits"] {
                let whole = try client.exchange(target)
                #expect(whole.field("Last-Modified") == date && whole.field("Cache-Control") == nil)
                let known = try client.exchange(target, fields: [("If-Modified-Since", date)])
                #expect(known.status == 304 && known.text.isEmpty)
                let old = try client.exchange(target, fields: [("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT")])
                #expect(old.status == 200)
                let part = try client.exchange(target, fields: [("Range", "bytes=2-5"), ("If-Range", date)])
                #expect(part.status == 206 && part.text == "name")
                let other = try client.exchange(
                    target,
                    fields: [("Range", "bytes=2-5"), ("If-Range", "Sun, 06 Nov 1994 08:49:36 GMT")]
                )
                #expect(other.status == 200 && other.text == #"{"name":"Ann"}"#)
            }
            // What the rule says counts.
            let dated = try client.exchange("/shop/dated")
            #expect(
                dated.field("Last-Modified")?.hasPrefix("Mon") == true && dated.field("Cache-Control") == "max-age=5"
            )
            let inline = try client.exchange("/shop/inline")
            #expect(inline.field("Last-Modified") == nil)
        }
    }

    @Test func aFieldMayHaveSeveralLines() async throws {
        let text = Self.text(
            """
                  body: x
                  headers: { Set-Cookie: [a=1, b=2], X-One: all }
                  rules: [{ name: rule, when: { path: /rule }, status: 201, headers: { Set-Cookie: [c=3, d=4] } }]
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            func cookies(_ target: String) throws -> [String] {
                try client.exchange(target).head.fields.filter { $0.name.lowercased() == "set-cookie" }.map(\.value)
            }
            #expect(try cookies("/shop/a") == ["a=1", "b=2"])
            #expect(try cookies("/shop/rule") == ["c=3", "d=4"])
        }
    }

    @Test func aStatusBesideRulesIsTheAnswerToTheOthers() async throws {
        let text = Self.text(
            """
                  status: 418
                  rules: [{ name: tea, when: { path: /tea } }]
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            #expect(try client.exchange("/shop/tea").status == 200)
            #expect(try client.exchange("/shop/coffee").status == 418)
        }
    }

    @Test func nullIsAValueOfJSON() async throws {
        let text = Self.text(
            """
                  rules:
                    - { name: none, when: { body: { json: { a: null } } }, status: 201 }
                    - { name: both, when: { body: { json: { b: { is: null }, c: { one_of: [null, 1] } } } }, status: 202 }
                    - { name: not, when: { body: { json: { d: { not: null } } } }, status: 203, json: null }
            """
        )
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            func status(_ body: String) throws -> Int {
                try client.exchange("POST", "/shop/a", body: Array(body.utf8)).status
            }
            #expect(try status(#"{"a":null}"#) == 201)
            #expect(try status(#"{"a":0,"d":null}"#) == 404)
            #expect(try status(#"{"b":null,"c":null}"#) == 202)
            #expect(try status(#"{"b":null,"c":1}"#) == 202)
            let not = try client.exchange("POST", "/shop/a", body: Array(#"{"d":1}"#.utf8))
            #expect(not.status == 203 && not.text == "null")
        }
    }

    @Test func demoIsASource() async throws {
        let text = """
            services:
              - name: shop
                match: { prefix: /shop }
                base_url: http://127.0.0.1:1
                source: demo
                demo: { body: played }
                endpoints: [{ name: live, path: /live, source: live, timeout: { connect: 2m } }]
            """
        try await HandlerHarness.run(text) { harness throws in
            let client = try harness.client()
            #expect(try client.exchange("/shop/a").text == "played")
            #expect(try client.exchange("/shop/live").status == 502)
        }
    }
}
