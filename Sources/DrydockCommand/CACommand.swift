// `drydock ca`: the local authority, whose certificates clients are shown where `tls: local` is set.

import ArgumentParser
import Configuration
import DrydockDaemon
import EventLoop
import FoundationEssentials
import TLS

struct CA: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Make, show and trust the local authority for certificates.",
        discussion: """
            Where 'listen' has https:// and 'tls' is local, clients are shown certificates that this authority makes for the \
            names that they ask for. Its key is made on this machine and stays here: whoever has it can be any server for all \
            who trust it. No daemon is asked.
            """,
        subcommands: [Create.self, Show.self, Trust.self, Untrust.self, Export.self, Lines.self]
    )

    /// The folder, and what is asked of it.
    struct FolderOptions: ParsableArguments {
        @Option(
            name: .customLong("ca"),
            help: ArgumentHelp(
                "The folder. Default: 'ca' of -c FILE, else /var/lib/drydock/ca for root, else ~/.local/state/drydock/ca.",
                valueName: "dir"
            ),
            completion: .directory
        )
        var folder: String?
        @Option(
            name: [.customShort("c"), .customLong("config")],
            help: ArgumentHelp("The daemon's configuration file, which may name the folder.", valueName: "file"),
            completion: .file()
        )
        var file: String?

        func validate() throws {
            if folder != nil, file != nil {
                throw ValidationError("-c FILE and --ca both name a folder; give one of them")
            }
        }

        /// The folder that is meant.
        var chosen: AuthorityFolder {
            get throws {
                if let folder { return AuthorityFolder(CA.absolute(folder)) }
                let environment = processEnvironment()
                if let file {
                    do throws(ConfigurationErrors) {
                        let configuration = try Configuration.load(path: file, environment: environment)
                        if let path = configuration.authorityFolder { return AuthorityFolder(path) }
                    } catch {
                        printError(error.description)
                        throw Failure(
                            message: "no authority was looked at; correct the file, or name the folder with --ca DIR"
                        )
                    }
                }
                guard let path = DefaultAuthority.folder(environment: environment) else {
                    throw Failure(
                        message: "there is no HOME that the authority could be in; name its folder with --ca DIR"
                    )
                }
                return AuthorityFolder(path)
            }
        }

        /// What `body` gives of the folder, with its error as the command's.
        func with<Result>(_ body: (AuthorityFolder) throws(AuthorityError) -> Result) throws -> (
            AuthorityFolder, Result
        ) {
            let folder = try chosen
            do throws(AuthorityError) { return (folder, try body(folder)) } catch { throw Failure(message: "\(error)") }
        }
    }

    struct Create: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Make the authority: a P-256 key that only its owner can read, and a certificate for ten years.",
            discussion:
                "Run by root, it belongs to the owner of the folder around it, such as the user of the service. Nobody trusts it yet: 'drydock ca trust' does that, and 'drydock ca lines' says how programs do."
        )
        @Option(
            help: "Let it issue for this name and all below it, or this address, and for nothing else; may be repeated."
        )
        var only: [String] = []
        @OptionGroup var options: FolderOptions

        func run() throws {
            let constraints = try only.map { text in
                guard let host = HostName(text) else {
                    throw Failure(message: "--only '\(text)' is neither a host name nor an address")
                }
                return host
            }
            let (folder, _) = try options.with { folder throws(AuthorityError) in
                try folder.create(constraints: constraints, now: CA.now())
            }
            print(
                "the local authority is in \(folder.path); nobody trusts it yet: drydock ca trust, or drydock ca lines"
            )
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the authority's certificate.")
        @OptionGroup var options: FolderOptions

        func run() throws {
            let (folder, certificate) = try options.with { folder throws(AuthorityError) in try folder.certificate() }
            let fingerprint = certificate.fingerprint.map { byte in
                let text = String(byte, radix: 16, uppercase: true)
                return text.utf8.count == 1 ? "0" + text : text
            }
            var lines = [
                "certificate  \(folder.certificatePath)", "name         \(certificate.subject)",
                "SHA-256      \(fingerprint.joined(separator: ":"))",
            ]
            if let first = certificate.notBefore, let last = certificate.notAfter {
                lines.append("valid        \(AuthorityFolder.day(first)) to \(AuthorityFolder.day(last))")
            }
            print(lines.joined(separator: "\n"))
        }
    }

    /// The stores, and what becomes of them.
    struct StoreOptions: ParsableArguments {
        @Option(help: "system, nss (Chromium, Firefox) or java; may be repeated. Default: all that are here.")
        var store: [TrustStores.Kind] = []

        var kinds: [TrustStores.Kind] { store.isEmpty ? TrustStores.Kind.allCases : store }

        /// Prints what was done; a failure of one store is the command's.
        func tell(_ outcomes: [TrustOutcome]) throws {
            for outcome in outcomes { print("\(outcome.store): \(outcome.text)") }
            if let failed = outcomes.first(where: \.isFailure) { throw Failure(message: "\(failed.store): not done") }
        }
    }

    struct Trust: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Put the authority into the stores of trusted authorities.",
            discussion:
                "Programs that read these stores trust every certificate that the authority issues, until 'drydock ca untrust'. The system's store is changed by root alone."
        )
        @OptionGroup var stores: StoreOptions
        @OptionGroup var options: FolderOptions

        func run() throws {
            let (_, certificate) = try options.with { folder throws(AuthorityError) in try folder.certificate() }
            try stores.tell(TrustStores(environment: processEnvironment()).trust(certificate, stores.kinds))
        }
    }

    struct Untrust: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Take the authority out of the stores of trusted authorities."
        )
        @OptionGroup var stores: StoreOptions
        @OptionGroup var options: FolderOptions

        func run() throws {
            let (_, certificate) = try options.with { folder throws(AuthorityError) in try folder.certificate() }
            try stores.tell(TrustStores(environment: processEnvironment()).distrust(certificate, stores.kinds))
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the authority's certificate (PEM).")
        @Flag(help: "Print the private key as well; whoever has it can be any server for all who trust the authority.")
        var withKey = false
        @OptionGroup var options: FolderOptions

        func run() throws {
            guard withKey else {
                let (_, certificate) = try options.with { folder throws(AuthorityError) in try folder.certificate() }
                return print(certificate.pem, terminator: "")
            }
            let (_, authority) = try options.with { folder throws(AuthorityError) in try folder.load() }
            guard let key = authority.keyPEM else { throw Failure(message: "the key cannot be written") }
            print(authority.certificate.pem + key, terminator: "")
        }
    }

    struct Lines: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print what programs need to trust the authority.",
            discussion:
                "The programs are \(ClientLines.all(certificate: "").map(\.name).joined(separator: ", ")). 'drydock env' has these lines, too."
        )
        @Argument(help: "The program; all of them without a name.")
        var program: String?
        @OptionGroup var options: FolderOptions

        func run() throws {
            let (folder, _) = try options.with { folder throws(AuthorityError) in try folder.certificate() }
            let all = ClientLines.all(certificate: folder.certificatePath)
            if let program {
                guard let one = all.first(where: { $0.name == program }) else {
                    throw Failure(
                        message: "'\(program)' is not known; there are \(all.map(\.name).joined(separator: ", "))",
                        code: 2
                    )
                }
                return print(one.lines.joined(separator: "\n"))
            }
            print(all.map { "# \($0.title)\n" + $0.lines.joined(separator: "\n") }.joined(separator: "\n\n"))
        }
    }

    private static func now() -> Int64 { Int64(Date().timeIntervalSince1970) }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        let name = path.hasPrefix("./") ? String(path.dropFirst(2)) : path
        return FileManager.default.currentDirectoryPath + "/" + name
    }
}

extension TrustStores.Kind: ExpressibleByArgument {}
