// What keeps a text from being read as YAML, and where.

/// The first thing that is wrong with a text.
package struct YAMLError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// A byte that is no UTF-8, or a character that YAML takes nowhere.
        case character
        /// Characters that begin or end nothing, such as a quote that is never closed.
        case token
        /// Tokens in an order that YAML does not have, such as a bracket that is never closed.
        case structure
        /// An alias with no anchor before it.
        case unknownAlias
        /// A second document begins.
        case secondDocument
        /// More ``Limits/levels`` than were asked for.
        case tooManyLevels
        /// More ``Limits/values`` than were asked for.
        case tooManyValues
        /// There is no memory to read on.
        case memory
    }

    /// What was being read, and where that began.
    package struct Context: Sendable, Equatable {
        package let text: String
        package let mark: Mark
    }

    package let kind: Kind
    /// What is wrong, in libyaml's words.
    package let problem: String
    /// At the end of a text that does not end its last line, this can be the line behind it.
    package let mark: Mark
    package let context: Context?

    init(_ kind: Kind, _ problem: String, _ mark: Mark, context: Context? = nil) {
        self.kind = kind
        self.problem = problem
        self.mark = mark
        self.context = context
    }

    /// `LINE:COLUMN: problem`, and what was being read.
    package var description: String {
        "\(mark): \(problem)" + (context.map { " \($0.text) that began at \($0.mark)" } ?? "")
    }
}
