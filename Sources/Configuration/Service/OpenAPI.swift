// The document that the requests of a service are checked by; it is read once to find its mistakes.

import DemoMode
import Interchange
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

    /// Among the keys of services.
    static let openAPIKey = KeyDescriptor(
        "openapi",
        .shorthand(openAPI, key: "file"),
        "The document that says which requests are right, and what becomes of others."
    )
}

/// `openapi` of a service.
package struct OpenAPIConfiguration: Sendable, Equatable {
    /// The absolute path of the document.
    package var file: String
    /// Default: report.
    package var validate: ExaminationPolicy
    /// Bytes of a body that are read to be checked. Default: 1 MiB.
    package var bodyLimit: Int
}

extension Resolver {
    /// What a warning names of all that is not checked.
    private static let mostShown = 5

    /// - Parameter reader: of a service.
    /// - Returns: nil where it names no document, or one that cannot be read.
    mutating func openAPI(_ reader: SectionReader) -> OpenAPIConfiguration? {
        let section = reader.section("openapi")
        guard let file = section.text("file"), let place = section.place("file") else { return nil }
        if let problem = FileChecks.readable(file, atMost: Importer.largestFile) {
            fail(place, file: "'openapi.file' \(problem)")
            return nil
        }
        // What cannot be read although it is there, such as on a disk that fails, is empty, and so no document.
        let bytes = (try? DemoFile.load(path: file, limit: Importer.largestFile))?.bytes ?? []
        do throws(ImportError) {
            let unchecked = try RequestCheck(bytes, file: file).unchecked
            if !unchecked.isEmpty { warnings.append(Self.notChecked(unchecked, place)) }
        } catch {
            fail(place, file: "'openapi.file' is no document that requests can be checked by: \(error)")
            return nil
        }
        // An edited document is in force at once.
        demoFiles.append(file)
        return OpenAPIConfiguration(
            file: file,
            validate: section.choice(always: "validate"),
            bodyLimit: section.bytes(always: "body_limit")
        )
    }

    /// The warning about what a document says and nobody checks.
    private static func notChecked(_ unchecked: [String], _ place: SourcePosition) -> ConfigurationError {
        let shown = unchecked.prefix(mostShown).joined(separator: ", ")
        let more = unchecked.count > mostShown ? " and \(unchecked.count - mostShown) more" : ""
        return ConfigurationError(
            place: place,
            message: "not all that the document under 'openapi' says of requests is checked; left out: \(shown)\(more)"
        )
    }
}
