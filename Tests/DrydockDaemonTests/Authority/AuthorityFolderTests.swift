// The folder of the local authority, the stores that trust it, and the lines for programs.

import Foundation
import Synchronization
import TLS
import Testing

@testable import DrydockDaemon

@Suite struct AuthorityFolderTests {
    private static let now: Int64 = 1_790_000_000

    private final class Folder {
        let path = FileManager.default.temporaryDirectory.appending(path: "drydock-authority-\(UUID().uuidString)").path

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(atPath: path) }

        func mode(_ name: String) -> UInt16? {
            (try? FileManager.default.attributesOfItem(atPath: path + "/" + name))?[.posixPermissions] as? UInt16
        }
    }

    @Test func `what is made is read, and its key is its owner's alone`() throws {
        let folder = try Folder()
        let authority = AuthorityFolder(folder.path + "/state/ca")
        #expect(throws: AuthorityError.absent(authority.path)) { try authority.load() }
        #expect(throws: AuthorityError.absent(authority.path)) { try authority.certificate() }
        let made = try authority.create(now: Self.now)
        #expect(try authority.load().certificate.fingerprint == made.certificate.fingerprint)
        #expect(try authority.certificate().fingerprint == made.certificate.fingerprint)
        #expect(folder.mode("state/ca/ca.key") == 0o600)
        #expect(folder.mode("state/ca/ca.pem") == 0o644)
        #expect(try String(contentsOfFile: authority.path + "/version", encoding: .utf8) == "drydock 1 ca\n")
        #expect(made.certificate.subject.hasPrefix("CN=Drydock local CA 2026-09-21"))
        #expect(throws: AuthorityError.present(authority.path)) { try authority.create(now: Self.now) }
        chmod(authority.keyPath, 0o640)
        #expect(throws: AuthorityError.open(authority.keyPath)) { try authority.load() }
    }

    @Test func `a folder of something else is left as it is, and half of one is made whole`() throws {
        let folder = try Folder()
        try Data("x".utf8).write(to: URL(filePath: folder.path + "/harbour.jpg"))
        let foreign = AuthorityFolder(folder.path)
        #expect(throws: AuthorityError.foreign(path: folder.path, found: "harbour.jpg")) {
            try foreign.create(now: Self.now)
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["harbour.jpg"])
        let half = AuthorityFolder(folder.path + "/half")
        try FileManager.default.createDirectory(atPath: half.path, withIntermediateDirectories: true)
        try Data("drydock 1 ca\n".utf8).write(to: URL(filePath: half.path + "/version"))
        try Data("x".utf8).write(to: URL(filePath: half.path + "/ca.pem.new"))
        _ = try half.create(now: Self.now)
        _ = try half.load()
    }

    @Test func `another certificate than that of the key is no authority`() throws {
        let folder = try Folder()
        let (one, two) = (AuthorityFolder(folder.path + "/one"), AuthorityFolder(folder.path + "/two"))
        _ = try one.create(now: Self.now)
        _ = try two.create(now: Self.now)
        try Data(contentsOf: URL(filePath: two.certificatePath)).write(to: URL(filePath: one.certificatePath))
        #expect {
            try one.load()
        } throws: { error in
            guard case .unusable(let path, _)? = error as? AuthorityError else { return false }
            return path == one.path
        }
    }

    @Test func `a path with spaces is one word of a line`() {
        #expect(ClientLines.quoted("/var/lib/drydock/ca/ca.pem") == "/var/lib/drydock/ca/ca.pem")
        #expect(ClientLines.quoted("/home/a b/it's.pem") == "'/home/a b/it'\\''s.pem'")
        let all = ClientLines.all(certificate: "/c.pem")
        #expect(
            all.map(\.name) == [
                "curl", "git", "python", "pip", "node", "npm", "java", "gradle", "ruby", "go", "apt", "docker",
                "browser", "android", "ios",
            ]
        )
        #expect(all.allSatisfy { $0.lines.contains { $0.contains("/c.pem") } })
        #expect(all[1].lines == ["git config --global http.sslCAInfo /c.pem"], "nothing leads to a proxy")
    }

    @Test(
        arguments: [
            (["127.0.0.1:8080", "[::1]:8080"], "http://localhost:8080"), (["localhost:1"], "http://localhost:1"),
            (["[::]:8080"], "http://localhost:8080"), (["*:8080"], "http://localhost:8080"),
            (["unix:/run/x", "https://127.0.0.1:8443", "192.0.2.7:81"], "http://192.0.2.7:81"),
            (["any://[2001:db8::7]:80"], "http://[2001:db8::7]:80"), (["unix:/run/x", "https://localhost:8443"], nil),
            ([], nil),
        ] as [([String], String?)]
    )
    func `a proxy is the first address at which clients speak plain`(listeners: [String], url: String?) {
        #expect(ProxyAddress(listeners: listeners)?.url == url)
    }

    @Test func `each program is led to the proxy, and trusts the authority where hosts are read`() throws {
        let here = try #require(ProxyAddress(listeners: ["localhost:8080"]))
        let far = try #require(ProxyAddress(listeners: ["192.0.2.7:81"]))
        let plain = ClientLines.environment(here, certificate: nil)
        #expect(plain.map(\.name) == ClientLines.names && plain.first?.name == "shell")
        #expect(plain.allSatisfy { $0.lines.contains { $0.contains("8080") } })
        #expect(!plain.contains { $0.lines.contains { $0.contains("CA") || $0.contains("cert") } })
        let read = ClientLines.environment(far, certificate: "/c d.pem")
        #expect(read.map(\.name) == ClientLines.names)
        #expect(
            read.map { $0.lines.joined(separator: " ") }.allSatisfy { $0.contains("192.0.2.7") && $0.contains("81") }
        )
        #expect(read.allSatisfy { $0.lines.contains { $0.contains("/c d.pem") } })
        func lines(_ name: String, _ all: [ClientLines]) -> [String] { all.first { $0.name == name }?.lines ?? [] }
        #expect(
            lines("shell", plain)
                == [
                    "export http_proxy=http://localhost:8080 https_proxy=http://localhost:8080 no_proxy='localhost,127.0.0.1,::1'"
                ]
        )
        #expect(lines("shell", read).contains("export NODE_EXTRA_CA_CERTS='/c d.pem'"))
        #expect(lines("android", plain) == ["adb shell settings put global http_proxy 10.0.2.2:8080"])
        #expect(lines("android", read).first == "adb shell settings put global http_proxy 192.0.2.7:81")
        #expect(lines("apt", read).last == "Acquire::https::CaInfo \"/c d.pem\";")
        #expect(lines("gradle", plain).contains("systemProp.https.proxyPort=8080"))
    }

    // MARK: - Stores

    /// Programs that note how they are called.
    private final class Programs: Sendable {
        let calls = Mutex<[String]>([])
        let known = Mutex<Set<String>>([])

        var runner: ProgramRunner {
            { [self] program, arguments in
                let words = ([program] + arguments).map { $0.hasPrefix("/tmp/drydock-ca-") ? "FILE" : $0 }
                let line = words.joined(separator: " ")
                calls.withLock { $0.append(line) }
                switch program {
                case "certutil", "keytool":
                    let name = arguments.first { $0.hasPrefix("drydock-") || $0.hasPrefix("debian:") } ?? ""
                    if ["-A", "-importcert"].contains(arguments[0]) {
                        known.withLock { _ = $0.insert(program + name) }
                    }
                    if ["-D", "-delete"].contains(arguments[0]) { known.withLock { _ = $0.remove(program + name) } }
                    return (
                        known.withLock { $0.contains(program + name) } || ["-D", "-delete"].contains(arguments[0])
                            ? 0 : 255, "said"
                    )
                case "update-ca-certificates": return (0, "done")
                default: return nil
                }
            }
        }
    }

    @Test func `trust reaches each store once, and untrust undoes it`() throws {
        let folder = try Folder()
        let certificate = try AuthorityFolder(folder.path + "/ca").create(now: Self.now).certificate
        let name = TrustStores.name(of: certificate)
        for path in [
            "root/usr/local/share/ca-certificates", "root/etc/ssl/certs/java", "home/.pki/nssdb",
            "home/.local/share/pki/nssdb", "home/.mozilla/firefox/x.default",
        ] {
            try FileManager.default.createDirectory(atPath: "\(folder.path)/\(path)", withIntermediateDirectories: true)
            if path.hasPrefix("home") { try Data().write(to: URL(filePath: "\(folder.path)/\(path)/cert9.db")) }
        }
        let cacerts = "\(folder.path)/root/etc/ssl/certs/java/cacerts"
        try Data().write(to: URL(filePath: cacerts))
        let programs = Programs()
        let stores = TrustStores(
            root: folder.path + "/root",
            environment: ["HOME": folder.path + "/home"],
            isRoot: true,
            run: programs.runner
        )
        let file = "\(folder.path)/root/usr/local/share/ca-certificates/\(name).crt"
        let first = stores.trust(certificate, TrustStores.Kind.allCases)
        #expect(first.map(\.isFailure) == [false, false, false, false, false])
        #expect(try String(contentsOfFile: file, encoding: .utf8) == certificate.pem)
        #expect(
            programs.calls.withLock { $0 } == [
                "update-ca-certificates", "certutil -L -d sql:\(folder.path)/home/.pki/nssdb -n \(name)",
                "certutil -A -d sql:\(folder.path)/home/.pki/nssdb -n \(name) -t C,, -i FILE",
                "certutil -L -d sql:\(folder.path)/home/.local/share/pki/nssdb -n \(name)",
                "certutil -L -d sql:\(folder.path)/home/.mozilla/firefox/x.default -n \(name)",
                "keytool -list -cacerts -storepass changeit -alias \(name)",
                "keytool -importcert -noprompt -cacerts -storepass changeit -alias \(name) -file FILE",
            ]
        )
        let second = stores.trust(certificate, TrustStores.Kind.allCases)
        #expect(second.allSatisfy { !$0.isFailure && $0.text.hasPrefix("they have it already") }, "\(second)")
        // Debian copies what the system has into Java's, and leaves it there.
        programs.known.withLock { _ = $0.insert("keytooldebian:\(name).pem") }
        programs.calls.withLock { $0 = [] }
        let gone = stores.distrust(certificate, [.system, .java])
        let common = "-keystore \(cacerts) -storepass changeit -alias debian:\(name).pem"
        #expect(
            programs.calls.withLock { $0 } == [
                "update-ca-certificates --fresh", "keytool -list \(common)", "keytool -delete \(common)",
                "keytool -list -cacerts -storepass changeit -alias \(name)", "keytool -list \(common)",
                "keytool -delete -cacerts -storepass changeit -alias \(name)",
            ]
        )
        #expect(
            gone.map(\.isFailure) == [false, false] && gone.allSatisfy { $0.text.hasPrefix("it is gone") },
            "\(gone)"
        )
        #expect(!FileManager.default.fileExists(atPath: file))
        #expect(stores.distrust(certificate, [.system])[0].text == "they do not have it")
    }

    @Test func `without the right, or the program, it says what to do`() throws {
        let folder = try Folder()
        let certificate = try AuthorityFolder(folder.path + "/ca").create(now: Self.now).certificate
        try FileManager.default.createDirectory(
            atPath: folder.path + "/usr/local/share/ca-certificates",
            withIntermediateDirectories: true
        )
        let user = TrustStores(root: folder.path, environment: [:], isRoot: false) { _, _ in nil }
        let outcomes = user.trust(certificate, TrustStores.Kind.allCases)
        #expect(outcomes.map(\.isFailure) == [true, false, false])
        #expect(outcomes[0].text.hasPrefix("only root may change them: sudo drydock ca trust"))
        #expect(outcomes[1].text.hasPrefix("this user has no database of theirs; "))
        #expect(outcomes[2].text == "there is no Java here (keytool, or JAVA_HOME)")
        let root = TrustStores(root: folder.path + "/none", environment: [:], isRoot: true) { _, _ in nil }
        #expect(root.trust(certificate, [.system])[0].isFailure)
    }

    @Test func `a program is run with its words, and its last line is kept`() {
        let echo = Program.run("sh", ["-c", "echo \"$1\"; echo two; exit 3", "sh", "one word"])
        #expect(echo?.code == 3 && echo?.output == "two")
        #expect(Program.run("printf", ["%s", "one word"])?.output == "one word")
        #expect(Program.run("/none/such", []) == nil)
        #expect(Program.run("drydock-none-such", []) == nil)
    }
}
