// What an import reads, and what it makes of it: a configuration, the bodies beside it, and notes on what was not kept.

package import Content

/// A format that another tool writes.
package enum ImportFormat: String, CaseIterable, Sendable {
    case har, wiremock, postman, openapi
}

/// A file of another tool.
package struct ImportSource: Sendable {
    /// What notes and errors call it.
    package let name: String
    package let bytes: [UInt8]

    package init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
    }
}

/// How files are read.
package struct ImportOptions: Sendable {
    /// Credentials stay as they are. Default: they are replaced.
    package var keepsSecrets = false
    /// The hosts of a HAR file whose requests are read, in lower case; empty means all.
    package var hosts: [String] = []
    /// The name of the service, where there is one only; nil: it follows from the source.
    package var service: String?

    /// The seed of the values that are made from schemas.
    package var seed: UInt64 = 0

    package init() {}
}

/// A value within a file.
package struct ImportPlace: Sendable, Equatable, CustomStringConvertible {
    package let file: String
    /// A JSON pointer (RFC 6901); empty for the whole document.
    package let pointer: String

    package init(file: String, pointer: String = "") {
        self.file = file
        self.pointer = pointer
    }

    /// The place of a member or an element of the value that is here.
    package func within(_ names: String...) -> ImportPlace {
        let escaped = names.map { name in
            name.replacing("~", with: "~0").replacing("/", with: "~1")
        }
        return ImportPlace(file: file, pointer: pointer + escaped.map { "/\($0)" }.joined())
    }

    func within(_ position: Int) -> ImportPlace { within(String(position)) }

    /// `shop.har#/log/entries/3`
    package var description: String { pointer.isEmpty ? file : "\(file)#\(pointer)" }
}

/// Something of a source that the configuration does not have, or has otherwise.
package struct ImportNote: Sendable, Equatable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        /// A whole rule is missing.
        case leftOut = "left out"
        /// The rule is there, and differs in this.
        case changed
        /// The rule is there, and another one answers the request that it was made of.
        case answeredByOther = "answered by another rule"
    }

    package let place: ImportPlace
    package let kind: Kind
    /// What it is, and why.
    package let reason: String

    package init(_ place: ImportPlace, _ kind: Kind, _ reason: String) {
        self.place = place
        self.kind = kind
        self.reason = reason
    }

    package var description: String { "\(place): \(kind.rawValue): \(reason)" }
}

/// Why a source cannot be read at all.
package struct ImportError: Error, Sendable, Equatable, CustomStringConvertible {
    package let place: ImportPlace
    package let reason: String

    package init(_ place: ImportPlace, _ reason: String) {
        self.place = place
        self.reason = reason
    }

    package var description: String { "\(place): \(reason)" }
}

/// The body of an answer.
package struct ImportedFile: Sendable, Equatable {
    /// The name of the file in the folder of the bodies.
    package let name: String
    package let bytes: [UInt8]
}

/// A configuration that was made of a source.
package struct ImportedConfiguration: Sendable {
    /// The folder of the bodies, beside the configuration file.
    package static let bodies = "bodies"

    /// The services, as a configuration has them.
    package let services: [ContentTree]
    package let files: [ImportedFile]
    /// The notes in the order in which they were made.
    package let notes: [ImportNote]
    /// How many rules and endpoints there are.
    package let rules: Int
    /// Values of credentials that were replaced.
    package let secrets: Int
    /// Requests that the rules were made of; a rule that no request could be made of has none.
    package let examples: [ImportExample]

    /// The configuration file.
    /// - Parameter comment: its first lines, without the sign of a comment.
    package func text(comment: [String]) -> String {
        comment.map { "# \($0.filter { !$0.isNewline && $0 != "\0" })\n" }.joined()
            + ConfigurationText.text(.object([.init("services", .array(services))]))
    }
}
