// Transfers through an HTTP proxy: what it gets in plain HTTP, tunnels for TLS and for upgrades, and whose connections
// are used again.

import EventLoop
import Glibc
import HTTPWire
import LoopSupport
import TLS
import TestSupport
import Testing

@testable import Upstream

/// A proxy that a test scripts, and the names that the resolver was asked for.
struct ProxyRig: Sendable {
    let proxy: ScriptedOrigin
    let rig: Rig
    let asked: Monitor<[String]>

    /// - Parameter handler: of what the proxy gets; nil: it answers requests itself, and tunnels to `port`.
    init(tunnelsTo port: Int = 0, _ handler: ScriptedOrigin.Handler? = nil) throws {
        proxy = try ScriptedOrigin(
            handler ?? { request in
                guard request.method == "CONNECT" else { return .answer(to: request, "of the proxy") }
                return OriginReply([.bytes(Array("HTTP/1.1 200 Opened\r\n\r\n".utf8)), .tunnel(port)])
            }
        )
        let asked = Monitor<[String]>([])
        self.asked = asked
        rig = try Rig { host, port in
            asked.update { $0.append(host) }
            return host == "proxy.test" ? SystemResolver.lookup("127.0.0.1", port: port) : .notFound
        }
    }

    func named(_ credentials: (String, String)? = nil, host: String = "proxy.test") -> UpstreamProxy {
        UpstreamProxy(host: host, port: UInt16(proxy.port), credentials: credentials)
    }

    func close() { rig.close() }
}

