// Why a daemon did not start or did not reload, with the place and what to do.

/// A failure of the daemon as a whole.
package enum DaemonError: Error, Sendable, CustomStringConvertible {
    /// The configuration has errors; each with file, line and column.
    case configuration(String)
    /// A socket, a folder or a thread could not be had.
    case start(String)
    /// The reload changes something that needs a restart.
    case needsRestart(String)

    package var description: String {
        switch self {
        case .configuration(let text), .start(let text), .needsRestart(let text): text
        }
    }
}
