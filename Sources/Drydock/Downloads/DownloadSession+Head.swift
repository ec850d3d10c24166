// The head of an answer to a download, as the program sees it.

import Content
import DownloadCore
import HTTPCaching
import HTTPTypes

extension DownloadSession {
    /// The head of an answer, as the program sees it. A reference, for it goes through many frames of tasks. Sendable:
    /// nothing in it changes.
    final class Head: Sendable {
        let response: HTTPResponse
        let outcome: DownloadOutcome
        /// Of the body as it comes, in bytes: coded where it is.
        let expected: Int64?
        /// What is taken off the body before the program gets it.
        let codings: [ContentCoding]
        let age: Duration
        let validity: Duration?
        /// Whose it is, as a digest; nil: nobody's.
        let holder: String?
        /// Why no answer has come; nil if one has.
        let failure: FetchError?

        /// Of the body as the program gets it, in bytes.
        var length: Int64? { codings.isEmpty ? expected : nil }

        /// - Parameter isDecoded: the program gets decoded bytes.
        init(_ answer: Answer, isDecoded: Bool, holder: String?) {
            self.holder = holder
            codings = isDecoded ? answer.codings : []
            response = HTTPResponse(codings.isEmpty ? answer : answer.decodedHead)
            outcome = DownloadOutcome(answer.cacheStatus)
            expected = answer.length
            age = .seconds(answer.age ?? 0)
            validity = answer.cacheStatus?.ttl.map { .seconds($0) }
            failure = answer.failure
        }
    }
}
