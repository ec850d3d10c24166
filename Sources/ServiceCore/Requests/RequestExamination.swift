// Requests that are looked at before anybody answers them: by whom, and what becomes of those that are not right.

package import Matching

/// Says what is wrong with requests. Any thread.
package protocol RequestExaminer: Sendable {
    /// Whether the content of such a request is looked at.
    func needsContent(method: String, path: String) -> Bool

    /// What is wrong, each with its place; empty if nothing is.
    func problems(_ request: RequestParts) -> [String]
}

/// How the requests of a service are examined.
package struct RequestExamination: Sendable {
    /// The name of the file that says which requests are right.
    package let document: String
    package let examiner: any RequestExaminer
    /// A request that is not right is not answered; otherwise it is told of.
    package let refuses: Bool
    /// Bytes of a content that are read, and that it may have without its codings; a longer one is not looked at.
    package let contentLimit: Int

    package init(_ examiner: any RequestExaminer, document: String, refuses: Bool, contentLimit: Int) {
        self.examiner = examiner
        self.document = document
        self.refuses = refuses
        self.contentLimit = contentLimit
    }
}
