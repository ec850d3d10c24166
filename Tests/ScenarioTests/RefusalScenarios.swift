// What is refused over the wire: each bad request is answered and its connection ended, and the daemon goes on serving.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Refusals {
        static func daemon(_ origin: ScriptedOrigin) throws -> Daemon {
            try Daemon(services(service("api", origin.url)))
        }

        @Test(arguments: ["framing", "chunks", "heads"])
        func badRequestsAreAnsweredAndTheirConnectionEnds(_ table: String) throws {
            let rows = ["framing": BadRequest.framing, "chunks": BadRequest.chunkCoding, "heads": BadRequest.heads]
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin)
            for row in rows[table] ?? [] {
                // Pipelined behind it, so that a refusal that goes on reading would be seen at the origin.
                let client = try daemon.client()
                try client.send(row.text + "GET /api/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n")
                do {
                    let answer = try client.readResponse(method: "POST")
                    #expect(row.statuses.contains(answer.status), "\(row.name): \(answer.status) \(answer.text)")
                    #expect(answer.field("Connection")?.lowercased() == "close", "\(row.name)")
                    #expect(try client.isClosedByServer(), "\(row.name): the connection stays open")
                } catch {
                    Issue.record("\(row.name): \(error)")
                }
            }
            #expect(origin.requests(target: "/smuggled") == 0)
            #expect(origin.log.count { $0.isComplete } == 0)
            #expect(try daemon.exchange("/api/good").text == "fine")
            #expect(daemon.process.isRunning)
        }

        @Test func everySplitOfABadHeadIsRefused() throws {
            let origin = try ScriptedOrigin { _ in .answer("fine") }
            let daemon = try Self.daemon(origin)
            let bytes = Array("POST /api/in HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n".utf8)
            for offset in 1..<bytes.count {
                let client = try daemon.client()
                try client.send(Array(bytes[..<offset]))
                // So that the pieces arrive one by one, as a rule: the answer is the same where they do not.
                usleep(1000)
                // The refusal may come before the rest, and the rest then meets a closed connection.
                try? client.send(Array(bytes[offset...]))
                #expect(try client.readResponse(method: "POST").status == 400, "split at \(offset)")
            }
            #expect(origin.requests() == 0)
        }

        @Test func aBodyOnAHitIsNeverTheNextRequest() throws {
            let origin = try ScriptedOrigin { _ in .answer("stored", fields: [("Cache-Control", "max-age=600")]) }
            let daemon = try Self.daemon(origin)
            _ = try daemon.exchange("/api/a")
            let client = try daemon.client()
            let inner = "GET /api/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
            try client.request("GET", "/api/a", body: Array(inner.utf8))
            #expect(try client.readResponse().text == "stored")
            try? client.request("GET", "/api/a")
            if let next = try? client.readResponse() { #expect(next.text == "stored") }
            #expect(origin.requests(target: "/smuggled") == 0)
        }

        @Test func nothingIsReadAfterARequestThatAskedToClose() throws {
            let origin = try ScriptedOrigin { request in .answer(request.target) }
            let daemon = try Self.daemon(origin)
            let client = try daemon.client()
            try client.send(
                "GET /api/one HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                    + "GET /api/two HTTP/1.1\r\nHost: localhost\r\n\r\n"
            )
            #expect(try client.readResponse().text == "/one")
            #expect(try client.isClosedByServer())
            #expect(origin.requests(target: "/two") == 0)
        }

        @Test func pipelinedRequestsAreAnsweredInOrder() throws {
            let origin = try ScriptedOrigin { request in
                // Whoever did not wait for the first answer would be before it, as a rule.
                OriginReply([.pause(milliseconds: request.target == "/0" ? 50 : 1)])
                    .then(.answer(request.target, fields: [("Cache-Control", "no-store")]))
            }
            let daemon = try Self.daemon(origin)
            let client = try daemon.client()
            let all = (0..<20).map { "GET /api/\($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined()
            try client.send(all)
            for number in 0..<20 { #expect(try client.readResponse().text == "/\(number)") }
        }

        @Test func unknownMethodsPassAndTargetsArriveAsSent() throws {
            let origin = try ScriptedOrigin { request in .answer("\(request.method) \(request.target)") }
            let daemon = try Self.daemon(origin)
            #expect(try daemon.exchange("BREW", "/api/pot").text == "BREW /pot")
            for target in ["/a/../b", "/%2e%2e/%2F", "/a//b", "/?a=b&a=%20", "/;x=y"] {
                #expect(try daemon.exchange("/api\(target)").text == "GET \(target)")
            }
        }

        @Test func expectContinueIsAnsweredOnce() throws {
            let origin = try ScriptedOrigin { request in .answer("\(request.bodyLength)") }
            let daemon = try Self.daemon(origin)
            let client = try daemon.client()
            try client.send(
                "POST /api/in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
            )
            #expect(try client.readOneInterim() == 100)
            try client.send("hello")
            let answer = try client.readResponse(method: "POST")
            #expect(answer.text == "5")
            #expect(answer.interim.isEmpty)
        }

        @Test(arguments: [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 3\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 0x5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nhello",
            "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: a\r\n b\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
            "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello",
            "nonsense\r\n\r\n",
        ])
        func badAnswersAre502AndNeverStored(_ text: String) throws {
            let lines = text.replacing("\r\n\r\n", with: "\r\nCache-Control: max-age=600\r\n\r\n", maxReplacements: 1)
            let origin = try ScriptedOrigin { request in
                request.ordinal + request.connection == 2 ? .raw(lines) : .answer("good")
            }
            // Some of them are taken where the service is lenient: see below.
            let daemon = try Daemon(services(service("api", origin.url, "lenient: false")))
            let bad = try daemon.exchange("/api/a")
            expectProblem(bad, 502)
            #expect(bad.field("Proxy-Status")?.contains("error=") == true)
            #expect(try daemon.exchange("/api/a").text == "good")
            #expect(origin.connections == 2, "the bad connection is not used again")
        }

        @Test(arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello", false),
            ("HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", false),
            ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: a\r\n b\r\n\r\nhello", true),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX : a\u{1}b\r\n\r\nhello", true),
        ])
        func answersThatCanBeReadInOneWayOnlyArePassedOn(_ text: String, isStored: Bool) throws {
            let end = text.contains("\r\n\r\n") ? "\r\n\r\n" : "\n\n"
            let line = end == "\n\n" ? "\n" : "\r\n"
            let lines = text.replacing(end, with: "\(line)Cache-Control: max-age=600\(end)", maxReplacements: 1)
            let origin = try ScriptedOrigin { _ in .raw(lines) }
            let daemon = try Self.daemon(origin)
            for turn in 0..<2 {
                let answer = try daemon.exchange("/api/a")
                #expect(answer.status == 200 && answer.text == "hello", "\(answer.head)")
                #expect(answer.head.all("Content-Length").count <= 1 && answer.field("X") ?? "a b" == "a b")
                #expect(answer.cacheStatus?.isHit == (isStored && turn == 1), "\(answer.head)")
                if !isStored { #expect(answer.cacheStatus?.detail == "odd-framing", "\(answer.head)") }
            }
            #expect(origin.connections == (isStored ? 1 : 2), "a connection of odd framing is not used again")
        }

        @Test func rawUTF8InATargetIsPercentEncoded() throws {
            let fields = [("Cache-Control", "max-age=600")]
            let origin = try ScriptedOrigin { .answer(to: $0, fields: fields, $0.target) }
            let daemon = try Self.daemon(origin)
            for target in ["/api/ü?€", "/api/%C3%BC?%E2%82%AC"] {
                #expect(try daemon.exchange(target).text == "/%C3%BC?%E2%82%AC")
            }
            #expect(origin.requests() == 1)
            let client = try daemon.client()
            try client.send(Array("GET /api/".utf8) + [0xC3] + Array(" HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
            #expect(try client.readResponse().status == 400)
        }

        @Test func aClientThatEndsItsSideGetsItsAnswer() throws {
            let gates = ["GET": Gate(), "POST": Gate()]
            let origin = try ScriptedOrigin { request in
                if request.target == "/a" { gates[request.method]?.wait() }
                return .answer(to: request, "\(request.method) \(request.bodyLength)")
            }
            var settings = services(service("api", origin.url))
            settings.loops = "1"
            let daemon = try Daemon(settings)
            let requests = [
                ("GET /api/a HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET 0"),
                ("POST /api/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "POST 5"),
            ]
            for (text, expected) in requests {
                let client = try daemon.client()
                try client.send(text)
                let method = String(text.prefix { $0 != " " })
                #expect(origin.waitForRequests(1, method: method, target: "/a"))
                client.finishSending()
                // The loop sees the end no later than it answers somebody else who asks afterwards.
                for _ in 0..<3 { #expect(try daemon.exchange("/api/other").text == "GET 0") }
                gates[method]?.open()
                #expect(try client.readResponse().text == expected)
                #expect(try client.isClosedByServer())
            }
        }
    }
}
