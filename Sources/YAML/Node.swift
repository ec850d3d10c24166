// A YAML document as a tree in which every node knows its line and column.

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
        /// Without quotes: only such a scalar can mean a number, a boolean or nothing.
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
        /// In the order of the text. A key may occur twice, and `<<` is a key like any other.
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
