// The OpenAPI document that the requests of a service are checked by; it is read once to find its mistakes.

import Contracts
import DemoMode
package import Policies

extension KeyTable {
    private static let openAPI = SectionDescriptor(
        name: "openapi",
        keys: [
            KeyDescriptor("file", .path, "The document of OpenAPI 3.0 or 3.1, in YAML or JSON.", required: true),
            KeyDescriptor(
                "validate",
                .choice(ExaminationPolicy.allCases.map(\.rawValue)),
                default: "report",
                "What becomes of a request that is not as the document says: report answers it and says what is wrong, refuse gives it a 400."
            ),
            KeyDescriptor(
                "body_limit",
                .size,
                default: "1MiB",
                "How much of a body is read to be checked; a longer one that has to be checked is not as the document says."
            ),
        ],
        replaces: true
    )

    /// The key `openapi` of services.
    static let openAPIKey = KeyDescriptor(
        "openapi",
        .shorthand(openAPI, key: "file"),
        "The document that says which requests are right, and what becomes of others."
    )
}

/// The values of `openapi` of a service.
package struct OpenAPIConfiguration: Sendable, Equatable {
    /// The absolute path of the document.
    package var file: String
    /// The treatment of requests that break the document's rules. Default: report.
    package var validate: ExaminationPolicy
    /// The most bytes of a body that are read for the check. Default: 1 MiB.
    package var bodyLimit: Int
}

extension Resolver {
    /// The most items that the warning about unchecked parts names.
    private static let mostShown = 5

    /// Reads and checks the section `openapi`.
    /// - Parameter reader: a service.
    /// - Returns: nil if there is no document, or one that cannot be read.
    mutating func openAPI(_ reader: SectionReader) -> OpenAPIConfiguration? {
        let section = reader.section("openapi")
        guard let file = section.text("file"), let position = section.position("file") else { return nil }
        if let problem = FileChecks.readable(file, atMost: DocumentReader.largestFile) {
            fail(position, file: "'openapi.file' \(problem)")
            return nil
        }
        // A file that cannot be read, such as on a failing disk, counts as empty, and so is reported as no document.
        let bytes = (try? DemoFile.load(path: file, limit: DocumentReader.largestFile))?.bytes ?? []
        do throws(DocumentError) {
            let check = try RequestCheck(bytes, file: file)
            if !check.unchecked.isEmpty { warnings.append(Self.notChecked(check.unchecked, position)) }
            if !check.hasPaths {
                let message =
                    "the document under 'openapi' has no paths, so that every request is wrong; add paths, or remove 'openapi'"
                warnings.append(ConfigurationError(position: position, message: message))
            }
        } catch {
            fail(position, file: "'openapi.file' is no document that requests can be checked by: \(error)")
            return nil
        }
        // The document is watched, so that a change is in force at once.
        demoFiles.append(file)
        return OpenAPIConfiguration(
            file: file,
            validate: section.choice(always: "validate"),
            bodyLimit: section.bytes(always: "body_limit")
        )
    }

    /// The warning about parts of a document that are not checked.
    private static func notChecked(_ unchecked: [String], _ position: SourcePosition) -> ConfigurationError {
        let shown = unchecked.prefix(mostShown).joined(separator: ", ")
        let more = unchecked.count > mostShown ? " and \(unchecked.count - mostShown) more" : ""
        return ConfigurationError(
            position: position,
            message: "not all that the document under 'openapi' says of requests is checked; left out: \(shown)\(more)"
        )
    }
}
