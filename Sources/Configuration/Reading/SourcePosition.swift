// Positions in configuration files and the errors that name them.

/// A position in a file; lines and columns count from 1, columns in Unicode scalars.
package struct SourcePosition: Sendable, Hashable, CustomStringConvertible {
    package let file: String
    package let line: Int
    package let column: Int

    package init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }

    /// The position as `FILE:LINE:COL`, which editors and terminals turn into a link.
    package var description: String { "\(file):\(line):\(column)" }
}

/// One thing that is wrong with a configuration.
package struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
    package let position: SourcePosition
    /// The mistake, with the correct form.
    package let message: String
    /// Whether the error may be one of this process only, and not of the daemon: a missing variable, or a file that
    /// cannot be read.
    package let isOfProcess: Bool
    /// Whether the warning holds only where no client speaks TLS: a socket that the service manager passes may change that.
    package let isOfPlainListeners: Bool

    package init(
        position: SourcePosition,
        message: String,
        isOfProcess: Bool = false,
        isOfPlainListeners: Bool = false
    ) {
        self.position = position
        self.message = message
        self.isOfProcess = isOfProcess
        self.isOfPlainListeners = isOfPlainListeners
    }

    /// The message with its position: `FILE:LINE:COL: message`.
    package var description: String { "\(position): \(message)" }
}

/// Everything that is wrong with a configuration, in the order of its files and lines; never empty.
package struct ConfigurationErrors: Error, Sendable, Equatable, CustomStringConvertible {
    package let errors: [ConfigurationError]

    package init(errors: [ConfigurationError]) { self.errors = errors }

    /// The errors as text, one line for each.
    package var description: String { errors.map(\.description).joined(separator: "\n") }
}
