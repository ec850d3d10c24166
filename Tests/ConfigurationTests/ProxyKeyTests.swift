// The key upstream_proxy: URLs, what the environment says, who inherits it, and what is shown of it.

import Testing
import Upstream

@testable import Configuration

@Suite struct ProxyKeyTests {
    private static func proxies(_ value: String, _ environment: [String: String] = [:]) throws -> UpstreamProxies {
        try load("forward: { upstream_proxy: \"\(value)\" }", environment: environment).forward.upstreamProxy
    }

    private static func proxy(
        _ host: String,
        _ port: UInt16 = 3128,
        _ credentials: (user: String, password: String)? = nil
    ) -> UpstreamProxy { UpstreamProxy(host: host, port: port, credentials: credentials) }

    @Test(
        "a URL is taken apart",
        arguments: [
            ("http://proxy.example:3128", "proxy.example", 3128, nil, nil),
            ("HTTP://Proxy.Example:80/", "proxy.example", 80, nil, nil),
            ("http://[fd00::1]:3128", "[fd00::1]", 3128, nil, nil),
            ("http://me:secret@10.0.0.1:3128", "10.0.0.1", 3128, "me", "secret"),
            ("http://me@10.0.0.1:3128", "10.0.0.1", 3128, "me", ""),
            ("http://m%40e:p%3A%25%2f:@/x@10.0.0.1:3128", "10.0.0.1", 3128, "m@e", "p:%/:@/x"),
            ("http://:@10.0.0.1:3128", "10.0.0.1", 3128, "", ""),
            ("http://${USER}:${PASSWORD}@10.0.0.1:3128", "10.0.0.1", 3128, "u", "from there"),
        ]
    )
    func urls(_ text: String, _ host: String, _ port: UInt16, _ user: String?, _ password: String?) throws {
        let wanted = Self.proxy(host, port, user.map { ($0, password ?? "") })
        #expect(try Self.proxies(text, ["USER": "u", "PASSWORD": "from there"]) == .one(wanted))
    }

    @Test("without the key, and with none, there is no proxy, whatever the environment says")
    func none() throws {
        let environment = ["http_proxy": "http://proxy.example:3128"]
        #expect(try Self.proxies("none", environment) == .none)
        let text = "services: [{ name: a, match: { prefix: /a }, base_url: http://127.0.0.1:9 }]"
        let configuration = try load(text, environment: environment)
        #expect(configuration.forward.upstreamProxy == .none)
        #expect(configuration.services.map(\.upstreamProxy) == [.none])
    }

    /// The variables, and the proxies of http and https.
    static let environments: [([String: String], String?, String?)] = [
        ([:], nil, nil),
        (["http_proxy": "http://a:1"], "a", nil),
        (["HTTP_PROXY": "http://a:1"], nil, nil),
        (["https_proxy": "http://a:1"], nil, "a"),
        (["HTTPS_PROXY": "http://a:1"], nil, "a"),
        (["https_proxy": "http://a:1", "HTTPS_PROXY": "http://b:1"], nil, "a"),
        (["all_proxy": "http://a:1"], "a", "a"),
        (["ALL_PROXY": "http://a:1"], "a", "a"),
        (["all_proxy": "http://a:1", "ALL_PROXY": "http://b:1"], "a", "a"),
        (["all_proxy": "http://a:1", "https_proxy": "http://b:1"], "a", "b"),
        (["http_proxy": "", "all_proxy": "http://a:1"], "a", "a"),
        (["https_proxy": "", "HTTPS_PROXY": "http://b:1"], nil, "b"),
        (["http_proxy": "a:1"], "a", nil),
        // What is not used may say anything.
        (["http_proxy": "a:1", "https_proxy": "b:1", "all_proxy": "socks5://c:1"], "a", "b"),
    ]

