// Targets and authorities (RFC 9112 section 3.2, RFC 3986 section 3.2).

import HTTPWire
import Testing

@Suite("Request targets")
struct RequestTargetTests {
    @Test(
        "RFC 9112 3.2: the four forms, kept as sent",
        arguments: [
            ("/", .get, .origin(pathAndQuery: "/"), false),
            ("//a/../%2e%2E/b?x=/y?z", .get, .origin(pathAndQuery: "//a/../%2e%2E/b?x=/y?z"), false),
            ("/{a}|\"b\"", .get, .origin(pathAndQuery: "/{a}|\"b\""), false),
            ("*", .options, .asterisk, true),
            ("HTTP://Example.COM:8080/A?B", .get, absolute("http", "example.com", 8080, "/A?B"), false),
            ("https://[2001:DB8::1]", .get, absolute("https", "[2001:db8::1]", nil, "/"), false),
            ("http://a?q", .get, absolute("http", "a", nil, "/?q"), false),
            ("http://a", .options, absolute("http", "a", nil, "/"), true),
            ("http://a/", .options, absolute("http", "a", nil, "/"), false),
            ("ws+x.1-y://a/b", .get, absolute("ws+x.1-y", "a", nil, "/b"), false),
            ("Example.com:443", .connect, .authority(Authority(host: "example.com", port: 443)), false),
            ("[::1]:443", .connect, .authority(Authority(host: "[::1]", port: 443)), false),
        ] as [(String, Method, RequestTarget.Form, Bool)]
    )
    func forms(target: String, method: Method, form: RequestTarget.Form, isServerWide: Bool) throws {
        let parsed = try RequestTarget.parse(target, method: method)
        #expect(parsed.form == form)
        #expect(parsed.isServerWide == isServerWide)
    }

    static func absolute(_ scheme: String, _ host: String, _ port: UInt16?, _ path: String) -> RequestTarget.Form {
        .absolute(scheme: scheme, authority: Authority(host: host, port: port), pathAndQuery: path)
    }

    @Test(
        "RFC 9112 3.2: what is none of them",
        arguments: [
            ("", .get, .targetMalformed), ("/a b", .get, .targetMalformed), ("/a#b", .get, .targetMalformed),
            ("/a\0", .get, .targetMalformed), ("/\u{E9}", .get, .targetMalformed), ("/a\t", .get, .targetMalformed),
            ("*", .get, .targetAsterisk), ("*a", .options, .targetMalformed), ("a", .get, .targetMalformed),
            ("example.com:80", .get, .targetMalformed), ("http:/a", .get, .targetMalformed),
            ("http:///a", .get, .authorityMalformed), ("http://", .get, .targetMalformed),
            ("1http://a/", .get, .targetMalformed), ("://a/", .get, .targetMalformed),
            ("http://u@a/", .get, .authorityMalformed), ("http://u:p@a/", .get, .authorityMalformed),
            ("http://a:b/", .get, .authorityMalformed), ("/", .connect, .authorityMalformed),
            ("a", .connect, .authorityMalformed), ("a:", .connect, .authorityMalformed),
            ("http://a:1/", .connect, .authorityMalformed), ("a:1/", .connect, .authorityMalformed),
        ] as [(String, Method, WireReason)]
    )
    func refused(target: String, method: Method, reason: WireReason) {
        let error = #expect(throws: WireError.self) { try RequestTarget.parse(target, method: method) }
        #expect(error?.status == 400)
        #expect(error?.reason == reason)
    }

    @Test(
        "Authorities",
        arguments: [
            ("a", "a", nil), ("A.B-c_d~1:80", "a.b-c_d~1", 80), ("a:", "a", nil), ("1.2.3.4:65535", "1.2.3.4", 65535),
            ("[::]", "[::]", nil), ("[1:2:3:4:5:6:7:8]:1", "[1:2:3:4:5:6:7:8]", 1), ("[1::]", "[1::]", nil),
            ("[::FFFF:1.2.3.4]", "[::ffff:1.2.3.4]", nil), ("[1:2:3:4:5:6:1.2.3.4]", "[1:2:3:4:5:6:1.2.3.4]", nil),
        ] as [(String, String, UInt16?)]
    )
    func authority(text: String, host: String, port: UInt16?) {
        #expect(Authority.parse(text) == Authority(host: host, port: port))
    }

    @Test(
        "Malformed authorities",
        arguments: [
            "", ":80", "a b", "a,b", "a@b", "a/b", "a%20", "a:0", "a:65536", "a:+1", "a:1:2", "a:999999", "é", "a?b",
            "[::1", "::1", "[]", "[:]", "[:::]", "[1:2:3:4:5:6:7]", "[1:2:3:4:5:6:7:8:9]", "[1::2::3]", "[12345::]",
            "[g::]", "[::1%25eth0]", "[v1.a]", "[::1]a", "[1:2:3:4:5:6:7:1.2.3.4]", "[::1.2.3]", "[::1.2.3.256]",
            "[::01.2.3.4]", "[1:2:3:4:5:6:7:8::]", "[1:]", "[::1]:x", String(repeating: "a", count: 256),
        ]
    )
    func malformed(text: String) { #expect(Authority.parse(text) == nil) }
}