@Suite(.timeLimit(.minutes(5))) struct ProxyTests {
    // "user:pass word", by coreutils' base64.
    private static let basic = "Basic dXNlcjpwYXNzIHdvcmQ="
    private static let credentials = ("user", "pass word")

    @Test("a proxy is asked for the URL as a whole, with its credentials, and nobody for the origin's address")
    func plain() throws {
        let rig = try ProxyRig()
        defer { rig.close() }
        for (url, target, host) in [
            ("http://origin.test/a?b=%20", "http://origin.test/a?b=%20", "origin.test"),
            ("http://origin.test:8080", "http://origin.test:8080/", "origin.test:8080"),
            ("http://[::1]:81/x", "http://[::1]:81/x", "[::1]:81"),
        ] {
            let request = UpstreamRequest(url: url, proxy: rig.named(Self.credentials))
            #expect(rig.rig.run(request).text == "of the proxy")
            let got = try #require(rig.proxy.log.last)
            #expect(got.target == target)
            #expect(got.all("Host") == [host])
            #expect(got.all("Proxy-Authorization") == [Self.basic])
        }
        #expect(rig.rig.run(UpstreamRequest(url: "http://origin.test/b", proxy: rig.named())).isFinished)
        #expect(rig.proxy.log.last?.field("Proxy-Authorization") == nil)
        let whole = UpstreamRequest(method: .options, url: "http://origin.test", proxy: rig.named())
        #expect(rig.rig.run(whole).isFinished)
        #expect(rig.proxy.log.last?.target == "http://origin.test")
        #expect(rig.asked.read { Set($0) } == ["proxy.test"])
    }

    @Test("a request goes out with its body, over a connection that was used before")
    func content() throws {
        let rig = try ProxyRig()
        defer { rig.close() }
        for _ in 0..<3 {
            var request = UpstreamRequest(
                method: .put,
                url: "http://origin.test/x",
                bodyFraming: .length(4),
                proxy: rig.named()
            )
            request.fields.append(.contentLength, "4")
            let heard = rig.rig.run(request, source: { ScriptedSource([.bytes(Array("body".utf8))]) })
            #expect(heard.text == "of the proxy")
        }
        #expect(rig.proxy.log.map(\.body) == Array(repeating: Array("body".utf8), count: 3))
        #expect(rig.proxy.connections == 1)
    }

    @Test("a connection is used again for the same origin, proxy and credentials only")
    func reuse() throws {
        let rig = try ProxyRig()
        defer { rig.close() }
        func ask(_ url: String, _ proxy: UpstreamProxy?) -> Int? {
            #expect(rig.rig.run(UpstreamRequest(url: url, proxy: proxy)).isFinished)
            return rig.proxy.log.last?.connection
        }
        #expect(ask("http://a.test/1", rig.named()) == 1)
        #expect(ask("http://a.test/2", rig.named()) == 1)
        #expect(ask("http://b.test/1", rig.named()) == 2)
        #expect(ask("http://a.test/3", rig.named(Self.credentials)) == 3)
        #expect(ask("http://a.test/4", rig.named()) == 1)
        #expect(ask("http://a.test/5", rig.named(Self.credentials)) == 3)
        // The same address, once as a proxy and once as an origin.
        let own = "http://127.0.0.1:\(rig.proxy.port)/"
        #expect(ask(own, rig.named(host: "127.0.0.1")) == 4)
        #expect(ask(own, nil) == 5)
        #expect(rig.proxy.log.last?.target == "/")
    }

    @Test("a 407 is the proxy's own and no answer; every other status may be the origin's")
    func refusedPlain() throws {
        let rig = try ProxyRig { request in
            request.target.hasSuffix("/407") ? .answer(407, to: request, "no") : .answer(503, to: request, "busy")
        }
        defer { rig.close() }
        let url = "http://origin.test/407"
        let bare = rig.rig.run(UpstreamRequest(url: url, proxy: rig.named()))
        #expect(bare.calls == "e")
        #expect(bare.error?.kind == .proxy(407))
        #expect(bare.error?.status == 502)
        #expect(bare.error?.proxyStatus == "proxy_configuration_error")
        #expect(bare.error?.detail.contains("the proxy proxy.test:\(rig.proxy.port) wants credentials") == true)
        let wrong = rig.rig.run(UpstreamRequest(url: url, proxy: rig.named(Self.credentials)))
        #expect(wrong.error?.detail.contains("does not take the user and the password") == true)
        #expect(wrong.error?.detail.contains("pass word") == false)
        #expect(rig.rig.run(UpstreamRequest(url: "http://origin.test/", proxy: rig.named())).head?.status == 503)
        // Without a proxy it is an answer like any other.
        #expect(rig.rig.get("\(rig.proxy.url)/407").head?.status == 407)
    }

    @Test("an address that the rules refuse is refused before the proxy is asked, a name is the proxy's business")
    func rules() throws {
        let rig = try ProxyRig()
        defer { rig.close() }
        for host in ["127.0.0.1", "0x7f.1", "[::1]", "10.1.2.3", "127.0.0.1.", "0177.1.", "0.", "0x7f000001."] {
            let heard = rig.rig.run(
                UpstreamRequest(url: "http://\(host)/", target: .noPrivate, proxy: rig.named())
            )
            #expect(heard.error?.kind == .addressRefused, "\(host)")
        }
        #expect(rig.proxy.connections == 0)
        let named = UpstreamRequest(url: "http://internal.test/", target: .noPrivate, proxy: rig.named())
        #expect(rig.rig.run(named).text == "of the proxy")
    }

    @Test("a proxy that is not there is named")
    func dead() throws {
        let rig = try ProxyRig()
        defer { rig.close() }
        let port = rig.proxy.port
        rig.proxy.stop()
        for url in ["http://origin.test/", "https://origin.test/"] {
            let heard = rig.rig.run(UpstreamRequest(url: url, proxy: rig.named(Self.credentials)))
            #expect(heard.error?.kind == .connectionRefused)
            let detail = heard.error?.detail ?? ""
            #expect(detail.contains("through the proxy proxy.test:\(port)"), "\(detail)")
            #expect(detail.contains("check that the proxy runs"), "\(detail)")
            let nameless = rig.rig.run(UpstreamRequest(url: url, proxy: rig.named(host: "nowhere.test")))
            #expect(nameless.error?.kind == .nameNotFound)
            #expect(nameless.error?.detail.hasPrefix("the proxy nowhere.test:\(port) cannot be asked") == true)
        }
    }
}

extension ProxyTests {
    private static let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"

    private static func upgrade(_ url: String, _ proxy: UpstreamProxy, _ timeouts: Timeouts = Timeouts())
        -> UpstreamRequest
    {
        let fields = Fields([("Connection", "Upgrade"), ("Upgrade", "echo"), ("Via", "1.1 dock")])
        return UpstreamRequest(url: url, fields: fields, timeouts: timeouts, proxy: proxy, isUpgrade: true)
    }

    @Test("an upgrade goes through a tunnel, as the request that a direct one is")
    func upgrade() throws {
        let origin = try ScriptedOrigin { _ in OriginReply([.bytes(Array(Self.switching.utf8)), .converse { $0 }]) }
        let rig = try ProxyRig(tunnelsTo: origin.port)
        defer { rig.close() }
        let heard = rig.rig.run(Self.upgrade("http://origin.test:81/ws", rig.named(Self.credentials)))
        #expect(heard.head?.status == 101)
        let asked = try #require(rig.proxy.log.first)
        #expect(asked.method == "CONNECT" && asked.target == "origin.test:81")
        #expect(asked.all("Host") == ["origin.test:81"])
        #expect(asked.all("Proxy-Authorization") == [Self.basic])
        #expect(asked.all("Via") == ["1.1 dock"])
        let got = try #require(origin.log.first)
        #expect(got.target == "/ws" && got.field("Host") == "origin.test:81")
        #expect(got.field("Proxy-Authorization") == nil)
    }

