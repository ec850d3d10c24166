// What a request of the admin API is refused with.

/// Any answer with an error status: problem details (RFC 9457).
package struct AdminProblem: Codable, Sendable, Equatable {
    /// What kind of problem it is.
    package var title: String
    /// What happened, and what to do about it.
    package var detail: String
    /// That of the answer; nil from whoever leaves it out.
    package var status: Int?

    package init(title: String, detail: String, status: Int? = nil) {
        self.title = title
        self.detail = detail
        self.status = status
    }
}
