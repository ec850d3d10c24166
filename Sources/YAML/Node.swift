// A YAML document as a tree in which every node has its line and column, and the mistakes that keep a text from being
// one.

/// A position in a text: line and column count from 1, columns in Unicode scalars, and lines end as in YAML 1.1 (LF, CR,
/// CRLF, U+0085, U+2028, U+2029). A byte order mark at the beginning is not counted.
package struct Mark: Sendable, Hashable, CustomStringConvertible {
    package let line: Int
    package let column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// The position as `LINE:COLUMN`.
    package var description: String { "\(line):\(column)" }
}

/// A scalar, a sequence, a mapping, or an alias of one of these.
package struct Node: Sendable {
    /// The style of a scalar in the text.
    package enum Style: Sendable {
        /// The scalar has no quotes: only such a scalar can mean a number, a boolean or null.
        case plain
        case singleQuoted
        case doubleQuoted
        /// The scalar is a block after `|`.
        case literal
        /// The scalar is a block after `>`.
        case folded
    }

    package enum Content: Sendable {
        case scalar(String, Style)
        case sequence([Node])
        /// The pairs in the order of the text. A key may occur twice, and `<<` is a key like any other.
        case mapping([(key: Node, value: Node)])
        /// An alias of the node with the anchor, which keeps its own position and is shared rather than copied.
        indirect case alias(of: Node)
    }

    /// The position where the node begins; one with an anchor or a tag begins there, an alias at its `*`.
    package let mark: Mark
    package let content: Content
}

/// The limits of a tree, in which each alias counts as a copy of its node, so that a walk over the tree needs no other
/// limit.
package struct Limits: Sendable {
    /// The most levels of nested sequences and mappings.
    package var levels: Int
    /// The most scalars (including keys), sequences and mappings.
    package var values: Int

    package init(levels: Int, values: Int) {
        self.levels = levels
        self.values = values
    }
}

// MARK: - Errors

/// The first mistake in a text.
package struct YAMLError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// A byte is not UTF-8, or a character is one that YAML never allows.
        case character
        /// Characters do not form a token, such as a quote that is never closed.
        case token
        /// Tokens are in an order that YAML does not allow, such as a bracket that is never closed.
        case structure
        /// An alias has no anchor before it.
        case unknownAlias
        /// A second document begins.
        case secondDocument
        /// There are more ``Limits/levels`` than were asked for.
        case tooManyLevels
        /// There are more ``Limits/values`` than were asked for.
        case tooManyValues
        /// There is no memory to continue.
        case memory
    }

    /// The part that was being parsed, and the position where it began.
    package struct Context: Sendable, Equatable {
        package let text: String
        package let mark: Mark
    }

    package let kind: Kind
    /// The mistake, in libyaml's words.
    package let problem: String
    /// The position of the mistake. At the end of a text without a final line end, this can be the line after it.
    package let mark: Mark
    package let context: Context?

    init(_ kind: Kind, _ problem: String, _ mark: Mark, context: Context? = nil) {
        self.kind = kind
        self.problem = problem
        self.mark = mark
        self.context = context
    }

    /// The error as `LINE:COLUMN: problem`, and the part that was being parsed.
    package var description: String {
        "\(mark): \(problem)" + (context.map { " \($0.text) that began at \($0.mark)" } ?? "")
    }
}
