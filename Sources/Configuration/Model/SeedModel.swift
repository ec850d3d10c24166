// Seeds in the configuration: where responses are before anything was fetched.

/// A seed folder of a service, an endpoint or forward mode.
package struct SeedConfiguration: Sendable, Hashable {
    package enum Mode: String, Sendable, CaseIterable {
        /// Searched first, never checked.
        case pinned
        /// Copied into the store, stale.
        case `import`
    }
    /// How the files are named.
    package enum Layout: String, Sendable, CaseIterable { case url, docker }

    /// Absolute; a folder when the configuration was read.
    package var path: String
    /// Default: pinned.
    package var mode: Mode
    /// Default: url.
    package var layout: Layout
}
