// Requests for another protocol over TLS: the session is the service's own, its failures are told in the words of every
// other transfer, and what follows a 101 is the delegate's.

import EventLoop
import HTTPWire
import LoopSupport
import TLS
import TestSupport
import Testing

@testable import Upstream

@Suite(.timeLimit(.minutes(5))) struct SecureUpgradeTests {
    private let folder: TemporaryFolder
    private let files: TLSFiles

    init() throws {
        folder = try TemporaryFolder("upgrade-tls")
        files = try TLSFiles(in: folder, hosts: ["origin.test"])
    }

    /// The upgrade with its session; or why there is none.
    private func upgrade(
        _ url: String,
        _ tls: TLSOptions,
        on rig: Rig,
        timeouts: Timeouts = Timeouts(),
        proxy: UpstreamProxy? = nil
    ) async throws -> UpstreamRequest {
        let made = await onLoop(rig.loop) { loop in
            do throws(UpstreamError) {
                return Result<TLSContext, UpstreamError>.success(
                    try await OriginSessions.shared.context(for: tls, to: "origin", on: loop)
                )
            } catch {
                return .failure(error)
            }
        }
        let terms = UpstreamTerms(url: url, timeouts: timeouts, tls: tls, session: try made.get(), proxy: proxy)
        let fields = Fields([("Connection", "Upgrade"), ("Upgrade", "echo")])
        return UpstreamRequest(fields: fields, terms: terms, isUpgrade: true)
    }

    private func run(_ url: String, _ tls: TLSOptions, on rig: Rig) async throws -> Heard {
        rig.run(try await upgrade(url, tls, on: rig))
    }

    private var trusted: TLSOptions { TLSOptions(ca: files.authority) }

    @Test("after a 101 the session is the delegate's, with what came behind the head", arguments: ["1.2", "1.3"])
    func switched(version: String) async throws {
        let origin = try UpgradingOverTLS(folder, files, version: version)
        let rig = try Rig()
        defer { rig.close() }
        let end = SwitchedEnd()
        let request = try await upgrade("https://localhost:\(origin.port)/echo", trusted, on: rig)
        let heard = rig.run(request, prepare: { recorder in recorder.onSwitch = { end.take($0) } })
        #expect(heard.calls == "s")
        #expect(heard.head?.status == 101)
        #expect(rig.connectionCount == 0)
        #expect(rig.activeCount == 0)
        // What came behind the head was read with it, or is the next to be read.
        let text = String(decoding: heard.behind ?? [], as: UTF8.self)
        #expect(text + end.exchange("ping", waitingFor: 9 - text.utf8.count, on: rig) == "firstping")
        end.close(on: rig)
        #expect(origin.requests == ["/echo http/1.1 localhost localhost:\(origin.port)"])
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test(
        "an end without close_notify is no proper end",
        arguments: [("/said", true), ("/cut", false), ("/reset", false)]
    )
    func ends(target: String, isSaid: Bool) async throws {
        let origin = try UpgradingOverTLS(folder, files)
        let rig = try Rig()
        defer { rig.close() }
        let end = SwitchedEnd()
        let request = try await upgrade(origin.url + target, trusted, on: rig)
        #expect(rig.run(request, prepare: { recorder in recorder.onSwitch = { end.take($0) } }).head?.status == 101)
        #expect((end.end(on: rig) == .end) == isSaid)
        end.close(on: rig)
    }

    @Test("a failure has the words that it has for any other request")
    func words() async throws {
        /// The error of an upgrade, beside that of a plain GET over libcurl.
        func details(_ files: TLSFiles, _ tls: TLSOptions, host: String = "127.0.0.1") async throws -> (String, String)
        {
            let origin = try UpgradingOverTLS(folder, files)
            let rig = try Rig { _, port in SystemResolver.lookup("127.0.0.1", port: port) }
            defer { rig.close() }
            let url = "https://\(host):\(origin.port)/echo"
            let (upgraded, plain) = (try await run(url, tls, on: rig), rig.run(UpstreamRequest(url: url, tls: tls)))
            #expect(upgraded.error?.kind == .certificate && upgraded.error?.kind == plain.error?.kind)
            #expect(upgraded.error?.status == 502 && upgraded.error?.proxyStatus == "tls_certificate_error")
            #expect(origin.requests.isEmpty)
            return (upgraded.error?.detail ?? "", plain.error?.detail ?? "-")
        }
        func expectSame(_ pair: (String, String)) {
            let bare = pair.1.split(separator: "SSL certificate problem: ").joined()
            #expect(pair.0 == bare)
        }
        let other = try TLSFiles(in: folder, "other")
        expectSame(try await details(files, TLSOptions()))
        expectSame(try await details(files, TLSOptions(caKey: "'forward.tls.ca'")))
        expectSame(try await details(files, TLSOptions(ca: other.authority)))
        expectSame(try await details(files, TLSOptions(ca: files.authority, pins: [try other.pin])))
        expectSame(try await details(files, TLSOptions(verify: false, pins: [try other.pin, try other.pin + ""])))
        let (name, byLibcurl) = try await details(files, trusted, host: "other.test")
        #expect(
            name.hasSuffix(
                "(it is for 127.0.0.1, localhost, origin.test, not for other.test); correct the host that is asked for (of a service: 'base_url'), or the certificate there"
            ),
            "\(name)"
        )
        #expect(name.split(separator: "(").first == byLibcurl.split(separator: "(").first)
        try files.expire()
        expectSame(try await details(files, trusted))
        try files.postpone()
        expectSame(try await details(files, trusted))
    }

    @Test("an authority, a pin, a client certificate, and no verification at all are the service's")
    func options() async throws {
        let origin = try UpgradingOverTLS(folder, files)
        let careful = try UpgradingOverTLS(folder, files, clientCertificates: true)
        let rig = try Rig()
        defer { rig.close() }
        for tls in [
            trusted, TLSOptions(verify: false), TLSOptions(ca: files.authority, pins: [try files.pin]),
            TLSOptions(verify: false, pins: [try files.pin]), TLSOptions(ca: files.certificate),
        ] { #expect(try await run("\(origin.url)/echo", tls, on: rig).head?.status == 101) }
        let known = TLSOptions(
            ca: files.authority,
            clientCertificate: files.clientCertificate,
            clientKey: files.clientKey
        )
        #expect(try await run("\(careful.url)/echo", known, on: rig).head?.status == 101)
        let unknown = try await run("\(careful.url)/echo", trusted, on: rig).error
        #expect(unknown?.kind == .tls, "\(unknown?.detail ?? "")")
        #expect(unknown?.detail.contains("certificate_required") == true, "\(unknown?.detail ?? "")")
        #expect(unknown?.detail.hasSuffix("whether it wants tls.client_cert") == true)
    }

    @Test("a file that cannot be used is named, and one that changes is read again")
    func optionFiles() async throws {
        let origin = try UpgradingOverTLS(folder, files)
        let rig = try Rig()
        defer { rig.close() }
        let absent = folder.file("absent.pem")
        let broken = try folder.write("broken.pem", "no certificate")
        for tls in [
            TLSOptions(ca: absent), TLSOptions(ca: broken), TLSOptions(ca: files.authority, clientCertificate: absent),
            TLSOptions(ca: files.authority, clientCertificate: files.clientCertificate, clientKey: absent),
            TLSOptions(ca: files.authority, clientCertificate: files.clientCertificate, clientKey: files.key),
        ] {
            let error = await #expect(throws: UpstreamError.self) {
                try await upgrade("\(origin.url)/echo", tls, on: rig)
            }
            #expect(error?.kind == .tlsFile)
            let name = tls.clientKey ?? tls.clientCertificate ?? tls.ca ?? ""
            #expect(error?.detail.contains(name) == true)
        }
        let other = try TLSFiles(in: folder, "other")
        let changing = try folder.write("changing.pem", readText(other.authority))
        #expect(try await run("\(origin.url)/echo", TLSOptions(ca: changing), on: rig).error?.kind == .certificate)
        _ = try folder.write("changing.pem", readText(files.authority) + "\n")
        #expect(try await run("\(origin.url)/echo", TLSOptions(ca: changing), on: rig).head?.status == 101)
    }

    @Test("another answer than a 101 comes as any other does, held back where its consumer holds back")
    func anotherAnswer() async throws {
        let origin = try UpgradingOverTLS(folder, files)
        let rig = try Rig()
        defer { rig.close() }
        let request = try await upgrade("\(origin.url)/plain/\(1 << 20)", trusted, on: rig)
        let (heard, number) = rig.watch(request) { $0.onBytes = { _, _ in .pause } }
        let isOver = blockUntil {
            for _ in 0..<1000 where !heard.wait(0.001, until: { $0.isOver }) { rig.with(number) { $0.resume() } }
            return heard.read { $0.isOver }
        }
        #expect(isOver)
        #expect(heard.read { $0.isFinished && $0.bodyLength == 1 << 20 })
        for (target, isProven) in [("/until-said", true), ("/until-cut", false)] {
            let heard = try await run(origin.url + target, trusted, on: rig)
            #expect(heard.isFinished && heard.text == "to the end")
            #expect(heard.isEndProven == isProven)
        }
        #expect(try await run("\(origin.url)/none", trusted, on: rig).error?.kind == .closed)
        #expect(Descriptors.areGone(to: origin.port))
    }

    @Test("bytes before the request are no answer to it")
    func speaksFirst() async throws {
        let origin = try UpgradingOverTLS(folder, files, version: "1.2", speaksFirst: true)
        let rig = try Rig()
        defer { rig.close() }
        let heard = try await run("\(origin.url)/plain/256", trusted, on: rig)
        // They come with the end of the handshake, or later, when they pass for an answer.
        #expect(heard.error?.kind == .closed || heard.text == "evil")
    }

    @Test("the deadline of the connection is for the handshake, too; a peer without TLS has none")
    func noHandshake() async throws {
        // It waits for the end of a head, which a ClientHello is not.
        let silent = try ScriptedOrigin { _ in .answer("never") }
        let rig = try Rig()
        defer { rig.close() }
        let request = try await upgrade(
            "https://127.0.0.1:\(silent.port)/",
            trusted,
            on: rig,
            timeouts: Timeouts(connect: 300_000_000)
        )
        #expect(rig.run(request).error?.kind == .timeout(.connect))
        let plain = try NginxOrigin()
        let error = try await run("https://127.0.0.1:\(plain.port)/", trusted, on: rig).error
        #expect(error?.kind == .tls)
        #expect(error?.isUnsent == true)
        #expect(Descriptors.areGone(to: silent.port) && Descriptors.areGone(to: plain.port))
    }
}
