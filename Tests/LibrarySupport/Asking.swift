// Requests for the paths of an origin.

package import HTTPTypes
import TestSupport

extension Origin {
    /// A request for a path, as a program makes it.
    package func asking(_ path: String = "/a", _ method: HTTPRequest.Method = .get) -> HTTPRequest {
        HTTPRequest(method: method, scheme: "http", authority: server.authority, path: path)
    }

    /// A request for a path on it.
    package func request(_ path: String = "/a", _ fields: HTTPFields = [:], method: HTTPRequest.Method = .get)
        -> HTTPRequest
    {
        HTTPRequest(method: method, scheme: "http", authority: server.authority, path: path, headerFields: fields)
    }

    /// A request of any method.
    package func request(_ method: HTTPRequest.Method, _ path: String = "/a") -> HTTPRequest {
        HTTPRequest(method: method, scheme: "http", authority: server.authority, path: path)
    }
}
