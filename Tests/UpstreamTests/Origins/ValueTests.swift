// The values of this module: URLs, errors and their statuses, and the reader without a network.

import HTTPWire
import Testing

@testable import Upstream

@Suite struct ValueTests {
    @Test(arguments: [
        ("http://Example.COM/a?b", false, "example.com", 80, "/a?b", "http://example.com:80/"),
        ("HTTPS://example.com", true, "example.com", 443, "/", "https://example.com:443/"),
        ("http://example.com:8080?x=/y", false, "example.com", 8080, "/?x=/y", "http://example.com:8080/"),
        ("http://[::1]:81/p", false, "[::1]", 81, "/p", "http://[::1]:81/"),
        ("http://name.test./", false, "name.test.", 80, "/", "http://name.test:80/"),
    ])
    func `a URL is taken apart`(
        text: String,
        isTLS: Bool,
        host: String,
        port: UInt16,
        target: String,
        connected: String
    ) throws {
        let url = try UpstreamURL.parse(text, method: .get)
        #expect(url == UpstreamURL(isTLS: isTLS, host: host, port: port, target: target))
        let origin = Origin(root: [], url)
        #expect("\(origin.isTLS ? "https" : "http")://\(origin.connectName):\(origin.key.port)/" == connected)
        #expect(CurlTarget(origin) != nil)
    }

    @Test(arguments: [
        ("http://Example.COM/a", "example.com"), ("https://example.com", "example.com"),
        ("http://example.com:8080", "example.com:8080"), ("http://[::1]:81/p", "[::1]:81"), ("http://[::1]", "[::1]"),
        ("http://name.test./", "name.test"), ("http://0x7f.1:443/", "127.0.0.1:443"), ("https://10.1:443/", "10.0.0.1"),
    ])
    func `an origin has the Host field of its URL`(text: String, field: String) throws {
        let url = try UpstreamURL.parse(text, method: .get)
        #expect(Origin(root: [], url).hostField == field)
    }

    @Test(arguments: [
        (UpstreamError.Kind.nameNotFound, 502, "dns_error"), (.resolver, 502, "dns_error"),
        (.addressRefused, 502, "destination_ip_prohibited"), (.connectionRefused, 502, "connection_refused"),
        (.unreachable, 503, "destination_ip_unroutable"), (.certificate, 502, "tls_certificate_error"),
        (.tls, 502, "tls_protocol_error"), (.tlsFile, 502, "proxy_configuration_error"),
        (.proxy(407), 502, "proxy_configuration_error"), (.proxy(403), 502, "http_request_denied"),
        (.proxy(502), 502, "destination_unavailable"), (.proxy(504), 504, "connection_timeout"),
        (.proxy(508), 508, "proxy_loop_detected"), (.proxy(nil), 502, "connection_terminated"),
        (.timeout(.resolve), 504, "dns_timeout"), (.timeout(.connect), 504, "connection_timeout"),
        (.timeout(.firstByte), 504, "http_response_timeout"), (.timeout(.idle), 504, "connection_read_timeout"),
        (.timeout(.total), 504, "http_response_timeout"), (.closed, 502, "connection_terminated"),
        (.truncated, 502, "http_response_incomplete"), (.unexpectedStatus(304), 502, "http_protocol_error"),
        (.requestBody, 502, "http_request_error"), (.cancelled, 503, "proxy_internal_error"),
        (.protocolViolation(WireError(.foldedLine, side: .response)), 502, "http_protocol_error"),
        (.protocolViolation(WireError(.headTooLong, side: .response)), 502, "http_response_header_section_size"),
        (.protocolViolation(WireError(.fieldTooLong, side: .response)), 502, "http_response_header_size"),
        (
            .protocolViolation(WireError(.transferEncodingUnknown, side: .response)), 502,
            "http_response_transfer_coding"
        ),
    ])
    func `each failure has its status and its type`(kind: UpstreamError.Kind, status: Int, type: String) {
        let error = UpstreamError(kind, detail: "words")
        #expect(error.status == status)
        #expect(error.proxyStatus == type)
        #expect(error.description == "\(status) \(type): words")
    }

    @Test func `a body in any split is the same body`() {
        let lines = ["HTTP/1.1 200 OK\r\n", "Transfer-Encoding: chunked\r\n", "\r\n"]
        let body = Array("5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX-T: 1\r\n\r\nEXCESS".utf8)
        for split in 0...body.count {
            let reader = ResponseReader()
            reader.reset(for: UpstreamRequest(url: "http://h/"))
            for line in lines {
                let isTaken = reader.line(line)
                #expect(isTaken)
            }
            for part in [body[..<split], body[split...]] where !part.isEmpty {
                let isTaken = reader.body(Array(part))
                #expect(isTaken)
            }
            #expect(reader.isComplete)
            #expect(reader.mustClose)
            #expect(String(decoding: reader.bytes, as: UTF8.self) == "hello world")
            #expect(reader.trailers.first("x-t") == "1")
        }
    }

    @Test func `an unfinished or refused response never counts as complete`() {
        let reader = ResponseReader()
        reader.reset(for: UpstreamRequest(url: "http://h/"))
        let isEarlyEnd = reader.ends()
        #expect(!isEarlyEnd)
        for line in ["HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n", "\r\n"] {
            let isTaken = reader.line(line)
            #expect(isTaken)
        }
        let isBodyTaken = reader.body(Array("hell".utf8))
        #expect(isBodyTaken)
        let isShortEnd = reader.ends()
        #expect(!isShortEnd)
        let isLateLineTaken = reader.line("X: y\r\n")
        #expect(!isLateLineTaken)
        let isLateBodyTaken = reader.body(Array("o".utf8))
        #expect(!isLateBodyTaken)
        let isRefusedEnd = reader.ends()
        #expect(!isRefusedEnd)
    }
}

extension ResponseReader {
    fileprivate func line(_ text: String) -> Bool { Array(text.utf8).withUnsafeBytes { take(line: $0) } }
    fileprivate func body(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { take(body: $0, handOn: { _ in false }) }
    }
    fileprivate func ends() -> Bool { end() }
}
