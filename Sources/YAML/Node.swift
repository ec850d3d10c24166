// A YAML document as a tree in which every node knows its line and column, and what keeps a text from being read as
// one.

/// A place in a text: line and column count from 1, columns in Unicode scalars, and lines end as YAML 1.1 says (LF, CR,
/// CRLF, U+0085, U+2028, U+2029). A byte order mark at the beginning counts as nothing.
package struct Mark: Sendable, Hashable, CustomStringConvertible {
    package let line: Int
    package let column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// `LINE:COLUMN`.
    package var description: String { "\(line):\(column)" }
}

/// A scalar, a sequence, a mapping, or an alias of one of these.
package struct Node: Sendable {
    /// How a scalar is written.
    package enum Style: Sendable {
        /// The scalar has no quotes: only such a scalar can mean a number, a boolean or nothing.
        case plain
        case singleQuoted
        case doubleQuoted
        /// A block behind `|`.
        case literal
        /// A block behind `>`.
        case folded
    }

    package enum Content: Sendable {
        case scalar(String, Style)
        case sequence([Node])
        /// The pairs in the order of the text. A key may occur twice, and `<<` is a key like any other.
        case mapping([(key: Node, value: Node)])
        /// What the anchor names, with its own place. It is shared and not copied.
        indirect case alias(of: Node)
    }

    /// Where the node begins; one with an anchor or a tag begins there, an alias at its `*`.
    package let mark: Mark
    package let content: Content
}

/// What a tree holds at most, each alias counted as a copy of what it names: whoever walks a tree needs no other limit.
package struct Limits: Sendable {
    /// Sequences and mappings around one another.
    package var levels: Int
    /// Scalars (keys, too), sequences and mappings.
    package var values: Int

    package init(levels: Int, values: Int) {
        self.levels = levels
        self.values = values
    }
}

// MARK: - Errors

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
    /// The place of the mistake. At the end of a text that does not end its last line, this can be the line behind it.
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
