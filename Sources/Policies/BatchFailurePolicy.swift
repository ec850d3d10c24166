// What one failure means for the rest of a batch.

/// What the failure of an item means for the others; the raw value is what options and documents say.
package enum BatchFailurePolicy: String, Sendable, Codable, CaseIterable {
    case `continue`
    /// No further item is begun; those under way end as they may, and the rest stays queued.
    case stop
    /// Those under way are cancelled, and the rest with them.
    case cancelRest = "cancel-rest"
}
