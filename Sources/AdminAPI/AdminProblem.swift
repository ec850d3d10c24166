// The refusal of a request of the admin API.

/// Any answer with an error status: problem details (RFC 9457).
package struct AdminProblem: Codable, Sendable, Equatable {
    /// What kind of problem it is.
    package var title: String
    /// What happened, and what to do about it.
    package var detail: String
    /// The status of the answer; nil if the sender leaves it out.
    package var status: Int?

    package init(title: String, detail: String, status: Int? = nil) {
        self.title = title
        self.detail = detail
        self.status = status
    }
}
