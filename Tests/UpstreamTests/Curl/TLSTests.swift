// TLS: who is trusted, how Drydock shows itself, what an error says, and excess bytes within a record.

import HTTPWire
import TestSupport
import Testing
import Upstream

@Suite struct TLSTests {
    private let folder: TemporaryFolder
    private let files: TLSFiles

    init() throws {
        folder = try TemporaryFolder("upstream-tls")
        files = try TLSFiles(in: folder)
    }

    @Test func `an authority of one's own is trusted, and only where it is named`() throws {
        let origin = try NginxOrigin(tls: files)
        try origin.write("a.txt", "over TLS")
        let rig = try Rig()
        defer { rig.close() }
        func ask(_ tls: TLSOptions, host: String = "127.0.0.1") -> Heard {
            rig.run(UpstreamRequest(url: "https://\(host):\(origin.port)/a.txt", tls: tls))
        }
        for _ in 0..<2 {
            #expect(ask(TLSOptions(ca: files.authority)).text == "over TLS")
            let unknown = ask(TLSOptions())
            #expect(unknown.error?.kind == .certificate)
            #expect(unknown.error?.status == 502)
            #expect(unknown.error?.proxyStatus == "tls_certificate_error")
            #expect(unknown.error?.detail.contains("tls.ca") == true)
            #expect(ask(TLSOptions(verify: false)).text == "over TLS")
        }
        #expect(ask(TLSOptions(ca: files.authority), host: "localhost").text == "over TLS")
    }

    @Test func `a public key that is pinned is the only one, also without verification, and over open connections`()
        throws
    {
        let other = try TLSFiles(in: folder, "other")
        let (right, wrong) = (try files.pin, try other.pin)
        let origin = try NginxOrigin(tls: files)
        try origin.write("a.txt", "over TLS")
        let rig = try Rig()
        defer { rig.close() }
        func ask(_ pins: [String], verify: Bool = true) -> Heard {
            let tls = TLSOptions(verify: verify, ca: verify ? files.authority : nil, pins: pins)
            return rig.run(UpstreamRequest(url: "https://127.0.0.1:\(origin.port)/a.txt", tls: tls))
        }
        for verify in [true, false, true] {
            for pins in [[right], [wrong, right], []] { #expect(ask(pins, verify: verify).text == "over TLS") }
            let refused = ask([wrong], verify: verify)
            #expect(refused.error?.kind == .certificate)
            #expect(refused.error?.detail.contains("a public key that is not the one under 'tls.pin'") == true)
        }
    }

    @Test func `a certificate for another name is refused`() throws {
        let origin = try NginxOrigin(tls: files)
        let rig = try Rig { _, port in SystemResolver.lookup("127.0.0.1", port: port) }
        defer { rig.close() }
        let url = "https://other.test:\(origin.port)/"
        let heard = rig.run(UpstreamRequest(url: url, tls: TLSOptions(ca: files.authority)))
        #expect(heard.error?.kind == .certificate)
        #expect(heard.error?.detail.contains("other.test") == true)
        #expect(heard.error?.detail.contains("correct the host that is asked for (of a service: 'base_url')") == true)
    }

    @Test("an error says what is wrong with a certificate, since when, and what helps")
    func badCertificates() throws {
        func detail(_ files: TLSFiles, _ tls: TLSOptions) throws -> String {
            let origin = try NginxOrigin(tls: files)
            let rig = try Rig()
            defer { rig.close() }
            // Twice: what was found is that of the handshake at hand.
            let heard = (0..<2).map { _ in rig.run(UpstreamRequest(url: "\(origin.url)/", tls: tls)) }
            #expect(heard.allSatisfy { $0.error?.kind == .certificate })
            #expect(heard[0].error?.detail == heard[1].error?.detail)
            return heard[0].error?.detail ?? ""
        }
        let unknown = try detail(files, TLSOptions())
        #expect(unknown.contains("is of an authority that this machine does not know"), "\(unknown)")
        #expect(
            unknown.hasSuffix(
                "name the PEM file of its authority in 'tls.ca', or, if the origin does not send its intermediate certificate, add that there"
            ),
            "\(unknown)"
        )
        let forward = try detail(files, TLSOptions(caKey: "'forward.tls.ca'"))
        #expect(forward.contains("name the PEM file of its authority in 'forward.tls.ca', or"), "\(forward)")
        let other = try TLSFiles(in: folder, "other")
        let wrong = try detail(files, TLSOptions(ca: other.authority))
        #expect(wrong.contains("an authority that \(other.authority) does not know"), "\(wrong)")
        #expect(
            wrong.contains("; put the PEM of its authority into \(other.authority), which 'tls.ca' names, or, if"),
            "\(wrong)"
        )

