// What a client gets for each thing that an origin may do: a test for each row of the table in Documentation/guide/answers.md.

import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(2))) struct Outcomes {
        /// A GET of a resource that is not stored gets this status and this error type, with a document that says what to
        /// do; nothing of it is stored.
        private func expect(
            _ status: Int,
            _ error: String,
            from origin: String,
            _ more: String...,
            at location: SourceLocation = #_sourceLocation
        ) throws {
            let lines = ["- name: api", "  match: { prefix: /api }", "  base_url: \(origin)"] + more.map { "  \($0)" }
            let daemon = try Daemon("services:\n" + lines.map { "  \($0)\n" }.joined())
            let answer = try daemon.exchange("/api/a")
            expectProblem(answer, status, at: location)
            let told = answer.field("Proxy-Status") ?? ""
            #expect(told.contains("error=\(error);"), "\(told)", sourceLocation: location)
            #expect(try !daemon.command("list").output.contains("/a"), sourceLocation: location)
        }

        @Test func aStatusOfTheOriginIsPassedOn() throws {
            // A 204 with content would leave it in the connection, before the next answer.
            let origin = try ScriptedOrigin {
                let status = Int($0.target.suffix(3)) ?? 0
                return .answer(status, to: $0, status == 204 ? "" : "body")
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            for status in [200, 204, 301, 404, 418, 500, 503, 599] {
                let answer = try daemon.exchange("/api/\(status)")
                #expect(answer.status == status && answer.field("Proxy-Status") == nil)
                if status != 204 { #expect(answer.text == "body") }
            }
        }

        @Test func aRefusedConnection() throws {
            try expect(502, "connection_refused", from: "http://127.0.0.1:1")
        }

        @Test func aNameWithoutAnAddress() throws { try expect(502, "dns_error", from: "http://nowhere.invalid") }

        /// No connection to a multicast address can be made; no packet leaves.
        @Test func anAddressWithoutARoute() throws {
            try expect(503, "destination_ip_unroutable", from: "http://224.0.0.1:9")
        }

        @Test func aCertificateThatDoesNotVerify() throws {
            let folder = try TemporaryFolder()
            let nginx = try NginxOrigin(tls: TLSFiles(in: folder))
            try expect(502, "tls_certificate_error", from: nginx.url)
        }

        @Test func anOriginWithoutTLS() throws {
            let nginx = try NginxOrigin()
            try expect(502, "tls_protocol_error", from: "https://127.0.0.1:\(nginx.port)")
        }

        @Test func aConnectionThatIsNotTaken() throws {
            let silent = try SilentListener("127.0.0.9", port: freePort())
            defer { silent.close() }
            let origin = "http://127.0.0.9:\(silent.port)"
            try expect(504, "connection_timeout", from: origin, "timeout: { connect: 300ms }")
        }

        @Test func theProxyInFrontRefuses() throws {
            for (status, outcome, error) in [
                (407, 502, "proxy_configuration_error"), (403, 502, "http_request_denied"),
                (502, 502, "destination_unavailable"), (504, 504, "connection_timeout"),
            ] {
                let proxy = try ScriptedOrigin { .answer(status, to: $0, "no") }
                try expect(outcome, error, from: "https://origin.test", "upstream_proxy: \"\(proxy.url)\"")
            }
            let proxy = try ScriptedOrigin { .answer(407, to: $0, "no") }
            try expect(502, "proxy_configuration_error", from: "http://origin.test", "upstream_proxy: \"\(proxy.url)\"")
        }

        @Test func noHeadInTime() throws {
            let origin = try ScriptedOrigin { _ in .never }
            try expect(504, "http_response_timeout", from: origin.url, "timeout: { first_byte: 300ms }")
        }

        @Test func anEndBeforeTheHead() throws {
            let origin = try ScriptedOrigin { _ in .cut }
            try expect(502, "connection_terminated", from: origin.url)
        }

        @Test func noHTTP() throws {
            let origin = try ScriptedOrigin { _ in .raw("220 mail.test ESMTP\r\n\r\n") }
            try expect(502, "http_protocol_error", from: origin.url)
        }

        @Test func aHeadThatIsTooLong() throws {
            let line = "X-Long: \(String(repeating: "x", count: 4_000))\r\n"
            let head = "HTTP/1.1 200 OK\r\n" + String(repeating: line, count: 100) + "\r\n"
            let origin = try ScriptedOrigin { _ in .raw(head) }
            try expect(502, "http_response_header_section_size", from: origin.url)
        }

        @Test func aStatusThatWasNotAskedFor() throws {
            let origin = try ScriptedOrigin { _ in .raw("HTTP/1.1 304 Not Modified\r\n\r\n") }
            try expect(502, "http_protocol_error", from: origin.url)
        }

        /// The client has the head: only the end of the connection can tell it.
        @Test func anEndWithinTheBody() throws {
            let origin = try ScriptedOrigin { _ in
                .raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").then(.cut)
            }
            let daemon = try Daemon(services(service("api", origin.url)))
            for _ in 0..<2 {
                let answer = try daemon.exchange("/api/a")
                #expect(answer.status == 200 && answer.end != .complete, "\(answer)")
            }
            #expect(origin.requests() == 2, "nothing is stored")
        }

        @Test func tooManyFetches() throws {
            let gate = Gate()
            let origin = try ScriptedOrigin { _ in OriginReply([.wait(gate)]).then(.answer("x")) }
            let limits = "max_concurrent: 1"
            let daemon = try Daemon(services(service("api", origin.url, limits, "max_queue: { length: 0 }")))
            let first = Monitor(0)
            Threads.start {
                let status = try? daemon.exchange("/api/first").status
                first.update { $0 = status ?? -1 }
            }
            #expect(origin.waitForRequests(1))
            let answer = try daemon.exchange("/api/a")
            expectProblem(answer, 503)
            #expect(answer.field("Proxy-Status")?.contains("error=connection_limit_reached;") == true)
            #expect(answer.field("Retry-After") != nil)
            gate.open()
            #expect(first.wait(120) { $0 == 200 })
        }

        @Test func nothingButTheStore() throws {
            let origin = try ScriptedOrigin { _ in .answer("x") }
            let daemon = try Daemon(services(service("api", origin.url)))
            let answer = try daemon.exchange("GET", "/api/a", fields: [("Cache-Control", "only-if-cached")])
            expectProblem(answer, 504)
            #expect(origin.requests() == 0)
        }

        /// A stored response stands in for every failure above, as far as the rules allow it.
        @Test func aStoredResponseStandsIn() throws {
            let isUp = Monitor(true)
            let origin = try ScriptedOrigin { request in
                isUp.read { $0 } ? .answer(to: request, fields: [("Cache-Control", "max-age=1")], "fine") : .cut
            }
            var settings = services(service("api", origin.url, "cache: { check_pause: 0s }"))
            settings.rest += "clock: { movable: true }\n"
            let daemon = try Daemon(settings)
            #expect(try daemon.exchange("/api/a").text == "fine")
            isUp.update { $0 = false }
            #expect(try daemon.command("clock", "advance", "10s").succeeded)
            let answer = try daemon.exchange("/api/a")
            #expect(answer.status == 200 && answer.text == "fine")
            #expect(answer.cacheStatus?.detail == "stale-if-error", "\(answer.head)")
        }
    }
}