    @Test("an upgrade to an https origin has its TLS end to end through the tunnel")
    func secureUpgrade() throws {
        let folder = try TemporaryFolder("upstream-proxy")
        let files = try TLSFiles(in: folder, hosts: ["origin.test"])
        let origin = try UpgradingOverTLS(folder, files)
        let rig = try ProxyRig(tunnelsTo: origin.port)
        defer { rig.close() }
        let session = try TLSContext(
            asking: ["http/1.1"],
            trust: .authorities(PEM.certificates(in: Array(TestSupport.readText(files.authority).utf8)))
        )
        let terms = UpstreamTerms(
            url: "https://origin.test:444",
            session: session,
            proxy: rig.named(Self.credentials)
        )
        let fields = Fields([("Connection", "Upgrade"), ("Upgrade", "echo"), ("Via", "1.1 dock")])
        let heard = rig.rig.run(UpstreamRequest(path: "/echo", fields: fields, terms: terms, isUpgrade: true))
        #expect(heard.head?.status == 101, "\(heard.error?.detail ?? "")")
        let asked = try #require(rig.proxy.log.first)
        #expect(asked.method == "CONNECT" && asked.target == "origin.test:444")
        #expect(asked.all("Proxy-Authorization") == [Self.basic])
        #expect(origin.requests == ["/echo http/1.1 origin.test origin.test:444"])
        rig.proxy.stop()
        let refused = rig.rig.run(UpstreamRequest(path: "/echo", fields: fields, terms: terms, isUpgrade: true))
        #expect(refused.error?.kind == .connectionRefused)
    }

    @Test("TLS goes end to end through the tunnel, and the certificate is for the origin's name")
    func tunnelledTLS() throws {
        let folder = try TemporaryFolder("upstream-proxy")
        let files = try TLSFiles(in: folder, hosts: ["origin.test"])
        let nginx = try NginxOrigin(tls: files)
        try nginx.write("a.txt", "over TLS")
        let rig = try ProxyRig(tunnelsTo: nginx.port)
        defer { rig.close() }
        func ask(_ host: String, _ proxy: UpstreamProxy?) -> Heard {
            rig.rig.run(
                UpstreamRequest(
                    url: "https://\(host)/a.txt",
                    fields: Fields([("Via", "1.1 dock")]),
                    tls: TLSOptions(ca: files.authority),
                    proxy: proxy
                )
            )
        }
        for _ in 0..<2 { #expect(ask("origin.test:444", rig.named(Self.credentials)).text == "over TLS") }
        let asked = try #require(rig.proxy.log.first)
        #expect(asked.method == "CONNECT" && asked.target == "origin.test:444")
        #expect(asked.fields.map(\.name) == ["Host", "Proxy-Authorization", "Via"])
        #expect(asked.all("Proxy-Authorization") == [Self.basic])
        #expect(asked.all("Via") == ["1.1 dock"])
        #expect(rig.proxy.connections == 1)
        #expect(rig.asked.read { Set($0) } == ["proxy.test"])
        // With other credentials nothing is used that these have not opened.
        #expect(ask("origin.test:444", rig.named()).text == "over TLS")
        #expect(rig.proxy.connections == 2)
        #expect(ask("origin.test:444", rig.named(Self.credentials)).text == "over TLS")
        #expect(rig.proxy.connections == 2)
        let other = ask("other.test:444", rig.named())
        #expect(other.error?.kind == .certificate)
        #expect(other.error?.detail.contains("other.test:444 through the proxy proxy.test") == true)
        // And without the proxy the handle that had one has none.
        #expect(ask("127.0.0.1:\(nginx.port)", nil).text == "over TLS")
        #expect(rig.proxy.connections == 3)
    }

    /// How a proxy fails at CONNECT, and what is made of it.
    static let failures: [(String, UpstreamError.Kind, Int, String, String)] = [
        (
            "HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno", .proxy(407), 502, "proxy_configuration_error",
            "does not take"
        ),
        ("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", .proxy(403), 502, "http_request_denied", "refuses the way to"),
        ("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", .proxy(502), 502, "destination_unavailable", "did not reach"),
        ("HTTP/1.1 504 Late\r\nContent-Length: 0\r\n\r\n", .proxy(504), 504, "connection_timeout", "did not reach"),
        ("HTTP/1.1 508 Loop\r\nContent-Length: 0\r\n\r\n", .proxy(508), 508, "proxy_loop_detected", "leads back"),
        ("", .proxy(nil), 502, "connection_terminated", "opened no way to"),
        ("HTTP/1.1 20", .proxy(nil), 502, "connection_terminated", "opened no way to"),
        ("SSH-2.0-OpenSSH_9.2\r\n", .proxy(nil), 502, "connection_terminated", "opened no way to"),
    ]

    @Test("a proxy that opens no tunnel is the error, for TLS and for an upgrade", arguments: failures)
    func refusedTunnel(
        _ answer: String,
        _ kind: UpstreamError.Kind,
        _ status: Int,
        _ proxyStatus: String,
        _ words: String
    ) throws {
        let rig = try ProxyRig { _ in OriginReply([.bytes(Array(answer.utf8)), .cut]) }
        defer { rig.close() }
        let proxy = rig.named(Self.credentials)
        for request in [
            UpstreamRequest(url: "https://origin.test/", proxy: proxy), Self.upgrade("http://origin.test/", proxy),
        ] {
            let heard = rig.rig.run(request)
            let error = try #require(heard.error)
            #expect(heard.calls == "e")
            #expect(error.kind == kind, "\(error)")
            #expect(error.status == status)
            #expect(error.proxyStatus == proxyStatus)
            #expect(error.detail.contains("the proxy proxy.test:\(rig.proxy.port)"), "\(error)")
            #expect(error.detail.contains(words), "\(error)")
            #expect(!error.detail.contains("pass word") && !error.detail.contains("dXNlcjp"), "\(error)")
            #expect(error.isUnsent)
        }
        #expect(rig.rig.connectionCount == 0)
    }

    @Test("a proxy that says nothing is waited for as long as for a connection")
    func stalling() throws {
        let rig = try ProxyRig { _ in OriginReply([.hang]) }
        defer { rig.close() }
        rig.rig.know("proxy.test", port: rig.proxy.port)
        let timeouts = Timeouts(connect: 200_000_000)
        for request in [
            UpstreamRequest(url: "https://origin.test/", timeouts: timeouts, proxy: rig.named()),
            Self.upgrade("http://origin.test/", rig.named(), timeouts),
        ] {
            let error = try #require(rig.rig.run(request).error)
            #expect(error.kind == .timeout(.connect))
            #expect(error.status == 504)
            #expect(error.detail.contains("through the proxy proxy.test"))
        }
        #expect(rig.rig.connectionCount == 0)
        #expect(rig.rig.activeCount == 0)
    }
}

extension ProxyTests {
    @Test("a task gets a socket behind the tunnel, and every byte that the other side speaks first")
    func dialled() async throws {
        let rig = try ProxyRig { _ in
            OriginReply([
                .bytes(Array("HTTP/1.1 100 Wait\r\n\r\nHTTP/1.0 200 OK\r\nX: y\r\n\r\n220 ready".utf8)), .hang,
            ])
        }
        defer { rig.close() }
        let target = DialTarget(
            host: "mail.test",
            port: 25,
            rules: .noPrivate,
            timeout: nil,
            proxy: rig.named(Self.credentials),
            via: ["1.1 a", "1.1 b"]
        )
        let descriptor = try await rig.rig.dial(target)
        defer { Socket.close(descriptor) }
        #expect(try readText(descriptor, 9) == "220 ready")
        let asked = try #require(rig.proxy.log.first)
        #expect(asked.target == "mail.test:25" && asked.all("Via") == ["1.1 a", "1.1 b"])
        #expect(rig.rig.connectionCount == 0)
    }

