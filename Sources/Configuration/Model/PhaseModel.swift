// Placeholders and fallbacks: files that answer in place of a missing response.

/// A file that answers in place of a missing response.
package struct StandInConfiguration: Sendable, Hashable {
    /// Absolute; a regular file when the configuration was read.
    package var file: String
    /// Default: 200.
    package var status: Int
}

/// What answers while there is nothing yet.
package struct PlaceholderConfiguration: Sendable, Hashable {
    package var answer: StandInConfiguration
    /// Nanoseconds that a request waits before. Default: 300 ms.
    package var after: UInt64
}
