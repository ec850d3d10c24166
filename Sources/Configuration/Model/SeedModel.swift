// Seeds in the configuration: where responses are before anything was fetched.

package import Policies

/// A seed folder of a service, an endpoint or forward mode.
package struct SeedConfiguration: Sendable, Hashable {
    /// Absolute; a folder when the configuration was read.
    package var path: String
    /// Default: pinned.
    package var mode: SeedMode
    /// Default: url.
    package var layout: SeedLayout
}
