// A certification authority, a server certificate and a client certificate, made afresh by openssl.

import Foundation

/// PEM files in a folder; the server certificate names 127.0.0.1 and localhost.
package struct TLSFiles: Sendable {
    package let folder: String
    package var authority: String { "\(folder)/ca.pem" }
    package var certificate: String { "\(folder)/server.pem" }
    package var key: String { "\(folder)/server.key" }
    package var clientCertificate: String { "\(folder)/client.pem" }
    package var clientKey: String { "\(folder)/client.key" }

    /// - Throws: `TestSupportError.failed` with openssl's own words.
    package init(in folder: TemporaryFolder, _ name: String = "tls") throws {
        self.folder = try folder.folder(name)
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        try openssl(
            ["req", "-x509", "-days", "2", "-subj", "/CN=Test authority", "-keyout", "ca.key", "-out", "ca.pem"] + curve
        )
        try folder.write("\(name)/server.ext", "subjectAltName=IP:127.0.0.1,DNS:localhost\n")
        try folder.write("\(name)/client.ext", "extendedKeyUsage=clientAuth\n")
        for name in ["server", "client"] {
            try openssl(["req", "-subj", "/CN=\(name)", "-keyout", "\(name).key", "-out", "\(name).csr"] + curve)
            try openssl([
                "x509", "-req", "-days", "2", "-in", "\(name).csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-extfile", "\(name).ext", "-out", "\(name).pem",
            ])
        }
    }

    private func openssl(_ arguments: [String]) throws {
        try Shell.must("openssl", arguments, folder: folder)
    }
}
