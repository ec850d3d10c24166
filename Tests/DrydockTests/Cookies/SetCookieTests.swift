// Set-Cookie by RFC 6265: what is taken, with which domain, path and end, and what is not.

import Foundation
import ServiceCore
import Testing

@testable import Drydock

@Suite struct SetCookieTests {
    private static let now: Int64 = 1_700_000_000

    private static func cookie(
        _ line: String,
        host: String = "www.example.com",
        scheme: String = "https",
        target: String = "/a/b?q=/c"
    ) -> Cookie? {
        let origin = OriginAddress(scheme: scheme, host: host, port: nil, basePath: "")
        return SetCookie.cookie(line, from: origin, target: target, now: now)
    }

    /// A line as the cookie that it sets, or nil.
    struct Case: Sendable, CustomTestStringConvertible {
        let line: String
        let expected: String?
        var host = "www.example.com"
        var scheme = "https"

        var testDescription: String { "\(scheme)://\(host) \(line)" }
    }

    @Test(arguments: [
        Case(line: "a=1", expected: "a=1 www.example.com /a host"),
        Case(line: " a = 1 2 ; Path = /x", expected: "a=1 2 www.example.com /x host"),
        Case(line: "a=b=c", expected: "a=b=c www.example.com /a host"),
        Case(line: "a=\"q\"", expected: "a=\"q\" www.example.com /a host"),
        Case(line: "a=", expected: "a= www.example.com /a host"),
        Case(line: "a", expected: nil), Case(line: "=1", expected: nil), Case(line: "", expected: nil),
        Case(line: "a=1\u{1}", expected: nil), Case(line: "a=\(String(repeating: "x", count: 4096))", expected: nil),
        // The domain.
        Case(line: "a=1; Domain=example.com", expected: "a=1 example.com /a"),
        Case(line: "a=1; domain=.Example.COM", expected: "a=1 example.com /a"),
        Case(line: "a=1; Domain=www.example.com", expected: "a=1 www.example.com /a"),
        Case(line: "a=1; Domain=", expected: "a=1 www.example.com /a host"),
        Case(line: "a=1; Domain=x.org; Domain=example.com", expected: "a=1 example.com /a"),
        Case(line: "a=1; Domain=a.www.example.com", expected: nil), Case(line: "a=1; Domain=ample.com", expected: nil),
        Case(line: "a=1; Domain=com.", expected: nil, host: "www.example.com."),
        Case(line: "a=1; Domain=.com.", expected: nil, host: "www.example.com."),
        Case(line: "a=1; Domain=com.", expected: nil), Case(line: "a=1; Domain=.", expected: nil),
        Case(line: "a=1; Domain=example.com.", expected: "a=1 example.com. /a", host: "www.example.com."),
        Case(line: "a=1; Domain=example.com.", expected: nil),
        Case(line: "a=1; Domain=com", expected: nil), Case(line: "a=1; Domain=example.org", expected: nil),
        Case(line: "a=1; Domain=localhost", expected: "a=1 localhost /a", host: "localhost"),
        Case(line: "a=1; Domain=127.0.0.1", expected: "a=1 127.0.0.1 /a host", host: "127.0.0.1"),
        Case(line: "a=1; Domain=0.0.1", expected: nil, host: "127.0.0.1"),
        // The path.
        Case(line: "a=1; Path=x", expected: "a=1 www.example.com /a host"),
        Case(line: "a=1; Path=/; Path=/y", expected: "a=1 www.example.com /y host"),
        // Secure, and what promises it.
        Case(line: "a=1; Secure; HttpOnly", expected: "a=1 www.example.com /a host secure http"),
        Case(line: "a=1; Secure", expected: nil, scheme: "http"),
        Case(line: "__Secure-a=1; Secure", expected: "__Secure-a=1 www.example.com /a host secure"),
        Case(line: "__Secure-a=1", expected: nil),
        Case(line: "__Host-a=1; Secure; Path=/", expected: "__Host-a=1 www.example.com / host secure"),
        Case(line: "__Host-a=1; Secure; Path=/; Domain=example.com", expected: nil),
        Case(line: "__host-a=1; Secure; Path=/x", expected: nil),
        // The end, in seconds from now.
        Case(line: "a=1; Max-Age=60", expected: "a=1 www.example.com /a host 60"),
        Case(
            line: "a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            expected: "a=1 www.example.com /a host 60"
        ),
        Case(line: "a=1; Max-Age=x; Expires=Tue, 14 Nov 2023 22:14:20 GMT", expected: "a=1 www.example.com /a host 60"),
        Case(line: "a=1; Max-Age=0", expected: "a=1 www.example.com /a host \(-now)"),
        Case(line: "a=1; Max-Age=-5", expected: "a=1 www.example.com /a host \(-now)"),
        Case(
            line: "a=1; Max-Age=99999999999999999999",
            expected: "a=1 www.example.com /a host \(400 * 86_400)"
        ),
        Case(line: "a=1; Expires=never", expected: "a=1 www.example.com /a host"),
    ])
    func line(_ example: Case) {
        let cookie = Self.cookie(example.line, host: example.host, scheme: example.scheme)
        let text = cookie.map { cookie in
            var parts = ["\(cookie.name)=\(cookie.value)", cookie.domain, cookie.path]
            if cookie.isHostOnly { parts.append("host") }
            if cookie.isSecure { parts.append("secure") }
            if cookie.isHTTPOnly { parts.append("http") }
            if let expiry = cookie.expiry { parts.append("\(expiry - Self.now)") }
            return parts.joined(separator: " ")
        }
        #expect(text == example.expected)
    }

    @Test(arguments: [
        ("/", "/"), ("/a", "/"), ("/a/", "/a"), ("/a/b", "/a"), ("/a/b?x=/y/z", "/a"), ("", "/"), ("?a=/b", "/"),
    ])
    func defaultPaths(_ target: String, _ path: String) { #expect(SetCookie.defaultPath(target) == path) }

    @Test(arguments: [
        ("/", "/a", true), ("/a", "/a", true), ("/a", "/a/b", true), ("/a/", "/a/b", true), ("/a", "/ab", false),
        ("/a", "/a?b", true), ("/a/", "/a", false), ("/a", "/A", false), ("/a/b", "/a", false),
    ])
    func paths(_ path: String, _ target: String, _ isCovered: Bool) {
        #expect(SetCookie.covers(path, target) == isCovered)
    }

    @Test(
        "RFC 6265 5.1.1",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Sun, 06-Nov-1994 08:49:37 GMT", 784_111_777),
            ("6 november 1994 8:49:37", 784_111_777), ("08:49:37 94 Nov 06", nil),
            ("1994 Nov 06 08:49:37", 784_111_777),
            ("06 Nov 69 00:00:00", 3_150_921_600), ("06 Nov 70 00:00:00", 26_697_600), ("", nil), ("Nov 1994", nil),
            ("32 Nov 1994 08:49:37", nil), ("06 Nov 1600 08:49:37", nil), ("06 Nov 1994 24:00:00", nil),
            ("06 Nov 1994 00:60:00", nil), ("06 Nov 1994 00:00", nil), ("31 Feb 2001 00:00:00", nil),
        ] as [(String, Int64?)]
    )
    func dates(_ text: String, _ seconds: Int64?) { #expect(CookieDate.parse(text) == seconds) }
}
