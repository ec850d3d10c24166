// What the error of a handshake says for those who decide about certificates.

import HTTPWire
import TestSupport
import Testing
import Upstream

@Suite struct ChallengeTests {
    private let folder: TemporaryFolder
    private let files: TLSFiles

    init() throws {
        folder = try TemporaryFolder("upstream-challenge")
        files = try TLSFiles(in: folder)
    }

    private func asking(_ change: (inout TLSOptions) -> Void = { _ in }) -> TLSOptions {
        var tls = TLSOptions()
        tls.tellsChallenges = true
        change(&tls)
        return tls
    }

    private func der(_ file: String) throws -> [UInt8] {
        let text = try Shell.must("sh", ["-c", "openssl x509 -in \(file) -outform der | od -An -v -tu1"])
        return text.split(whereSeparator: \.isWhitespace).compactMap { UInt8($0) }
    }

    @Test func `an authority that is not known is told with the certificates and the key`() throws {
        let origin = try NginxOrigin(tls: files)
        let rig = try Rig()
        defer { rig.close() }
        func ask(_ tls: TLSOptions) -> Heard { rig.run(UpstreamRequest(url: "\(origin.url)/", tls: tls)) }
        for _ in 0..<2 {
            let error = try #require(ask(asking()).error)
            #expect(error.kind == .certificate)
            let challenge = try #require(error.challenge)
            #expect(challenge.reason == .unknownAuthority)
            #expect(challenge.pin == (try files.pin))
            #expect(challenge.certificates == [try der(files.certificate)])
            #expect(ask(TLSOptions()).error?.challenge == nil, "nobody wants to decide")
        }
        // That very key, and no other one, is let in where nothing is verified.
        let pin = try files.pin
        #expect(ask(asking { ($0.verify, $0.pins) = (false, [pin]) }).head != nil)
        let other = try TLSFiles(in: folder, "other").pin
        let refused = ask(asking { ($0.verify, $0.pins) = (false, [other]) })
        #expect(refused.error?.kind == .certificate)
        #expect(refused.error?.challenge == nil, "a pin is no matter of opinion")
    }

    @Test func `a name that is another one is told`() throws {
        let origin = try NginxOrigin(tls: files)
        let rig = try Rig { _, port in SystemResolver.lookup("127.0.0.1", port: port) }
        defer { rig.close() }
        let tls = asking { $0.ca = files.authority }
        let heard = rig.run(UpstreamRequest(url: "https://other.test:\(origin.port)/", tls: tls))
        #expect(heard.error?.kind == .certificate)
        #expect(heard.error?.challenge?.reason == .otherName)
        #expect(heard.error?.challenge?.pin == (try files.pin))
    }

    @Test func `one that has expired is told with its time`() throws {
        try files.expire()
        let origin = try NginxOrigin(tls: files)
        let rig = try Rig()
        defer { rig.close() }
        let tls = asking { $0.ca = files.authority }
        let heard = rig.run(UpstreamRequest(url: "\(origin.url)/", tls: tls))
        guard case .expired(let time) = heard.error?.challenge?.reason else {
            Issue.record("\(heard.error as Any)")
            return
        }
        #expect(heard.error?.detail.contains(HTTPDate.format(time)) == true)
    }

    @Test func `an origin that asks for a certificate is told of before anything is sent`() throws {
        let origin = try NginxOrigin(tls: files, clientCertificates: true)
        try origin.write("a.txt", "known")
        let rig = try Rig()
        defer { rig.close() }
        func ask(_ tls: TLSOptions) -> Heard { rig.run(UpstreamRequest(url: "\(origin.url)/a.txt", tls: tls)) }
        let error = try #require(ask(asking { $0.ca = files.authority }).error)
        #expect(error.kind == .tls)
        #expect(error.isUnsent)
        #expect(error.challenge?.reason == .wantsCertificate)
        #expect(error.challenge?.pin == (try files.pin))
        #expect(origin.log.isEmpty)
        #expect(ask(asking { ($0.ca, $0.declinesCertificate) = (files.authority, true) }).head?.status == 400)
        let shown = asking {
            ($0.ca, $0.clientCertificate, $0.clientKey) = (files.authority, files.clientCertificate, files.clientKey)
        }
        #expect(ask(shown).text == "known")
        // What is wrong with the origin's own certificate comes first.
        #expect(ask(asking()).error?.challenge?.reason == .unknownAuthority)
        #expect(ask(asking { $0.verify = false }).error?.challenge?.reason == .wantsCertificate)
    }
}