        let trusted = TLSOptions(ca: files.authority)
        try files.expire()
        let end = try Shell.must("openssl", ["x509", "-in", files.certificate, "-noout", "-enddate"])
        // `notAfter=Nov 22 03:37:35 2026 GMT`
        let words = end.dropFirst("notAfter=".count).split(whereSeparator: \.isWhitespace)
        let expired = try detail(files, trusted)
        #expect(expired.contains(" has expired on "), "\(expired)")
        #expect(words.dropLast().allSatisfy { expired.contains($0) } && words.count == 5, "\(expired) \(end)")
        #expect(expired.hasSuffix("; renew it there") && !expired.contains("tls.ca"), "\(expired)")
        try files.postpone()
        let early = try detail(files, trusted)
        #expect(early.contains(" is not valid before Sun, 01 Jan 2040 00:00:00 GMT;"), "\(early)")
        #expect(early.hasSuffix("or the clock of this machine"), "\(early)")
    }

    @Test func `a client certificate is shown where the origin asks for one`() throws {
        let origin = try NginxOrigin(tls: files, clientCertificates: true)
        try origin.write("a.txt", "known")
        let rig = try Rig()
        defer { rig.close() }
        var request = UpstreamRequest(url: "\(origin.url)/a.txt", tls: TLSOptions(ca: files.authority))
        #expect(rig.run(request).head?.status == 400)
        request.tls.clientCertificate = files.clientCertificate
        request.tls.clientKey = files.clientKey
        let heard = rig.run(request)
        #expect(heard.text == "known")
        // Not on the connection that was made without it, nor the other way round.
        request.tls = TLSOptions(ca: files.authority)
        #expect(rig.run(request).head?.status == 400)
    }

    @Test func `a TLS file that cannot be used is named`() throws {
        let origin = try NginxOrigin(tls: files)
        let rig = try Rig()
        defer { rig.close() }
        let absent = folder.file("absent.pem")
        let broken = try folder.write("broken.pem", "no certificate")
        for tls in [
            TLSOptions(ca: absent), TLSOptions(ca: files.authority, clientCertificate: absent),
            TLSOptions(ca: files.authority, clientCertificate: broken),
            TLSOptions(ca: files.authority, clientCertificate: files.clientCertificate, clientKey: absent),
        ] {
            let heard = rig.run(UpstreamRequest(url: "\(origin.url)/", tls: tls))
            #expect(heard.error?.kind == .tlsFile)
            #expect(heard.error?.proxyStatus == "proxy_configuration_error")
            let name = tls.clientKey ?? tls.clientCertificate ?? tls.ca ?? ""
            #expect(heard.error?.detail.contains(name) == true)
        }
        #expect(rig.run(UpstreamRequest(url: "\(origin.url)/", tls: TLSOptions(ca: files.authority))).head != nil)
    }

    @Test func `an origin without TLS is a TLS error, not a response`() throws {
        let origin = try NginxOrigin()
        let rig = try Rig()
        defer { rig.close() }
        let heard = rig.get("https://127.0.0.1:\(origin.port)/")
        #expect(heard.error?.kind == .tls)
        #expect(heard.error?.proxyStatus == "tls_protocol_error")
        #expect(heard.error?.isUnsent == true)
    }

    @Test func `connections are kept, and a large body comes whole`() throws {
        let origin = try NginxOrigin(tls: files)
        try origin.write("big", Pattern.bytes(0..<(8 << 20)))
        let rig = try Rig()
        defer { rig.close() }
        for _ in 0..<3 {
            let heard = rig.run(UpstreamRequest(url: "\(origin.url)/big", tls: TLSOptions(ca: files.authority)))
            #expect(heard.error == nil)
            #expect(heard.bodyLength == 8 << 20)
            #expect(heard.bodyIsPattern)
        }
        #expect(rig.connectionCount == 1)
    }

    /// A body's length, and whether more than the end of the connection said that it was whole.
    static let ends = [
        ("/said", 5, true), ("/said/0", 0, true), ("/said/16384", 16_384, true), ("/said/3000000", 3_000_000, true),
        ("/cut", 5, false), ("/cut/0", 0, false), ("/cut/16384", 16_384, false), ("/cut/3000000", 3_000_000, false),
        ("/length", 5, true), ("/chunked/70000", 70_000, true),
    ]

    @Test("what ends with its connection is proven whole by close_notify alone", arguments: ["1.2", "1.3"])
    func ends(version: String) throws {
        let origin = try EndingOverTLS(folder, files, version: version)
        let rig = try Rig()
        defer { rig.close() }
        // Twice, and mixed: what one connection said must not count for another one.
        for (target, length, isProven) in Self.ends + Self.ends.reversed() {
            let request = UpstreamRequest(url: "\(origin.url)\(target)", tls: TLSOptions(ca: files.authority))
            let heard = rig.run(request)
            #expect(heard.error == nil && heard.isFinished, "\(target)")
            #expect(heard.bodyLength == length, "\(target)")
            #expect(heard.isEndProven == isProven, "\(target)")
        }
    }

    @Test("many ends at a time are told apart")
    func manyEnds() throws {
        let origin = try EndingOverTLS(folder, files)
        let rig = try Rig()
        defer { rig.close() }
        let targets = (0..<24).map { $0 % 3 == 0 ? "/cut/40000" : "/said/40000" }
        let all = targets.map { target in
            rig.start(UpstreamRequest(url: "\(origin.url)\(target)", tls: TLSOptions(ca: files.authority))).heard
        }
        for (target, heard) in zip(targets, all) {
            #expect(heard.wait(120) { $0.isOver })
            #expect(heard.read { $0.bodyLength } == 40_000)
            #expect(heard.read { $0.isEndProven } == target.hasPrefix("/said"))
        }
    }

    @Test(arguments: ["/none", "/small", "/large", "/chunked"])
    func `excess bytes in a TLS record are never read as the next response`(target: String) throws {
        let origin = try ExcessOverTLS(folder, files)
        let rig = try Rig()
        defer { rig.close() }
        var request = UpstreamRequest(url: "\(origin.url)\(target)", tls: TLSOptions(ca: files.authority))
        let second = Monitor(Heard())
        var next = request
        next.url = "\(origin.url)/good"
        let nextRequest = next
        request.timeouts.idle = 120_000_000_000
        let (heard, _) = rig.watch(request) { [inside = rig.inside] recorder in
            recorder.onEnd = { _ in _ = inside.client?.start(nextRequest, body: nil, delegate: Recorder(second)) }
        }
        #expect(heard.wait(120) { $0.isFinished })
        #expect(second.wait(120) { $0.isOver })
        // The origin's first connection was the wait for its start.
        #expect(second.read { $0.text } == "good 3")
    }
}

