// `drydock serve`, `check` and `config`: the commands that read a configuration themselves.

import ArgumentParser
import Configuration
import DrydockDaemon
import Glibc

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the daemon in the foreground, with a configuration file or for one URL.",
        discussion: """
            SIGHUP reloads the configuration. SIGUSR1 opens the file of the access log again. SIGTERM and Ctrl-C finish the answers under way and end; a second one ends at once.
            With a URL and a terminal, the access log is text. \
            Commands such as 'drydock status' go to the admin address of the configuration, else to DRYDOCK_ADMIN, else to a private \
            socket of the user; the log says where.
            """
    )

    @OptionGroup var option: ConfigurationOption
    @Argument(help: "The origin to serve, such as https://api.example.com; this needs no configuration file.")
    var url: String?
    @Option(
        help: ArgumentHelp(
            "With a URL, where clients connect: ADDRESS:PORT, localhost:PORT, :PORT (all addresses) or unix:/PATH; may be repeated. Default: localhost:8080.",
            valueName: "address"
        )
    )
    var listen: [String] = []
    @Option(
        help: ArgumentHelp(
            "With a URL, who may connect: loopback, any, an address or a network such as 192.168.0.0/16; may be repeated. Default: loopback.",
            valueName: "rule"
        )
    )
    var clients: [String] = []

    @Flag(
        help:
            "With a URL, clients speak TLS, with certificates of the local authority of 'drydock ca', which is made if there is none. Default address: localhost:8443."
    )
    var tls = false

    @Option(
        help: ArgumentHelp(
            "With a URL, how long an answer is fresh that says nothing about it, such as 10m (cache.ttl).",
            valueName: "duration"
        )
    )
    var ttl: String?
    @Option(
        help: ArgumentHelp(
            "With a URL, the origin of web pages that may call it, such as http://localhost:3000 (cors.origins); may be repeated.",
            valueName: "origin"
        )
    )
    var cors: [String] = []
    @Option(
        help: ArgumentHelp(
            "With a URL, a name under which clients ask this daemon, such as drydock or *.lan; may be repeated. Addresses need none.",
            valueName: "host"
        )
    )
    var hosts: [String] = []
    @Option(
        help: ArgumentHelp(
            "With an https URL, the authorities for the origin's certificate in place of the system's, in PEM (tls.ca).",
            valueName: "file"
        ),
        completion: .file()
    )
    var ca: String?
    @Flag(help: "With a URL, nothing is stored on the disk: the memory has all, and a restart forgets it.")
    var noDisk = false
    @Option(help: "With a URL, the name of the service in logs, metrics and commands. Default: the origin's host.")
    var name: String?

    @Flag(help: "Read the configuration again whenever one of its files changes.")
    var watch = false
    @Flag(
        help:
            "Take over from the daemon that runs with the same admin address: its sockets, its TLS sessions and its store, without a refused connection. Without such a daemon, start as ever."
    )
    var takeOver = false

    func validate() throws {
        if url != nil, watch {
            throw ValidationError("--watch needs a configuration file; a URL has nothing to watch")
        }
        if url != nil, option.file != nil {
            throw ValidationError("give a URL or a configuration file, not both")
        }
        let given = [
            ("--listen", "listen", !listen.isEmpty), ("--clients", "clients", !clients.isEmpty), ("--tls", "tls", tls),
            ("--ttl", "cache.ttl", ttl != nil), ("--cors", "cors.origins", !cors.isEmpty),
            ("--hosts", "hosts", !hosts.isEmpty), ("--ca", "tls.ca", ca != nil),
            ("--no-disk", "cache.disk", noDisk), ("--name", "services[].name", name != nil),
        ]
        for (option, key, isGiven) in given where url == nil && isGiven {
            throw ValidationError(
                "\(option) needs the URL of an origin; in a configuration file it is the key '\(key)'"
            )
        }
    }

    /// What the options say of a URL.
    private var options: URLOptions {
        var options = URLOptions()
        (options.listen, options.clients, options.tls) = (listen, clients, tls)
        (options.name, options.ttl, options.cors) = (name, ttl, cors)
        (options.hosts, options.ca, options.disk) = (hosts, ca, !noDisk)
        options.isOnTerminal = isatty(STDOUT_FILENO) == 1
        return options
    }

    func run() async throws {
        let source: ConfigurationSource =
            if let url { .url(url, options) } else {
                .file(path: try option.path(alternative: ", or give the URL of an origin"))
            }
        let daemon: Daemon
        do throws(DaemonError) {
            daemon = try await Daemon.start(
                source,
                environment: processEnvironment(),
                watchesSignals: true,
                watchesConfiguration: watch,
                takesOver: takeOver
            )
        } catch {
            let message = "\(error)".contains("\n") ? "not started:\n\(error)" : "not started: \(error)"
            // EX_CONFIG of sysexits.h: a service manager would try in vain until somebody has mended the file.
            let isOfFile = if case .configuration = error { url == nil } else { false }
            throw Failure(message: message, code: isOfFile ? 78 : 1)
        }
        guard let again = await daemon.runUntilStopped() else { return }
        throw Failure(message: again.begin())
    }
}

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Check a configuration: print ok and every warning, or every error, with its line and column."
    )

    @OptionGroup var option: ConfigurationOption
    @Argument(help: "The configuration file, which -c may name as well.", completion: .file())
    var file: String?
    @Option(
        help: ArgumentHelp(
            "The unit's EnvironmentFile, whose variables are those of the configuration, in place of this shell's.",
            valueName: "file"
        ),
        completion: .file()
    )
    var environment: String?

    func validate() throws {
        if file != nil, option.file != nil { throw ValidationError("give one configuration file, with or without -c") }
    }

    func run() throws {
        let variables = try environment.map(EnvironmentFile.variables) ?? processEnvironment()
        let configuration = try loadConfiguration(file ?? option.path(), environment: variables)
        do throws(DaemonError) {
            try DaemonSecurity.check(configuration, environment: variables)
        } catch {
            printError("\(error)")
            throw ExitCode(1)
        }
        print(configuration.summary)
        for warning in configuration.warnings { printError("\(warning.position): warning: \(warning.message)") }
        for note in configuration.notes { printError("\(note.position): note: \(note.message)") }
    }
}

struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print what a configuration file may contain, or the settings that result from one.",
        subcommands: [Schema.self, Default.self, Show.self]
    )

    struct Schema: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the JSON Schema that editors use for completion."
        )
        func run() { print(ConfigurationSchema.text, terminator: "") }
    }

    struct Default: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print every key with its default.")
        func run() { print(Configuration.defaultText, terminator: "") }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the settings that result from a file, with inherited ones; secrets are hidden."
        )
        @OptionGroup var option: ConfigurationOption
        func run() throws { print(try loadConfiguration(option.path()).shown(), terminator: "") }
    }
}

/// Reads a configuration.
/// - Throws: `Failure` with every error and its position.
func loadConfiguration(
    _ path: String,
    environment: [String: String] = processEnvironment()
) throws -> Configuration {
    do throws(ConfigurationErrors) {
        return try Configuration.load(path: path, environment: environment)
    } catch {
        printError(error.description)
        throw ExitCode(1)
    }
}
