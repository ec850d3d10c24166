// Documents of OpenAPI as examiners of requests.

import Configuration
import DemoMode
import Interchange
import Matching
import Policies
import ServiceCore

/// Checks requests by a document.
private struct DocumentExaminer: RequestExaminer {
    let check: RequestCheck

    func needsContent(method: String, path: String) -> Bool { check.needsContent(method: method, path: path) }

    func problems(_ request: RequestParts) -> [String] { check.violations(request).map(\.description) }
}

extension RoutePlan {
    /// Reads the document of a service.
    static func examination(
        _ document: OpenAPIConfiguration?,
        _ files: AnswerFiles
    ) throws(PlanError) -> RequestExamination? {
        guard let document else { return nil }
        let file = try files.load(document.file)
        // Its name is enough for whoever sends requests; the path is the daemon's.
        let name = document.file.split(separator: "/").last.map(String.init) ?? document.file
        let check: RequestCheck
        do throws(ImportError) { check = try RequestCheck(file.bytes, file: name) } catch {
            throw .document(
                "\(document.file) has changed, and is no document that requests can be checked by: \(error)"
            )
        }
        return RequestExamination(
            DocumentExaminer(check: check),
            document: name,
            refuses: document.validate == .refuse,
            contentLimit: document.bodyLimit
        )
    }
}
