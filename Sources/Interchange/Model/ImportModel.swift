// The values that an import reads, and its result: a configuration, the body files, and notes on the parts that were
// not kept.

package import Contracts
package import Trees

/// A format that another tool writes.
package enum ImportFormat: String, CaseIterable, Sendable {
    case har, wiremock, postman, openapi
}

/// A file of another tool.
package struct ImportSource: Sendable {
    /// The name in notes and errors.
    package let name: String
    package let bytes: [UInt8]

    package init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }
}

/// The options of an import.
package struct ImportOptions: Sendable {
    /// Whether credentials stay as they are; by default they are replaced.
    package var keepsSecrets = false
    /// The hosts of a HAR file whose requests are read, in lower case; empty means all.
    package var hosts: [String] = []
    /// The name of the service if there is only one; nil to derive it from the source.
    package var service: String?

    /// The seed of the values that are generated from schemas.
    package var seed: UInt64 = 0

    package init() {}
}

/// A part of a source that the configuration lacks, or has in another form.
package struct ImportNote: Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        /// A whole rule is missing.
        case leftOut = "left out"
        /// The rule is there, but differs in this part.
        case changed
        /// The rule is there, but another one answers the request that it was made from.
        case answeredByOther = "answered by another rule"
    }

    package let location: DocumentLocation
    package let kind: Kind
    /// The part, and the reason.
    package let reason: String

    package init(_ location: DocumentLocation, _ kind: Kind, _ reason: String) {
        self.location = location
        self.kind = kind
        self.reason = reason
    }

    package var description: String { "\(location): \(kind.rawValue): \(reason)" }
}

/// The body of an answer as a file.
package struct ImportedFile: Sendable, Equatable {
    /// The name of the file in the folder of the bodies.
    package let name: String
    package let bytes: [UInt8]
}

/// A configuration that was made from a source.
package struct ImportedConfiguration: Sendable {
    /// The folder of the bodies, beside the configuration file.
    package static let bodies = "bodies"

    /// The services in the form of a configuration.
    package let services: [ContentTree]
    package let files: [ImportedFile]
    /// The notes in the order in which they were made.
    package let notes: [ImportNote]
    /// The number of rules and endpoints.
    package let rules: Int
    /// The number of credentials that were replaced.
    package let secrets: Int
    /// The requests that the rules were made from; a rule has none if no request can be made that it answers.
    package let examples: [ImportExample]

    /// The text of the configuration file.
    /// - Parameter comment: its first lines, without the comment sign.
    package func text(comment: [String]) -> String {
        comment.map { "# \($0.filter { !$0.isNewline && $0 != "\0" })\n" }.joined()
            + ConfigurationText.text(.object([.init("services", .array(services))]))
    }
}
