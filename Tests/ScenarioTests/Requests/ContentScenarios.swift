// Contents that are made anew before they are sent: the exact bytes that the origin gets, and what is refused.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Contents {
        private static let json = [("Content-Type", "application/json")]

        /// Answers with the fields that speak of the content, and with the content.
        private static func origin() throws -> ScriptedOrigin {
            try ScriptedOrigin { request in
                let type = request.field("Content-Type") ?? "-"
                let said = "\(request.target) \(type) \(String(decoding: request.body, as: UTF8.self))"
                return .answer(200, to: request, said)
            }
        }

        private static func daemon(_ origin: ScriptedOrigin, _ endpoints: String...) throws -> Daemon {
            let list = endpoints.map { "{ name: e, method: POST, path: /e, \($0) }" }.joined(separator: ", ")
            return try Daemon(services(service("api", origin.url, "endpoints: [\(list)]")))
        }

        private static func post(
            _ daemon: Daemon,
            _ body: String,
            _ fields: [(String, String)] = json,
            _ target: String = "/api/e"
        ) throws -> RawResponse {
            try daemon.exchange("POST", target, fields: fields, body: Array(body.utf8))
        }

        @Test func jsonBecomesAForm() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(
                origin,
                "body: { encode: form, strip_nulls: true, keys: snake, defaults: { apiVersion: 2 } }"
            )
            let answer = try Self.post(daemon, #"{"userID":"x y","nick":null,"tags":["a",true]}"#)
            #expect(
                answer.text
                    == "/e application/x-www-form-urlencoded user_id=x%20y&tags%5B%5D=a&tags%5B%5D=true&api_version=2"
            )
            #expect(origin.log.last?.field("Content-Length") == "56")
        }

        @Test func aFormBecomesJSONAndParametersGoIntoIt() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(
                origin,
                "to: /v2/:user.id, params: { page: 1, q: none }, params_as: { order: sorted }, body: { encode: json }"
            )
            let form = [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Digest", "sha-256=:x:")]
            let answer = try Self.post(daemon, "user[id]=7&b=1&b=2", form, "/api/e?q=x&r=y")
            #expect(answer.text == #"/v2/7?r=y application/json {"b":["1","2"],"page":1,"q":"x","user":{"id":"7"}}"#)
            #expect(origin.log.last?.field("Content-Digest") == nil)
            let missing = try Self.post(daemon, "b=1", form)
            #expect(missing.status == 400 && missing.text.contains("the parameter 'user.id' is missing"))
            #expect(origin.requests() == 1)
        }

        @Test func aTypeThatSaysTheSameStays() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin, "body: { defaults: { a: 1 } }")
            let own = [("Content-Type", "application/vnd.api+json")]
            #expect(try Self.post(daemon, "{}", own).text == #"/e application/vnd.api+json {"a":1}"#)
            #expect(try Self.post(daemon, "{}", []).text == #"/e application/json {"a":1}"#)
            #expect(try Self.post(daemon, "").text == #"/e application/json {"a":1}"#)
        }

        @Test func datesAndDataAreSentAsTheEndpointSays() throws {
            let origin = try Self.origin()
            let dates = "dates: { members: [born, list.at], as: seconds }, data: [photo]"
            let daemon = try Self.daemon(origin, "body: { \(dates) }")
            let body = #"{"born":"1970-01-01T00:01:00Z","list":[{"at":"1970-01-02"}],"photo":"/w=="}"#
            #expect(
                try Self.post(daemon, body).text
                    == #"/e application/json {"born":60,"list":[{"at":86400}],"photo":"/w=="}"#
            )
            for (wrong, name) in [(#"{"born":"soon"}"#, "'born'"), (#"{"photo":"%"}"#, "'photo'")] {
                let answer = try Self.post(daemon, wrong)
                #expect(answer.status == 400 && answer.text.contains(name), "\(wrong)")
            }
            #expect(origin.requests() == 1)
        }

        @Test func aPropertyListHasDatesAndData() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(
                origin,
                "body: { encode: plist, dates: { members: [born], as: iso8601 }, data: [photo] }"
            )
            let answer = try Self.post(daemon, #"{"born":60,"photo":"/w==","n":1}"#)
            let list = answer.text.replacing("\n", with: "")
            #expect(list.hasPrefix("/e application/x-plist <?xml"))
            #expect(
                list.hasSuffix(
                    "<dict><key>born</key><date>1970-01-01T00:01:00Z</date><key>photo</key><data>/w==</data><key>n</key><integer>1</integer></dict></plist>"
                )
            )
            #expect(try Self.post(daemon, #"{"a":null}"#).status == 400)
        }

        @Test func aMultipartContentHasFieldsFilesAndTheUpload() throws {
            let origin = try Self.origin()
            let home = try DaemonHome()
            try home.folder.write("terms.txt", "the terms")
            let parts =
                "body: { encode: multipart, defaults: { kind: photo }, upload: { name: file, filename: a.bin }, files: [{ name: terms, file: terms.txt }] }"
            let list = "endpoints: [{ name: e, method: POST, path: /e, params: { album: 1 }, \(parts) }]"
            let daemon = try Daemon(services(service("api", origin.url, list)), at: home)
            let answer = try Self.post(daemon, "bytes\r\n--x", [("Content-Type", "image/png")], "/api/e?album=7")
            let type = try #require(origin.log.last?.field("Content-Type"))
            let boundary = try #require(type.split(separator: "=").last)
            func part(_ head: String, _ body: String) -> String {
                "--\(boundary)\r\nContent-Disposition: form-data; \(head)\r\n\r\n\(body)\r\n"
            }
            let expected =
                part("name=\"album\"", "7") + part("name=\"kind\"", "photo")
                + part("name=\"terms\"; filename=\"terms.txt\"\r\nContent-Type: text/plain; charset=utf-8", "the terms")
                + part("name=\"file\"; filename=\"a.bin\"\r\nContent-Type: image/png", "bytes\r\n--x")
                + "--\(boundary)--\r\n"
            #expect(answer.text == "/e \(type) \(expected)")
            #expect(origin.log.last?.field("Content-Length") == "\(expected.utf8.count)")
            let empty = try Self.post(daemon, "", [])
            #expect(empty.status == 400 && empty.text.contains("is to be the part 'file'"))
        }

        @Test func anUploadIsStreamed() throws {
            let first = Monitor(0)
            let origin = try ScriptedOrigin(bodyHook: { request in first.update { $0 = max($0, request.bodyLength) } })
            { request in
                .answer(200, to: request, "\(request.bodyLength) \(request.field("Content-Length") ?? "none")")
            }
            let daemon = try Self.daemon(origin, "body: { encode: multipart, max: 1KiB, upload: { name: file } }")
            let client = try daemon.client()
            let host = "Host: 127.0.0.1:\(daemon.port)\r\n"
            try client.send("POST /api/e HTTP/1.1\r\n\(host)Transfer-Encoding: chunked\r\n\r\n")
            let piece = [UInt8](repeating: 0x61, count: 64 * 1024)
            try client.send("10000\r\n")
            try client.send(piece + Array("\r\n".utf8))
            // The first bytes are at the origin before the last ones were sent.
            #expect(first.wait(120) { $0 > 32 * 1024 })
            for _ in 0..<31 {
                try client.send("10000\r\n")
                try client.send(piece + Array("\r\n".utf8))
            }
            try client.send("0\r\n\r\n")
            let answer = try client.readResponse(method: "POST")
            #expect(answer.status == 200)
            let length = try #require(answer.text.split(separator: " ").first.flatMap { Int($0) })
            #expect(length > 32 * 64 * 1024 && length < 32 * 64 * 1024 + 400 && answer.text.hasSuffix("none"))
        }

        @Test func theMembersOfAContentAreParts() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin, "body: { encode: multipart, data: [photo] }")
            let answers = try (0..<2).map { _ in try Self.post(daemon, #"{"a":[1,2],"photo":"Zm9v"}"#).text }
            #expect(answers[0] == answers[1])
            #expect(
                answers[0].contains("name=\"a[]\"\r\n\r\n2\r\n")
                    && answers[0].contains(
                        "name=\"photo\"; filename=\"photo\"\r\nContent-Type: application/octet-stream\r\n\r\nfoo\r\n"
                    )
            )
        }

        @Test func whatIsNotUnderstoodIsRefusedBeforeAnythingIsSent() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin, "body: { encode: json, max: 1KiB, keys: snake }")
            let long = "{\"a\":\"" + String(repeating: "x", count: 2000) + "\"}"
            let answer = try Self.post(daemon, long)
            #expect(
                answer.status == 413 && answer.text.contains("endpoint e of service api")
                    && answer.text.contains("1024 bytes")
            )
            let client = try daemon.client()
            let host = "Host: 127.0.0.1:\(daemon.port)\r\n"
            try client.send(
                "POST /api/e HTTP/1.1\r\n\(host)Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            try client.send("800\r\n" + String(repeating: "x", count: 2048) + "\r\n0\r\n\r\n")
            #expect(try client.readResponse(method: "POST").status == 413)
            for (body, fields, status) in [
                ("{", Self.json, 400), (#"{"a":1,"a":2}"#, Self.json, 400), (#"{"aB":1,"a_b":2}"#, Self.json, 400),
                ("x", [("Content-Type", "image/png")], 415), ("{}", Self.json + [("Content-Encoding", "gzip")], 415),
                ("a=%FF", [("Content-Type", "application/x-www-form-urlencoded")], 400),
            ] {
                #expect(try Self.post(daemon, body, fields).status == status, "\(body)")
            }
            #expect(origin.requests() == 0)
        }

        @Test func aClientThatLeavesSendsNothing() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin, "body: { encode: form }")
            let client = try daemon.client()
            let host = "Host: 127.0.0.1:\(daemon.port)\r\n"
            try client.send(
                "POST /api/e HTTP/1.1\r\n\(host)Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{\"a\""
            )
            client.close()
            #expect(try Self.post(daemon, #"{"a":1}"#).text.hasSuffix(" a=1"))
            #expect(origin.requests() == 1)
        }

        @Test func aContentThatIsOnlyLookedIntoGoesOnAsItCame() throws {
            let origin = try Self.origin()
            let daemon = try Self.daemon(origin, "to: /v2/:id?kind=:kind, params: { kind: any }")
            #expect(try Self.post(daemon, #"{ "id" : 7 }"#).text == #"/v2/7?kind=any application/json { "id" : 7 }"#)
            // What is no part of parameters is not read at all.
            let other = try Self.post(daemon, "bytes", [("Content-Type", "image/png")], "/api/e?id=8")
            #expect(other.text == "/v2/8?kind=any image/png bytes")
        }
    }
}
