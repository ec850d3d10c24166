// The cookie jar: what a request gets, what takes whose place, and what makes room.

import Foundation
import HTTPWire
import ServiceCore
import Testing

@testable import Drydock

@Suite struct CookieJarTests {
    private static let now: Int64 = 1_700_000_000

    private func origin(_ host: String = "a.example.com", _ scheme: String = "https") -> OriginAddress {
        OriginAddress(scheme: scheme, host: host, port: nil, basePath: "")
    }

    private func take(_ jar: CookieJar, _ lines: [String], from origin: OriginAddress, now: Int64 = now) {
        jar.take(Fields(lines.map { ("Set-Cookie", $0) }), from: origin, target: "/", now: now)
    }

    @Test func whoGetsWhat() {
        let jar = CookieJar()
        take(
            jar,
            ["own=1", "all=2; Domain=example.com", "path=3; Path=/p", "safe=4; Secure", "short=5; Max-Age=10"],
            from: origin()
        )
        let cases: [(String, String, String, Int64, String?)] = [
            ("a.example.com", "https", "/", 0, "own=1; all=2; safe=4; short=5"),
            ("a.example.com", "http", "/", 0, "own=1; all=2; short=5"),
            ("a.example.com", "https", "/p/x", 10, "path=3; own=1; all=2; safe=4"),
            ("b.example.com", "https", "/p", 0, "all=2"), ("example.com", "https", "/", 0, "all=2"),
            ("x.a.example.com", "https", "/", 0, "all=2"), ("badexample.com", "https", "/", 0, nil),
            ("com", "https", "/", 0, nil),
        ]
        for (host, scheme, path, later, expected) in cases {
            #expect(jar.line(for: origin(host, scheme), path: path, now: Self.now + later) == expected)
        }
    }

    @Test func theSameNameDomainAndPathIsOneCookie() {
        let jar = CookieJar()
        take(jar, ["a=1", "b=2", "a=3", "a=4; Path=/x"], from: origin())
        #expect(jar.line(for: origin(), path: "/", now: Self.now) == "a=3; b=2", "it keeps its place")
        #expect(jar.line(for: origin(), path: "/x", now: Self.now) == "a=4; a=3; b=2")
        take(jar, ["a=; Max-Age=0"], from: origin())
        #expect(jar.line(for: origin(), path: "/", now: Self.now) == "b=2")
        #expect(jar.remove { $0.name == "a" } == 1)
        #expect(jar.all(now: Self.now).map(\.name) == ["b"])
    }

    @Test func whatIsForTLSIsNotReplacedInTheClear() {
        let jar = CookieJar()
        take(jar, ["a=1; Secure"], from: origin())
        take(jar, ["a=2", "a=; Max-Age=0"], from: origin("a.example.com", "http"))
        #expect(jar.line(for: origin(), path: "/", now: Self.now) == "a=1")
    }

    @Test(
        "What is for TLS is not overlaid in the clear: the cookie that is there, who sets which, and whether it is taken",
        arguments: [
            ("a=1; Secure", "a.example.com", "a=2; Domain=example.com", false),
            ("a=1; Secure; Domain=example.com", "a.example.com", "a=2", false),
            ("a=1; Secure; Domain=example.com", "b.a.example.com", "a=2", false),
            ("a=1; Secure; Path=/x", "a.example.com", "a=2; Path=/x/y", false),
            ("a=1; Secure; Path=/x", "a.example.com", "a=2; Path=/", true),
            ("a=1; Secure; Path=/x", "a.example.com", "a=2; Path=/xy", true),
            ("a=1; Secure", "b.example.com", "a=2", true), ("a=1; Secure", "a.example.com", "b=2", true),
            ("a=1; Secure; Max-Age=0", "a.example.com", "a=2", true),
            ("a=1; Domain=example.com", "a.example.com", "a=2", true),
        ]
    )
    func overlays(held: String, host: String, line: String, isTaken: Bool) {
        let jar = CookieJar()
        take(jar, [held], from: origin())
        take(jar, [line], from: origin(host, "http"))
        #expect(jar.all(now: Self.now).contains { $0.value == "2" } == isTaken)
        // An origin over TLS sets what it wants.
        take(jar, [line], from: origin(host))
        #expect(jar.all(now: Self.now).contains { $0.value == "2" })
    }

    @Test func aDomainHasABound() {
        let jar = CookieJar()
        take(jar, ["first=0", "second=0"], from: origin())
        for number in 1..<CookieJar.mostOfDomain - 1 { take(jar, ["c\(number)=1"], from: origin()) }
        // Sent, so that it is not the next to go.
        jar.set(Cookie(name: "first", value: "1", domain: "a.example.com"), now: Self.now)
        take(jar, ["last=1"], from: origin())
        let names = jar.all(now: Self.now).map(\.name)
        #expect(names.count == CookieJar.mostOfDomain)
        #expect(names.contains("first") && names.contains("last") && !names.contains("second"))
    }

    @Test func allTogetherHaveABound() {
        let jar = CookieJar()
        for host in 0..<31 {
            for number in 0..<100 { take(jar, ["c\(number)=1"], from: origin("h\(host).example.com")) }
        }
        #expect(jar.all(now: Self.now).count == CookieJar.most)
        #expect(jar.line(for: origin("h0.example.com"), path: "/", now: Self.now) == nil)
        #expect(jar.line(for: origin("h30.example.com"), path: "/", now: Self.now) != nil)
        let large = CookieJar()
        let value = String(repeating: "x", count: 4000)
        for host in 0..<4 {
            for number in 0..<100 { take(large, ["c\(number)=\(value)"], from: origin("h\(host).example.com")) }
        }
        let size = large.all(now: Self.now).reduce(0) { $0 + $1.size }
        #expect(size <= CookieJar.mostBytes && size > CookieJar.mostBytes - 5000)
    }
}
