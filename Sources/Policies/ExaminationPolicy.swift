// What becomes of a request that is not as a document describes it.

package enum ExaminationPolicy: String, Sendable, CaseIterable {
    /// It is answered; the log, a metric and a field of the answer say what is wrong.
    case report
    /// It gets a 400.
    case refuse
}
