// What programs are told to ask a proxy, and to trust the local authority, as lines for a terminal or a file.

/// Where programs find the daemon as a proxy: a TCP address at which clients speak plain.
package struct ProxyAddress: Sendable, Equatable {
    /// A name or an address, IPv6 in brackets; `localhost` stands for loopback, and for all addresses.
    package let host: String
    package let port: String

    /// The first fit one of addresses as a status and a configuration write them; nil if there is none.
    package init?(listeners: [String]) {
        for listener in listeners where !listener.hasPrefix("unix:") && !listener.hasPrefix("https://") {
            let address = listener.split(separator: "/").last.map(String.init) ?? listener
            guard let colon = address.lastIndex(of: ":") else { continue }
            let host = String(address[..<colon])
            let isHere = ["127.0.0.1", "[::1]", "0.0.0.0", "[::]", "*", "", "localhost"].contains(host)
            (self.host, port) = (isHere ? "localhost" : host, String(address[colon...].dropFirst()))
            return
        }
        return nil
    }

    package var url: String { "http://\(host):\(port)" }
    /// The hosts that programs ask without the proxy.
    package static let exceptions = "localhost,127.0.0.1,::1"

    /// The host as another machine finds it: `other` where this one says `localhost`.
    fileprivate func host(from other: String) -> String { host == "localhost" ? other : host }
}

/// What one kind of program is told.
package struct ClientLines: Sendable, Equatable {
    /// The name by which it is asked for.
    package let name: String
    /// What it is for.
    package let title: String
    /// Lines that can be typed, or put into a file as they are; `#` begins what is no command.
    package let lines: [String]
}

extension ClientLines {
    /// How each program is told of an authority, in the order in which they are shown.
    /// - Parameter certificate: the absolute path of the authority's certificate.
    package static func all(certificate: String) -> [ClientLines] {
        programs(nil, certificate).filter { !$0.isShell && !$0.trust.isEmpty }.map {
            ClientLines(name: $0.name, title: $0.trustTitle ?? $0.title, lines: $0.trust)
        }
    }

    /// How each program is told of a proxy, in the order in which they are shown; the first one is for every POSIX shell.
    /// - Parameter certificate: the absolute path of the authority's certificate; nil if it need not be trusted.
    package static func environment(_ proxy: ProxyAddress, certificate: String?) -> [ClientLines] {
        programs(proxy, certificate).filter { !$0.proxy.isEmpty }.map {
            ClientLines(name: $0.name, title: $0.title, lines: $0.proxy + $0.trust)
        }
    }

    /// The names of the programs that ``environment(_:certificate:)`` has.
    package static let names =
        ProxyAddress(listeners: ["localhost:8080"]).map {
            environment($0, certificate: nil).map(\.name)
        } ?? []

    /// A path or a URL as one word of a shell.
    static func quoted(_ path: String) -> String {
        let isPlain = path.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "-"), UInt8(ascii: ":"):
                true
            default: false
            }
        }
        return isPlain
            ? path : "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}

// MARK: - The programs

/// A program, and how it is told of a proxy and of an authority; empty where it is told by other means.
private struct ClientProgram {
    let name: String
    let title: String
    var proxy: [String] = []
    var trust: [String] = []
    /// What the lines of `trust` alone are for, where that is more than `title` says.
    var trustTitle: String?
    /// Whether its lines are those of every program that reads the environment.
    var isShell = false
}

extension ClientLines {
    /// What the programs that replace the system's authorities by a file call it, and Node.js, which adds one.
    private static let trustVariables = [
        "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS",
    ]

