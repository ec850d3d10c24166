// The document that the requests of a service are checked by.

package import Policies

/// `openapi` of a service.
package struct OpenAPIConfiguration: Sendable, Equatable {
    /// The absolute path of the document.
    package var file: String
    /// Default: report.
    package var validate: ExaminationPolicy
    /// Bytes of a body that are read to be checked. Default: 1 MiB.
    package var bodyLimit: Int
}
