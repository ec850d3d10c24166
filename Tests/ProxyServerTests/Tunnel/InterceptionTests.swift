// Tunnels that are read: which of them are, what is answered inside, and what is left as it is.

import Configuration
import EventLoop
import HTTPWire
import TLS
import TestSupport
import Testing
import Upstream

@testable import ProxyServer

@Suite(.timeLimit(.minutes(5))) struct InterceptionTests {
    /// An https origin, and a configuration that reads the tunnels to it.
    private final class World: Sendable {
        let interception: ScriptedInterception
        let origin: NginxOrigin
        let folder: TemporaryFolder
        let text: String
        var target: String { "localhost:\(origin.port)" }
        var trust: TLSContext.Trust { .authorities([interception.authority.certificate]) }
        /// Those of the origin, which a tunnel that is not read shows.
        let originTrust: TLSContext.Trust

        /// - Parameters:
        ///   - trustsOrigin: whether the origin's authority is known.
        ///   - spoil: changes the origin's files.
        init(_ more: String = "", trustsOrigin: Bool = true, spoil: (TestSupport.TLSFiles) throws -> Void = { _ in })
            throws
        {
            folder = try TemporaryFolder("interception")
            let files = try TestSupport.TLSFiles(in: folder)
            try spoil(files)
            origin = try NginxOrigin(
                location: """
                    add_header Cache-Control max-age=600; add_header Alt-Svc 'h3=":443"';
                    add_header Strict-Transport-Security max-age=99;
                    """,
                tls: files
            )
            try origin.write("a.txt", "of the origin")
            interception = try ScriptedInterception()
            originTrust = .authorities(try PEM.certificates(in: Array(readText(files.authority).utf8)))
            text = """
                forward:
                  allow: [localhost, 127.0.0.1, wrong.example]
                  connect: { allow: ["*:*"] }
                  intercept: { hosts: ["localhost", wrong.example, "127.0.0.1:\(origin.port)"], except: ["localhost:1"] }
                \(trustsOrigin ? "  tls: { ca: \(files.authority) }" : "")
                \(more)
                """
        }

        func run(
            log: LogConfiguration? = nil,
            settings: ServerSettings = ServerSettings(),
            _ body: @escaping @Sendable (HandlerHarness) throws -> Void
        ) async throws {
            try await HandlerHarness.run(
                text,
                log: log,
                lookup: { name, port in
                    guard name == "wrong.example" else { return SystemResolver.lookup(name, port: port) }
                    return .addresses([SocketAddress(numericHost: "127.0.0.1", port: port)].compactMap { $0 })
                },
                interception: interception,
                settings: settings
            ) { harness in
                try body(harness)
                // The one slot in the limits is given back, once.
                #expect(blockUntil { harness.server.limits.open == 0 })
            }
        }

        func client(_ harness: HandlerHarness, to target: String? = nil, asking name: String? = nil) throws
            -> InnerClient
        {
            let client = try InnerClient(
                harness.client(),
                to: target ?? self.target,
                asking: name,
                trusting: trust
            )
            #expect(try client.handshake() == nil)
            return client
        }
    }

    @Test func `what is asked inside is cached under https, and its connection keeps one slot in the limits`()
        async throws
    {
        let world = try World()
        var log = LogConfiguration()
        log.access = .file(path: world.folder.file("access.log"))
        try await world.run(log: log) { harness in
            let client = try world.client(harness)
            for index in 0..<2 {
                let answer = try client.exchange("GET /a.txt HTTP/1.1", "Host: \(world.target)")
                #expect(answer.body == "of the origin")
                #expect(answer.head.contains(index == 0 ? "fwd=uri-miss" : "drydock; hit"), "\(answer.head)")
                // Nothing leads out of the tunnel, and what holds for the host is kept.
                #expect(!answer.head.lowercased().contains("alt-svc"))
                #expect(answer.head.contains("Strict-Transport-Security: max-age=99"))
                #expect(harness.server.limits.open == 1)
            }
            #expect(world.interception.begun.read { $0 } == ["\(world.target) inner/1"])
            #expect(try harness.listed().first?.contains("https://\(world.target)/a.txt") == true)
            #expect(world.origin.log.map(\.path) == ["/a.txt"])
            try client.send("GET /a.txt HTTP/1.1\r\nHost: \(world.target)\r\nConnection: close\r\n\r\n")
            #expect(try client.answer().body == "of the origin")
            #expect(client.isEnded())
            #expect(blockUntil { (try? harness.counters().answers.count) == 4 })
        }
        let lines = world.folder.text("access.log").split(separator: "\n")
        #expect(lines.count == 4)
        #expect(lines.first?.contains("\"method\":\"CONNECT\"") == true)
        let inside = lines.dropFirst()
        #expect(inside.allSatisfy { $0.contains("\"target\":\"https://\(world.target)/a.txt\"") })
        #expect(
            inside.allSatisfy {
                $0.contains(
                    "\"tls\":{\"version\":\"TLSv1.3\",\"cipher\":\"TLS_AES_256_GCM_SHA384\",\"sni\":\"localhost\",\"resumed\":false}"
                )
            },
            "\(inside)"
        )
        #expect(world.interception.ended.read { $0 } == ["fine"])
    }

    @Test func `a ClientHello in pieces of one byte is waited for`() async throws {
        let world = try World()
        try await world.run { harness in
            let client = try InnerClient(harness.client(), to: world.target, trusting: world.trust)
            for byte in client.hello() {
                try client.raw.send([byte])
                try harness.turn()
            }
            #expect(try client.handshake() == nil)
            #expect(try client.exchange("GET /a.txt HTTP/1.1", "Host: \(world.target)").body == "of the origin")
        }
    }

    @Test func `a ClientHello that comes with CONNECT is read`() async throws {
        let world = try World()
        try await world.run { harness in
            let raw = try harness.client()
            let context = try TLSContext(asking: [], trust: world.trust)
            let session = try TLSSession(asking: context, for: .name("localhost"), output: TLSOutput())
            _ = session.handshake()
            let connect = "CONNECT \(world.target) HTTP/1.1\r\nHost: \(world.target)\r\n\r\n"
            try raw.send(Array(connect.utf8) + session.output.takeAll())
            #expect(try raw.readHead(method: "CONNECT").status == 200)
            // A record of the handshake, of this side: the origin was not asked for anything.
            #expect(try raw.readRaw(1) == [22])
            #expect(world.interception.begun.read { $0.count } == 1)
        }
    }

    @Test func `a client that offers no HTTP of version 1 speaks with the target itself`() async throws {
        let world = try World()
        try await world.run { harness in
            let listener = try ScriptedPeer.listen()
            let client = try InnerClient(
                harness.client(),
                to: "localhost:\(listener.port)",
                trusting: world.originTrust,
                offering: ["h2"]
            )
            let hello = client.hello()
            try client.raw.send(hello)
            let peer = try ScriptedPeer(acceptingOn: listener)
            defer { peer.close() }
            var received: [UInt8] = []
            while received.count < hello.count, let more = try peer.read() { received += more }
            #expect(received == hello)
            try peer.send([21, 3, 3])
            #expect(try client.raw.readRaw(3) == [21, 3, 3])
            #expect(world.interception.begun.read { $0.isEmpty })
        }
    }

    @Test func `targets that are not named, and clients that are left alone, have tunnels as ever`() async throws {
        let world = try World()
        world.interception.decision.update { $0 = InterceptionDecision.leave("of a test") }
        try await world.run { harness in
            let client = try InnerClient(harness.client(), to: world.target, trusting: world.originTrust)
            #expect(try client.handshake() == nil)
            world.interception.decision.update { $0 = InterceptionDecision.refuse("there is none") }
            let refused = try harness.exchange("CONNECT", world.target)
            #expect(refused.status == 503 && refused.text.contains("there is none"))
        }
    }

    @Test(arguments: [
        "SSH-2.0-test\r\n", "GET / HTTP/1.1\r\n\r\n", "\u{80}\u{2E}\u{01}\u{03}\u{01}", "\u{16}\u{02}", "\u{0}",
    ])
    func `what is no TLS goes to the target byte for byte`(first: String) async throws {
        let bytes = first.unicodeScalars.map { UInt8($0.value) }
        let world = try World()
        try await world.run { harness in
            let listener = try ScriptedPeer.listen()
            let client = try harness.client()
            try client.send("CONNECT localhost:\(listener.port) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(try client.readHead(method: "CONNECT").status == 200)
            try client.send(bytes)
            let peer = try ScriptedPeer(acceptingOn: listener)
            defer { peer.close() }
            var received: [UInt8] = []
            while received.count < bytes.count, let more = try peer.read() { received += more }
            #expect(received == bytes)
            try peer.send([1, 2, 3])
            #expect(try client.readRaw(3) == [1, 2, 3])
            try client.send([0xFF])
            #expect(try peer.read() == [0xFF])
            #expect(harness.server.limits.open == 1)
            client.close()
            #expect(try peer.read() == nil)
        }
        #expect(world.interception.begun.read { $0.isEmpty })
    }

    @Test func `a ClientHello that cannot be read gets an alert, and the target nothing`() async throws {
        let world = try World()
        try await world.run { harness in
            let spoiled: [[UInt8]] = [
                [22, 3, 1, 0, 0], [22, 3, 1, 0x40, 1, 1], [22, 3, 1, 0, 9, 1, 0, 0, 5, 3, 3, 0, 0, 0],
                [22, 3, 1, 0x40, 0, 1, 1, 0, 1],
            ]
            for bytes in spoiled {
                let client = try harness.client()
                try client.send("CONNECT \(world.target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try client.readHead(method: "CONNECT").status == 200)
                try client.send(bytes)
                client.finishSending()
                let answer = try client.readToEnd()
                // An alert, if anything.
                #expect(answer.isEmpty || answer.first == 21, "\(bytes): \(answer)")
            }
            #expect(blockUntil { world.interception.ended.read { $0.count } == spoiled.count })
            #expect(world.origin.log.isEmpty)
        }
    }

    @Test func `who says nothing, or half a ClientHello, is closed at the deadline of a head`() async throws {
        let world = try World()
        var settings = ServerSettings()
        settings.headTimeout = 100_000_000
        try await world.run(settings: settings) { harness in
            for bytes: [UInt8] in [[], [22], [22, 3, 1, 0, 200, 1, 0, 0, 196, 3]] {
                let client = try harness.client()
                try client.send("CONNECT \(world.target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try client.readHead(method: "CONNECT").status == 200)
                try client.send(bytes)
                #expect(try client.isClosedByServer())
            }
            #expect(world.origin.log.isEmpty)
            #expect(try harness.counters()[.tunnelsOpened] == 0)
        }
    }

    @Test func `a client that leaves, whenever it does, gives its slot back`() async throws {
        let world = try World()
        try await world.run { harness in
            for part in 0..<3 {
                let client = try InnerClient(harness.client(), to: world.target, trusting: world.trust)
                let hello = client.hello()
                try client.raw.send(Array(hello.prefix(part == 0 ? 0 : part == 1 ? 50 : hello.count)))
                if part == 2 { #expect(try client.raw.readRaw(1) == [22]) }
                if part == 1 { client.raw.reset() } else { client.raw.close() }
            }
            let client = try world.client(harness)
            client.raw.reset()
            #expect(blockUntil { world.interception.ended.read { $0.count } == 2 })
        }
    }

    @Test func `CONNECT, SNI and Host agree, or the answer is a 421 that says why`() async throws {
        let world = try World()
        try await world.run { harness in
            let client = try world.client(harness)
            for host in ["LOCALHOST:\(world.origin.port)", "localhost.:\(world.origin.port)"] {
                #expect(try client.exchange("GET /a.txt HTTP/1.1", "Host: \(host)").body == "of the origin")
            }
            for host in ["localhost", "127.0.0.1:\(world.origin.port)", "evil.example:\(world.origin.port)"] {
                let answer = try client.exchange("GET /a.txt HTTP/1.1", "Host: \(host)")
                #expect(answer.head.hasPrefix("HTTP/1.1 421 "), "\(host): \(answer.head)")
                #expect(answer.body.contains("Host is \(host), and the tunnel leads to \(world.target)"))
            }
            // The session is for the name that TLS asks for, so that the client can read what is wrong.
            let other = try world.client(harness, asking: "other.example")
            let answer = try other.exchange("GET /a.txt HTTP/1.1", "Host: \(world.target)")
            #expect(answer.head.hasPrefix("HTTP/1.1 421 "))
            #expect(answer.body.contains("TLS was asked for other.example, and the tunnel leads to \(world.target)"))
            // An address has no name in TLS.
            let address = "127.0.0.1:\(world.origin.port)"
            let third = try world.client(harness, to: address)
            #expect(try third.exchange("GET /a.txt HTTP/1.1", "Host: \(address)").body == "of the origin")
        }
    }

    /// What is wrong with an origin's certificate.
    enum Fault: CaseIterable, Sendable {
        case expired, early, selfSigned, unknownIssuer, otherName

        fileprivate func spoil(_ files: TestSupport.TLSFiles) throws {
            switch self {
            case .expired: try files.expire()
            case .early: try files.postpone()
            case .selfSigned:
                let words = "x509 -req -days 2 -in server.csr -signkey server.key -extfile server.ext -out server.pem"
                try Shell.must("openssl", words.split(separator: " ").map(String.init), folder: files.folder)
            case .unknownIssuer, .otherName: break
            }
        }

        fileprivate var words: String {
            switch self {
            case .expired: "has expired on "
            case .early: "is not valid before Sun, 01 Jan 2040"
            case .selfSigned: "self-signed certificate"
            case .unknownIssuer: "is of an authority that this machine does not know"
            case .otherName: "is for another name"
            }
        }
    }

    @Test(arguments: Fault.allCases)
    func `a bad certificate of the origin is a 502 inside that says what is wrong with it`(fault: Fault) async throws {
        let world = try World(trustsOrigin: fault != .unknownIssuer) { try fault.spoil($0) }
        try await world.run { harness in
            let target = fault == .otherName ? "wrong.example:\(world.origin.port)" : world.target
            let client = try world.client(harness, to: target)
            let answer = try client.exchange("GET /a.txt HTTP/1.1", "Host: \(target)")
            #expect(answer.head.hasPrefix("HTTP/1.1 502 ") && answer.head.contains("Proxy-Status: "), "\(answer)")
            #expect(
                answer.body.contains("the certificate of \(target)") && answer.body.contains(fault.words),
                "\(answer.body)"
            )
            // The connection goes on: it is the client's with this daemon.
            #expect(try client.exchange("GET /b.txt HTTP/1.1", "Host: \(target)").head.hasPrefix("HTTP/1.1 502 "))
        }
        #expect(world.origin.log.isEmpty)
    }

    @Test func `faults of forward mode are played inside, and on no CONNECT`() async throws {
        let world = try World("  faults: [{ name: broken, status: 418 }]")
        try await world.run { harness in
            let client = try world.client(harness)
            let answer = try client.exchange("GET /a.txt HTTP/1.1", "Host: \(world.target)")
            #expect(answer.head.hasPrefix("HTTP/1.1 418 "), "\(answer.head)")
        }
        #expect(world.origin.log.isEmpty)
    }

    @Test func `an Upgrade inside is a tunnel to the target, over TLS on both sides`() async throws {
        let folder = try TemporaryFolder("upgrading")
        let files = try TestSupport.TLSFiles(in: folder)
        let origin = try UpgradingOverTLS(folder, files)
        let interception = try ScriptedInterception()
        let target = "localhost:\(origin.port)"
        let text = """
            forward:
              allow: [localhost]
              connect: { allow: ["*:*"] }
              intercept: { hosts: [localhost] }
              tls: { ca: \(files.authority) }
            """
        try await HandlerHarness.run(text, interception: interception) { harness in
            let client = try InnerClient(
                harness.client(),
                to: target,
                trusting: .authorities([interception.authority.certificate])
            )
            #expect(try client.handshake() == nil)
            try client.send("GET /echo HTTP/1.1\r\nHost: \(target)\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            #expect(try client.answer(hasContent: false).head.hasPrefix("HTTP/1.1 101 "))
            #expect(try client.read(5) == "first")
            for text in ["a", String(repeating: "xyz", count: 10_000)] {
                try client.send(text)
                #expect(try client.read(text.utf8.count) == text)
            }
            #expect(harness.server.limits.open == 1)
            client.raw.close()
            #expect(blockUntil { harness.server.limits.open == 0 })
        }
        #expect(origin.requests == ["/echo http/1.1 localhost \(target)"])
    }

    @Test func `targets inside are of the tunnel's authority, and of no other`() async throws {
        let world = try World()
        try await world.run { harness in
            let client = try world.client(harness)
            let (host, target) = ("Host: \(world.target)", world.target)
            let own = try client.exchange("GET https://\(target)/a.txt HTTP/1.1", host)
            #expect(own.body == "of the origin")
            for url in ["http://\(target)/a.txt", "https://other.example/a.txt", "https://localhost/a.txt"] {
                let answer = try client.exchange("GET \(url) HTTP/1.1", host)
                #expect(
                    answer.head.hasPrefix("HTTP/1.1 421 ")
                        && answer.body.contains("the request is for \(url.dropLast(6))")
                )
            }
            let options = try client.exchange("OPTIONS * HTTP/1.1", host)
            // nginx' answer, and not the daemon's.
            #expect(options.head.hasPrefix("HTTP/1.1 405 ") || options.head.contains("Via"), "\(options.head)")
            let nested = try client.exchange("CONNECT \(target) HTTP/1.1", host)
            #expect(nested.head.hasPrefix("HTTP/1.1 405 ") && nested.body.contains("inside of a tunnel"))
            #expect(nested.head.contains("Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n"))
        }
    }

    @Test func `a client that does not trust the authority is told of to the log once, and nobody is asked`()
        async throws
    {
        let world = try World()
        try await world.run { harness in
            let client = try InnerClient(harness.client(), to: world.target, trusting: world.originTrust)
            #expect(try client.handshake()?.kind == .untrusted)
            #expect(blockUntil { world.interception.ended.read { $0 } == ["distrusted"] })
            #expect(world.origin.log.isEmpty)
        }
    }

    @Test func `the daemon's own addresses are no targets inside either`() async throws {
        let world = try World()
        try await HandlerHarness.run(
            world.text.replacing("allow: [localhost, ", with: "allow: [own.example, localhost, ")
                .replacing("hosts: [\"localhost\"", with: "hosts: [\"localhost\", own.example"),
            adminPort: 4_567,
            lookup: { _, port in .addresses([SocketAddress(numericHost: "127.0.0.1", port: port)].compactMap { $0 }) },
            interception: world.interception
        ) { harness in
            for target in ["127.0.0.1:4567", "localhost:4567", "localhost:\(harness.port)"] {
                #expect(try harness.exchange("CONNECT", target).status == 508, "\(target)")
            }
            // A name whose address is known only when it is asked for.
            for port in [4_567, harness.port] {
                let target = "own.example:\(port)"
                let client = try InnerClient(harness.client(), to: target, trusting: world.trust)
                #expect(try client.handshake() == nil)
                let answer = try client.exchange("GET /v1/status HTTP/1.1", "Host: \(target)")
                #expect(
                    answer.head.hasPrefix("HTTP/1.1 502 ") && answer.body.contains("leads to this daemon itself"),
                    "\(answer)"
                )
            }
        }
    }

    @Test func `the end of the daemon ends what has not begun, and lets an answer finish`() async throws {
        let world = try World()
        let harness = try await HandlerHarness(world.text, interception: world.interception)
        let result = await withTaskExecutorPreference(BlockingExecutor.shared) {
            Result {
                let silent = try harness.client()
                try silent.send("CONNECT \(world.target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                #expect(try silent.readHead(method: "CONNECT").status == 200)
                let idle = try world.client(harness)
                let drained = Monitor(false)
                Task(executorPreference: BlockingExecutor.shared) {
                    await harness.server.drain(grace: 60_000_000_000)
                    drained.update { $0 = true }
                }
                #expect(try silent.isClosedByServer())
                #expect(idle.isEnded())
                #expect(drained.wait(120) { $0 })
            }
        }
        try result.get()
    }
}
