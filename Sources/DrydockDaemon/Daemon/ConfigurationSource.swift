// Where a daemon's configuration comes from, and how it is read again.

package import Configuration

/// A file, or the one URL of `drydock serve URL`.
package enum ConfigurationSource: Sendable {
    /// `Configuration.standardInput` is standard input.
    case file(path: String)
    /// An origin, with what the command line says beside it, as `listen` and `clients` have it; empty for the defaults.
    case url(String, listen: [String], clients: [String])

    /// Reads and validates.
    /// - Throws: `DaemonError.configuration` with every error and its place.
    package func load(environment: [String: String]) throws(DaemonError) -> Configuration {
        do throws(ConfigurationErrors) {
            switch self {
            case .file(let path): return try Configuration.load(path: path, environment: environment)
            case .url(let url, let listen, let clients):
                return try URLConfiguration.make(url, listen: listen, clients: clients, environment: environment)
            }
        } catch {
            // A URL has no lines.
            if case .url = self { throw .configuration(error.errors.map(\.message).joined(separator: "\n")) }
            throw .configuration(error.description)
        }
    }

    /// Reads and validates again, for a daemon that runs.
    /// - Throws: as ``load(environment:)``, and if the configuration came from standard input.
    func loadAgain(environment: [String: String]) throws(DaemonError) -> Configuration {
        guard !isStandardInput else {
            throw .configuration(
                "the configuration came from standard input, which cannot be read again; start the daemon anew, or with -c FILE"
            )
        }
        return try load(environment: environment)
    }

    /// How an operator chooses another folder for the store if there is no file to name it in; empty otherwise.
    var storeAdvice: String {
        if case .url = self { "; XDG_CACHE_HOME=DIR gives this daemon a folder of its own" } else { "" }
    }

    private var isStandardInput: Bool {
        if case .file(Configuration.standardInput) = self { true } else { false }
    }

    /// Its name in the status and the log; nil for a URL.
    func name(_ configuration: Configuration) -> String? {
        guard case .file(let path) = self else { return nil }
        return isStandardInput ? Configuration.standardInputName : configuration.files.first ?? path
    }

    /// Warnings about settings that are allowed, and probably not meant.
    func warnings(_ configuration: Configuration) -> [String] {
        if case .url = self { configuration.warnings.map(\.message) } else { configuration.warnings.map(\.description) }
    }
}
