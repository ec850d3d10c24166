// The mapping of responses, as a configuration has it.

package import Mapping

/// What becomes of the documents of a service or an endpoint.
package struct MappingConfiguration: Sendable, Equatable {
    package var plan: MappingPlan
    /// Bytes. Default: 1 MiB.
    package var buffer: Int
}
