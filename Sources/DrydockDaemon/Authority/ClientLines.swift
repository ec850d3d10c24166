// What programs need to trust the local authority, as lines for a terminal or a file.

/// How one kind of program is told of an authority.
package struct ClientLines: Sendable, Equatable {
    /// The name by which it is asked for.
    package let name: String
    /// What it is for.
    package let title: String
    /// Lines that can be typed, or put into a file as they are; `#` begins what is no command.
    package let lines: [String]
}

extension ClientLines {
    /// For each program, in the order in which they are shown.
    /// - Parameter certificate: the absolute path of the authority's certificate.
    package static func all(certificate: String) -> [ClientLines] {
        let path = quoted(certificate)
        return [
            ClientLines(name: "curl", title: "curl, and what uses libcurl", lines: ["export CURL_CA_BUNDLE=\(path)"]),
            ClientLines(name: "git", title: "git", lines: ["git config --global http.sslCAInfo \(path)"]),
            ClientLines(
                name: "python",
                title: "Python: requests, httpx, pip",
                lines: [
                    "export REQUESTS_CA_BUNDLE=\(path)", "export SSL_CERT_FILE=\(path)", "export PIP_CERT=\(path)",
                ]
            ),
            ClientLines(
                name: "node",
                title: "Node.js: in addition to its own authorities",
                lines: ["export NODE_EXTRA_CA_CERTS=\(path)"]
            ),
            ClientLines(
                name: "java",
                title: "Java: into the authorities of its runtime",
                lines: ["keytool -importcert -noprompt -cacerts -storepass changeit -alias drydock -file \(path)"]
            ),
            ClientLines(name: "ruby", title: "Ruby", lines: ["export SSL_CERT_FILE=\(path)"]),
            ClientLines(name: "go", title: "Go, on Linux", lines: ["export SSL_CERT_FILE=\(path)"]),
            ClientLines(
                name: "docker",
                title: "a container: in its Dockerfile, for images of Debian and Ubuntu",
                lines: [
                    "# copy \(certificate) beside the Dockerfile as drydock-ca.crt",
                    "COPY drydock-ca.crt /usr/local/share/ca-certificates/drydock-ca.crt",
                    "RUN apt-get update && apt-get install -y ca-certificates && update-ca-certificates",
                ]
            ),
            ClientLines(
                name: "android",
                title:
                    "an Android emulator: apps trust it if their network security config has <certificates src=\"user\"/>",
                lines: [
                    "adb push \(path) /sdcard/Download/drydock-ca.pem",
                    "# then on the device: Settings, Security, Install a certificate, CA certificate",
                ]
            ),
            ClientLines(
                name: "ios",
                title: "an iOS simulator, from the Mac that runs it",
                lines: ["xcrun simctl keychain booted add-root-cert \(path)"]
            ),
        ]
    }

    /// A path as one word of a shell.
    static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
        return isPlain
            ? path : "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
