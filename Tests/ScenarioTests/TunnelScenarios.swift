// Tunnels: HTTPS through CONNECT, a service over TLS with a client certificate, and a WebSocket echo.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Tunnels {
        @Test func httpsThroughConnect() throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder)
            let nginx = try NginxOrigin(tls: files)
            try nginx.folder.writePattern("root/big.bin", count: 5 << 20)
            let daemon = try RealClients.forwarding("\"127.0.0.1:\(nginx.port)\"")
            let target = folder.file("out")
            let run = try Shell.run(
                "curl",
                ["-sS", "-f", "--cacert", files.authority, "-o", target, "\(nginx.url)/big.bin"],
                environment: ["https_proxy": daemon.url]
            )
            #expect(run.succeeded, "\(run.report)")
            #expect(try SHA256.file(target) == SHA256.file("\(nginx.root)/big.bin"))
        }

        @Test func connectOnlyToAllowedPorts() throws {
            let origin = try ScriptedOrigin { _ in .answer("never") }
            let other = try freePort()
            let daemon = try RealClients.forwarding("\"127.0.0.1:\(other)\"")
            let client = try daemon.client()
            try client.send("CONNECT \(origin.authority) HTTP/1.1\r\nHost: \(origin.authority)\r\n\r\n")
            let refused = try client.readResponse(method: "CONNECT")
            expectProblem(refused, 403)
            #expect(origin.connections == 0)
            // Allowed, but nobody listens there.
            let second = try daemon.client()
            try second.send("CONNECT 127.0.0.1:\(other) HTTP/1.1\r\nHost: 127.0.0.1:\(other)\r\n\r\n")
            expectProblem(try second.readResponse(method: "CONNECT"), 502)
        }

        @Test func earlyBytesGoThroughAConnectTunnelAndHalfCloseIsKept() throws {
            let origin = try ScriptedOrigin { request in .answer("heard \(request.target)") }
            let daemon = try RealClients.forwarding("\"127.0.0.1:\(origin.port)\"")
            let client = try daemon.client()
            let inner = "GET /inner HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            try client.send("CONNECT \(origin.authority) HTTP/1.1\r\nHost: \(origin.authority)\r\n\r\n" + inner)
            #expect(try client.readHead(method: "CONNECT").status == 200)
            client.finishSending()
            let answer = String(decoding: try client.readToEnd(), as: UTF8.self)
            #expect(answer.hasSuffix("heard /inner"))
        }

        @Test func aServiceOverTLSWithAClientCertificate() throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder)
            let nginx = try NginxOrigin(
                location: "add_header Cache-Control \"max-age=600\";",
                tls: files,
                clientCertificates: true
            )
            try nginx.write("a.txt", "over TLS")
            let keys = "client_cert: \(files.clientCertificate), client_key: \(files.clientKey)"
            let daemon = try Daemon(
                services(
                    service("known", nginx.url, "tls: { ca: \(files.authority), \(keys) }"),
                    service("untrusting", nginx.url, "tls: { \(keys) }"),
                    service("unverified", nginx.url, "tls: { verify: false, \(keys) }")
                )
            )
            #expect(try daemon.exchange("/known/a.txt").text == "over TLS")
            #expect(try daemon.exchange("/known/a.txt").cacheStatus?.isHit == true)
            #expect(try daemon.exchange("/unverified/a.txt").text == "over TLS")
            let failed = try daemon.exchange("/untrusting/a.txt")
            expectProblem(failed, 502)
            #expect(failed.field("Proxy-Status")?.contains("tls") == true)
        }

        @Test("what ended without close_notify is passed on, told and not stored, nor by a service in front")
        func anEndWithoutCloseNotify() throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder)
            let origin = try EndingOverTLS(folder, files)
            let daemon = try Daemon(
                services(
                    service("api", origin.url, "tls: { ca: \(files.authority) }"),
                    service("front", "service:plain"),
                    service("plain", origin.url, "tls: { ca: \(files.authority) }", "cache: { mode: none }")
                )
            )
            for path in ["/api", "/front"] {
                for _ in 0..<2 {
                    let response = try daemon.exchange("\(path)/cut/100000")
                    #expect(response.status == 200 && response.end == .complete && response.body.count == 100_000)
                    #expect(response.cacheStatus?.isHit == false)
                }
            }
            #expect(origin.requests("/cut/100000") == 4)
            #expect(try daemon.exchange("/api/cut/100000").cacheStatus?.detail == "unproven-end")
            for line in ["/cut/100000 of service api ended", "of service front ended"] {
                #expect(eventually { daemon.errors.contains("\(line) with its TLS connection") })
            }
            for target in ["said", "length", "chunked"] {
                for path in ["/api", "/front"] {
                    #expect(try daemon.exchange("\(path)/\(target)/70000").body.count == 70_000)
                    let isStored = try eventually {
                        try daemon.exchange("\(path)/\(target)/70000").cacheStatus?.isHit == true
                    }
                    #expect(isStored, "\(path)/\(target)")
                }
            }
        }

        @Test(arguments: ["reverse", "forward"])
        func aWebSocketEchoes(_ mode: String) throws {
            let origin = try webSocketEcho()
            let daemon =
                try mode == "forward"
                ? RealClients.forwarding() : Daemon(services(service("ws", origin.url)))
            let client = try daemon.client()
            let target = mode == "forward" ? "\(origin.url)/chat" : "/ws/chat"
            try client.request(
                "GET",
                target,
                host: mode == "forward" ? origin.authority : "127.0.0.1:\(daemon.port)",
                fields: [
                    ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                    // The key and the answer to it are those of RFC 6455 section 1.3.
                    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ]
            )
            let head = try client.readHead()
            #expect(head.status == 101)
            #expect(head.field("Sec-WebSocket-Accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
            #expect(head.field("Upgrade")?.lowercased() == "websocket")
            #expect(origin.log.first?.target == "/chat")
            for length in [0, 5, 125, 126, 60_000] {
                let payload = Pattern.bytes(0..<length)
                try client.send(frame(payload, mask: [1, 2, 3, 4]))
                let echo = frame(payload, mask: nil)
                #expect(try client.readRaw(echo.count) == echo)
            }
        }

        @Test(
            "a WebSocket goes over TLS to its origin, from a service and from forward mode",
            arguments: ["/ws", "forward"]
        )
        func aSecureWebSocketEchoes(_ way: String) throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder)
            let origin = try UpgradingOverTLS(folder, files)
            let daemon = try Daemon(
                "services:\n" + service("ws", origin.url, "tls: { ca: \(files.authority) }")
                    + "forward: { allow: [127.0.0.1], connect: { allow: [\"127.0.0.1:\(origin.port)\"] }, "
                    + "tls: { ca: \(files.authority) } }\n"
            )
            let client = try daemon.client()
            let target = way == "/ws" ? "/ws" : origin.url
            let host = way == "/ws" ? "127.0.0.1:\(daemon.port)" : "127.0.0.1:\(origin.port)"
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "echo")]
            try client.request("GET", "\(target)/echo", host: host, fields: upgrade)
            #expect(try client.readHead().status == 101)
            #expect(try client.readRaw(5) == Array("first".utf8))
            for length in [1, 125, 60_000, 100_000] {
                try client.sendPattern(length)
                #expect(try client.readRaw(length) == Pattern.bytes(0..<length))
            }
            client.finishSending()
            #expect(try client.readToEnd().isEmpty)
            #expect(origin.requests == ["/echo http/1.1 - 127.0.0.1:\(origin.port)"])
        }

        @Test("what an origin over TLS cuts is a reset for the client", arguments: ["said", "cut", "reset"])
        func anUpgradeThatIsCut(_ ending: String) throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder)
            let origin = try UpgradingOverTLS(folder, files)
            let daemon = try Daemon(services(service("ws", origin.url, "tls: { ca: \(files.authority) }")))
            let client = try daemon.client()
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "echo")]
            try client.request("GET", "/ws/\(ending)", host: "127.0.0.1:\(daemon.port)", fields: upgrade)
            #expect(try client.readHead().status == 101)
            #expect(try client.readRaw(4) == Array("half".utf8))
            try client.send(".")
            if ending == "said" {
                #expect(try client.readToEnd().isEmpty)
            } else {
                let error = #expect(throws: TestSupportError.self) { _ = try client.readToEnd() }
                #expect(error?.description.contains("reset") == true)
            }
        }

        @Test("an upgrade whose origin has a bad certificate is a 502 that says what is wrong with it")
        func anUpgradeWithoutTrust() throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder)
            let origin = try UpgradingOverTLS(folder, files)
            let other = try TLSFiles(in: folder, "other")
            let daemon = try Daemon(
                services(
                    service("unknown", origin.url),
                    service("pinned", origin.url, "tls: { ca: \(files.authority), pin: \"\(try other.pin)\" }"),
                    service("unverified", origin.url, "tls: { verify: false }"),
                    service("fileless", origin.url, "tls: { ca: \(files.authority) }")
                )
            )
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "echo")]
            for (name, words, error) in [
                ("unknown", "is of an authority that this machine does not know", "tls_certificate_error"),
                ("pinned", "shows a public key that is not the one under 'tls.pin'", "tls_certificate_error"),
            ] {
                let refused = try daemon.exchange("/\(name)/echo", fields: upgrade)
                expectProblem(refused, 502)
                #expect(refused.text.contains(words), "\(refused.text)")
                #expect(refused.field("Proxy-Status")?.contains("error=\(error)") == true)
                // The same as any other request gets.
                #expect(try daemon.exchange("/\(name)/plain/256").text.contains(words))
            }
            #expect(origin.requests.isEmpty)
            let client = try daemon.client()
            try client.request("GET", "/unverified/echo", host: "127.0.0.1:\(daemon.port)", fields: upgrade)
            #expect(try client.readHead().status == 101)
            try FileManager.default.removeItem(atPath: files.authority)
            let fileless = try daemon.exchange("/fileless/echo", fields: upgrade)
            expectProblem(fileless, 502)
            #expect(fileless.text.contains(files.authority), "\(fileless.text)")
        }

        @Test func anUpgradeThatIsRefusedStaysHTTP() throws {
            let origin = try ScriptedOrigin { request in .answer(request.target == "/no" ? 403 : 200, "plain") }
            let daemon = try Daemon(services(service("ws", origin.url)))
            let client = try daemon.client()
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            #expect(try client.exchange("/ws/no", fields: upgrade).status == 403)
            #expect(try daemon.exchange("/ws/next").text == "plain")
        }

        /// RFC 9110 section 7.8: Upgrade is an offer, which counts only where Connection names
        /// it; h2c ends at this hop.
        @Test(arguments: [
            [("Upgrade", "websocket")],
            [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")],
        ])
        func anOfferThatIsNotPassedOnIsAnOrdinaryRequest(_ fields: [(String, String)]) throws {
            let origin = try ScriptedOrigin { request in
                .answer(request.field("Upgrade") ?? "plain", fields: [("Cache-Control", "max-age=60")])
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            #expect(try daemon.exchange("/api/x", fields: fields).text == "plain")
            let second = try daemon.exchange("/api/x", fields: fields)
            #expect(second.text == "plain")
            #expect(second.cacheStatus?.isHit == true)
        }

        @Test func anUpgradeGoesOnlyWhereARequestMayGo() throws {
            let origin = try ScriptedOrigin { _ in .answer("live") }
            let daemon = try Daemon(
                services(
                    service(
                        "api",
                        origin.url,
                        "unlisted: 404",
                        "endpoints:",
                        "  - { name: played, path: /played, demo: { enabled: true, status: 204 } }",
                        "  - { name: listed, path: /listed, headers: { set: { X-Own: mine } } }"
                    )
                )
            )
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            #expect(try daemon.exchange("/api/other", fields: upgrade).status == 404)
            #expect(try daemon.exchange("/api/played", fields: upgrade).status == 204)
            #expect(origin.requests() == 0)
            #expect(try daemon.exchange("/api/listed", fields: upgrade).text == "live")
            #expect(origin.log.first?.field("X-Own") == "mine")
        }

        @Test(
            "with another method than GET an Upgrade is ignored, and the request counts as any other",
            arguments: ["POST", "DELETE"]
        )
        func anUpgradeOfAnUnsafeRequest(_ method: String) throws {
            let origin = try ScriptedOrigin { request in
                .answer(request.field("Upgrade") ?? "plain", fields: [("Cache-Control", "max-age=600")])
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            #expect(try daemon.exchange("/api/x").text == "plain")
            #expect(try daemon.exchange("/api/x").cacheStatus?.isHit == true)
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            #expect(try daemon.exchange(method, "/api/x", fields: upgrade).text == "plain")
            // It has invalidated what was stored.
            #expect(try daemon.exchange("/api/x").cacheStatus?.isHit == false)
            #expect(origin.log.map(\.method) == ["GET", method, "GET"])
        }

        @Test("a tunnel is one of the fetches that max_concurrent counts, to its end")
        func tunnelsAreCounted() throws {
            let origin = try webSocketEcho()
            let limit = "max_concurrent: 1\n    max_queue: { length: 1, wait: 200ms }"
            let daemon = try Daemon(services(service("ws", origin.url, limit), service("front", "service:ws")))
            let handshake = [
                ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ]
            for prefix in ["/ws", "/front"] {
                let client = try daemon.client()
                try client.request("GET", "\(prefix)/chat", host: "127.0.0.1:\(daemon.port)", fields: handshake)
                #expect(try client.readHead().status == 101)
                let asked = origin.requests()
                for fields in [handshake, []] {
                    let refused = try daemon.exchange("/ws/other", fields: fields)
                    expectProblem(refused, 503)
                    #expect(refused.field("Retry-After") == "1")
                    #expect(refused.field("Proxy-Status")?.contains("error=connection_limit_reached") == true)
                    #expect(refused.text.contains("max_concurrent"))
                }
                #expect(origin.requests() == asked)
                client.close()
                // Its end gives the slot back.
                #expect(try eventually { try daemon.exchange("/ws/other").status == 400 })
            }
        }

        @Test func anUpgradeWithoutADeadlineWaits() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { _ in
                gate.wait()
                return .answer("late")
            }
            let daemon = try Daemon(
                services(
                    service("ws", origin.url, "timeout: { first_byte: none }"),
                    service("quick", origin.url, "timeout: { first_byte: 200ms }")
                )
            )
            let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
            let client = try daemon.client()
            try client.request("GET", "/ws/x", host: "127.0.0.1:\(daemon.port)", fields: upgrade)
            #expect(origin.waitForRequests(1))
            // It still waits when one that began later has waited too long.
            #expect(try daemon.exchange("/quick/x", fields: upgrade).status == 504)
            gate.open()
            #expect(try client.readResponse().text == "late")
        }

        /// A data frame of RFC 6455 section 5.2, final and binary.
        private func frame(_ payload: [UInt8], mask: [UInt8]?) -> [UInt8] {
            let bit: UInt8 = mask == nil ? 0 : 0x80
            var bytes: [UInt8] = [0x82]
            if payload.count < 126 {
                bytes.append(bit | UInt8(payload.count))
            } else {
                bytes += [bit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
            }
            guard let mask else { return bytes + payload }
            return bytes + mask + payload.enumerated().map { $1 ^ mask[$0 % 4] }
        }

        /// An origin that takes the handshake and sends every masked frame back unmasked.
        private func webSocketEcho() throws -> ScriptedOrigin {
            let unread = Monitor([UInt8]())
            return try ScriptedOrigin { request in
                let fields = [
                    ("Connection", "Upgrade"), ("Upgrade", "websocket"),
                    ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
                ]
                guard request.field("Upgrade") == "websocket",
                    request.field("Sec-WebSocket-Key") == "dGhlIHNhbXBsZSBub25jZQ=="
                else { return .answer(400, "no handshake") }
                return OriginReply([
                    OriginReply.head(101, fields: fields),
                    .converse { bytes in unread.update { Self.echo(bytes, &$0) } },
                ])
            }
        }

        private static func echo(_ bytes: [UInt8], _ unread: inout [UInt8]) -> [UInt8] {
            unread += bytes
            var reply = [UInt8]()
            while unread.count >= 2 {
                let short = Int(unread[1] & 0x7F)
                let header = short < 126 ? 2 : 4
                guard unread.count >= header + 4 else { break }
                let length = short < 126 ? short : Int(unread[2]) << 8 | Int(unread[3])
                guard unread.count >= header + 4 + length else { break }
                let mask = Array(unread[header..<(header + 4)])
                reply += [unread[0], UInt8(short)] + unread[2..<header]
                reply += unread[(header + 4)..<(header + 4 + length)].enumerated().map { $1 ^ mask[$0 % 4] }
                unread.removeFirst(header + 4 + length)
            }
            return reply
        }
    }
}
