// What becomes of a request in demo mode that no rule answers.

package enum UnmatchedPolicy: String, Sendable, CaseIterable {
    /// It gets a 404, which says what the nearest rules want: nothing reaches an origin by mistake.
    case notFound = "404"
    /// It goes on as if demo mode were off.
    case pass
}
