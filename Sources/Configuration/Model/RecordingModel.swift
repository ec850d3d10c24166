// Where the answers of a service or an endpoint come from, and the recordings of them.

package import Policies

/// `source` and `recordings`.
package struct RecordingConfiguration: Sendable, Equatable {
    /// Default: live.
    package var source: AnswerSource
    /// Absolute; nil only where the source is live.
    package var folder: String?
    package var rules: RecordingRules
}
