// Where a daemon's configuration comes from, and how it is read again.

package import Configuration

/// A file, or the one URL of `drydock serve URL`.
package enum ConfigurationSource: Sendable {
    case file(path: String)
    case url(String)

    /// Reads and validates.
    /// - Throws: `DaemonError.configuration` with every error and its place.
    package func load(environment: [String: String]) throws(DaemonError) -> Configuration {
        do throws(ConfigurationErrors) {
            switch self {
            case .file(let path): return try Configuration.load(path: path, environment: environment)
            case .url(let url): return try Configuration.forURL(url, environment: environment)
            }
        } catch {
            // A URL has no lines.
            if case .url = self { throw .configuration(error.errors.map(\.message).joined(separator: "\n")) }
            throw .configuration(error.description)
        }
    }
}