/// A python3 origin over TLS that sends bytes beyond its responses in the same record, and numbers its connections.
final class ExcessOverTLS: Sendable {
    let port: Int
    private let child: ChildProcess
    var url: String { "https://127.0.0.1:\(port)" }

    private static let script = """
        import socket, ssl, sys, threading
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        listener = socket.create_server(("127.0.0.1", int(sys.argv[3])))
        evil = b"HTTP/1.1 200 EVIL\\r\\nContent-Length: 4\\r\\n\\r\\nevil"
        def serve(plain, number):
            try:
                peer = context.wrap_socket(plain, server_side=True)
                while True:
                    data = b""
                    while not data.endswith(b"\\r\\n\\r\\n"):
                        more = peer.recv(65536)
                        if not more: return
                        data += more
                    target = data.split(b" ")[1]
                    if target == b"/none": peer.sendall(b"HTTP/1.1 204 No\\r\\n\\r\\n" + evil)
                    elif target == b"/small": peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok" + evil)
                    elif target == b"/chunked":
                        peer.sendall(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n" + evil)
                    elif target == b"/large":
                        peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 10000\\r\\n\\r\\n")
                        peer.sendall(b"a" * 10000 + evil)
                    else:
                        body = b"good %d" % number
                        peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
            except OSError: pass
        number = 0
        while True:
            plain, _ = listener.accept()
            number += 1
            threading.Thread(target=serve, args=(plain, number), daemon=True).start()
        """

    init(_ folder: TemporaryFolder, _ files: TLSFiles) throws {
        port = try freePort()
        let script = try folder.write("excess.py", Self.script)
        child = try ChildProcess(
            "python3",
            [script, files.certificate, files.key, "\(port)"],
            environment: Shell.cleanEnvironment(),
            errors: folder.file("excess.log")
        )
        try child.waitUntilListening(on: port, "python3", errors: folder.file("excess.log"))
    }
}
