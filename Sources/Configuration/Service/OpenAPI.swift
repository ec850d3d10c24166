// Resolves the document that requests are checked by, and reads it once to find its mistakes.

import DemoMode
import Interchange
import Policies

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
