// Where the answers of a service or an endpoint come from, and the recordings of them.

package import Policies

/// `source`, `from` and `recordings`.
package struct RecordingConfiguration: Sendable, Equatable {
    /// Default: live.
    package var source: AnswerSource
    /// Each once; empty: as the source says.
    package var from: [AnswerRung]
    /// Absolute; nil only where the source is live.
    package var folder: String?
    package var rules: RecordingRules

    /// Whether an origin may be asked, as far as demo answers have nothing to do with it.
    package var asksOrigin: Bool { from.isEmpty ? source != .replay : from.contains(.live) }
}
