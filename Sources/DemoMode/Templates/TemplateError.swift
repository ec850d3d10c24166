// Why a text is no template, and why a template gave no text.

/// A mistake in a template and its place; lines and columns count from 1, columns in Unicode scalars.
package struct TemplateError: Error, Sendable, Equatable, CustomStringConvertible {
    package let line: Int
    package let column: Int
    /// What is wrong, and what to do.
    package let message: String

    /// `LINE:COLUMN: MESSAGE`.
    package var description: String { "\(line):\(column): \(message)" }
}

/// Why a template gave no text for one request.
package enum RenderError: Error, Sendable, Equatable, CustomStringConvertible {
    /// It would have more than so many bytes.
    case tooLong(limit: Int)
    /// It would take more than so many steps: parts that are written, and items that sections go through.
    case tooManySteps(limit: Int)

    /// Said of the template.
    package var description: String {
        switch self {
        case .tooLong(let limit): "gives more than \(limit) bytes"
        case .tooManySteps(let limit): "takes more than \(limit) steps"
        }
    }
}
