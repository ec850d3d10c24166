// The local authority and its leaves, and certificates as files have them.

import Testing

@testable import TLS

@Suite struct AuthorityTests {
    @Test func `an authority is what it was after its way through files`() throws {
        let made = try authority()
        #expect(made.certificate.isAuthority)
        #expect(made.certificate.subject == "CN=Drydock of a test")
        #expect(made.certificate.issuer == made.certificate.subject)
        #expect(made.certificate.notBefore == now - 86_400)
        #expect(made.certificate.notAfter == now + 3_650 * 86_400)
        let key = try #require(made.keyPEM)
        let read = try LocalAuthority(certificate: Array(made.certificate.pem.utf8), key: Array(key.utf8))
        #expect(read.certificate.fingerprint == made.certificate.fingerprint)
        #expect(read.certificate.fingerprint.count == 32)
        let other = try #require(try authority().keyPEM)
        #expect(throws: CertificateError.mismatch) {
            try LocalAuthority(certificate: Array(made.certificate.pem.utf8), key: Array(other.utf8))
        }
    }

    @Test func `a leaf is for its host alone, and never outlives the authority`() throws {
        let made = try LocalAuthority(name: "Short", now: now, days: 3)
        let leaf = try made.leaf(for: .name("api.example.com"), key: PrivateKey(), now: now, days: 7)
        #expect(leaf.certificate.names == ["api.example.com"])
        #expect(leaf.certificate.issuer == "CN=Short")
        #expect(!leaf.certificate.isAuthority)
        #expect(leaf.certificate.notAfter == now + 3 * 86_400)
        let address = try #require(HostName("::1"))
        #expect(try made.leaf(for: address, key: PrivateKey(), now: now).certificate.names == ["::1"])
        // A name that is longer than a common name may be.
        let long = try #require(HostName(String(repeating: "a", count: 60) + ".example.com"))
        let named = try made.leaf(for: long, key: PrivateKey(), now: now).certificate
        #expect(named.names == [long.text])
        #expect(named.subject == "CN=Drydock")
    }

    @Test func `a leaf is no authority for another`() throws {
        let made = try authority()
        let key = try PrivateKey()
        let leaf = try made.leaf(for: .name("a.example"), key: key, now: now)
        #expect(throws: CertificateError.mismatch) {
            try LocalAuthority(certificate: Array(leaf.certificate.pem.utf8), key: Array((key.pem ?? "").utf8))
        }
    }

    @Test func `files are refused with what is wrong with them`() throws {
        let made = try authority()
        let leaf = try made.leaf(for: .name("a.example"), key: PrivateKey(), now: now)
        let pem = Array(leaf.certificate.pem.utf8)
        let key = Array((try PrivateKey().pem ?? "").utf8)
        #expect(throws: CertificateError.mismatch) { try TLSIdentity(chain: pem, key: key) }
        #expect(throws: CertificateError.noCertificate) { try TLSIdentity(chain: key, key: key) }
        #expect(throws: CertificateError.noCertificate) { try PEM.certificates(in: []) }
        #expect(throws: CertificateError.noKey) { try PEM.privateKey(in: pem) }
        #expect(throws: CertificateError.noKey) { try PEM.privateKey(in: []) }
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n"
        #expect(throws: CertificateError.password) { try PEM.privateKey(in: Array(encrypted.utf8)) }
        var spoiled = leaf.certificate.pem.split(separator: "\n").map(String.init)
        spoiled[2] = String(spoiled[2].reversed())
        #expect {
            try PEM.certificates(in: Array(spoiled.joined(separator: "\n").utf8))
        } throws: { error in
            guard case .malformed = error as? CertificateError else { return false }
            return true
        }
        // A chain is read as a whole, in its order.
        let chain = try PEM.certificates(in: pem + Array(made.certificate.pem.utf8))
        #expect(chain.map(\.subject) == ["CN=a.example", "CN=Drydock of a test"])
    }

    @Test func `an authority with constraints is trusted for the names below them alone`() throws {
        let systemNow = SessionTests.systemNow()
        let made = try LocalAuthority(
            name: "Constrained",
            constraints: [.name("example.com"), .address([127, 0, 0, 1])],
            now: systemNow
        )
        let key = try PrivateKey()
        let serving = try TLSContext(tickets: nil) { host in
            try? made.leaf(for: host ?? .address([127, 0, 0, 1]), key: key, now: systemNow)
        }
        let asking = try TLSContext(asking: [], trust: .authorities([made.certificate]))
        for (host, isTrusted) in [
            (HostName.name("api.example.com"), true), (.name("example.com"), true), (.name("example.org"), false),
            (.address([127, 0, 0, 1]), true),
        ] {
            let pair = try Pair(serving, asking, for: host)
            #expect((pair.handshake().client == .finished) == isTrusted, "\(host.text)")
        }
    }
}
