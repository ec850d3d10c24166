// A request as a scripted transport has got it.

public import Drydock
public import FoundationEssentials
public import HTTPTypes

/// A request that a ``ScriptedTransport`` has got.
public struct RecordedRequest: Sendable {
    /// Method, scheme, authority, path and fields.
    public let head: HTTPRequest
    /// The bytes of its content, read to their end; nil where it has none.
    public let body: Data?
    /// The media type of the content where the content has one of its own.
    public let contentType: String?
    /// How the cache was to be used.
    public let options: DownloadOptions

    /// Its method.
    public var method: HTTPRequest.Method { head.method }
    /// Path and query, as they were asked for.
    public var target: String { head.path.map { $0.isEmpty ? "/" : $0 } ?? "/" }
    /// The path without the query.
    public var path: String { String(target.prefix { $0 != "?" }) }
    /// What follows the `?`; nil where there is none.
    public var query: String? { target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) } }
    /// The whole URL.
    public var url: String { "\(head.scheme ?? "http")://\(head.authority ?? "")\(target)" }
    /// The content as UTF-8, broken bytes replaced; empty where there is none.
    public var text: String { String(decoding: body ?? Data(), as: UTF8.self) }
}
