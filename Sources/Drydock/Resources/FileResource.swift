// A file as a resource, in the place of a response.

import FoundationEssentials
import HTTPTypes

/// A file that is asked for by its URL.
struct FileResource {
    private let url: URL
    private let isHead: Bool

    /// Nil where the request is for no file.
    /// - Throws: `DownloadError.invalidRequest` where it does not only read.
    init?(_ request: HTTPRequest) throws(DownloadError) {
        guard request.scheme?.lowercased() == "file" else { return nil }
        guard request.method == .get || request.method == .head else {
            throw .invalidRequest("'\(request.text)' is a file, which GET and HEAD can read, and not \(request.method)")
        }
        guard let url = URL(string: String(request.text.prefix { $0 != "?" })) else {
            throw .invalidRequest("'\(request.text)' is no URL of a file")
        }
        self.url = url
        isHead = request.method == .head
    }

    /// - Throws: `DownloadError.file`, `.tooLarge`.
    func result(upTo limit: Int) async throws(DownloadError) -> DownloadResult {
        let data: Data
        do throws(DownloadError) {
            data = try await RequestBody.file(url).collect(upTo: limit)
        } catch {
            if case .requestBody(let text) = error { throw .file(text) }
            throw error
        }
        var response = HTTPResponse(status: .ok)
        response.headerFields[.contentLength] = "\(data.count)"
        return DownloadResult(url: url, outcome: .seeded, response: response, data: isHead ? Data() : data)
    }
}
