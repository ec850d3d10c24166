// A certification authority, a server certificate and a client certificate, made afresh by openssl.

import Foundation

/// PEM files in a folder; the server certificate names 127.0.0.1, localhost and further hosts.
package struct TLSFiles: Sendable {
    package let folder: String
    package var authority: String { "\(folder)/ca.pem" }
    package var certificate: String { "\(folder)/server.pem" }
    package var key: String { "\(folder)/server.key" }
    package var clientCertificate: String { "\(folder)/client.pem" }
    package var clientKey: String { "\(folder)/client.key" }

    /// - Throws: `TestSupportError.failed` with openssl's own words.
    package init(in folder: TemporaryFolder, _ name: String = "tls", hosts: [String] = []) throws {
        self.folder = try folder.folder(name)
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        try openssl(
            ["req", "-x509", "-days", "2", "-subj", "/CN=Test authority", "-keyout", "ca.key", "-out", "ca.pem"] + curve
        )
        let more = hosts.map { ",DNS:\($0)" }.joined()
        try folder.write("\(name)/server.ext", "subjectAltName=IP:127.0.0.1,DNS:localhost\(more)\n")
        try folder.write("\(name)/client.ext", "extendedKeyUsage=clientAuth\n")
        for name in ["server", "client"] {
            try openssl(["req", "-subj", "/CN=\(name)", "-keyout", "\(name).key", "-out", "\(name).csr"] + curve)
            try openssl([
                "x509", "-req", "-days", "2", "-in", "\(name).csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-extfile", "\(name).ext", "-out", "\(name).pem",
            ])
        }
    }

    /// The server certificate's validity: it ended yesterday.
    package func expire() throws {
        try openssl([
            "x509", "-req", "-days", "-1", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-extfile", "server.ext", "-out", "server.pem",
        ])
    }

    /// The server certificate's validity: it begins in 2040.
    package func postpone() throws {
        let files = URL(fileURLWithPath: folder)
        let settings = """
            [ca]
            default_ca = own
            [own]
            database = index.txt
            rand_serial = yes
            new_certs_dir = .
            default_md = sha256
            policy = any
            [any]
            commonName = supplied
            """
        for (name, text) in [("ca.cnf", settings), ("index.txt", "")] {
            try text.write(to: files.appendingPathComponent(name), atomically: true, encoding: .utf8)
        }
        try openssl([
            "ca", "-batch", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "ca.key", "-in", "server.csr", "-out",
            "server.pem", "-startdate", "20400101000000Z", "-enddate", "20410101000000Z", "-extfile", "server.ext",
            "-notext",
        ])
    }

    /// The server's public key, as configurations and curl pin it.
    package var pin: String {
        get throws {
            let steps = [
                "openssl x509 -in server.pem -noout -pubkey", "openssl pkey -pubin -outform der",
                "openssl dgst -sha256 -binary", "openssl base64 -A",
            ]
            return try "sha256//" + Shell.must("sh", ["-c", steps.joined(separator: " | ")], folder: folder)
        }
    }

    private func openssl(_ arguments: [String]) throws {
        try Shell.must("openssl", arguments, folder: folder)
    }
}