    @Test("the environment is read as curl reads it", arguments: environments)
    func variables(_ environment: [String: String], _ http: String?, _ https: String?) throws {
        let proxies = try Self.proxies("env", environment)
        #expect(proxies.proxy(scheme: "http", host: "x.test", port: 80)?.host == http)
        #expect(proxies.proxy(scheme: "https", host: "x.test", port: 443)?.host == https)
        if http == nil, https == nil { #expect(proxies == .none) }
    }

    @Test("no_proxy excepts hosts, in lower case before upper case")
    func exceptions() throws {
        let proxy = ["all_proxy": "http://me:secret@a:1"]
        for (more, isExcepted) in [
            (["no_proxy": "x.test"], true), (["NO_PROXY": "x.test"], true), ([:], false),
            (["no_proxy": "y.test", "NO_PROXY": "x.test"], false), (["no_proxy": "", "NO_PROXY": "x.test"], true),
        ] {
            let proxies = try Self.proxies("env", proxy.merging(more) { $1 })
            #expect((proxies.proxy(scheme: "http", host: "x.test", port: 80) == nil) == isExcepted)
        }
    }

    @Test("services inherit it as a whole, credentials included, and forward mode has its own")
    func inheritance() throws {
        let configuration = try load(
            """
            defaults: { upstream_proxy: "http://me:secret@a:1" }
            services:
              - { name: a, match: { prefix: /a }, base_url: http://127.0.0.1:9 }
              - { name: b, match: { prefix: /b }, base_url: http://127.0.0.1:9, upstream_proxy: "http://b:2" }
              - { name: c, match: { prefix: /c }, base_url: http://127.0.0.1:9, upstream_proxy: none }
              - { name: d, match: { prefix: /d }, base_url: service:a }
            """
        )
        let own = UpstreamProxies.one(Self.proxy("a", 1, ("me", "secret")))
        #expect(configuration.services.map(\.upstreamProxy) == [own, .one(Self.proxy("b", 2)), .none, own])
        #expect(configuration.forward.upstreamProxy == .none)
    }

    @Test("config show hides the user and the password, and nothing else; without hiding it reads back")
    func shown() throws {
        let environment = ["PASSWORD": "hush", "https_proxy": "http://us:hidden-too@e:1"]
        let configuration = try load(
            """
            forward: { upstream_proxy: "http://me:p%40${PASSWORD}@proxy.example:3128" }
            defaults: { upstream_proxy: env }
            services:
              - { name: a, match: { prefix: /a }, base_url: http://127.0.0.1:9 }
              - { name: b, match: { prefix: /b }, base_url: http://127.0.0.1:9, upstream_proxy: "http://b:2" }
            """,
            environment: environment
        )
        let shown = configuration.shown()
        #expect(shown.contains("  upstream_proxy: \"http://(hidden)@proxy.example:3128\"\n"))
        #expect(shown.contains("    upstream_proxy: env\n") && shown.contains("    upstream_proxy: http://b:2\n"))
        for secret in ["p%40", "hush", "hidden-too"] { #expect(!shown.contains(secret), "\(secret) in\n\(shown)") }
        let again = try load(configuration.text(hidingSecrets: false), environment: environment)
        #expect(again.forward.upstreamProxy == configuration.forward.upstreamProxy)
        #expect(again.services == configuration.services)
    }

    @Test("no error has the user or the password in it")
    func errorsHideSecrets() {
        for text in [
            "https://us:secret@a:1", "socks5://us:secret@a:1", "ftp://us:secret@a:1", "us:secret@a:1",
            "http://us:secret@a", "http://us:secret@a:x", "http://us:secret@:1", "http://us:secret@a:1/p",
            "http://us:secret%@a:1", "http://us:secret%00@a:1", "http://us:secret@x@a", "http://u%3As:secret@a:1",
        ] {
            for (value, environment) in [(text, [:]), ("env", ["http_proxy": text, "https_proxy": "a:1"])] {
                let found = errors("forward: { upstream_proxy: \"\(value)\" }", environment: environment)
                // Without a scheme a variable is one of an HTTP proxy.
                if value == "env", text.hasPrefix("us:") { continue }
                #expect(found.count == 1, "\(text): \(found)")
                #expect(found.allSatisfy { !$0.contains("secret") && !$0.contains("us:") }, "\(found)")
                if value == "env" { #expect(found.first?.contains("the environment variable http_proxy") == true) }
            }
        }
    }
}