    @Test("a task hears why there is no tunnel, and an internal address is refused without one")
    func undialled() async throws {
        let rig = try ProxyRig { _ in .answer(403, "no") }
        defer { rig.close() }
        for (host, kind) in [("mail.test", UpstreamError.Kind.proxy(403)), ("127.0.0.1", .addressRefused)] {
            let target = DialTarget(host: host, port: 25, rules: .noPrivate, timeout: nil, proxy: rig.named())
            let error = await #expect(throws: UpstreamError.self) { try await rig.rig.dial(target) }
            #expect(error?.kind == kind)
        }
        #expect(rig.proxy.connections == 1)
        #expect(rig.rig.connectionCount == 0)
    }

    private func readText(_ descriptor: Int32, _ count: Int) throws -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64)
        while bytes.count < count {
            var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            try #require(Glibc.poll(&poll, 1, 120_000) == 1)
            let read = recv(descriptor, &buffer, buffer.count, 0)
            try #require(read > 0)
            bytes += buffer[..<read]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Rig {
    /// Has the client's dialler connect to a target.
    fileprivate func dial(_ target: DialTarget) async throws(UpstreamError) -> Int32 {
        let task = await begin(on: loop) { [inside] loop -> Result<Int32, UpstreamError> in
            guard let client = inside.client else { return .success(-1) }
            do throws(UpstreamError) {
                let addresses = try await client.dialler.addresses(of: target, on: loop)
                return .success(try await client.dialler.connect(to: addresses, of: target, on: loop))
            } catch {
                return .failure(error)
            }
        }
        return try await task.value.get()
    }
}
