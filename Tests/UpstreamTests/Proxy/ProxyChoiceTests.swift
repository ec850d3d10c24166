// Which proxy an origin is reached through, and the hosts of no_proxy.

import Testing

@testable import Upstream

@Suite struct ProxyChoiceTests {
    private static let one = UpstreamProxy(host: "one.test", port: 3128)
    private static let other = UpstreamProxy(host: "other.test", port: 3128)

    @Test("each scheme has its proxy, and an excepted host none")
    func schemes() {
        let proxies = UpstreamProxies.byScheme(http: Self.one, https: Self.other, except: ProxyExceptions("a.test"))
        #expect(proxies.proxy(scheme: "http", host: "b.test", port: 80) == Self.one)
        #expect(proxies.proxy(scheme: "https", host: "b.test", port: 443) == Self.other)
        #expect(proxies.proxy(scheme: "https", host: "a.test", port: 443) == nil)
        let half = UpstreamProxies.byScheme(http: nil, https: Self.other, except: ProxyExceptions(""))
        #expect(half.proxy(scheme: "http", host: "b.test", port: 80) == nil)
        #expect(UpstreamProxies.one(Self.one).proxy(scheme: "https", host: "a.test", port: 1) == Self.one)
        #expect(UpstreamProxies.none.proxy(scheme: "http", host: "a.test", port: 1) == nil)
    }

    @Test("two proxies are one if nothing that they are reached by differs")
    func equality() {
        func proxy(_ host: String, _ port: UInt16, _ user: String?) -> UpstreamProxy {
            UpstreamProxy(host: host, port: port, credentials: user.map { ($0, "p") })
        }
        #expect(proxy("a", 1, nil) == proxy("a", 1, nil))
        #expect(proxy("a", 1, "u") == proxy("a", 1, "u"))
        #expect(Set([proxy("a", 1, "u"), proxy("a", 1, "u")]).count == 1)
        for different in [proxy("b", 1, nil), proxy("a", 2, nil), proxy("a", 1, "u")] {
            #expect(different != proxy("a", 1, nil))
        }
    }

    @Test(
        "no_proxy",
        arguments: [
            // Nothing, and everything.
            ("", "a.test:80", false), ("*", "a.test:80", true), ("*", "10.0.0.1:80", true),
            ("b, *", "a.test:80", false),
            // Names, and what is below them.
            ("a.test", "a.test:80", true), ("a.test", "x.a.test:80", true), ("a.test", "xa.test:80", false),
            (".a.test", "a.test:80", true), (".a.test", "x.a.test:80", true), (".a.test", "xa.test:80", false),
            ("A.Test", "a.test:80", true), ("a.test.", "a.test:80", true), ("a.test", "a.test.:80", true),
            ("test", "a.test:80", true), (".", "a.test:80", false), ("x.a.test", "a.test:80", false),
            ("*.a.test", "x.a.test:80", false),
            // Lists.
            ("b.test,a.test", "a.test:80", true), ("b.test a.test", "a.test:80", true),
            (" b.test ,\ta.test ,", "a.test:80", true), ("b.test,c.test", "a.test:80", false),
            // Ports.
            ("a.test:80", "a.test:80", true), ("a.test:80", "a.test:81", false), (".a.test:80", "x.a.test:80", true),
            ("10.0.0.1:80", "10.0.0.1:80", true), ("10.0.0.1:80", "10.0.0.1:81", false),
            ("[::1]:80", "[::1]:80", true), ("[::1]:80", "[::1]:81", false),
            // Addresses and networks.
            ("10.0.0.1", "10.0.0.1:80", true), ("10.0.0.1", "10.0.0.2:80", false), ("10.0.0.0/8", "10.9.9.9:80", true),
            ("10.0.0.0/8", "11.0.0.1:80", false), ("192.168.8.0/21", "192.168.15.255:80", true),
            ("192.168.8.0/21", "192.168.16.0:80", false), ("10.0.0.1/32", "10.0.0.1:80", true),
            ("0.0.0.0/0", "10.0.0.1:80", true), ("0.0.0.0/0", "[::1]:80", false), ("10.0.0.0/33", "10.0.0.1:80", false),
            ("10.0.0.0/x", "10.0.0.1:80", false), ("10.0.0.1", "0x0a.1:80", true),
            ("::1", "[::1]:80", true), ("[::1]", "[::1]:80", true), ("fd00::/8", "[fd12::1]:80", true),
            ("fd00::/8", "[fe80::1]:80", false), ("fd00::/7", "[fc00::1]:80", true),
            // A network is no name, and a name is not looked up.
            ("0.0.1", "10.0.0.1:80", false), ("127.0.0.1", "localhost:80", false), ("localhost", "localhost:80", true),
        ]
    )
    func exceptions(_ list: String, _ authority: String, _ isExcepted: Bool) throws {
        let colon = try #require(authority.lastIndex(of: ":"))
        let port = try #require(UInt16(authority[authority.index(after: colon)...]))
        #expect(ProxyExceptions(list).contain(String(authority[..<colon]), port: port) == isExcepted)
    }
}
