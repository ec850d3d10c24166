// The table of requests that have to be refused, numbered as the rules of refusal are.

/// One request, byte by byte, and what may be answered to it.
struct BadRequest: Sendable {
    var name: String
    var text: String
    var statuses: Set<Int>

    private static func head(_ name: String, _ fields: String, _ statuses: Set<Int> = [400]) -> BadRequest {
        BadRequest(
            name: name,
            text: "POST /api/in HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n\r\nhello",
            statuses: statuses
        )
    }

    private static func chunks(_ name: String, _ body: String) -> BadRequest {
        let head = "POST /api/in HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        return BadRequest(name: name, text: head + body, statuses: [400])
    }

    private static func line(_ name: String, _ line: String, _ statuses: Set<Int> = [400]) -> BadRequest {
        BadRequest(name: name, text: "\(line)\r\nHost: localhost\r\n\r\n", statuses: statuses)
    }

    private static func hosts(_ name: String, _ fields: String) -> BadRequest {
        BadRequest(name: name, text: "GET /api/x HTTP/1.1\r\n\(fields)\r\n", statuses: [400])
    }

    static let framing = [
        head("1 length with coding", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        head("1 coding with length", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
        head("2 two equal lengths", "Content-Length: 5\r\nContent-Length: 5"),
        head("2 two lengths", "Content-Length: 5\r\nContent-Length: 6"),
        head("2 a list", "Content-Length: 5, 5"),
        head("3 plus", "Content-Length: +5"),
        head("3 minus nothing", "Content-Length: -0"),
        head("3 hexadecimal", "Content-Length: 0x5"),
        head("3 two numbers", "Content-Length:  5 6"),
        head("3 empty", "Content-Length:"),
        head("3 over 2^63", "Content-Length: 9223372036854775808"),
        head("3 over 2^64", "Content-Length: 18446744073709551621"),
        head("4 identity", "Transfer-Encoding: identity", [400, 501]),
        head("4 empty members", "Transfer-Encoding: ,,chunked", [400, 501]),
        head("4 chunked not last", "Transfer-Encoding: chunked, gzip", [400, 501]),
        head("4 unknown", "Transfer-Encoding: xchunked", [400, 501]),
        head("4 twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", [400, 501]),
        head("4 twice in one line", "Transfer-Encoding: chunked, chunked", [400, 501]),
        head("4 quoted", "Transfer-Encoding: \"chunked\"", [400, 501]),
        BadRequest(
            name: "5 coding in 1.0",
            text: "POST /api/in HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            statuses: [400]
        ),
        BadRequest(
            name: "6 body on 1.0 GET",
            text: "GET /api/in HTTP/1.0\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
            statuses: [400]
        ),
        BadRequest(
            name: "6 no length on 1.0 POST",
            text: "POST /api/in HTTP/1.0\r\nHost: localhost\r\n\r\n",
            statuses: [411]
        ),
    ]

    static let chunkCoding = [
        chunks("10 bare LF after size", "5\nhello\r\n0\r\n\r\n"),
        chunks("10 bare LF after data", "5\r\nhello\n0\r\n\r\n"),
        chunks("10 bare LF after trailer", "0\r\nA: b\n\r\n"),
        chunks("11 CR in extension", "5;a\rb\r\nhello\r\n0\r\n\r\n"),
        chunks("11 LF in extension", "5;a\nb\r\nhello\r\n0\r\n\r\n"),
        chunks("11 endless extension", "5;" + String(repeating: "a", count: 70_000) + "\r\nhello\r\n0\r\n\r\n"),
        chunks("12 sign", "+5\r\nhello\r\n0\r\n\r\n"),
        chunks("12 prefix", "0x5\r\nhello\r\n0\r\n\r\n"),
        chunks("12 space", "5 \r\nhello\r\n0\r\n\r\n"),
        chunks("12 empty", "\r\nhello\r\n0\r\n\r\n"),
        chunks("12 seventeen digits", "00000000000000005\r\nhello\r\n0\r\n\r\n"),
        chunks("12 over 2^63", "ffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        chunks("12 more data than said", "4\r\nhello\r\n0\r\n\r\n"),
    ]

    static let heads = [
        head("15 space before the colon", "X : y"),
        head("15 empty name", ": y"),
        head("15 no token", "X(y): z"),
        head("15 no colon", "Xy"),
        head("15 not ASCII", "Xé: y"),
        head("16 full-width digits", "Content-Length: \u{FF15}"),
        head("17 fold", "X: y\r\n z"),
        head("17 bare CR", "X: y\rZ: a"),
        head("17 bare LF", "X: y\nZ: a"),
        head("17 NUL", "X: y\u{0}z"),
        head("17 control", "X: y\u{1}z"),
        head("17 DEL", "X: y\u{7F}z"),
        head("18 fields", (0..<101).map { "X-\($0): y" }.joined(separator: "\r\n"), [431]),
        head("18 a long line", "X: " + String(repeating: "y", count: 9000), [431]),
        head(
            "18 a long head",
            (0..<40).map { "X-\($0): " + String(repeating: "y", count: 2000) }.joined(separator: "\r\n"),
            [431]
        ),
        line("18 a long target", "GET /api/" + String(repeating: "y", count: 9000) + " HTTP/1.1", [414]),
        hosts("19 no Host", "X: y\r\n"),
        hosts("19 two Hosts", "Host: localhost\r\nHost: localhost\r\n"),
        hosts("19 two names", "Host: localhost, localhost\r\n"),
        hosts("19 a space", "Host: local host\r\n"),
        hosts("19 a URL", "Host: http://localhost\r\n"),
        hosts("19 a bad port", "Host: localhost:8x\r\n"),
        hosts("19 user information", "Host: me@localhost\r\n"),
        line("20 fragment", "GET /api/a#b HTTP/1.1"),
        line("20 control", "GET /api/a\u{1}b HTTP/1.1"),
        line("20 space", "GET /api/a b HTTP/1.1"),
        line("20 two spaces", "GET  /api/a HTTP/1.1"),
        line("20 asterisk", "GET * HTTP/1.1"),
        line("20 no slash", "GET api/a HTTP/1.1"),
        line("20 a tab", "GET\t/api/a HTTP/1.1"),
        line("21 no token", "G(T /api/a HTTP/1.1"),
        line("22 HTTP/2.0", "GET /api/a HTTP/2.0", [400, 505]),
        line("22 HTTP/1.2", "GET /api/a HTTP/1.2", [400, 505]),
        line("22 HTTP/1.10", "GET /api/a HTTP/1.10", [400, 505]),
        line("22 lower case", "GET /api/a http/1.1", [400, 505]),
        line("22 none", "GET /api/a", [400, 505]),
        BadRequest(name: "22 another protocol", text: "SSH-2.0-OpenSSH_9.2\r\n\r\n", statuses: [400, 505]),
        BadRequest(
            name: "22 TLS",
            text: "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{FC}\u{3}\u{3}\r\n\r\n",
            statuses: [400]
        ),
    ]
}
