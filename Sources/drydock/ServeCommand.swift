// `drydock serve`, `check` and `config`: the commands that read a configuration themselves.

import ArgumentParser
import Configuration
import Drydock
import Glibc

/// Which configuration file is meant.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help: "The configuration file. Default: ./drydock.yaml, else /etc/drydock/drydock.yaml."
    )
    var file: String?

    /// The file to read where none is named; nil where there is none.
    static var defaultPath: String? {
        ["drydock.yaml", "/etc/drydock/drydock.yaml"].first { access($0, F_OK) == 0 }
    }

    /// The file to read.
    /// - Parameter alternative: what else can be given.
    /// - Throws: `Failure` where none is named and none is in its usual place.
    func path(alternative: String = "") throws -> String {
        if let path = file ?? Self.defaultPath { return path }
        throw Failure(
            message: "there is no ./drydock.yaml and no /etc/drydock/drydock.yaml; name a file with -c FILE"
                + alternative
        )
    }
}

struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the daemon in the foreground, from a file or for one URL.",
        discussion: "SIGHUP reloads the configuration; SIGTERM finishes the answers under way and ends."
    )

    @OptionGroup var option: ConfigurationOption
    @Argument(help: "An origin to stand before, such as https://api.example.com; no file is needed then.")
    var url: String?

    func validate() throws {
        if url != nil, option.file != nil {
            throw ValidationError("give a URL or a configuration file, not both")
        }
    }

    func run() async throws {
        let source: ConfigurationSource =
            if let url { .url(url) } else {
                .file(path: try option.path(alternative: ", or give the URL of an origin"))
            }
        let daemon: Daemon
        do throws(DaemonError) {
            daemon = try await Daemon.start(source, environment: processEnvironment(), watchesSignals: true)
        } catch {
            throw Failure(message: "\(error)".contains("\n") ? "not started:\n\(error)" : "not started: \(error)")
        }
        await daemon.runUntilStopped()
    }
}

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read a configuration and print ok, or every error with its place."
    )

    @OptionGroup var option: ConfigurationOption

    func run() throws {
        print(try load(option.path()).summary)
    }
}

struct Config: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "What a configuration file may hold, and what is in force.",
        subcommands: [Schema.self, Default.self, Show.self]
    )

    struct Schema: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print the JSON Schema that editors complete from.")
        func run() { print(Configuration.schema, terminator: "") }
    }

    struct Default: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Print every key with its default.")
        func run() { print(Configuration.defaultText, terminator: "") }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print a file's configuration with everything it inherits; secrets are hidden."
        )
        @OptionGroup var option: ConfigurationOption
        func run() throws { print(try load(option.path()).shown(), terminator: "") }
    }
}

/// Reads a configuration.
/// - Throws: `Failure` with every error and its place.
private func load(_ path: String) throws -> Configuration {
    do throws(ConfigurationErrors) {
        return try Configuration.load(path: path, environment: processEnvironment())
    } catch {
        printError(error.description)
        throw ExitCode(1)
    }
}