    /// The table of programs.
    private static func programs(_ proxy: ProxyAddress?, _ certificate: String?) -> [ClientProgram] {
        let trust = Trust(certificate)
        let variables = [
            ("http_proxy", proxy?.url), ("https_proxy", proxy?.url), ("no_proxy", ProxyAddress.exceptions),
        ]
        let words = variables.compactMap { name, value in value.map { "\(name)=\(quoted($0))" } }
        let environment = proxy == nil ? [] : ["export " + words.joined(separator: " ")]
        func told(_ lines: (ProxyAddress) -> [String]) -> [String] { proxy.map(lines) ?? [] }
        return [
            ClientProgram(
                name: "shell",
                title: "sh, bash and zsh, and what reads the environment",
                proxy: environment,
                trust: trustVariables.flatMap { trust.export([$0]) },
                isShell: true
            ),
            ClientProgram(
                name: "fish",
                title: "fish",
                proxy: told { _ in variables.map { "set -gx \($0.0) \(quoted($0.1 ?? ""))" } },
                trust: trust { path in trustVariables.map { "set -gx \($0) \(path)" } },
                isShell: true
            ),
            ClientProgram(
                name: "curl",
                title: "curl, and what uses libcurl",
                proxy: environment,
                trust: trust.export(["CURL_CA_BUNDLE"])
            ),
            ClientProgram(
                name: "git",
                title: "git",
                proxy: told { ["git config --global http.proxy \(quoted($0.url))"] },
                trust: trust { ["git config --global http.sslCAInfo \($0)"] }
            ),
            ClientProgram(
                name: "python",
                title: "Python: requests, httpx, pip",
                proxy: environment,
                trust: trust.export(["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT"])
            ),
            ClientProgram(
                name: "pip",
                title: "pip, in its own settings",
                proxy: told { ["pip config set global.proxy \(quoted($0.url))"] },
                trust: trust { ["pip config set global.cert \($0)"] }
            ),
            ClientProgram(
                name: "node",
                title: "Node.js 22.21, 24 and later",
                proxy: told { _ in
                    environment
                        + ["# Node.js 22.21, 24 and later; older ones ignore it", "export NODE_USE_ENV_PROXY=1"]
                },
                trust: trust.export(["NODE_EXTRA_CA_CERTS"]),
                trustTitle: "Node.js: in addition to its own authorities"
            ),
            ClientProgram(
                name: "npm",
                title: "npm, in its own settings",
                proxy: told { proxy in
                    ["proxy", "https-proxy"].map { "npm config set \($0) \(quoted(proxy.url))" }
                        + ["npm config set noproxy \(quoted(ProxyAddress.exceptions))"]
                },
                trust: trust { ["npm config set cafile \($0)"] }
            ),
            ClientProgram(
                name: "java",
                title: "Java",
                proxy: told { ["export JAVA_TOOL_OPTIONS='\(properties($0, "-D").joined(separator: " "))'"] },
                trust: trust.keytool,
                trustTitle: "Java: into the authorities of its runtime"
            ),
            ClientProgram(
                name: "gradle",
                title: "Gradle, and the runtime of Java that it uses",
                proxy: told { ["# in ~/.gradle/gradle.properties"] + properties($0, "systemProp.") },
                trust: trust { _ in ["# in a shell"] + trust.keytool }
            ),
            ClientProgram(name: "ruby", title: "Ruby", proxy: environment, trust: trust.export(["SSL_CERT_FILE"])),
            ClientProgram(
                name: "go",
                title: "Go, on Linux",
                proxy: environment,
                trust: trust.export(["SSL_CERT_FILE"])
            ),
            ClientProgram(
                name: "apt",
                title: "apt: in a file such as /etc/apt/apt.conf.d/95drydock",
                proxy: told { proxy in ["http", "https"].map { "Acquire::\($0)::Proxy \"\(proxy.url)\";" } },
                trust: certificate.map { ["Acquire::https::CaInfo \"\($0)\";"] } ?? []
            ),
            ClientProgram(
                name: "docker",
                title: "a container",
                proxy: told { proxy in
                    let url = "http://\(proxy.host(from: "host.docker.internal")):\(proxy.port)"
                    return [
                        "# 'listen' and 'clients' have to admit the network of the containers, such as 172.17.0.0/16; for IMAGE, its name",
                        "docker run --add-host host.docker.internal:host-gateway -e http_proxy=\(url) -e https_proxy=\(url) IMAGE",
                    ]
                },
                trust: certificate.map {
                    [
                        "# copy \($0) beside the Dockerfile as drydock-ca.crt",
                        "COPY drydock-ca.crt /usr/local/share/ca-certificates/drydock-ca.crt",
                        "RUN apt-get update && apt-get install -y ca-certificates && update-ca-certificates",
                    ]
                } ?? [],
                trustTitle: "a container: in its Dockerfile, for images of Debian and Ubuntu"
            ),
            ClientProgram(
                name: "browser",
                title: "Chromium; the settings of Firefox have a manual proxy",
                proxy: told { ["chromium --proxy-server=\(quoted($0.url))"] },
                trust: trust { _ in
                    ["# of both, for the folder of \(certificate ?? "")", "drydock ca trust --store nss"]
                }
            ),
            ClientProgram(
                name: "android",
                title: "an Android emulator",
                proxy: told { ["adb shell settings put global http_proxy \($0.host(from: "10.0.2.2")):\($0.port)"] },
                trust: trust { path in
                    [
                        "adb push \(path) /sdcard/Download/drydock-ca.pem",
                        "# then on the device: Settings, Security, Install a certificate, CA certificate",
                    ]
                },
                trustTitle:
                    "an Android emulator: apps trust it if their network security config has <certificates src=\"user\"/>"
            ),
            ClientProgram(
                name: "ios",
                title: "an iOS simulator, from the Mac that runs it",
                proxy: told { proxy in
                    let host = proxy.host(from: "HOST")
                    return (host == "HOST" ? ["# for HOST, the address of the machine of the daemon"] : [])
                        + ["webproxy", "securewebproxy"].map { "networksetup -set\($0) Wi-Fi \(host) \(proxy.port)" }
                },
                trust: trust { ["xcrun simctl keychain booted add-root-cert \($0)"] }
            ),
        ]
    }

    /// The properties of Java's proxies, each behind a prefix.
    private static func properties(_ proxy: ProxyAddress, _ prefix: String) -> [String] {
        ["http", "https"].flatMap { scheme in
            ["\(prefix)\(scheme).proxyHost=\(proxy.host)", "\(prefix)\(scheme).proxyPort=\(proxy.port)"]
        }
    }
}

/// The lines about a certificate; none without one.
private struct Trust {
    /// The certificate's path as one word of a shell.
    private let path: String?

    init(_ certificate: String?) { path = certificate.map(ClientLines.quoted) }

    func callAsFunction(_ lines: (String) -> [String]) -> [String] { path.map(lines) ?? [] }

    func export(_ names: [String]) -> [String] { self { path in names.map { "export \($0)=\(path)" } } }

    var keytool: [String] {
        self { ["keytool -importcert -noprompt -cacerts -storepass changeit -alias drydock -file \($0)"] }
    }
}
