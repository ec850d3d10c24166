// An origin whose public key is pinned, as nginx shows it.

import Foundation
import TestSupport
import Testing

extension Scenarios {
    @Suite(.timeLimit(.minutes(10))) struct Pins {
        @Test func onlyAPinnedKeyIsAsked() throws {
            let folder = try TemporaryFolder()
            let files = try TLSFiles(in: folder)
            let other = try TLSFiles(in: folder, "other")
            let nginx = try NginxOrigin(tls: files)
            try nginx.write("a.txt", "over TLS")
            let (right, wrong) = (try files.pin, try other.pin)
            let daemon = try Daemon(
                services(
                    service("right", nginx.url, "tls: { ca: \(files.authority), pin: \(right) }"),
                    service("either", nginx.url, "tls: { ca: \(files.authority), pin: [\(wrong), \(right)] }"),
                    service("wrong", nginx.url, "tls: { ca: \(files.authority), pin: \(wrong) }"),
                    service("unverified", nginx.url, "tls: { verify: false, pin: \(wrong) }"),
                    service("untrusted", nginx.url, "tls: { pin: \(right) }")
                )
            )
            // The connections that are open already do not let the others in.
            for _ in 0..<2 {
                for name in ["right", "either"] { #expect(try daemon.exchange("/\(name)/a.txt").text == "over TLS") }
                for name in ["wrong", "unverified", "untrusted"] {
                    let refused = try daemon.exchange("/\(name)/a.txt")
                    expectProblem(refused, 502)
                    #expect(refused.field("Proxy-Status")?.contains("error=tls_certificate_error") == true)
                    #expect(refused.text.contains("tls.pin") == (name != "untrusted"), "\(refused.text)")
                }
            }
        }
    }
}
