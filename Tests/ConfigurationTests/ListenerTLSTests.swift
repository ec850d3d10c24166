// Where clients speak TLS, the files of certificates and keys, and what is wrong with them.

import Foundation
import TLS
import Testing

@testable import Configuration

@Suite struct ListenerTLSTests {
    /// A folder with a certificate and its key, of an authority whose certificate is `ca.pem`.
    private static func folder(days: Int64 = 100) throws -> Folder {
        let folder = try Folder()
        // A minute ago, so that a day that has begun is not a whole one.
        let now = Int64(Date().timeIntervalSince1970) - 60
        let authority = try LocalAuthority(name: "Of a test", now: now)
        let key = try PrivateKey()
        let identity = try authority.leaf(for: .name("api.example.com"), key: key, now: now, days: days)
        try folder.write("server.pem", identity.certificate.pem + authority.certificate.pem)
        try folder.write("server.key", key.pem ?? "")
        try folder.write("ca.pem", authority.certificate.pem)
        try folder.write("other.key", PrivateKey().pem ?? "")
        for name in ["server.key", "other.key"] { chmod("\(folder.path)/\(name)", 0o600) }
        return folder
    }

    private static func text(_ tls: String, _ folder: Folder? = nil) -> String {
        "listen: [localhost:8080, \"https://localhost:8443\", \"any://[::1]:8444\"]\ntls: \(tls)\n".replacing(
            "./",
            with: (folder?.path ?? ".") + "/"
        )
    }

    @Test func `addresses say how clients speak there`() throws {
        let loaded = try load(Self.text("local"))
        #expect(loaded.listen.map(\.scheme) == [.http, .https, .any])
        #expect(loaded.listen.map(\.description) == ["localhost:8080", "https://localhost:8443", "any://[::1]:8444"])
        #expect(loaded.tls == ListenerTLS(isLocal: true))
        #expect(loaded.warnings.isEmpty)
        #expect(try load("listen: [\"http://localhost:8080\"]").listen.map(\.description) == ["localhost:8080"])
        expectError("listen: [\"https://unix:/run/a.sock\"]\ntls: local\n", "1:10", ["unix socket"])
        expectError("listen: [\"https://localhost\"]\ntls: local\n", "1:10", ["has no port"])
        expectError(
            "listen: [localhost:80, \"https://localhost:80\"]\ntls: local\n",
            "1:24",
            ["listed twice", "by localhost:80 too"]
        )
        expectError(
            "listen: [\"https://localhost:8443\"]\n",
            "1:10",
            ["https://localhost:8443 speaks TLS", "tls: local"]
        )
        let unused = try load("tls: local")
        #expect(unused.warnings.map(\.message).count == 1)
        #expect(unused.warnings.first?.message.contains("'listen' has none") == true)
        #expect(try load("").tls == nil)
    }

    @Test func `certificates of files are read with their keys`() throws {
        let folder = try Self.folder()
        let one = try load(Self.text("{ certificate: ./server.pem, key: ./server.key }", folder))
        let files = TLSFiles(certificate: folder.path + "/server.pem", key: folder.path + "/server.key")
        #expect(one.tls == ListenerTLS(files: [files]))
        #expect(try files.identity().certificate.names == ["api.example.com"])
        #expect(try files.identity().chain.count == 1)
        #expect(one.answerFiles == [files.certificate, files.key])
        let both = try load(Self.text("[{ certificate: ./server.pem, key: ./server.key }, local]", folder))
        #expect(both.tls == ListenerTLS(files: [files], isLocal: true))
        let clients = try load(Self.text("{ authority: local, clients: { ca: ./ca.pem, require: false } }", folder))
        #expect(
            clients.tls
                == ListenerTLS(isLocal: true, clientAuthorities: folder.path + "/ca.pem", requiresClients: false)
        )
        let short = try load(Self.text("[local, { clients: ./ca.pem }]", folder))
        #expect(
            short.tls == ListenerTLS(isLocal: true, clientAuthorities: folder.path + "/ca.pem", requiresClients: true)
        )
    }

    @Test func `what cannot be used says why, and where`() throws {
        let folder = try Self.folder()
        for (tls, position, parts) in [
            ("{ certificate: ./server.pem }", "2:6", ["has no 'key'"]),
            ("{ key: ./server.key }", "2:6", ["has no 'certificate'"]),
            ("{}", "2:6", ["has no certificate"]),
            ("[local, local]", "2:14", ["there twice"]),
            ("{ authority: local, key: ./server.key }", "2:31", ["exclude each other"]),
            ("{ certificate: ./server.pem, key: ./none.key }", "2:", ["'tls.key'", "does not exist"]),
            ("{ certificate: ./server.pem, key: ./other.key }", "2:", ["'tls.key'", "not that of the certificate"]),
            (
                "{ certificate: ./server.key, key: ./server.key }", "2:",
                ["'tls.certificate'", "there is no certificate"]
            ),
            ("{ certificate: ./server.pem, key: ./ca.pem }", "2:", ["every user", "chmod 600"]),
            ("[local, { clients: ./other.key }]", "2:", ["'tls.clients.ca'", "there is no certificate"]),
            (
                "[{ clients: ./ca.pem }, { authority: local, clients: ./ca.pem }]", "2:",
                ["'tls.clients' is there twice"]
            ),
        ] as [(String, String, [String])] {
            let found = errors(Self.text(tls, folder))
            #expect(found.first?.hasPrefix(position) == true, "\(tls): \(found)")
            for part in parts { #expect(found.first?.contains(part) == true, "\(tls): \(found)") }
        }
        chmod(folder.path + "/server.key", 0o644)
        let open = errors(Self.text("{ certificate: ./server.pem, key: ./server.key }", folder))
        #expect(open.count == 1 && open[0].contains("can be read by every user"))
    }

    @Test func `a certificate that ends soon is a warning`() throws {
        for (days, words) in [
            (Int64(100), nil), (13, "expires in 12 days"), (2, "expires in 1 day"), (-1, "has expired"),
        ] as [(Int64, String?)] {
            let folder = try Self.folder(days: days)
            let loaded = try load(Self.text("{ certificate: ./server.pem, key: ./server.key }", folder))
            #expect(loaded.warnings.count == (words == nil ? 0 : 1))
            if let words {
                #expect(
                    loaded.warnings.first?.message.contains("'tls.certificate' \(words) (CN=api.example.com)") == true,
                    "\(loaded.warnings)"
                )
            }
        }
    }

    @Test func `the authority of a service is in its state, and that of a user in theirs`() {
        #expect(
            DefaultAuthority.folder(environment: ["STATE_DIRECTORY": "/var/lib/private/d:/x"], user: 0)
                == "/var/lib/private/d/ca"
        )
        #expect(DefaultAuthority.folder(environment: ["HOME": "/root"], user: 0) == "/var/lib/drydock/ca")
        #expect(DefaultAuthority.folder(environment: ["HOME": "/home/a"], user: 5) == "/home/a/.local/state/drydock/ca")
        #expect(
            DefaultAuthority.folder(environment: ["HOME": "/home/a", "XDG_STATE_HOME": "/s"], user: 5)
                == "/s/drydock/ca"
        )
        #expect(DefaultAuthority.folder(environment: ["HOME": "a"], user: 5) == nil)
    }
}
