// The source of a daemon's configuration: it is read at the start, and again at each reload.

package import Configuration

/// The source of a configuration: a file, or the one URL of `drydock serve URL`.
package enum ConfigurationSource: Sendable {
    /// The file at `path`; `Configuration.standardInput` stands for standard input.
    case file(path: String)
    /// One origin, with the options of the command line.
    case url(String, URLOptions)

    /// Reads the configuration and validates it.
    /// - Throws: `DaemonError.configuration` with every error and its position.
    package func load(environment: [String: String]) throws(DaemonError) -> Configuration {
        do throws(ConfigurationErrors) {
            switch self {
            case .file(let path): return try Configuration.load(path: path, environment: environment)
            case .url(let url, let options):
                return try URLConfiguration.make(url, options, environment: environment)
            }
        } catch {
            // Errors of a URL are told without a position, since a URL has no lines.
            if case .url = self { throw .configuration(error.errors.map(\.message).joined(separator: "\n")) }
            throw .configuration(error.description)
        }
    }

    /// Reads and validates the configuration again for a daemon that runs.
    /// - Throws: as ``load(environment:)``, and if the configuration came from standard input.
    func loadAgain(environment: [String: String]) throws(DaemonError) -> Configuration {
        guard !isStandardInput else {
            throw .configuration(
                "the configuration came from standard input, which cannot be read again; start the daemon anew, or with -c FILE"
            )
        }
        return try load(environment: environment)
    }

    /// Advice for an error text on how to choose another folder for the store; empty if the configuration is a file,
    /// which can name the folder itself.
    var storeAdvice: String {
        if case .url = self { "; XDG_CACHE_HOME=DIR gives this daemon a folder of its own" } else { "" }
    }

    /// Whether the local authority is made where there is none: nobody has asked for one in a file.
    var makesAuthority: Bool { if case .url = self { true } else { false } }

    /// Whether it came from standard input, and can be read once only.
    var isStandardInput: Bool {
        if case .file(Configuration.standardInput) = self { true } else { false }
    }

    /// The name of the configuration in the status and the log; nil for a URL.
    func name(_ configuration: Configuration) -> String? {
        guard case .file(let path) = self else { return nil }
        return isStandardInput ? Configuration.standardInputName : configuration.files.first ?? path
    }

    /// Warnings about settings that are allowed, and probably not meant.
    /// - Parameter speaksTLS: whether clients speak TLS at an address of the daemon, whoever has bound it.
    func warnings(_ configuration: Configuration, speaksTLS: Bool) -> [String] {
        let warnings = configuration.warnings.filter { !(speaksTLS && $0.isOfPlainListeners) }
        return if case .url = self { warnings.map(\.message) } else { warnings.map(\.description) }
    }
}
