// The stores of trusted authorities of this machine and of its user, into which the local authority goes, and out of
// which it comes.

import EventLoop
import Files
import Glibc
package import TLS

/// What became of one store.
package struct TrustOutcome: Sendable, Equatable {
    /// The store in words, such as `the system's authorities`.
    package let store: String
    /// What was done, or why nothing was; a sentence without its end.
    package let text: String
    /// Whether it failed; what does not apply to this machine has not failed.
    package let isFailure: Bool
}

/// Runs a program; gives its exit code and what it printed, nil if it cannot be started.
package typealias ProgramRunner = @Sendable (_ program: String, _ arguments: [String]) -> (code: Int32, output: String)?

/// The stores that this machine has. Everything here blocks.
package struct TrustStores: Sendable {
    /// A kind of store.
    package enum Kind: String, Sendable, CaseIterable {
        /// OpenSSL's, GnuTLS's and most programs'; Debian and its relatives, or Fedora and its.
        case system
        /// The databases of Chromium and Firefox.
        case nss
        /// That of the Java runtime.
        case java
    }

    private let root: String
    private let home: String?
    /// The folder of the user's data that XDG names, if it is not the usual one.
    private let data: String?
    private let java: String?
    private let run: ProgramRunner
    private let isRoot: Bool

    /// - Parameters:
    ///   - root: the folder that `/` stands for; empty outside of tests.
    ///   - environment: `HOME` and `XDG_DATA_HOME` for the browsers of the user, `JAVA_HOME` for Java.
    package init(
        root: String = "",
        environment: [String: String],
        isRoot: Bool = geteuid() == 0,
        run: @escaping ProgramRunner = Program.run
    ) {
        (self.root, self.isRoot, self.run) = (root, isRoot, run)
        home = environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        data = environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        java = environment["JAVA_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// Puts an authority into the stores of these kinds.
    package func trust(_ certificate: Certificate, _ kinds: [Kind]) -> [TrustOutcome] {
        kinds.flatMap { kind in
            switch kind {
            case .system: [system(certificate, isAdding: true)]
            case .nss: nss(certificate, isAdding: true)
            case .java: [java(certificate, isAdding: true)]
            }
        }
    }

    /// Takes it out of them again.
    package func distrust(_ certificate: Certificate, _ kinds: [Kind]) -> [TrustOutcome] {
        kinds.flatMap { kind in
            switch kind {
            case .system: [system(certificate, isAdding: false)]
            case .nss: nss(certificate, isAdding: false)
            case .java: [java(certificate, isAdding: false)]
            }
        }
    }

    /// The name in each store: two authorities of one machine do not replace one another.
    static func name(of certificate: Certificate) -> String {
        let digits = Array("0123456789abcdef".utf8)
        let hex = certificate.fingerprint.prefix(6).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return "drydock-" + String(decoding: hex, as: UTF8.self)
    }

    // MARK: - The system

    /// Folders into which authorities of one's own go, and what takes them up.
    private static let systems = [
        (
            folder: "/usr/local/share/ca-certificates", suffix: ".crt", program: "update-ca-certificates",
            adding: [String](),
            // Else its links stay, which lead nowhere then.
            removing: ["--fresh"]
        ),
        (
            folder: "/etc/pki/ca-trust/source/anchors", suffix: ".pem", program: "update-ca-trust",
            adding: ["extract"],
            removing: ["extract"]
        ),
    ]

    private func system(_ certificate: Certificate, isAdding: Bool) -> TrustOutcome {
        let store = "the system's authorities"
        guard let system = Self.systems.first(where: { access(root + $0.folder, F_OK) == 0 }) else {
            return TrustOutcome(
                store: store,
                text:
                    "this machine has no folder for them (\(Self.systems.map(\.folder).joined(separator: ", "))); install ca-certificates",
                isFailure: isAdding
            )
        }
        let file = root + system.folder + "/" + Self.name(of: certificate) + system.suffix
        let isThere = access(file, F_OK) == 0
        if isThere == isAdding {
            return TrustOutcome(
                store: store,
                text: isAdding ? "they have it already (\(file))" : "they do not have it",
                isFailure: false
            )
        }
        guard isRoot else {
            let verb = isAdding ? "trust" : "untrust"
            return TrustOutcome(
                store: store,
                text:
                    "only root may change them: sudo drydock ca \(verb) --store system, with --ca and the folder of the authority",
                isFailure: true
            )
        }
        if isAdding {
            do throws(SystemError) {
                try WholeFile.replace(file, with: Array(certificate.pem.utf8))
                guard chmod(file, 0o644) == 0 else { throw SystemError("chmod \(file)") }
            } catch {
                return TrustOutcome(store: store, text: "\(error)", isFailure: true)
            }
        } else if unlink(file) != 0 {
            return TrustOutcome(store: store, text: "\(SystemError("unlink \(file)"))", isFailure: true)
        }
        guard let result = run(system.program, isAdding ? system.adding : system.removing) else {
            return TrustOutcome(
                store: store,
                text:
                    "\(file) is \(isAdding ? "there" : "gone"), and \(system.program) is not installed; run what takes it up",
                isFailure: true
            )
        }
        guard result.code == 0 else {
            return TrustOutcome(
                store: store,
                text: "\(system.program) ended with \(result.code): \(result.output)",
                isFailure: true
            )
        }
        if !isAdding, let problem = removeCopy(of: certificate) {
            return TrustOutcome(
                store: store,
                text: "it is gone from them, and Java's have a copy still: keytool failed: \(problem)",
                isFailure: true
            )
        }
        return TrustOutcome(
            store: store,
            text: isAdding ? "they have it now (\(file))" : "it is gone from them (\(file))",
            isFailure: false
        )
    }

    // MARK: - Browsers

    /// The databases of this user's browsers.
    private var databases: [String] {
        guard let home else { return [] }
        // Chromium's: where it was until 2025, and where XDG has it.
        var found = [
            "\(home)/.pki/nssdb", "\(data ?? home + "/.local/share")/pki/nssdb",
            "\(home)/snap/chromium/current/.pki/nssdb",
        ]
        for parent in [
            ".mozilla/firefox", "snap/firefox/common/.mozilla/firefox", ".var/app/org.mozilla.firefox/.mozilla/firefox",
        ] {
            found += FolderNames.of("\(home)/\(parent)").sorted().map { "\(home)/\(parent)/\($0)" }
        }
        return found.filter { access("\($0)/cert9.db", F_OK) == 0 }
    }

    private func nss(_ certificate: Certificate, isAdding: Bool) -> [TrustOutcome] {
        let all = databases
        guard !all.isEmpty else {
            return [
                TrustOutcome(
                    store: "Chromium and Firefox",
                    text: "this user has no database of theirs"
                        + (isAdding ? "; a browser makes one when it opens its first https page" : ""),
                    isFailure: false
                )
            ]
        }
        let name = Self.name(of: certificate)
        return all.map { database in
            let store = "the browsers' authorities in \(database)"
            let found = run("certutil", ["-L", "-d", "sql:\(database)", "-n", name])
            guard let found else {
                return TrustOutcome(
                    store: store,
                    text: "certutil is not installed; install libnss3-tools",
                    isFailure: true
                )
            }
            return change(
                store,
                by: "certutil",
                found.code == 0,
                isAdding: isAdding,
                certificate,
                add: { ["-A", "-d", "sql:\(database)", "-n", name, "-t", "C,,", "-i", $0] },
                remove: ["-D", "-d", "sql:\(database)", "-n", name],
                afterwards: "; start the browser anew"
            )
        }
    }

    // MARK: - Java

    private func java(_ certificate: Certificate, isAdding: Bool) -> TrustOutcome {
        let store = "Java's authorities"
        let keytool = java.map { "\($0)/bin/keytool" } ?? "keytool"
        let alias = Self.name(of: certificate)
        let common = ["-cacerts", "-storepass", "changeit", "-alias", alias]
        guard let found = run(keytool, ["-list"] + common) else {
            return TrustOutcome(store: store, text: "there is no Java here (keytool, or JAVA_HOME)", isFailure: false)
        }
        if !isAdding, let problem = removeCopy(of: certificate) {
            return TrustOutcome(store: store, text: "keytool failed: \(problem)", isFailure: true)
        }
        return change(
            store,
            by: keytool,
            found.code == 0,
            isAdding: isAdding,
            certificate,
            add: { ["-importcert", "-noprompt"] + common + ["-file", $0] },
            remove: ["-delete"] + common
        )
    }

    /// Takes out of Java's store what Debian has copied into it when the system's got the authority; Debian itself adds there,
    /// and takes nothing out.
    /// - Returns: what went wrong; nil if there is no copy (any more).
    private func removeCopy(of certificate: Certificate) -> String? {
        let store = root + "/etc/ssl/certs/java/cacerts"
        let common = [
            "-keystore", store, "-storepass", "changeit", "-alias", "debian:\(Self.name(of: certificate)).pem",
        ]
        guard access(store, F_OK) == 0, run("keytool", ["-list"] + common)?.code == 0 else { return nil }
        guard let result = run("keytool", ["-delete"] + common) else { return "it cannot be started" }
        return result.code == 0 ? nil : result.output
    }

    // MARK: - Stores that a program keeps

    /// Has a program put the authority into a store, or take it out; nothing where that is so already.
    /// - Parameters:
    ///   - isThere: whether the store has it.
    ///   - add: the words for the program, from the path of a file with the certificate.
    ///   - remove: the words for the program.
    ///   - afterwards: what is to be done once it has been added.
    private func change(
        _ store: String,
        by program: String,
        _ isThere: Bool,
        isAdding: Bool,
        _ certificate: Certificate,
        add: (String) -> [String],
        remove: [String],
        afterwards: String = ""
    ) -> TrustOutcome {
        if isThere == isAdding {
            let text = isAdding ? "they have it already" : "they do not have it"
            return TrustOutcome(store: store, text: text, isFailure: false)
        }
        let result =
            isAdding
            ? TemporaryFile.with(Array(certificate.pem.utf8)) { run(program, add($0)) } : run(program, remove)
        guard let result, result.code == 0 else {
            let name = program.split(separator: "/").last.map(String.init) ?? program
            let text = "\(name) failed: \(result?.output ?? "it cannot be started")"
            return TrustOutcome(store: store, text: text, isFailure: true)
        }
        let text = isAdding ? "they have it now" + afterwards : "it is gone from them"
        return TrustOutcome(store: store, text: text, isFailure: false)
    }
}

/// A file that is there for one call.
private enum TemporaryFile {
    static func with<Result>(_ bytes: [UInt8], _ body: (String) -> Result?) -> Result? {
        var path = Array("/tmp/drydock-ca-XXXXXX".utf8CString)
        let file = mkstemp(&path)
        guard file >= 0 else { return nil }
        let name = String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        defer { unlink(name) }
        let written = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        close(file)
        return written == bytes.count ? body(name) : nil
    }
}

/// Programs of the system.
package enum Program {
    /// Runs a program, found by `PATH` unless it has a slash, without a shell; waits for its end. Blocks.
    /// - Returns: its exit code and the last line that it printed; nil if it cannot be started.
    package static let run: ProgramRunner = { program, arguments in
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        posix_spawn_file_actions_addclose(&actions, ends[0])
        posix_spawn_file_actions_addclose(&actions, ends[1])
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        // Freed below; the child has its own copies.
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var child: pid_t = 0
        let started = posix_spawnp(&child, program, &actions, nil, &words, environ)
        close(ends[1])
        defer { close(ends[0]) }
        guard started == 0 else { return nil }
        var (output, part) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
        while true {
            let count = read(ends[0], &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            // The end of it says what went wrong.
            output = Array((output + part.prefix(count)).suffix(4096))
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let code = status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
        guard code != 127 else { return nil }
        let lines = String(decoding: output, as: UTF8.self).split(whereSeparator: \.isNewline)
        return (code, lines.last.map(String.init) ?? "")
    }
}
