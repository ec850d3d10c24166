// The test support against itself: a client and an origin that lie would make every other scenario worthless.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite struct Support {
        @Test(.timeLimit(.minutes(10)))
        func originAnswersAndCounts() throws {
            let origin = try ScriptedOrigin { request in
                OriginReply.resource(request, etag: "\"1\"", fields: [("X-Length", "\(request.bodyLength)")], "hello")
            }
            let client = try RawClient(port: origin.port)
            #expect(try client.exchange("/a").text == "hello")
            let posted = try client.exchange("POST", "/b", body: Pattern.bytes(0..<300_000))
            #expect(posted.field("x-length") == "300000")
            #expect(try client.exchange("HEAD", "/a").body.isEmpty)
            #expect(try client.exchange("/a", fields: [("If-None-Match", "\"1\"")]).status == 304)
            #expect(origin.requests(method: "GET", target: "/a") == 2)
            #expect(origin.requests() == 4)
            #expect(origin.connections == 1)
            #expect(origin.log[1].bodyIsPattern)
            origin.stop()
            #expect(throws: TestSupportError.self) { try RawClient(port: origin.port) }
            try origin.restart()
            #expect(try RawClient(port: origin.port).exchange("/a").status == 200)
        }

        @Test(arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", RawBodyEnd.cut, "hel"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", .complete, "hello"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nT: v\r\n\r\n",
                .complete, "hello"
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\n", .cut, "hel"),
            ("HTTP/1.1 200 OK\r\n\r\nhello", .complete, "hello"),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n", .complete, ""),
        ])
        func clientKnowsHowABodyEnds(_ bytes: String, _ end: RawBodyEnd, _ body: String) throws {
            let origin = try ScriptedOrigin { _ in OriginReply([OriginReply.text(bytes), .cut]) }
            let response = try RawClient(port: origin.port).exchange("/")
            #expect(response.end == end)
            #expect(response.text == body)
        }

        @Test(arguments: [
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/2 200 OK\r\n\r\n",
            "HTTP/1.1 200 OK\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\na",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ])
        func clientRefusesWhatIsNoResponse(_ bytes: String) throws {
            let origin = try ScriptedOrigin { _ in OriginReply([OriginReply.text(bytes), .cut]) }
            #expect(throws: RawClientError.self) { try RawClient(port: origin.port).exchange("/") }
        }

        @Test func gatesAndPatternHoldOverTheWire() throws {
            let gate = Gate()
            let head = OriginReply.head(200, fields: [("Transfer-Encoding", "chunked")])
            let origin = try ScriptedOrigin { _ in
                OriginReply([
                    head, OriginReply.text("80000\r\n"), .pattern(524_288, from: 0), .wait(gate),
                    OriginReply.text("\r\n1\r\n"), .pattern(1, from: 524_288), OriginReply.text("\r\n0\r\n\r\n"),
                ])
            }
            let client = try RawClient(port: origin.port)
            try client.request("GET", "/")
            #expect(try client.readHead().status == 200)
            var offset = 0
            let check = { (piece: UnsafeRawBufferPointer) in
                #expect(Pattern.matches(piece, at: offset))
                offset += piece.count
            }
            #expect(try client.readBody(upTo: 524_288, check) == nil)
            #expect(offset == 524_288)
            gate.open()
            #expect(try client.readBody(check) == .complete)
            #expect(offset == 524_289)
        }

        @Test func nginxServesAndCounts() throws {
            let nginx = try NginxOrigin(location: "add_header Cache-Control \"max-age=60\";")
            try nginx.write("a.json", "{}")
            let answer = try RawClient(port: nginx.port).exchange("/a.json")
            #expect(answer.text == "{}")
            #expect(answer.field("Cache-Control") == "max-age=60")
            #expect(answer.field("Content-Type") == "application/json")
            #expect(try nginx.requests(method: "GET", path: "/a.json") == 1)
            nginx.stop()
            #expect(throws: TestSupportError.self) { try RawClient(port: nginx.port) }
            try nginx.start()
            #expect(try nginx.requests() == 1)
        }

        @Test func nginxSpeaksTLS() throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder)
            let nginx = try NginxOrigin(tls: files, clientCertificates: true)
            try nginx.write("a.txt", "secret")
            let plain = ["-sS", "--cacert", files.authority, "\(nginx.url)/a.txt"]
            #expect(try Shell.run("curl", plain).output != "secret")
            let known = plain + ["--cert", files.clientCertificate, "--key", files.clientKey]
            #expect(try Shell.run("curl", known).output == "secret")
        }

        @Test func shellReportsAndBoundsPrograms() throws {
            let failed = try Shell.run("sh", ["-c", "cat; echo no >&2; exit 3"], input: Array("in".utf8))
            #expect(failed.end == .exited(3))
            #expect(failed.output == "in")
            #expect(failed.errors == "no\n")
            #expect(try Shell.run("sleep", ["30"], seconds: 0.2).end == nil)
            #expect(try SHA256.bytes([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        }
    }
}
