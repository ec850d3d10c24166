// The check of requests before they are answered, and the treatment of requests that fail it.

package import Matching

/// Finds the mistakes of requests. Any thread.
package protocol RequestExaminer: Sendable {
    /// Whether the content of such a request is examined.
    func needsContent(method: String, path: String) -> Bool

    /// What is wrong, each with its position; empty if nothing is.
    func problems(_ request: RequestParts) -> [String]
}

/// The settings for the examination of a service's requests.
package struct RequestExamination: Sendable {
    /// The name of the file with the rules for requests.
    package let document: String
    package let examiner: any RequestExaminer
    /// Whether a request with mistakes is refused; otherwise they are only reported.
    package let refuses: Bool
    /// The most bytes of a content that are read, and that it may have without its codings; a longer one is not
    /// examined.
    package let contentLimit: Int

    package init(_ examiner: any RequestExaminer, document: String, refuses: Bool, contentLimit: Int) {
        self.examiner = examiner
        self.document = document
        self.refuses = refuses
        self.contentLimit = contentLimit
    }
}
