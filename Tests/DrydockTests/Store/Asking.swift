// Requests for the paths of an origin.

import HTTPTypes
import TestSupport

extension Origin {
    /// A request for a path, as a program makes it.
    func asking(_ path: String = "/a", _ method: HTTPRequest.Method = .get) -> HTTPRequest {
        HTTPRequest(method: method, scheme: "http", authority: server.authority, path: path)
    }
}
